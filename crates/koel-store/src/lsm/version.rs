//! A version: the runs of the tree, youngest first, and the guide to them.
//!
//! A version never changes. A flush, an ingestion or a merge makes the next one at once: its new
//! run goes in without the guide, and reads always ask it. A thread makes a guide that knows the
//! run (`tend.rs`), and the version after that has it. So the guide is never waited for.
//!
//! A run is one table. The sequence numbers of a run are greater than those of all older ones.
//!
//! A *state* is what a read sees: the memtables and the version of one moment, switched together.

use std::sync::Arc;

use super::entry::{Cursor, LAST_SEQUENCE};
use super::guide::{Guide, Ids, Merge};
use super::iter::Sources;
use super::memtable::{Memtable, MemtableCursor};
use super::range_deletions::{KeyRange, RangeDeletions};
use super::table::Table;
use super::undeleted::Undeleted;

/// The runs to ask: the ids that the guide names, and [`ALWAYS`].
pub(super) type Mask = u64;

/// The bit of the runs that the guide does not know.
const ALWAYS: Mask = 1 << Ids::BITS;

/// A table in the tree.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) table: Arc<Table>,
    /// The bit of its id in the guide, or [`ALWAYS`].
    mask: Mask,
}

/// The runs of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Version {
    /// Youngest first.
    pub(super) runs: Vec<Run>,
    /// Without one, a read asks every run.
    pub(super) guide: Option<Arc<Guide>>,
    /// The merges that the guide does not know, oldest first.
    pub(super) merges: Vec<Arc<Merge>>,
}

impl Run {
    pub(super) fn new(table: Arc<Table>) -> Self {
        Self { table, mask: ALWAYS }
    }

    pub(super) fn number(&self) -> u64 {
        self.table.info().number
    }

    /// Returns whether the run is to be asked.
    #[inline]
    pub(super) fn is_in(&self, candidates: Mask) -> bool {
        candidates & self.mask != 0
    }

    /// Returns whether the guide knows the run.
    pub(super) fn is_guided(&self) -> bool {
        self.mask != ALWAYS
    }
}

impl Version {
    /// Returns the runs that may hold the key with this hash.
    #[inline]
    pub(super) fn candidates(&self, hash: u64) -> Mask {
        match &self.guide {
            Some(guide) => with_unguided(guide.candidates(hash)),
            None => Mask::MAX,
        }
    }

    /// Returns the ids that the guide names for a hash.
    pub(super) fn ids(&self, hash: u64) -> Mask {
        self.guide.as_ref().map_or(0, |guide| Mask::from(guide.candidates(hash)))
    }

    /// Returns this version with a run in front.
    pub(super) fn with_run(&self, table: Arc<Table>) -> Self {
        let mut version = self.clone();
        version.runs.insert(0, Run::new(table));
        version
    }

    /// Returns this version with `output` in place of the runs `inputs`, which are adjacent.
    /// `surplus` is what [`Merge`] needs.
    pub(super) fn with_merge(
        &self,
        inputs: &[Run],
        output: Option<Arc<Table>>,
        surplus: Option<Vec<u64>>,
    ) -> Self {
        let is_input = |run: &Run| inputs.iter().any(|input| input.number() == run.number());
        let at = self.runs.iter().position(is_input).unwrap_or(self.runs.len());
        let mut version = self.clone();
        version.runs.retain(|run| !is_input(run));
        if self.guide.is_some() {
            let inputs = inputs.iter().map(Run::number).collect();
            let output = output.as_ref().map(|table| (table.info().number, table.info().keys));
            version.merges.push(Arc::new(Merge { inputs, output, surplus }));
        }
        version.runs.splice(at..at, output.map(Run::new));
        version
    }

    /// Returns this version with another guide, which knows the first `merges` of its merges.
    pub(super) fn with_guide(&self, guide: Arc<Guide>, merges: usize) -> Self {
        let guided = |run: &Run| {
            let mask = guide.id_of(run.number()).map_or(ALWAYS, |id| 1 << id);
            Run { table: run.table.clone(), mask }
        };
        let merges = self.merges.get(merges..).unwrap_or_default().to_vec();
        Self { runs: self.runs.iter().map(guided).collect(), guide: Some(guide), merges }
    }

    /// Returns the number of surplus hashes that wait for the guide.
    pub(super) fn surplus(&self) -> u64 {
        let hashes = |merge: &Arc<Merge>| merge.surplus.as_ref().map_or(0, Vec::len) as u64;
        self.merges.iter().map(hashes).sum()
    }
}

