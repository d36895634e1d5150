//! How a store is opened, and how durable a write is.

use std::path::Path;
use std::sync::Arc;

use super::LogStore;
use crate::Error;
use crate::kernel::disk::DiskFolder;
use crate::kernel::files::Folder;
use crate::kernel::record::UNIT;
use crate::kernel::segment::SIZES;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// When the system has it: it survives the end of the process, not that of the machine, until the next sync.
    None,
    /// When it, and every write before it, is on the disk. Threads that wait at the same time share one sync.
    Synced,
}

/// Settings of a store to be opened.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// use koel_store::Options;
///
/// let store = Options::default().segment_bytes(16 << 20).open(folder.path())?;
/// assert_eq!(store.stats().keys, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) segment_bytes: u64,
    pub(super) expected_keys: u64,
    pub(super) open_files: usize,
    pub(super) sync_behind: u64,
    pub(super) background: bool,
    pub(super) compaction_rate: u64,
    pub(super) seed: Option<u64>,
    pub(super) read_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 128 << 20,
            expected_keys: 0,
            open_files: 128,
            sync_behind: 8 << 20,
            background: true,
            compaction_rate: 64 << 20,
            seed: None,
            read_only: false,
        }
    }
}

impl Options {
    /// Bytes of a segment, 4 KiB to 16 GiB; 128 MiB unless set. It is a property of the store: one that exists keeps what it was created with.
    /// Each is one file; smaller ones give space back sooner.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes.clamp(*SIZES.start(), *SIZES.end()).next_multiple_of(UNIT);
        self
    }

    /// Makes room in the index for so many keys at once; 0 unless set. A store that has more grows.
    #[must_use]
    pub fn expected_keys(mut self, keys: u64) -> Self {
        self.expected_keys = keys;
        self
    }

    /// How many files the store has open at most, but for a few at moments; 128 unless set. A read of a segment whose file is closed opens it, which takes a few microseconds: where more than 16 GiB,
    /// in segments of 128 MiB, are read at random, and the system allows more files (`ulimit -n`), more are faster.
    #[must_use]
    pub fn open_files(mut self, files: usize) -> Self {
        self.open_files = files;
        self
    }

    /// While a segment fills, a thread of the store syncs it whenever so many bytes are not durable; 8 MiB unless set. So the write that fills it does not wait for a sync of all of it, and a power failure takes little of what was
    /// not synced. When it does so depends on how the threads run, so the same writes may leave different marks in the log. Where segments have no more bytes than that, there is no such thread.
    #[must_use]
    pub fn sync_behind(mut self, bytes: u64) -> Self {
        self.sync_behind = bytes;
        self
    }

    /// Whether a thread of the store compacts it when that is worth it; true unless set. Without it only [`LogStore::compact`] does.
    #[must_use]
    pub fn background_compaction(mut self, on: bool) -> Self {
        self.background = on;
        self
    }

    /// How many bytes per second the thread copies at most, while less than 28 % of the log is dead; 64 MiB unless set. It copies a record, or a MiB of them, and then waits; a call of
    /// [`LogStore::compact`] waits meanwhile.
    #[must_use]
    pub fn compaction_rate(mut self, bytes_per_second: u64) -> Self {
        self.compaction_rate = bytes_per_second;
        self
    }

    /// The seed of the hash of keys, and of the salt of checksums, of a store that is created; random unless set. For tests that want the same bytes every time.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Opens the store for reading alone: nothing in its folder is changed, which may be on a disk that takes no writes, and every write is [`Error::ReadOnly`]. Several processes may have it open so, as
    /// long as none writes. What a crash has left behind stays where it is, and counts for nothing. No store is created. Not so unless set.
    #[must_use]
    pub fn read_only(mut self, on: bool) -> Self {
        self.read_only = on;
        self
    }

    /// Opens the store in the folder at `path`, or creates it.
    ///
    /// # Errors
    /// [`Error::Locked`] where it is open already, [`Error::Damaged`] where its files are not as they were written, [`Error::OldManifest`] or [`Error::OtherStore`] where only some of them come from a copy,
    /// those of the system.
    pub fn open(self, path: impl AsRef<Path>) -> Result<LogStore, Error> {
        let path = path.as_ref();
        let folder = if self.read_only {
            DiskFolder::only_to_read(path)
        } else {
            DiskFolder::new(path).map_err(Error::io("create", &path.display().to_string()))?
        };
        self.open_in(Arc::new(folder))
    }

    /// Opens the store in a folder of any kind.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(self, folder: Arc<dyn Folder>) -> Result<LogStore, Error> {
        LogStore::open_in(folder, &self)
    }
}
