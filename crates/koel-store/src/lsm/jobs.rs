//! Merging: adjacent runs become one.
//!
//! Several jobs run at once, on different runs. As in a flush, the new table is durable and named
//! by the manifest before the old ones are removed, once nobody reads them. They are removed oldest
//! first: what a crash leaves of them can then not revive a key that a younger one deletes, should
//! MANIFEST be lost.
//!
//! A damaged block of which every key was overwritten is skipped. Any other run
//! because of which a merge failed is left alone for a while (`failed.rs`). It divides the
//! others: those on either side of it are merged for themselves.
//!
//! **Damage.** The hashes of a table say which keys it had. If each of those that cannot be read
//! any more is in a younger input of the merge, and no snapshot may need an older version, the
//! merge drops what the block had in any case. So damage ends with the next merge of all runs
//! instead of preventing it. 64 bits of hash stand for a key here, as in a salvage.
//!
//! Memory: 16 bytes for each key of the damaged table, for the time of the check.

use std::ops::Range;
use std::time::Instant;

use super::compaction::{Rules, RunShape, merge};
use super::entry::Cursor;
use super::range_deletions::RangeDeletions;
use super::store::{Store, stopped};
use super::table::{Table, TableFile};
use super::version::{Run, Version};
use crate::Error;
use crate::kernel::events::tell;
use crate::kernel::manifest::{Manifest, RunEntry};
use crate::kernel::memory::reserve;
use crate::kernel::store_files::TABLE;
use crate::kernel::threads::{Signal, lock};

/// Merges keep a surplus hash for this many pairs of the guide, and some more, until the guide has
/// followed them: they take as much memory as the guide. Without them it keeps stale pairs.
const PAIRS_PER_SURPLUS: u64 = 4;
const FREE_SURPLUS: u64 = 1 << 16;
/// Entries between two checks whether the store is being closed.
const STEP: u64 = 1024;

/// Runs that are being merged. Other jobs leave them alone until this is dropped.
#[derive(Debug)]
struct Reserved<'a> {
    store: &'a Store,
    numbers: Vec<u64>,
    inputs: Vec<Run>,
    /// Whether no older run stays.
    is_bottom: bool,
    /// The most surplus hashes to keep.
    surplus_limit: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        lock(&self.store.jobs).end(&self.numbers);
    }
}

impl Store {
    /// Merges runs if the policy asks for it. Returns whether it did.
    pub(super) fn merge_once(&self) -> Result<bool, Error> {
        self.log.poison.check()?;
        let Some(mut job) = self.reserve(|runs, shapes| self.pick(runs, shapes)) else {
            return Ok(false);
        };
        // Another thread may find a job among the other runs.
        self.threads.merge_due.send(Signal::Work);
        self.run_job(&mut job)?;
        Ok(true)
    }

    /// Merges as long as the policy asks for it.
    pub(super) fn merge_due(&self) -> Result<(), Error> {
        while self.merge_once()? {}
        Ok(())
    }

    /// Merges all runs into one, unless there is one that has nothing to drop. Returns false if
    /// runs are being merged now.
    pub(super) fn merge_all(&self) -> Result<bool, Error> {
        if self.is_merged() {
            return Ok(true);
        }
        let job = self.reserve(|_, shapes| {
            let is_free = shapes.iter().all(|shape| !shape.busy);
            is_free.then_some(0..shapes.len())
        });
        job.map_or(Ok(false), |mut job| self.run_job(&mut job).map(|()| true))
    }

    /// Returns whether a merge of all runs would change nothing.
    fn is_merged(&self) -> bool {
        let version = self.state.load().version.clone();
        match &version.runs[..] {
            [] => true,
            [run] => {
                let info = run.table.info();
                let has_old = info.tombstones > 0
                    || info.entries > info.keys
                    || !info.range_deletions.is_empty();
                let is_filtered = self.filter.as_ref().is_some_and(|one| one.panicked().is_none());
                !has_old && !is_filtered
            }
            _ => false,
        }
    }

