//! Writing: entries are copied into the memtable, their records are appended to the log, the
//! entries are linked, and then reads see them.
//!
//! * A full memtable is sealed before the next write, and a new file of the log starts. The old one
//!   is synced first, so only the last file can have a torn end.
//! * Whatever fails before the append leaves the write unmade.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::memtable::Memtable;
use super::range_deletions::KeyRange;
use super::store::Store;
use super::version::State;
use super::wal::{Made, check_batch, write_entries};
use crate::Error;
use crate::kernel::batch::Batch;
use crate::kernel::events::tell;
use crate::kernel::log_end::{Durability, LogEnd, LogPosition};
use crate::kernel::manifest::LogEntry;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::threads::{Signal, lock};

/// Memtables that may wait to be flushed.
const MOST_SEALED: usize = 2;
/// With this many runs writes wait: a merge has at most 128 inputs.
pub(super) const MOST_RUNS: usize = 100;
/// Bytes that are written in a microsecond for one run too many; for two it is half as many.
const BYTES_PER_MICROSECOND: u64 = 64;
/// Shorter sleeps cost more than they slow down.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

impl Store {
    pub(super) fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.write_if(batch, durability, || Ok(()))
    }

    /// Makes the writes if `check` agrees. No other write is made between the two.
    pub(super) fn write_if(
        &self,
        batch: &Batch,
        durability: Durability,
        check: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        check_batch(batch, self.options.max_batch_bytes)?;
        let position = self.append(batch, check)?;
        self.log.wait_durable(position, durability).map_err(Error::in_doubt)
    }

    /// Appends a batch to the log and the memtable, once there is room. Returns where it ends.
    fn append(
        &self,
        batch: &Batch,
        check: impl Fn() -> Result<(), Error>,
    ) -> Result<LogPosition, Error> {
        loop {
            if self.options.background {
                self.wait_for_room(batch.bytes().len() as u64)?;
            }
            let mut end = self.log.end();
            self.log.poison.check()?;
            if batch.is_empty() {
                return Ok(end.position());
            }
            if self.make_room(&mut end)? {
                check()?;
                return self.append_now(&mut end, batch);
            }
        }
    }

    /// Makes the active memtable one that takes another write. Returns false if it is full and too
    /// many others are.
    fn make_room(&self, end: &mut LogEnd<()>) -> Result<bool, Error> {
        if !self.options.background {
            self.flush_sealed()?;
        }
        let state = self.state.load();
        if state.active.bytes() < self.options.memtable_bytes {
            return Ok(true);
        }
        if state.sealed.len() >= MOST_SEALED {
            return Ok(false);
        }
        drop(state);
        self.seal_active(end)?;
        if self.options.background {
            self.threads.flush_due.send(Signal::Work);
        } else {
            self.flush_sealed()?;
            self.merge_due()?;
        }
        Ok(true)
    }

    /// Seals the active memtable, unless it is empty, and starts a new one.
    pub(super) fn seal_active(&self, end: &mut LogEnd<()>) -> Result<(), Error> {
        if !self.state.load().active.is_empty() {
            self.start_log(end)?;
        }
        Ok(())
    }

    /// Starts the next file of the log, and with it the next memtable.
    fn start_log(&self, end: &mut LogEnd<()>) -> Result<Arc<Segment>, Error> {
        self.log.seal(end)?;
        let prepared = lock(&self.prepared).take();
        let file = prepared.map_or_else(|| self.create_log(), Ok)?;
        let number = file.number;
        let mut manifest = lock(&self.manifest);
        let named = self.change_manifest(&mut manifest, |manifest| {
            if let (Some(last), Some(file)) = (manifest.logs.last_mut(), &end.file) {
                last.end = file.end();
            }
            manifest.sequence = end.sequence;
            manifest.logs.push(LogEntry { number, end: FIRST_RECORD, cleaned: 0 });
        });
        named.inspect_err(|_| self.remove_unnamed(&file.name))?;
        let active = Arc::new(Memtable::new(number, self.options.memtable_bytes, self.seed));
        self.state.update(|state| {
            let mut sealed = state.sealed.clone();
            // Without a file of the log nothing was written yet.
            sealed.extend(end.file.is_some().then(|| state.active.clone()));
            State { active, sealed, ..state.clone() }
        });
        self.log.go_on_in(end, file.clone());
        self.counts.log_end.set(FIRST_RECORD);
        Ok(file)
    }

    fn create_log(&self) -> Result<Arc<Segment>, Error> {
        let file = Segment::create(&*self.folder, self.salt, self.take_number())?;
        file.make_durable(&*self.folder)?;
        Ok(Arc::new(file))
    }

    /// Makes the next file of the log in advance if the memtable is half full, so that the write
    /// that fills it need not. After a failure that write is the next try.
    pub(super) fn prepare_log(&self) {
        let mut prepared = lock(&self.prepared);
        let is_due = self.state.load().active.bytes() >= self.options.memtable_bytes / 2;
        if is_due && prepared.is_none() && self.log.poison.check().is_ok() {
            *prepared = self.create_log().ok();
        }
    }

    fn append_now(&self, end: &mut LogEnd<()>, batch: &Batch) -> Result<LogPosition, Error> {
        let file = match end.file.clone() {
            None => self.start_log(end)?,
            Some(file) => {
                self.announce(end)?;
                file
            }
        };
        // Not the whole state: a write is never the last one to hold a memtable, and to free it.
        let memtable = self.state.load().active.clone();
        let half = self.options.memtable_bytes / 2;
        let was_half_full = memtable.bytes() >= half;
        let made = write_entries(batch, &memtable)?;
        let deletes_range = made.iter().any(|made| matches!(made, Made::Range(_)));
        let boundaries = if deletes_range { self.snapshots.boundaries()? } else { Vec::new() };
        let before = file.end();
        self.log.append(end, &file, batch)?;
        self.counts.log_end.set(file.end());
        self.count(batch, file.end() - before);
        let first = end.sequence - batch.len() as u64;
        for (made, sequence) in made.into_iter().zip(first..) {
            match made {
                Made::Entry(entry) => memtable.link(entry, sequence),
                Made::Range(keys) => self.delete_range_at(keys, sequence, &memtable, &boundaries),
                Made::Nothing => {}
            }
        }
        self.snapshots.publish(end.sequence - 1);
        if self.options.background && !was_half_full && memtable.bytes() >= half {
            self.threads.flush_due.send(Signal::Work);
        }
        Ok(end.position())
    }

    /// Adds a range deletion to the active memtable and to the state.
    fn delete_range_at(
        &self,
        keys: KeyRange,
        sequence: u64,
        active: &Memtable,
        boundaries: &[u64],
    ) {
        active.delete_range(keys.clone(), sequence, boundaries);
        self.state.update(|state| state.with_range_deletion(keys, sequence, boundaries));
        self.snapshots.note_range_deletion(sequence);
    }

    fn count(&self, batch: &Batch, logged: u64) {
        let headers = batch.records().iter().map(|unsealed| &unsealed.header);
        self.counts.user.add(headers.map(|header| header.key_len + header.value_len).sum());
        self.counts.logged.add(logged);
    }

    /// Makes the manifest say that the log may continue, if it does not.
    fn announce(&self, end: &mut LogEnd<()>) -> Result<(), Error> {
        if !end.announced {
            self.change_manifest(&mut lock(&self.manifest), |_| ())?;
            end.announced = true;
        }
        Ok(())
    }

    /// Waits while flushes and merges are behind, in proportion to how far.
    fn wait_for_room(&self, bytes: u64) -> Result<(), Error> {
        let (start, limit) = (Instant::now(), self.options.stall_limit);
        let limits = self.young_limits;
        loop {
            self.log.poison.check()?;
            let state = self.state.load();
            let is_full = state.active.bytes() >= self.options.memtable_bytes
                && state.sealed.len() >= MOST_SEALED;
            let young = state.young_runs(self.options.memtable_bytes);
            let runs = state.version.runs.len();
            drop(state);
            if !is_full && runs < MOST_RUNS && young < limits.stop {
                self.slow_down(bytes, young.saturating_sub(limits.slow) as u64);
                return Ok(());
            }
            let waited = start.elapsed();
            tell!(warn, "a write waits for flushes and merges", runs = runs, young_runs = young);
            if waited >= limit {
                let waited = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                return Err(Error::Stalled { waited, reason: self.threads.failure() });
            }
            // After a failure this is the next try.
            self.threads.flush_due.send(Signal::Work);
            self.threads.merge_due.send(Signal::Work);
            self.threads.wait_for_progress((limit - waited).min(LONGEST_SLEEP));
            self.counts.stalled.add(micros(start.elapsed() - waited));
        }
    }

    /// Sleeps for a write of so many bytes while there are `debt` runs too many.
    fn slow_down(&self, bytes: u64, debt: u64) {
        if debt == 0 {
            return;
        }
        self.counts.owed.add(bytes * debt / BYTES_PER_MICROSECOND + 1);
        let owed = Duration::from_micros(self.counts.owed.get());
        if owed >= SHORTEST_SLEEP {
            self.counts.owed.set(0);
            let sleep = owed.min(LONGEST_SLEEP);
            std::thread::sleep(sleep);
            self.counts.stalled.add(micros(sleep));
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
