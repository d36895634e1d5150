//! Statistics of a store.

use super::store::Store;
use crate::kernel::lock::lock;

/// Statistics of a store at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStats {
    /// The number of keys that have a value.
    pub keys: u64,
    /// Bytes of memory that the index takes.
    pub index_bytes: u64,
    /// The number of segments.
    pub segments: u64,
    /// Bytes of all segments.
    pub log_bytes: u64,
    /// Bytes of records that were overwritten or deleted.
    pub dead_bytes: u64,
    /// Bytes of tombstones.
    pub tombstone_bytes: u64,
    /// Bytes of keys and values written since the store was opened.
    pub user_bytes: u64,
    /// Bytes appended to the log for them.
    pub appended_bytes: u64,
    /// Bytes written by compaction since the store was opened.
    pub compacted_bytes: u64,
    /// Records read since the store was opened to compare their keys.
    pub reads: u64,
    /// A write failed, and the store takes no more writes.
    pub poisoned: bool,
    /// Why the last compaction in the background failed, if it did. No data is lost by that.
    pub compaction_failed: Option<String>,
}

impl Store {
    pub(super) fn stats(&self) -> LogStats {
        let segments = self.segments.all();
        LogStats {
            keys: self.index.len(),
            index_bytes: self.index.bytes(),
            segments: segments.len() as u64,
            log_bytes: segments.iter().map(|segment| segment.end()).sum(),
            dead_bytes: segments.iter().map(|segment| segment.dead()).sum(),
            tombstone_bytes: segments.iter().map(|segment| segment.tombstones()).sum(),
            user_bytes: self.counts.user.get(),
            appended_bytes: self.counts.appended.get(),
            compacted_bytes: self.counts.compacted.get(),
            reads: self.index.reads(),
            poisoned: self.log.poison.has_failed(),
            compaction_failed: lock(&self.compaction_failure).clone(),
        }
    }
}
