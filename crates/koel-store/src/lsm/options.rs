//! How an ordered store is opened.

use std::time::Duration;

use super::compaction::{CompactionPolicy, Keep, Picker};
use super::entry::MAX_VALUE;
use super::guide::GuideOptions;
use super::table::{Codec, TableOptions};
use super::wal::MAX_BATCH;

/// How blocks of tables are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// With LZ4, which costs little time.
    #[default]
    Lz4,
    /// With Zstandard where a merge writes the last level, which has most of the data, and with LZ4
    /// elsewhere. Smaller and slower.
    ZstdLast,
}

/// Settings for opening an [`LsmStore`](super::LsmStore).
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// use koel_store::{Compression, LsmOptions};
///
/// let options = LsmOptions::default().cache_bytes(256 << 20).compression(Compression::ZstdLast);
/// let store = options.open(folder.path())?;
/// assert_eq!(store.stats().runs.len(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LsmOptions {
    pub(super) memtable_bytes: u64,
    pub(super) block_bytes: usize,
    pub(super) compression: Compression,
    pub(super) cache_bytes: u64,
    pub(super) policy: CompactionPolicy,
    pub(super) ratio: u32,
    pub(super) extra_space_percent: u32,
    pub(super) bytes_per_sync: u64,
    pub(super) max_open_files: usize,
    pub(super) background: bool,
    pub(super) stall_limit: Duration,
    pub(super) filter: Option<Keep>,
    pub(super) max_batch_bytes: u64,
    pub(super) few_entries: usize,
    /// 0: no guide.
    pub(super) id_bits: u32,
    pub(super) guide_least: u64,
    pub(super) seed: Option<u64>,
    pub(super) read_only: bool,
}

impl Default for LsmOptions {
    fn default() -> Self {
        let GuideOptions { id_bits, least } = GuideOptions::default();
        Self {
            memtable_bytes: 64 << 20,
            block_bytes: 4096,
            compression: Compression::default(),
            cache_bytes: 64 << 20,
            policy: CompactionPolicy::LazyLevelled,
            ratio: 5,
            extra_space_percent: u32::MAX,
            bytes_per_sync: 8 << 20,
            max_open_files: 128,
            background: true,
            stall_limit: Duration::from_secs(30),
            filter: None,
            max_batch_bytes: MAX_VALUE,
            few_entries: 1000,
            id_bits,
            guide_least: least,
            seed: None,
            read_only: false,
        }
    }
}

