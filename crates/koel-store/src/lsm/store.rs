//! What the parts of an ordered store share, and its locks.
//!
//! A thread takes locks in this order:
//!
//! 1. One sync of the log at a time.
//! 2. The end of the log.
//! 3. `flushing`: one memtable at a time becomes a table.
//! 4. `saved_guide`: one guide at a time is read from disk or written there.
//! 5. `versions`: every change of the version.
//! 6. `manifest`: the manifest on disk, and every change of the state but for a new guide.
//! 7. `prepared`, `jobs`, `state`, `snapshots`, and how far the log is durable: held for moments.
//! 8. The range deletions of a memtable.
//!
//! Readers take a read lock of `state` for a moment, and nothing else.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::compaction::{Filter, YoungLimits};
use super::entry::hash_of;
use super::failed::Jobs;
use super::options::LsmOptions;
use super::snapshots::Snapshots;
use super::switch::Switch;
use super::table::{BlockCache, TableInfo};
use super::version::State;
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::log_end::Log;
use crate::kernel::manifest::Manifest;
use crate::kernel::recovery::OpenReport;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::threads::{Counter, Wakeup, lock};

/// An open store.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) folder: Arc<dyn Folder>,
    pub(super) salt: u64,
    pub(super) seed: u64,
    pub(super) options: LsmOptions,
    pub(super) filter: Option<Filter>,
    pub(super) young_limits: YoungLimits,
    pub(super) cache: Arc<BlockCache>,
    pub(super) state: Switch<State>,
    pub(super) snapshots: Snapshots,
    pub(super) log: Log<()>,
    /// The next file of the log, if it was made in advance. No manifest names it.
    pub(super) prepared: Mutex<Option<Arc<Segment>>>,
    pub(super) flushing: Mutex<()>,
    /// Which runs a merge leaves alone.
    pub(super) jobs: Mutex<Jobs>,
    pub(super) versions: Mutex<()>,
    /// The numbers of the runs that the guide on disk knows.
    pub(super) saved_guide: Mutex<Vec<u64>>,
    pub(super) manifest: Mutex<Manifest>,
    /// The number of the next file.
    pub(super) next_number: AtomicU64,
    pub(super) threads: Threads,
    pub(super) counts: Counts,
    pub(super) open_report: OpenReport,
}

/// How the threads of the store, and the writers that wait for them, are told of each other.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) flush_due: Wakeup,
    pub(super) merge_due: Wakeup,
    pub(super) guide_due: Wakeup,
    /// A guide is to be built from all runs.
    pub(super) guide_missing: AtomicBool,
    /// Counts what was installed.
    installed: Mutex<u64>,
    progress: Condvar,
    /// Why the last flush failed, and the last merge, if they did.
    pub(super) flush_failure: Mutex<Option<String>>,
    pub(super) merge_failure: Mutex<Option<String>>,
}

/// What happened since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Bytes of keys and values.
    pub(super) user: Counter,
    /// Bytes written to the log for them.
    pub(super) logged: Counter,
    /// Where the last file of the log ends.
    pub(super) log_end: Counter,
    /// Bytes of tables that were written from memtables, or ingested.
    pub(super) flushed: Counter,
    /// Bytes of tables that were written by merges.
    pub(super) merged: Counter,
    /// Runs that were asked for a key that they do not have.
    pub(super) false_candidates: Counter,
    /// Reads without a guide.
    pub(super) unguided: Counter,
    /// Merges that skipped damaged blocks.
    pub(super) skipped: Counter,
    /// Microseconds that writes have waited for merges.
    pub(super) stalled: Counter,
    /// Microseconds of waiting that writes owe.
    pub(super) owed: Counter,
}

impl Threads {
    /// Tells waiting writers that a memtable or a run has gone.
    pub(super) fn notify_progress(&self) {
        *lock(&self.installed) += 1;
        self.progress.notify_all();
    }

    /// Waits until something was installed, for at most `limit`.
    pub(super) fn wait_for_progress(&self, limit: Duration) {
        let installed = lock(&self.installed);
        let before = *installed;
        let waited = self.progress.wait_timeout_while(installed, limit, |now| *now == before);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns why the store makes no progress, if that is known.
    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.flush_failure).clone().or_else(|| lock(&self.merge_failure).clone())
    }
}

impl Store {
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        hash_of(key, self.seed)
    }

    /// Returns a number that no file has.
    pub(super) fn take_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Removes a file that no manifest names, after a failure. If it is not known whether one does,
    /// the file stays. What cannot be removed is when the store is next opened.
    pub(super) fn remove_unnamed(&self, name: &str) {
        if !self.log.poison.has_failed() {
            drop(self.folder.remove(name));
        }
    }

    /// Changes the manifest on disk, and `manifest` with it.
    pub(super) fn change_manifest(
        &self,
        manifest: &mut Manifest,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<(), Error> {
        let mut next = manifest.clone();
        next.number = self.next_number.load(Ordering::Relaxed);
        next.sequence = next.sequence.max(self.snapshots.visible() + 1);
        next.clean = false;
        if let Some(last) = next.logs.last_mut() {
            let durable = self.log.durable();
            let known = if durable.segment == last.number { durable.offset } else { FIRST_RECORD };
            last.end = known;
        }
        change(&mut next);
        next.store(&*self.folder, &self.log.poison)?;
        *manifest = next;
        Ok(())
    }
}

/// The error of work that ends because the store is being closed.
pub(super) fn stopped() -> Error {
    Error::io("merge", "the runs")(io::ErrorKind::Interrupted.into())
}

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
    /// Parts of the keys that were deleted as ranges, which every read looks through.
    pub range_deletions: u64,
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
    /// Pairs of a key and a run that the guide has in its stash.
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
    /// Deletions of single keys.
    pub tombstones: u64,
    /// Parts of the keys that were deleted as ranges, as far as that is not merged away.
    pub range_deletions: u64,
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
            range_deletions: info.range_deletions.len() as u64,
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
            range_deletions: state.range_deletions.len() as u64,
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
            damage_skipped: counts.skipped.get(),
            stalled_micros: counts.stalled.get(),
            poisoned: self.log.poison.has_failed(),
            flush_failed: lock(&self.threads.flush_failure).clone(),
            merge_failed: lock(&self.threads.merge_failure).clone(),
            filter_panicked: filter.map(str::to_owned),
        }
    }
}
