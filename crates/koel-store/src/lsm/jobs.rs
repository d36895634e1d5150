//! Merging: adjacent runs become one.
//!
//! Several jobs run at once, on different runs. As in a flush, the new table is durable and named
//! by the manifest before the old ones are removed. They are removed oldest first: what a crash
//! leaves of them can then not revive a key that a younger one deletes, should MANIFEST be lost.

use std::io;
use std::sync::Arc;

use super::compaction::{Job, Picker, Rules, RunShape, merge};
use super::cursor::Cursor;
use super::manifest::{Manifest, RunEntry};
use super::options::LsmOptions;
use super::state::State;
use super::store::Store;
use super::table::Table;
use super::version::Run;
use crate::Error;
use crate::kernel::file_names;
use crate::kernel::lock::lock;
use crate::kernel::wakeup::Signal;

/// A merge keeps surplus hashes of one in so many keys, and some more. With more of them, the guide
/// is built anew.
const SURPLUS_SHARE: u64 = 8;
const FREE_SURPLUS: u64 = 1 << 16;
/// Entries between two checks whether the store is being closed.
const STEP: u64 = 1024;

/// Runs that are being merged. Other jobs leave them alone until this is dropped.
#[derive(Debug)]
struct Reserved<'a> {
    store: &'a Store,
    inputs: Vec<Arc<Run>>,
    /// Whether no older run stays.
    is_bottom: bool,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut jobs = lock(&self.store.jobs);
        for run in &self.inputs {
            jobs.remove(&run.number());
        }
    }
}

impl Store {
    /// Merges runs if the policy asks for it. Returns whether it did.
    pub(super) fn merge_once(&self) -> Result<bool, Error> {
        self.poison.check()?;
        let Some(job) = self.reserve(|picker, shapes| picker.pick(shapes)) else {
            return Ok(false);
        };
        // Another thread may find a job among the other runs.
        self.threads.merge_due.send(Signal::Work);
        self.run_job(&job)?;
        Ok(true)
    }

    /// Merges as long as the policy asks for it.
    pub(super) fn merge_due(&self) -> Result<(), Error> {
        while self.merge_once()? {}
        Ok(())
    }

    /// Merges all runs into one. Returns false if others are being merged now.
    pub(super) fn merge_all(&self) -> Result<bool, Error> {
        let mut is_empty = false;
        let job = self.reserve(|_, shapes| {
            is_empty = shapes.is_empty();
            let is_free = shapes.iter().all(|shape| !shape.busy);
            (is_free && !is_empty).then_some(Job { runs: 0..shapes.len() })
        });
        match job {
            Some(job) => self.run_job(&job).map(|()| true),
            None => Ok(is_empty),
        }
    }

