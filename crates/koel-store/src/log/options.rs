//! How a store is opened.

use crate::kernel::record::ALIGNMENT;
use crate::kernel::segment::SIZES;

/// Settings for opening a store.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// use koel_store::LogOptions;
///
/// let store = LogOptions::default().segment_bytes(16 << 20).open(folder.path())?;
/// assert_eq!(store.stats().keys, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogOptions {
    pub(super) segment_bytes: u64,
    pub(super) expected_keys: u64,
    pub(super) max_open_files: usize,
    pub(super) bytes_per_sync: u64,
    pub(super) background: bool,
    pub(super) compaction_rate: u64,
    pub(super) seed: Option<u64>,
    pub(super) read_only: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 128 << 20,
            expected_keys: 0,
            max_open_files: 128,
            bytes_per_sync: 8 << 20,
            background: true,
            compaction_rate: 64 << 20,
            seed: None,
            read_only: false,
        }
    }
}

impl LogOptions {
    /// Sets the size of a segment in bytes: 4 KiB to 16 GiB, 128 MiB by default.
    ///
    /// Each segment is a file; smaller ones give space back sooner. An existing store keeps the
    /// size with which it was created.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes.clamp(*SIZES.start(), *SIZES.end()).next_multiple_of(ALIGNMENT);
        self
    }

    /// Sets the number of keys for which the index makes room when the store is opened; 0 by
    /// default. The index grows if there are more.
    #[must_use]
    pub fn expected_keys(mut self, keys: u64) -> Self {
        self.expected_keys = keys;
        self
    }

    /// Sets how many files the store keeps open, 128 by default; it may exceed that briefly.
    ///
    /// A read of a segment whose file is closed opens it, which takes a few microseconds. Raise
    /// this if more than 16 GiB, in segments of 128 MiB, are read at random.
    ///
    /// It is never more than half of what the process may have open (`ulimit -n`). If the system
    /// refuses a file nevertheless, all stores of the process close some of theirs, and the call is
    /// made again. A store needs about 10 descriptors.
    #[must_use]
    pub fn max_open_files(mut self, files: usize) -> Self {
        self.max_open_files = files;
        self
    }

    /// Sets how many unsynced bytes of a segment make a thread of the store sync it; 8 MiB by
    /// default.
    ///
    /// So the write that fills a segment does not wait for a sync of all of it, and a power failure
    /// loses little of what was not synced. When the thread syncs depends on scheduling, so equal
    /// writes may leave different marks in the log. If segments are not larger than this, there is
    /// no such thread.
    #[must_use]
    pub fn bytes_per_sync(mut self, bytes: u64) -> Self {
        self.bytes_per_sync = bytes;
        self
    }

    /// Sets whether a thread of the store compacts it when that is worthwhile; true by default. If
    /// false, only [`LogStore::compact`](super::LogStore::compact) does.
    #[must_use]
    pub fn background_compaction(mut self, on: bool) -> Self {
        self.background = on;
        self
    }

    /// Sets how many bytes per second that thread copies while less than 28 % of the log is dead;
    /// 64 MiB by default.
    ///
    /// It copies a record, or 1 MiB of records, and then waits. Calls of
    /// [`LogStore::compact`](super::LogStore::compact) wait meanwhile.
    #[must_use]
    pub fn compaction_rate(mut self, bytes_per_second: u64) -> Self {
        self.compaction_rate = bytes_per_second;
        self
    }

    /// Sets the seed of the key hash and the salt of checksums for a new store; random by default.
    /// For tests that need the same bytes every time.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets whether the store is opened read-only; false by default.
    ///
    /// A read-only store changes nothing in its folder, so the file system may be read-only too.
    /// Every write fails with [`Error::ReadOnly`](crate::Error::ReadOnly). Several processes may
    /// have a store open if all of them are read-only. What a crash left behind is ignored and
    /// stays in the folder. The store must exist.
    #[must_use]
    pub fn read_only(mut self, on: bool) -> Self {
        self.read_only = on;
        self
    }
}
