//! What a read sees: the memtables and the version of one moment, switched together.

use std::sync::Arc;

use super::cursor::Cursor;
use super::iter::Sources;
use super::memtable::{Memtable, MemtableCursor};
use super::version::Version;

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
        let memtables = self
            .0
            .memtables()
            .map(|memtable| Box::new(MemtableCursor::new(memtable.clone())) as Box<dyn Cursor>);
        let runs = self.0.version.runs.iter();
        memtables
            .chain(runs.map(|run| Box::new(run.table.cursor(true)) as Box<dyn Cursor>))
            .collect()
    }
}
