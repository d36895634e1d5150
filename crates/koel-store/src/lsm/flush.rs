//! What is in memory becomes a table, the youngest run: the oldest sealed memtable by a flush,
//! sorted entries by an ingestion.
//!
//! The order makes a crash harmless: the table is synced, then the folder, then the manifest names
//! the table instead of the file of the log, and only then that file is removed.
//!
//! The next version is installed on disk and in memory. The guide has no part in this: it follows
//! later (`tend.rs`). So a flush or a merge waits for the
//! manifest alone.
//!
//! **Ingestion** makes a table without the log and the memtable. All entries get one sequence
//! number, which comes after all earlier writes and before all later ones. So earlier writes are
//! flushed first, and other writes wait until the table is there. Reads go on, and see all entries
//! or none.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::compaction::{Rules, Sink, merge};
use super::entry::{Entry, check_lengths};
use super::memtable::{Memtable, MemtableCursor};
use super::range_deletions::RangeDeletions;
use super::store::Store;
use super::table::{Table, TableBuilder};
use super::tend::TABLES_AT_CLOSE;
use super::version::Version;
use super::write::MOST_RUNS;
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::events::tell;
use crate::kernel::manifest::Manifest;
use crate::kernel::memory;
use crate::kernel::store_files::{SEGMENT, TABLE};
use crate::kernel::threads::{Signal, lock};

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
        let range_deletions = memtable.range_deletions();
        let rules = Rules {
            boundaries: &boundaries,
            range_deletions: &range_deletions,
            // No other thread adds runs meanwhile.
            is_bottom: state.version.runs.is_empty(),
            filter: self.filter.as_ref(),
        };
        drop(state);
        let table = self.write_table(false, rules.kept_range_deletions(), |sink| {
            let cursor = Box::new(MemtableCursor::new(memtable.clone()));
            merge(vec![cursor], rules, |key| self.hash(key), 0, sink).map(drop)
        })?;
        self.counts.flushed.add(table.as_ref().map_or(0, |table| table.info().bytes));
        self.install_flushed(memtable.log, table)?;
        tell!(debug, "a memtable was flushed", log = memtable.log, entries = memtable.len());
        drop(self.folder.remove(&SEGMENT.name(memtable.log)));
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
        let failure = flushed.as_ref().err().map(Error::reason);
        if let Some(reason) = &failure {
            tell!(warn, "a flush failed", reason = reason.as_str());
        }
        *lock(&self.threads.flush_failure) = failure;
        flushed
    }

    /// Writes a table of the entries that `fill` passes on, and of range deletions, durably, and
    /// opens it. Returns it, or `None` if it has neither. `is_last` if no older run stays.
    pub(super) fn write_table(
        &self,
        is_last: bool,
        range_deletions: RangeDeletions,
        fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Error>,
    ) -> Result<Option<Arc<Table>>, Error> {
        let number = self.take_number();
        let written = self.try_write_table(number, is_last, range_deletions, fill);
        if !matches!(written, Ok(Some(_))) {
            // What cannot be removed is when the store is next opened.
            drop(self.folder.remove(&TABLE.name(number)));
        }
        written
    }

    fn try_write_table(
        &self,
        number: u64,
        is_last: bool,
        range_deletions: RangeDeletions,
        fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Error>,
    ) -> Result<Option<Arc<Table>>, Error> {
        let options = self.options.table_options(self.salt, self.seed, is_last);
        let mut builder = TableBuilder::new(&*self.folder, number, &options)?;
        fill(&mut |entry| builder.add(entry))?;
        if builder.entries() == 0 && range_deletions.is_empty() {
            return Ok(None);
        }
        builder.finish(Arc::new(range_deletions))?;
        self.folder.sync().map_err(Error::io("sync", FOLDER))?;
        let table = Table::open(&*self.folder, number, self.salt, &self.cache)?;
        Ok(Some(Arc::new(table)))
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

impl Store {
    /// Replaces the version by `next` of it, and the manifest by `change` of it. `new` is the table
    /// that it adds, if any; it is removed after a failure. `flushed` is the file of the log whose
    /// memtable is a run then.
    pub(super) fn install(
        &self,
        next: impl FnOnce(&Version) -> Version,
        change: impl FnOnce(&mut Manifest),
        new: Option<&Arc<Table>>,
        flushed: Option<u64>,
    ) -> Result<(), Error> {
        {
            let _one_at_a_time = lock(&self.versions);
            let boundaries = self.snapshots.boundaries()?;
            let next = Arc::new(next(&self.state.load().version));
            let mut manifest = lock(&self.manifest);
            let changed = self.change_manifest(&mut manifest, |manifest| {
                manifest.logs.retain(|log| Some(log.number) != flushed);
                change(manifest);
            });
            if let (Err(_), Some(table)) = (&changed, new) {
                self.remove_unnamed(&TABLE.name(table.info().number));
            }
            changed?;
            self.state.update(|state| {
                let is_left = |memtable: &&Arc<Memtable>| Some(memtable.log) != flushed;
                let sealed = state.sealed.iter().filter(is_left).cloned().collect();
                state.with_sources(state.active.clone(), sealed, next, &boundaries)
            });
        }
        self.runs_changed();
        Ok(())
    }
}

impl Store {
    /// Adds sorted entries. Returns their number.
    pub(super) fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, Error> {
        let mut end = self.log.end();
        self.log.poison.check()?;
        self.seal_active(&mut end)?;
        self.flush_sealed()?;
        while self.state.load().version.runs.len() >= MOST_RUNS && self.merge_once()? {}
        let sequence = end.sequence;
        end.sequence += 1;
        // From here on a manifest without the table is known to be an older one.
        self.change_manifest(&mut lock(&self.manifest), |manifest| {
            manifest.sequence = end.sequence;
        })?;
        end.announced = true;
        let (mut count, mut last) = (0, Vec::new());
        let written = self.write_table(false, RangeDeletions::default(), |sink| {
            for (key, value) in entries {
                let (key, value) = (key.as_ref(), value.as_ref());
                check_lengths(key.len() as u64, value.len() as u64)?;
                if count > 0 && *key <= *last {
                    return Err(Error::NotSorted { entry: count });
                }
                sink(Entry { key, sequence, value: Some(value) })?;
                memory::copy_into(&mut last, key)?;
                self.counts.user.add((key.len() + value.len()) as u64);
                count += 1;
            }
            Ok(())
        })?;
        let Some(table) = written else { return Ok(0) };
        self.counts.flushed.add(table.info().bytes);
        self.install(
            |version| version.with_run(table.clone()),
            |manifest| add_run(manifest, &table),
            Some(&table),
            None,
        )?;
        self.snapshots.publish(sequence);
        self.threads.merge_due.send(Signal::Work);
        Ok(count)
    }
}

/// How long to wait for a merge that is under way before looking again.
const PATIENCE: Duration = Duration::from_millis(100);
/// A memtable that is full to this part is not flushed when the store is closed.
const SMALL_REST: u64 = 16;

impl Store {
    /// Writes everything in memory into tables.
    pub(super) fn flush(&self) -> Result<(), Error> {
        self.log.poison.check()?;
        self.seal_active(&mut self.log.end())?;
        self.flush_sealed()?;
        if !self.options.background {
            self.merge_due()?;
        }
        Ok(())
    }

    /// Flushes, and merges everything into one run.
    pub(super) fn compact(&self) -> Result<(), Error> {
        self.log.poison.check()?;
        self.seal_active(&mut self.log.end())?;
        self.flush_sealed()?;
        while !self.merge_all()? {
            self.threads.wait_for_progress(PATIENCE);
        }
        Ok(())
    }

    /// Flushes most of what is in memory, makes everything durable, and writes a manifest with
    /// exact ends.
    pub(super) fn close(&self) -> Result<(), Error> {
        if self.log.poison.check().is_ok() {
            self.flush_to_close();
        }
        if let Some(file) = lock(&self.prepared).take() {
            self.remove_unnamed(&file.name);
        }
        self.save_guide(TABLES_AT_CLOSE);
        self.log.close(|end| {
            let mut manifest = lock(&self.manifest);
            if manifest.clean {
                return;
            }
            let mut next = manifest.clone();
            if let (Some(last), Some(file)) = (next.logs.last_mut(), &end.file) {
                last.end = file.end();
            }
            next.clean = true;
            next.sequence = end.sequence;
            next.number = self.next_number.load(Ordering::Relaxed);
            if next.store(&*self.folder, &self.log.poison).is_ok() {
                end.announced = false;
                *manifest = next;
            }
        })
    }

    /// Flushes what would take long to replay at the next opening. A few entries stay in the log:
    /// otherwise each program that puts one key would leave a table.
    fn flush_to_close(&self) {
        let is_much = self.state.load().active.bytes() > self.options.memtable_bytes / SMALL_REST;
        let sealed = if is_much { self.seal_active(&mut self.log.end()) } else { Ok(()) };
        // What cannot be flushed stays in the log.
        drop(sealed.and_then(|()| self.flush_sealed()));
    }
}