    /// Picks runs to merge and marks them.
    fn reserve(
        &self,
        pick: impl FnOnce(&Picker, &[RunShape]) -> Option<Job>,
    ) -> Option<Reserved<'_>> {
        let mut jobs = lock(&self.jobs);
        let runs = self.state.load().version.runs.clone();
        let mut shapes = shapes(&runs);
        for (shape, run) in shapes.iter_mut().zip(&runs) {
            shape.busy = jobs.contains(&run.number());
        }
        let job = pick(&self.picker(), &shapes)?;
        let is_bottom = job.runs.end == runs.len();
        let inputs = runs.get(job.runs)?.to_vec();
        jobs.extend(inputs.iter().map(|run| run.number()));
        Some(Reserved { store: self, inputs, is_bottom })
    }

    /// Returns the numbers of the levels of these runs.
    pub(super) fn levels(&self, runs: &[Arc<Run>]) -> Vec<u32> {
        self.picker().level_numbers(&shapes(runs))
    }

    fn picker(&self) -> Picker {
        let LsmOptions { policy, ratio, memtable_bytes, .. } = self.options;
        Picker::new(policy, ratio, memtable_bytes, self.most_runs())
    }

    /// Returns the number of runs at which no more are added before some are merged.
    pub(super) fn most_runs(&self) -> usize {
        let guide = self.options.guide_options().unwrap_or_default();
        usize::try_from(guide.most_runs()).unwrap_or(usize::MAX)
    }

    /// Builds a guide for the runs of this moment, if there is none or if it is to be replaced.
    pub(super) fn build_guide(&self, replace: bool) -> Result<(), Error> {
        let Some(options) = self.options.guide_options() else { return Ok(()) };
        let before = self.state.load().version.clone();
        if before.guide.is_some() && !replace {
            return Ok(());
        }
        let mut next = before.with_new_guide(&options)?;
        // Nobody changes the runs while the lock is held.
        let _manifest = lock(&self.manifest);
        let now = self.state.load().version.clone();
        let are_same =
            before.runs.iter().map(|run| run.number()).eq(now.runs.iter().map(|run| run.number()));
        if !are_same {
            next = now.with_new_guide(&options)?;
        }
        let next = Arc::new(next);
        self.state.update(|state| State { version: next, ..state.clone() });
        Ok(())
    }

    fn run_job(&self, job: &Reserved<'_>) -> Result<(), Error> {
        let boundaries = self.snapshots.boundaries()?;
        let rules = Rules {
            boundaries: &boundaries,
            is_bottom: job.is_bottom,
            filter: self.options.filter.as_deref(),
            protected: self.snapshots.newest(),
        };
        let cursor = |run: &Arc<Run>| Box::new(run.table.cursor(false)) as Box<dyn Cursor>;
        let cursors: Vec<_> = job.inputs.iter().map(cursor).collect();
        let keys: u64 = job.inputs.iter().map(|run| run.table.info().keys).sum();
        let limit = keys / SURPLUS_SHARE + FREE_SURPLUS;
        let mut surplus = None;
        let written = self.write_table(job.is_bottom, |sink| {
            let mut count = 0;
            let merged = merge(cursors, rules, |key| self.hash(key), limit, &mut |entry| {
                count += 1;
                if count % STEP == 0 && self.threads.merge_due.is_stopped() {
                    return Err(stopped());
                }
                sink(entry)
            })?;
            surplus = merged.surplus;
            Ok(())
        })?;
        let table = written.map(|(table, ())| table);
        self.counts.merged.add(table.as_ref().map_or(0, |table| table.info().bytes));
        self.install_merged(job, table, surplus.as_deref())?;
        for run in job.inputs.iter().rev() {
            // What cannot be removed is when the store is next opened.
            drop(self.folder.remove(&file_names::table(run.number())));
        }
        self.threads.notify_progress();
        Ok(())
    }

    /// Replaces the inputs of a job by its result, on disk and in memory.
    fn install_merged(
        &self,
        job: &Reserved<'_>,
        table: Option<Arc<Table>>,
        surplus: Option<&[u64]>,
    ) -> Result<(), Error> {
        let mut manifest = lock(&self.manifest);
        let version = self.state.load().version.clone();
        let next = Arc::new(version.with_merge(&job.inputs, table.clone(), surplus));
        self.change_manifest(&mut manifest, |manifest| {
            replace_runs(manifest, &job.inputs, table.as_deref());
        })?;
        self.state.update(|state| State { version: next, ..state.clone() });
        Ok(())
    }
}

fn shapes(runs: &[Arc<Run>]) -> Vec<RunShape> {
    let shape = |run: &Arc<Run>| {
        let info = run.table.info();
        let (bytes, entries, tombstones) = (info.bytes, info.entries, info.tombstones);
        RunShape { bytes, entries, tombstones, busy: false }
    };
    runs.iter().map(shape).collect()
}

/// Replaces adjacent runs in a manifest.
fn replace_runs(manifest: &mut Manifest, inputs: &[Arc<Run>], table: Option<&Table>) {
    let is_input = |entry: &RunEntry| inputs.iter().any(|run| run.number() == entry.number);
    let at = manifest.runs.iter().position(is_input).unwrap_or(manifest.runs.len());
    manifest.runs.retain(|entry| !is_input(entry));
    if let Some(table) = table {
        manifest.runs.insert(at, RunEntry::new(table.info()));
    }
}

/// The error of a merge that ends because the store is being closed.
fn stopped() -> Error {
    Error::io("merge", "the runs")(io::ErrorKind::Interrupted.into())
}