impl LsmOptions {
    /// Sets how much memory the newest entries take before they go into a table: 1 KiB to 1 GiB, 64
    /// MiB by default. An entry takes some 35 bytes besides its key and value. Up to three times as
    /// much is used while tables are written, and 3 % more for filters.
    #[must_use]
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.memtable_bytes = bytes.clamp(1 << 10, 1 << 30);
        self
    }

    /// Sets the size of a block of new tables before compression: 128 bytes to 1 MiB, 4 KiB by
    /// default. A read of a key reads one block.
    #[must_use]
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes.clamp(128, 1 << 20);
        self
    }

    /// Sets how blocks of new tables are compressed, with LZ4 by default.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets how many bytes of blocks are kept in memory, 64 MiB by default.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets how runs are merged, [lazily](CompactionPolicy::LazyLevelled) by default.
    #[must_use]
    pub fn policy(mut self, policy: CompactionPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how much larger each level is than the one before it: 2 to 32, 5 by default.
    #[must_use]
    pub fn ratio(mut self, ratio: u32) -> Self {
        self.ratio = ratio.clamp(2, 32);
        self
    }

    /// Sets how many bytes all runs but the last one may have together, in percent of its bytes: 10
    /// or more. With more, all runs are merged. By default there is no bound.
    ///
    /// It bounds the space of a store whose keys are overwritten. With random keys and 50, the
    /// entries in tables take at most 1.5 bytes for each live one in place of up to 2.8, as
    /// computed, and a tenth to a third more is written. The log, and while a merge goes on its
    /// output, need space in addition. docs/ORDERED-STORE.md has what was measured.
    #[must_use]
    pub fn extra_space_percent(mut self, percent: u32) -> Self {
        self.extra_space_percent = percent.max(10);
        self
    }

    /// Sets how many unsynced bytes of the log make a thread of the store sync it; 8 MiB by
    /// default. So a power failure loses little of what was not synced. There is no such thread
    /// without [`background`](Self::background).
    #[must_use]
    pub fn bytes_per_sync(mut self, bytes: u64) -> Self {
        self.bytes_per_sync = bytes;
        self
    }

    /// Sets how many files the store keeps open, 128 by default; it may exceed that briefly.
    ///
    /// It is never more than half of what the process may have open (`ulimit -n`). If the system
    /// refuses a file nevertheless, all stores of the process close some of theirs, and the call is
    /// made again. A store needs about 10 descriptors, and one for each merge.
    #[must_use]
    pub fn max_open_files(mut self, files: usize) -> Self {
        self.max_open_files = files;
        self
    }

    /// Sets whether threads of the store write tables and merge them; true by default. If false,
    /// a write that finds the memtable full does so before it writes, in the same order every time.
    #[must_use]
    pub fn background(mut self, on: bool) -> Self {
        self.background = on;
        self
    }

    /// Sets how long a write waits at most while tables are written and merged, 30 s by default.
    /// Then it fails with [`Error::Stalled`](crate::Error::Stalled). Only without
    /// [`background(false)`](Self::background).
    #[must_use]
    pub fn stall_limit(mut self, limit: Duration) -> Self {
        self.stall_limit = limit;
        self
    }

    /// Sets how many bytes a batch of several writes may have: up to 4 GiB, 256 MiB by default, as
    /// much as the longest value. A larger one is refused with
    /// [`Error::BatchTooLarge`](crate::Error::BatchTooLarge). A batch takes three times its bytes
    /// in memory while it is written.
    #[must_use]
    pub fn max_batch_bytes(mut self, bytes: u64) -> Self {
        self.max_batch_bytes = bytes.min(MAX_BATCH);
        self
    }

    /// Sets how many entries a range may have to be deleted key by key, 1,000 by default.
    /// [`delete_range`](super::LsmStore::delete_range) looks for so many. A range with more, or
    /// with more than 1 MiB, is deleted with one record, which reads ask until it is merged.
    #[must_use]
    pub fn few_entries(mut self, entries: usize) -> Self {
        self.few_entries = entries;
        self
    }

    /// Sets a function that says of a key and its value, when they are rewritten, whether to keep
    /// them: to let entries expire.
    ///
    /// An entry for which it returns false is deleted, sooner or later: until then reads see it. It
    /// must always return the same for the same entry, or change only from true to false.
    ///
    /// A [`Snapshot`](super::Snapshot) or a [`Range`](super::Range) still sees what was deleted
    /// after it was taken: it holds memory and files for that, as long as it lives. The function
    /// runs in threads of the store and must not use the store.
    ///
    /// If it panics, the merge that called it fails with
    /// [`Error::FilterPanicked`](crate::Error::FilterPanicked), and until the store is opened again
    /// every entry is kept. [`LsmStats::filter_panicked`](super::LsmStats::filter_panicked) has the
    /// reason.
    #[must_use]
    pub fn compaction_filter(
        mut self,
        keep: impl Fn(&[u8], &[u8]) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.filter = Some(Keep::new(keep));
        self
    }

    /// Sets the bits of the id of a run in the guide (2 to 5; 0 for no guide), and the least number
    /// of keys that it has room for. For tests: fewer bits reach rare paths.
    #[doc(hidden)]
    #[must_use]
    pub fn guide(mut self, id_bits: u32, least: u64) -> Self {
        self.id_bits = if id_bits == 0 { 0 } else { id_bits.clamp(2, 5) };
        self.guide_least = least.max(1);
        self
    }

    /// Sets the seed of the key hash and the salt of checksums for a new store; random by default.
    /// For tests that need the same bytes every time.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets whether the store is opened read-only; false by default. As
    /// [`LogOptions::read_only`](crate::LogOptions::read_only).
    #[must_use]
    pub fn read_only(mut self, on: bool) -> Self {
        self.read_only = on;
        self
    }

    /// Returns the number of runs that the guide can know: with nearly as many, some are merged.
    pub(super) fn most_runs(&self) -> usize {
        let guide = self.guide_options().unwrap_or_default();
        usize::try_from(guide.most_runs()).unwrap_or(usize::MAX)
    }

    /// Returns what picks the runs to merge, for a guide of so many runs.
    pub(super) fn picker(&self, most_runs: usize) -> Picker {
        Picker::new(
            self.policy,
            self.ratio,
            self.extra_space_percent,
            self.memtable_bytes,
            most_runs,
        )
    }

    /// Returns how the guide is built, or `None` for no guide.
    pub(super) fn guide_options(&self) -> Option<GuideOptions> {
        let options = GuideOptions { id_bits: self.id_bits, least: self.guide_least };
        (self.id_bits > 0).then_some(options)
    }

    /// Returns how a table is built; `is_last` if no older run stays.
    pub(super) fn table_options(&self, salt: u64, seed: u64, is_last: bool) -> TableOptions {
        let codec = match (self.compression, is_last) {
            (Compression::None, _) => Codec::None,
            (Compression::Lz4, _) | (Compression::ZstdLast, false) => Codec::Lz4,
            (Compression::ZstdLast, true) => Codec::Zstd,
        };
        TableOptions { salt, seed, block_bytes: self.block_bytes, codec }
    }
}