/// Returns the runs to ask if the guide names these.
#[inline]
pub(super) fn with_unguided(ids: Ids) -> Mask {
    Mask::from(ids) | ALWAYS
}

/// The memtables, runs and range deletions of one moment. It never changes, but for entries that
/// are added to the active memtable.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Takes the writes.
    pub(super) active: Arc<Memtable>,
    /// Full memtables that are not in a table yet, the oldest one first.
    pub(super) sealed: Vec<Arc<Memtable>>,
    pub(super) version: Arc<Version>,
    /// Those of all memtables and runs.
    pub(super) range_deletions: Arc<RangeDeletions>,
    /// The sequence number of the last of them that was made since the store was opened.
    pub(super) last_range_deletion: u64,
}

impl State {
    /// Returns this state with other memtables and runs. `boundaries` are the sequence numbers at
    /// which it is read, besides reads of what is newest.
    pub(super) fn with_sources(
        &self,
        active: Arc<Memtable>,
        sealed: Vec<Arc<Memtable>>,
        version: Arc<Version>,
        boundaries: &[u64],
    ) -> Self {
        let mut state = Self { active, sealed, version, ..self.clone() };
        let of_memtables = state.memtables().map(|memtable| memtable.range_deletions());
        let of_runs = state.version.runs.iter();
        let of_runs = of_runs.map(|run| run.table.info().range_deletions.clone());
        let lists: Vec<Arc<RangeDeletions>> = of_memtables.chain(of_runs).collect();
        let lists = lists.iter().map(|list| &**list);
        state.range_deletions = Arc::new(RangeDeletions::of(lists, boundaries));
        state
    }

    /// Returns this state with one more range deletion, which is in the active memtable.
    pub(super) fn with_range_deletion(
        &self,
        keys: KeyRange,
        sequence: u64,
        boundaries: &[u64],
    ) -> Self {
        let mut state = self.clone();
        Arc::make_mut(&mut state.range_deletions).add(keys, sequence, boundaries);
        state.last_range_deletion = sequence;
        state
    }

    /// Returns a cursor for each memtable, and for each run that has entries after `sequence`,
    /// with the greatest sequence number that its entries can have.
    fn sources_after(&self, sequence: u64) -> impl Iterator<Item = (Box<dyn Cursor>, u64)> {
        let memtables = self.memtables().map(|memtable| {
            (Box::new(MemtableCursor::new(memtable.clone())) as Box<dyn Cursor>, LAST_SEQUENCE)
        });
        let last = |run: &Run| run.table.info().last_sequence;
        let runs = self.version.runs.iter().filter(move |run| last(run) > sequence);
        memtables.chain(
            runs.map(move |run| (Box::new(run.table.cursor(true)) as Box<dyn Cursor>, last(run))),
        )
    }

    /// Returns a cursor for each memtable, and for each run that has entries after `sequence`. It
    /// shows all entries, also those that a range deletion hides.
    pub(super) fn cursors_after(&self, sequence: u64) -> Vec<Box<dyn Cursor>> {
        self.sources_after(sequence).map(|(cursor, _)| cursor).collect()
    }

    /// Returns the memtables, youngest first.
    pub(super) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(self.sealed.iter().rev())
    }

    /// Returns the number of runs that a full memtable made, and that were not merged.
    pub(super) fn young_runs(&self, memtable_bytes: u64) -> usize {
        // Tables are smaller than their memtables, but not much.
        let sizes = memtable_bytes / 5..memtable_bytes * 2;
        let runs = self.version.runs.iter().map(|run| run.table.info().bytes);
        runs.take_while(|&bytes| bytes < sizes.end).filter(|&bytes| bytes >= sizes.start).count()
    }
}

/// What a range reads.
#[derive(Debug)]
pub(super) struct StateSources {
    pub(super) state: Arc<State>,
    /// What it reads at.
    pub(super) sequence: u64,
}

impl Sources for StateSources {
    fn cursors(&self) -> Vec<Box<dyn Cursor>> {
        if self.state.range_deletions.is_empty() {
            // Every entry has a number.
            return self.state.cursors_after(0);
        }
        let undeleted = |(cursor, last)| {
            let cursor =
                Undeleted::new(cursor, self.state.range_deletions.clone(), self.sequence, last);
            Box::new(cursor) as Box<dyn Cursor>
        };
        self.state.sources_after(0).map(undeleted).collect()
    }
}