    /// Picks runs to merge and marks them.
    fn reserve(
        &self,
        pick: impl FnOnce(&[bool], &[RunShape]) -> Option<Range<usize>>,
    ) -> Option<Reserved<'_>> {
        let (mut jobs, now) = (lock(&self.jobs), Instant::now());
        let version = self.state.load().version.clone();
        let runs = &version.runs;
        let mut shapes = shapes(runs);
        for (shape, run) in shapes.iter_mut().zip(runs) {
            shape.busy = jobs.is_running(run.number());
        }
        let avoided: Vec<bool> =
            runs.iter().map(|run| jobs.is_avoided(run.number(), now)).collect();
        let job = pick(&avoided, &shapes)?;
        let is_bottom = job.end == runs.len();
        let inputs = runs.get(job)?.to_vec();
        let pairs: u64 = runs.iter().map(|run| run.table.info().keys).sum();
        let most = pairs / PAIRS_PER_SURPLUS + FREE_SURPLUS;
        let surplus_limit = most.saturating_sub(version.surplus());
        let numbers: Vec<u64> = inputs.iter().map(Run::number).collect();
        jobs.start(&numbers);
        Some(Reserved { store: self, numbers, inputs, is_bottom, surplus_limit })
    }

    /// Picks a merge of neighbours none of which is `avoided`.
    fn pick(&self, avoided: &[bool], shapes: &[RunShape]) -> Option<Range<usize>> {
        let mut start = 0;
        avoided.split(|&is_avoided| is_avoided).find_map(|group| {
            let runs = start..start + group.len();
            start = runs.end + 1;
            // The other runs need ids too.
            let most_runs = self.options.most_runs().saturating_sub(shapes.len() - group.len());
            let job = self.options.picker(most_runs).pick(&shapes[runs.clone()])?;
            Some(runs.start + job.start..runs.start + job.end)
        })
    }

    /// Returns the numbers of the levels of these runs.
    pub(super) fn levels(&self, runs: &[Run]) -> Vec<u32> {
        self.options.picker(self.options.most_runs()).level_numbers(&shapes(runs))
    }

    /// Merges the runs of a job, and notes how that ended.
    fn run_job(&self, job: &mut Reserved<'_>) -> Result<(), Error> {
        let mut merged = self.merge_runs(job, None);
        if let Some(damaged) = merged.as_ref().err().and_then(|error| damaged_place(job, error))
            && self.is_overwritten(&job.inputs, damaged).unwrap_or(false)
        {
            tell!(warn, "a merge skips damage that was overwritten", run = job.numbers[damaged]);
            merged = self.merge_runs(job, Some(damaged));
            self.counts.skipped.add(u64::from(merged.is_ok()));
        }
        lock(&self.jobs).note(&job.numbers, &merged, Instant::now());
        if !self.threads.merge_due.is_stopped() {
            let failure = merged.as_ref().err().map(Error::reason);
            if let Some(reason) = &failure {
                tell!(warn, "a merge failed", runs = job.numbers.len(), reason = reason.as_str());
            }
            *lock(&self.threads.merge_failure) = failure;
        }
        merged
    }

    /// Merges runs, and skips the damaged blocks of the one at the place `damaged`.
    fn merge_runs(&self, job: &mut Reserved<'_>, damaged: Option<usize>) -> Result<(), Error> {
        let boundaries = self.snapshots.boundaries()?;
        let lists = job.inputs.iter().map(|run| &*run.table.info().range_deletions);
        let rules = Rules {
            boundaries: &boundaries,
            range_deletions: &RangeDeletions::of(lists, &boundaries),
            is_bottom: job.is_bottom,
            filter: self.filter.as_ref(),
        };
        let cursor = |(place, run): (usize, &Run)| {
            let cursor = run.table.cursor(false);
            let skips = damaged == Some(place);
            Box::new(if skips { cursor.skipping() } else { cursor }) as Box<dyn Cursor>
        };
        let cursors: Vec<_> = job.inputs.iter().enumerate().map(cursor).collect();
        let (limit, hash) = (job.surplus_limit, |key: &[u8]| self.hash(key));
        let mut surplus = None;
        let table = self.write_table(job.is_bottom, rules.kept_range_deletions(), |sink| {
            let mut count = 0;
            surplus = merge(cursors, rules, hash, limit, &mut |entry| {
                count += 1;
                if count % STEP == 0 && self.threads.merge_due.is_stopped() {
                    return Err(stopped());
                }
                sink(entry)
            })?;
            Ok(())
        })?;
        self.counts.merged.add(table.as_ref().map_or(0, |table| table.info().bytes));
        self.install(
            |version: &Version| version.with_merge(&job.inputs, table.clone(), surplus),
            |manifest| replace_runs(manifest, &job.inputs, table.as_deref()),
            table.as_ref(),
            None,
        )?;
        let bytes = table.as_ref().map_or(0, |table| table.info().bytes);
        tell!(debug, "runs were merged", runs = job.inputs.len(), bytes = bytes);
        while let Some(run) = job.inputs.pop() {
            run.table.remove_when_unused(&self.folder);
        }
        self.threads.notify_progress();
        Ok(())
    }
}

fn shapes(runs: &[Run]) -> Vec<RunShape> {
    let shape = |run: &Run| {
        let info = run.table.info();
        let ranges = info.range_deletions.len() as u64;
        let (entries, tombstones) = (info.entries + ranges, info.tombstones + ranges);
        RunShape { bytes: info.bytes, entries, tombstones, busy: false }
    };
    runs.iter().map(shape).collect()
}

/// Returns the place of the input that an error says is damaged.
fn damaged_place(job: &Reserved<'_>, error: &Error) -> Option<usize> {
    let Error::Damaged { file, .. } = error else { return None };
    job.numbers.iter().position(|&number| TABLE.name(number) == *file)
}

/// Replaces adjacent runs in a manifest.
fn replace_runs(manifest: &mut Manifest, inputs: &[Run], table: Option<&Table>) {
    let is_input = |entry: &RunEntry| inputs.iter().any(|run| run.number() == entry.number);
    let at = manifest.runs.iter().position(is_input).unwrap_or(manifest.runs.len());
    manifest.runs.retain(|entry| !is_input(entry));
    if let Some(table) = table {
        manifest.runs.insert(at, table.info().run_entry());
    }
}

impl Store {
    /// Returns whether each key that the run at `place` has lost is in a younger one of `inputs`.
    pub(super) fn is_overwritten(&self, inputs: &[Run], place: usize) -> Result<bool, Error> {
        if self.snapshots.boundaries()?.len() > 1 {
            return Ok(false);
        }
        let info = inputs[place].table.info();
        let Some(damaged) = TableFile::open(&*self.folder, info.number, self.salt)? else {
            return Ok(false);
        };
        let (had, lost) = damaged.lost_hashes(self.seed, info.entries > info.keys)?;
        if had != info.keys {
            return Ok(false);
        }
        let mut found = Vec::new();
        reserve(&mut found, lost.len())?;
        found.resize(lost.len(), false);
        for run in &inputs[..place] {
            let (mut hashes, mut piece) = (run.table.hashes(), Vec::new());
            while hashes.next(&mut piece)? {
                for at in piece.iter().filter_map(|hash| lost.binary_search(hash).ok()) {
                    found[at] = true;
                }
            }
        }
        Ok(found.into_iter().all(|is_found| is_found))
    }
}
