//! What a store holds, and what it has cost so far.

use std::sync::atomic::Ordering;

use super::store::{Store, lock};

/// Figures of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys with a value.
    pub keys: u64,
    /// Bytes of the index in memory.
    pub index_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of all segments.
    pub log_bytes: u64,
    /// Bytes of records in them that were overwritten or deleted.
    pub dead_bytes: u64,
    /// Bytes of tombstones.
    pub tombstone_bytes: u64,
    /// Bytes of keys and values written since the store was opened.
    pub user_bytes: u64,
    /// Bytes appended to the log for them.
    pub appended_bytes: u64,
    /// Bytes that compaction wrote since the store was opened.
    pub compacted_bytes: u64,
    /// Records read from files since the store was opened, to see whether they are those of a key.
    pub reads: u64,
    /// A write failed, and no more are taken.
    pub poisoned: bool,
    /// Why the last compaction in the background failed, if it did. Nothing is lost by that but space.
    pub compaction_failed: Option<String>,
}

impl Store {
    pub(super) fn stats(&self) -> Stats {
        let segments = self.segments.all();
        let counts = [&self.counts.user, &self.counts.appended, &self.counts.compacted];
        let [user_bytes, appended_bytes, compacted_bytes] =
            counts.map(|count| count.load(Ordering::Relaxed));
        Stats {
            keys: self.index.len(),
            index_bytes: self.index.bytes(),
            segments: segments.len() as u64,
            log_bytes: segments.iter().map(|segment| segment.end()).sum(),
            dead_bytes: segments.iter().map(|segment| segment.dead()).sum(),
            tombstone_bytes: segments.iter().map(|segment| segment.tombstones()).sum(),
            user_bytes,
            appended_bytes,
            compacted_bytes,
            reads: self.index.reads(),
            poisoned: self.poison.has_failed(),
            compaction_failed: lock(&self.compaction_failed).clone(),
        }
    }
}
