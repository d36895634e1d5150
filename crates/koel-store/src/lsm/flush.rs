//! Flushing: the oldest sealed memtable becomes a table, the youngest run.
//!
//! The order makes a crash harmless: the table is synced, then the folder, then the manifest names
//! the table instead of the file of the log, and only then that file is removed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::compaction::{Rules, rewrite};
use super::entry::Entry;
use super::memtable::{Memtable, MemtableCursor};
use super::store::Store;
use super::table::{Table, TableBuilder};
use super::version::Version;
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::file_names;
use crate::kernel::lock::lock;
use crate::kernel::manifest::Manifest;
use crate::kernel::wakeup::Signal;

/// A read of one key takes less. A range may take longer, and frees what it reads.
const LONGEST_READ: Duration = Duration::from_millis(20);

impl Store {
    /// Makes the oldest sealed memtable a run. Returns false if there is none.
    pub(super) fn flush_oldest(&self) -> Result<bool, Error> {
        let _one_at_a_time = lock(&self.flushing);
        let state = self.state.load();
        let Some(memtable) = state.sealed.first().cloned() else { return Ok(false) };
        self.log.poison.check()?;
        let boundaries = self.snapshots.boundaries()?;
        let rules = Rules {
            boundaries: &boundaries,
            // No other thread adds runs meanwhile.
            is_bottom: state.version.runs.is_empty(),
            filter: self.filter.as_ref(),
        };
        drop(state);
        let table = self.write_table(false, |sink| {
            rewrite(&mut MemtableCursor::new(memtable.clone()), rules, sink)
        })?;
        self.counts.flushed.add(table.as_ref().map_or(0, |(table, ())| table.info().bytes));
        self.install_flushed(memtable.log, table.map(|(table, ())| table))?;
        drop(self.folder.remove(&file_names::segment(memtable.log)));
        self.threads.merge_due.send(Signal::Work);
        self.threads.notify_progress();
        if self.options.background {
            wait_for_readers(&memtable);
        }
        Ok(true)
    }

    /// Flushes all sealed memtables. Keeps why that failed, if it did.
    pub(super) fn flush_sealed(&self) -> Result<(), Error> {
        let flushed = loop {
            match self.flush_oldest() {
                // The next try is without the filter; `stats` tells of it.
                Ok(true) | Err(Error::FilterPanicked { .. }) => {}
                ended => break ended.map(drop),
            }
        };
        *lock(&self.threads.flush_failure) = flushed.as_ref().err().map(Error::reason);
        flushed
    }

    /// Writes a table of the entries that `fill` passes on, durably, and opens it. Returns it with
    /// the result of `fill`, or `None` without entries. `is_last` if no older run stays.
    pub(super) fn write_table<R>(
        &self,
        is_last: bool,
        fill: impl FnOnce(&mut dyn FnMut(Entry<'_>) -> Result<(), Error>) -> Result<R, Error>,
    ) -> Result<Option<(Arc<Table>, R)>, Error> {
        let number = self.take_number();
        let written = self.try_write_table(number, is_last, fill);
        if !matches!(written, Ok(Some(_))) {
            // What cannot be removed is when the store is next opened.
            drop(self.folder.remove(&file_names::table(number)));
        }
        written
    }

    fn try_write_table<R>(
        &self,
        number: u64,
        is_last: bool,
        fill: impl FnOnce(&mut dyn FnMut(Entry<'_>) -> Result<(), Error>) -> Result<R, Error>,
    ) -> Result<Option<(Arc<Table>, R)>, Error> {
        let options = self.options.table_options(self.salt, self.seed, is_last);
        let mut builder = TableBuilder::new(&*self.folder, number, &options)?;
        let filled = fill(&mut |entry| builder.add(entry))?;
        if builder.entries() == 0 {
            return Ok(None);
        }
        builder.finish()?;
        self.folder.sync().map_err(Error::io("sync", FOLDER))?;
        let table = Table::open(&*self.folder, number, self.salt, &self.cache)?;
        Ok(Some((Arc::new(table), filled)))
    }

    /// Replaces a memtable by a run, on disk and in memory.
    fn install_flushed(&self, log: u64, table: Option<Arc<Table>>) -> Result<(), Error> {
        let next = |version: &Version| match &table {
            Some(table) => version.with_run(table.clone()),
            None => version.clone(),
        };
        let add = |manifest: &mut Manifest| {
            if let Some(table) = &table {
                add_run(manifest, table);
            }
        };
        self.install(next, add, table.as_ref(), Some(log))
    }
}

/// Waits until no read or write has the memtable: the last one that has it frees half a million
/// entries, which takes a tenth of a second.
fn wait_for_readers(memtable: &Arc<Memtable>) {
    let start = Instant::now();
    while Arc::strong_count(memtable) > 1 && start.elapsed() < LONGEST_READ {
        std::thread::sleep(LONGEST_READ / 20);
    }
}

/// Adds the youngest run to a manifest.
pub(super) fn add_run(manifest: &mut Manifest, table: &Table) {
    manifest.runs.insert(0, table.info().run_entry());
}
