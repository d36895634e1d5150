//! Writing: records are appended to the log, then their entries to the memtable, and then reads see
//! them.
//!
//! * A full memtable is sealed before the next write, and a new file of the log starts. The old one
//!   is synced first, so only the last file can have a torn end.
//! * Whatever fails before the append leaves the write unmade.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::manifest::LogEntry;
use super::memtable::{Memtable, NewEntry};
use super::state::State;
use super::store::{Store, Writer};
use super::wal::entries_of;
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::batch::Batch;
use crate::kernel::bytes::usize_of;
use crate::kernel::durability::{Durability, LogPosition};
use crate::kernel::lock::lock;
use crate::kernel::memory;
use crate::kernel::record::{self, Header};
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::wakeup::Signal;

/// Memtables that may wait to be flushed.
const MOST_SEALED: usize = 2;
/// With this many runs writes wait: a merge has at most 128 inputs.
pub(super) const MOST_RUNS: usize = 100;
/// Bytes that are written in a microsecond for one run too many; for two it is half as many.
const BYTES_PER_MICROSECOND: u64 = 64;
/// Shorter sleeps cost more than they slow down.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Bytes of a mark.
const MARK: usize = 32;

impl Store {
    pub(super) fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        let entries = entries_of(batch, self.options.max_batch_bytes)?;
        let position = self.append(batch, entries)?;
        self.wait_durable(position, durability).map_err(Error::in_doubt)
    }

    /// Makes everything written so far durable.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let position = lock(&self.writer).position();
        self.wait_durable(position, Durability::Synced)
    }

    fn wait_durable(&self, position: LogPosition, durability: Durability) -> Result<(), Error> {
        self.commits.wait(position, durability, &self.poison, || {
            let writer = lock(&self.writer);
            (writer.log.clone(), writer.position())
        })
    }

    /// Appends a batch to the log and the memtable, once there is room. Returns where it ends.
    fn append(&self, batch: &Batch, entries: Vec<NewEntry>) -> Result<LogPosition, Error> {
        loop {
            if self.options.background {
                self.wait_for_room(batch.bytes().len() as u64)?;
            }
            let mut writer = lock(&self.writer);
            self.poison.check()?;
            if batch.is_empty() {
                return Ok(writer.position());
            }
            if self.make_room(&mut writer)? {
                return self.append_now(&mut writer, batch, entries);
            }
        }
    }

    /// Makes the active memtable one that takes another write. Returns false if it is full and too
    /// many others are.
    fn make_room(&self, writer: &mut Writer) -> Result<bool, Error> {
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
        self.seal_active(writer)?;
        if self.options.background {
            self.threads.flush_due.send(Signal::Work);
        } else {
            self.flush_sealed()?;
            self.merge_due()?;
        }
        Ok(true)
    }

    /// Seals the active memtable, unless it is empty, and starts a new one.
    pub(super) fn seal_active(&self, writer: &mut Writer) -> Result<(), Error> {
        if !self.state.load().active.is_empty() {
            self.start_log(writer)?;
        }
        Ok(())
    }

    /// Starts the next file of the log, and with it the next memtable.
    fn start_log(&self, writer: &mut Writer) -> Result<Arc<Segment>, Error> {
        if let Some(log) = &writer.log {
            log.sync().map_err(|error| self.poison.set(error))?;
            self.commits.set_durable(writer.position());
        }
        let number = self.take_number();
        let log = Arc::new(Segment::create(&*self.folder, self.salt, number)?);
        let durable = log.write_header().and_then(|()| log.sync());
        let durable = durable.and_then(|()| self.folder.sync().map_err(Error::io("sync", FOLDER)));
        if let Err(error) = durable {
            drop(self.folder.remove(&log.name));
            return Err(error);
        }
        let mut manifest = lock(&self.manifest);
        self.change_manifest(&mut manifest, |manifest| {
            if let (Some(last), Some(log)) = (manifest.logs.last_mut(), &writer.log) {
                last.end = log.end();
            }
            manifest.sequence = writer.sequence;
            manifest.logs.push(LogEntry { number, end: FIRST_RECORD });
        })?;
        self.state.update(|state| {
            let mut sealed = state.sealed.clone();
            // Without a file of the log nothing was written yet.
            sealed.extend(writer.log.is_some().then(|| state.active.clone()));
            let active = Arc::new(Memtable::new(number, self.options.memtable_bytes, self.seed));
            let version = state.version.clone();
            State { active, sealed, version }
        });
        *writer = Writer {
            log: Some(log.clone()),
            marked: FIRST_RECORD,
            sync_requested: FIRST_RECORD,
            announced: true,
            sequence: writer.sequence,
        };
        self.counts.log_end.set(FIRST_RECORD);
        self.commits.set_durable(writer.position());
        Ok(log)
    }

    fn append_now(
        &self,
        writer: &mut Writer,
        batch: &Batch,
        entries: Vec<NewEntry>,
    ) -> Result<LogPosition, Error> {
        let log = match writer.log.clone() {
            None => self.start_log(writer)?,
            Some(log) => {
                self.announce(writer)?;
                log
            }
        };
        let mut buffer = Vec::new();
        memory::reserve(&mut buffer, batch.bytes().len() + MARK)?;
        let Writer { sequence, marked, .. } = writer;
        self.commits.append_mark_if_due(&log, sequence, marked, &mut buffer);
        let (at, first) = (log.end(), buffer.len());
        buffer.extend_from_slice(batch.bytes());
        let sequence = writer.sequence;
        for (i, (unsealed, sequence)) in batch.records().iter().zip(sequence..).enumerate() {
            let more = i + 1 < batch.len();
            let header = Header { more, sequence, ..unsealed.header };
            let start = first + unsealed.start;
            let end = start + usize_of(header.size());
            record::seal(&mut buffer[start..end], &header, &log.position(at + start as u64));
        }
        let written = log.write(&buffer, at);
        written.map_err(|error| log.undo_append(at, error, &self.poison))?;
        log.set_end(at + buffer.len() as u64);
        self.counts.log_end.set(log.end());
        self.count(batch, buffer.len() as u64);
        self.insert(writer, entries);
        self.request_sync(writer, log.end());
        Ok(writer.position())
    }

    /// Adds the entries of a batch to the memtable, and lets reads see them.
    fn insert(&self, writer: &mut Writer, entries: Vec<NewEntry>) {
        let state = self.state.load();
        for entry in entries {
            state.active.insert(entry, writer.sequence);
            writer.sequence += 1;
        }
        self.snapshots.publish(writer.sequence - 1);
    }

    fn count(&self, batch: &Batch, logged: u64) {
        let headers = batch.records().iter().map(|unsealed| &unsealed.header);
        self.counts.user.add(headers.map(|header| header.key_len + header.value_len).sum());
        self.counts.logged.add(logged);
    }

    /// Makes the manifest say that the log may continue, if it does not.
    pub(super) fn announce(&self, writer: &mut Writer) -> Result<(), Error> {
        if !writer.announced {
            self.change_manifest(&mut lock(&self.manifest), |_| ())?;
            writer.announced = true;
        }
        Ok(())
    }

    /// Wakes the sync thread if much of the log is not durable.
    fn request_sync(&self, writer: &mut Writer, end: u64) {
        if end - writer.sync_requested.max(writer.marked) >= self.options.bytes_per_sync {
            writer.sync_requested = end;
            self.threads.sync_due.send(Signal::Work);
        }
    }

    /// Waits while flushes and merges are behind, in proportion to how far.
    fn wait_for_room(&self, bytes: u64) -> Result<(), Error> {
        let (start, limit) = (Instant::now(), self.options.stall_limit);
        let limits = self.young_limits;
        loop {
            self.poison.check()?;
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
