//! An archive: files in chunks, each chunk stored once, and every byte checked when it is read.
//!
//! A file is cut into [chunks](Chunking). A chunk is stored under its BLAKE3 hash, so equal chunks
//! of all files are one record. A folder is stored like a file, whose bytes are its entries: names,
//! attributes, and the hashes of their bytes. What is imported under a name becomes a new
//! [`Version`] of it; older versions stay until they are removed. [`Archive::export`] checks each
//! chunk and the whole. [`Archive::export_file`] creates the file only after all of it was checked.
//!
//! ```text
//! import     a stream in                read       files and entries out, checked
//! versions   what a name had when       edit       adding, removing and repairing versions
//! entry      a file, a folder, a link   error      what can go wrong
//! collect    drops unused chunks        verify     the checks of an export
//! chunks     cutting and compressing    keys       keys and small records
//! names      which are allowed, how they are printed
//! tree/      folders of a disk (Unix)   temporary  names of files that are not complete
//! skip       files not read again       copies     of what folders are read by
//! ```
//!
//! An archive relies only on the store keeping writes in order: chunks are written before the lists
//! that name them, lists and files before their folders, and the version last, in one batch with
//! the list of its name. So after a crash every version has all its parts, and
//! [`Archive::collect`] drops the rest. A collection waits for imports and exports, and they wait
//! for it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use koel_store::LogStore;
//! use koel_store::content::{Archive, Chunking};
//!
//! let archive = Archive::new(LogStore::open(folder.path())?);
//! let text = b"all work and no play ".repeat(100_000);
//! let first = archive.import("novel", &text[..], Chunking::default())?;
//! let again = archive.import("copy", &text[..], Chunking::default())?;
//! assert_eq!((first.length, first.chunks), (2_100_000, 129));
//! assert_eq!(again.new_chunks, 0);
//!
//! let mut out = Vec::new();
//! archive.export("novel", &mut out)?;
//! assert_eq!(out, text);
//! # Ok(())
//! # }
//! ```

mod chunks;
mod collect;
mod copies;
mod edit;
mod entry;
mod error;
mod import;
mod keys;
mod names;
mod read;
#[cfg(unix)]
mod skip;
mod temporary;
#[cfg(unix)]
mod tree;
mod verify;
mod versions;

/// Replacing a file in one step, and removing what killed processes have left of that.
pub mod replace {
    pub use super::temporary::sweep;
    pub use koel::file::{Readers, Replacement, folder_of};
}

pub use chunks::Chunking;
pub use collect::{CollectProgress, CollectReport};
pub use entry::{Attributes, Content, Entry, Kind, StoredFile, StoredFolder, Time};
pub use error::ArchiveError;
pub use import::ImportReport;
pub use names::{escape, normalize, unescape};
#[cfg(unix)]
pub use tree::{
    Problem, RestoreOptions, RestoreReport, Selection, Target, TreeOptions, TreeReport,
};
pub use verify::ArchiveVerifyReport;
pub use versions::Version;

use std::collections::BTreeSet;
use std::sync::{Mutex, RwLock};

use crate::kernel::log_end::LogPosition;
use crate::{Error, LogStore};

/// Files and folders in a [`LogStore`], cut into chunks that are stored once. Threads can share it.
#[derive(Debug)]
pub struct Archive {
    store: LogStore,
    /// Imports and exports read-lock it, a collection write-locks it: it must not drop a chunk that
    /// an import found present or that an export still reads.
    chunks_in_use: RwLock<()>,
    /// Held while versions are added or removed. All names, once a new one was compared with them.
    known_names: Mutex<Option<BTreeSet<Vec<u8>>>>,
    /// The end of the log when the archive was made.
    start: LogPosition,
    /// The level of zstd for new chunks.
    compression: Option<i32>,
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
