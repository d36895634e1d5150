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

use super::entry::Cursor;
use super::guide::{Guide, Ids, Merge};
use super::iter::Sources;
use super::memtable::{Memtable, MemtableCursor};
use super::table::Table;

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

/// The memtables and runs of one moment. It never changes, but for entries that are added to the
/// active memtable.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Takes the writes.
    pub(super) active: Arc<Memtable>,
    /// Full memtables that are not in a table yet, the oldest one first.
    pub(super) sealed: Vec<Arc<Memtable>>,
    pub(super) version: Arc<Version>,
}

impl State {
    /// Returns a cursor for each memtable, and for each run that has entries after `sequence`.
    pub(super) fn cursors_after(&self, sequence: u64) -> Vec<Box<dyn Cursor>> {
        let memtables = self
            .memtables()
            .map(|memtable| Box::new(MemtableCursor::new(memtable.clone())) as Box<dyn Cursor>);
        let runs = self.version.runs.iter();
        let runs = runs.filter(|run| run.table.info().last_sequence > sequence);
        memtables
            .chain(runs.map(|run| Box::new(run.table.cursor(true)) as Box<dyn Cursor>))
            .collect()
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
pub(super) struct StateSources(pub(super) Arc<State>);

impl Sources for StateSources {
    fn cursors(&self) -> Vec<Box<dyn Cursor>> {
        // Every entry has a number.
        self.0.cursors_after(0)
    }
}
