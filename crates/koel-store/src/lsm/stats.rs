//! Statistics of an ordered store.

use super::store::Store;
use super::table::TableInfo;
use crate::kernel::lock::lock;

/// Statistics of an ordered store at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LsmStats {
    /// The runs, youngest first.
    pub runs: Vec<RunStats>,
    /// Entries in memtables, old versions and deletions included.
    pub memtable_entries: u64,
    /// Bytes of memory that memtables take.
    pub memtable_bytes: u64,
    /// Memtables that wait to become tables.
    pub sealed_memtables: u64,
    /// Bytes of the log: of what is in no table yet.
    pub log_bytes: u64,
    /// Whether there is a guide. Without one, reads ask every run.
    pub has_guide: bool,
    /// Runs that the guide does not know yet. Every read asks them.
    pub unguided_runs: u64,
    /// Bytes of memory that the guide takes.
    pub guide_bytes: u64,
    /// Keys of runs that the guide has room for.
    pub guide_capacity: u64,
    /// Keys that the guide has in its side map.
    pub guide_side: u64,
    /// Runs that the guide names wrongly for an absent key, on average.
    pub guide_false_candidates: f64,
    /// Bytes of blocks in the cache.
    pub cache_bytes: u64,
    /// Live snapshots.
    pub snapshots: u64,
    /// Bytes of keys and values written since the store was opened.
    pub user_bytes: u64,
    /// Bytes written to the log for them.
    pub logged_bytes: u64,
    /// Bytes of tables that flushes and ingestions wrote.
    pub flushed_bytes: u64,
    /// Bytes of tables that merges wrote.
    pub merged_bytes: u64,
    /// Runs that were asked for a key that they do not have, because of the guide.
    pub false_candidates: u64,
    /// Keys that the guide did not know; only trials look for them.
    pub guide_errors: u64,
    /// Merges that left damaged blocks out, all keys of which were overwritten: no data is lost by
    /// that, but the disk is not sound.
    pub damage_skipped: u64,
    /// Microseconds that writes have waited for flushes and merges.
    pub stalled_micros: u64,
    /// A write failed, and the store takes no more writes.
    pub poisoned: bool,
    /// Why the last flush failed, if it did. No data is lost by that.
    pub flush_failed: Option<String>,
    /// Why the last merge failed, if it did. No data is lost by that.
    pub merge_failed: Option<String>,
    /// What the compaction filter said when it panicked, if it did: it is no longer called.
    pub filter_panicked: Option<String>,
}

/// A run at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStats {
    /// The number of its level: 0 for what a full memtable makes, and less. It follows from the
    /// size.
    pub level: u32,
    /// The number of its file.
    pub number: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// Entries, old versions and deletions included.
    pub entries: u64,
    /// Distinct keys.
    pub keys: u64,
    /// Deletions.
    pub tombstones: u64,
    /// Bytes of keys and values.
    pub entry_bytes: u64,
    /// Why the last merge of it failed, if its file is damaged or unreadable. Other runs are merged
    /// as before; this one is tried again after a minute or more, and by
    /// [`compact`](super::LsmStore::compact).
    pub failed: Option<String>,
}

impl LsmStats {
    /// Returns the bytes of all tables.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum()
    }
}

impl Store {
    pub(super) fn stats(&self) -> LsmStats {
        let state = self.state.load();
        let run = |(info, level): (&TableInfo, u32)| RunStats {
            level,
            number: info.number,
            bytes: info.bytes,
            entries: info.entries,
            keys: info.keys,
            tombstones: info.tombstones,
            entry_bytes: info.entry_bytes,
            failed: lock(&self.jobs).failure(info.number).map(str::to_owned),
        };
        let levels = self.levels(&state.version.runs);
        let infos = state.version.runs.iter().map(|run| run.table.info());
        let guide = state.version.guide.as_deref();
        let filter = self.filter.as_ref().and_then(|filter| filter.panicked());
        let unguided = state.version.runs.iter().filter(|run| !run.is_guided());
        let counts = &self.counts;
        let mut logs: Vec<u64> = lock(&self.manifest).logs.iter().map(|log| log.end).collect();
        if let Some(last) = logs.last_mut() {
            *last = counts.log_end.get();
        }
        LsmStats {
            runs: infos.zip(levels).map(run).collect(),
            memtable_entries: state.memtables().map(|memtable| memtable.len()).sum(),
            memtable_bytes: state.memtables().map(|memtable| memtable.bytes()).sum(),
            sealed_memtables: state.sealed.len() as u64,
            log_bytes: logs.iter().sum(),
            has_guide: guide.is_some(),
            unguided_runs: unguided.count() as u64,
            guide_bytes: guide.map_or(0, |guide| guide.bytes()),
            guide_capacity: guide.map_or(0, |guide| guide.capacity()),
            guide_side: guide.map_or(0, |guide| guide.side_len()),
            guide_false_candidates: guide.map_or(0.0, |guide| guide.false_candidates()),
            cache_bytes: self.cache.bytes(),
            snapshots: self.snapshots.live(),
            user_bytes: counts.user.get(),
            logged_bytes: counts.logged.get(),
            flushed_bytes: counts.flushed.get(),
            merged_bytes: counts.merged.get(),
            false_candidates: counts.false_candidates.get(),
            guide_errors: counts.guide_errors.get(),
            damage_skipped: counts.skipped.get(),
            stalled_micros: counts.stalled.get(),
            poisoned: self.log.poison.has_failed(),
            flush_failed: lock(&self.threads.flush_failure).clone(),
            merge_failed: lock(&self.threads.merge_failure).clone(),
            filter_panicked: filter.map(str::to_owned),
        }
    }
}
