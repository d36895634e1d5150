//! The public type of an archive.

use std::collections::BTreeSet;
use std::sync::{Mutex, RwLock};

use super::keys;
use crate::kernel::log_end::LogPosition;
use crate::{Error, LogStore};

/// Files and folders in a [`LogStore`], cut into chunks that are stored once. Threads can share it.
#[derive(Debug)]
pub struct Archive {
    pub(super) store: LogStore,
    /// Imports and exports read-lock it, a collection write-locks it: it must not drop a chunk that
    /// an import found present or that an export still reads.
    pub(super) chunks_in_use: RwLock<()>,
    /// Held while versions are added or removed. All names, once a new one was compared with them.
    pub(super) known_names: Mutex<Option<BTreeSet<Vec<u8>>>>,
    /// The end of the log when the archive was made.
    start: LogPosition,
    /// The level of zstd for new chunks.
    pub(super) compression: Option<i32>,
}

impl Archive {
    /// Returns the archive in a store. The store may be empty, and may have other records: the keys
    /// of an archive start with the byte FF.
    #[must_use]
    pub fn new(store: LogStore) -> Self {
        Self {
            start: store.end(),
            store,
            chunks_in_use: RwLock::default(),
            known_names: Mutex::default(),
            compression: None,
        }
    }

    /// Compresses new chunks with zstd at this level, 1 to 22, where that saves an eighth or more.
    /// Every archive reads compressed chunks.
    #[must_use]
    pub fn compressed(mut self, level: i32) -> Self {
        self.compression = Some(level);
        self
    }

    /// Returns whether a key is reserved for archives: it starts with the byte FF.
    #[must_use]
    pub fn is_reserved(key: &[u8]) -> bool {
        key.first() == Some(&keys::MARK)
    }

    /// Returns the store of the archive.
    #[must_use]
    pub fn store(&self) -> &LogStore {
        &self.store
    }

    /// Closes the store and takes back what was written since the archive was made, after an import
    /// that failed: otherwise its chunks stay until [`collect`](Self::collect). To be used only if
    /// nothing that was written since is to stay.
    ///
    /// Whole segments that were filled meanwhile stay, with the versions in them, as after a crash.
    ///
    /// # Errors
    /// I/O errors.
    pub fn abandon(self) -> Result<(), Error> {
        self.store.close_at(self.start)
    }

    /// Turns the archive into its store.
    #[must_use]
    pub fn into_store(self) -> LogStore {
        self.store
    }
}
