//! The end of a log: the file that takes records, how far it is durable, and whether it takes more.
//!
//! A write that must be durable waits for the lock `syncing`. The first holder syncs everything
//! that any thread has written so far; the others then find their writes durable and leave. The
//! first write after a sync is preceded by a mark, which tells recovery what was durable
//! (`recovery.rs`).
//!
//! A write that fails is *refused* if it is known that nothing of it is there: the log goes on, and
//! takes the write when there is room again. Otherwise the log is *poisoned*.
//!
//! | what fails | then |
//! |---|---|
//! | creating the next file, or making it durable | refused; the file is removed |
//! | an append | refused, if it can be cut off durably; otherwise poisoned |
//! | a manifest, before it is renamed | refused |
//! | renaming it, or syncing the folder after that | poisoned: either one may be the manifest |
//! | a sync of the log | poisoned: what it was to make durable may be lost |

use std::sync::{Arc, Mutex, MutexGuard};

use super::batch::Batch;
use super::bytes::usize_of;
use super::memory;
use super::poison::Poison;
use super::record::{self, Header};
use super::segment::{FIRST_RECORD, Segment};
use super::threads::{Signal, Wakeup, lock};
use crate::Error;

/// Bytes of a buffer that are kept for the next write.
const KEPT_BUFFER: usize = 1 << 20;

/// The log of an open store. `T` is what the store keeps under the lock of the end.
#[derive(Debug)]
pub(crate) struct Log<T> {
    end: Mutex<LogEnd<T>>,
    syncing: Mutex<()>,
    durable: Mutex<LogPosition>,
    pub(crate) poison: Poison,
    /// Wakes a thread that syncs when `bytes_per_sync` bytes are not durable.
    pub(crate) sync_due: Wakeup,
    bytes_per_sync: u64,
}

/// The end of the log.
#[derive(Debug)]
pub(crate) struct LogEnd<T> {
    /// The file that takes records; none before the first write.
    pub(crate) file: Option<Arc<Segment>>,
    /// The sequence number of the next record.
    pub(crate) sequence: u64,
    /// The manifest says that the log may continue after the end in it.
    pub(crate) announced: bool,
    /// What the store keeps beside it.
    pub(crate) own: T,
    /// The last mark in the file says that everything before this offset is durable.
    marked: u64,
    /// The offset at which the sync thread was last woken.
    sync_requested: u64,
    /// Memory for new records, reused from one write to the next.
    buffer: Vec<u8>,
}

impl<T> LogEnd<T> {
    /// Returns the end of a log whose next record has this sequence number.
    pub(crate) fn new(file: Option<Arc<Segment>>, sequence: u64, announced: bool, own: T) -> Self {
        let (marked, sync_requested) = (FIRST_RECORD, FIRST_RECORD);
        Self { file, sequence, announced, own, marked, sync_requested, buffer: Vec::new() }
    }

    /// Returns where it is.
    pub(crate) fn position(&self) -> LogPosition {
        self.file.as_ref().map_or(LogPosition::default(), |file| LogPosition {
            segment: file.number,
            offset: file.end(),
        })
    }
}

impl<T> Log<T> {
    /// Returns a log, all of which is durable.
    pub(crate) fn new(end: LogEnd<T>, read_only: bool, bytes_per_sync: u64) -> Self {
        let (syncing, durable) = (Mutex::default(), Mutex::new(end.position()));
        let poison = if read_only { Poison::read_only() } else { Poison::default() };
        let (end, sync_due) = (Mutex::new(end), Wakeup::default());
        Self { end, syncing, durable, poison, sync_due, bytes_per_sync }
    }

    /// Locks the end.
    pub(crate) fn end(&self) -> MutexGuard<'_, LogEnd<T>> {
        lock(&self.end)
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let position = self.end().position();
        self.wait_durable(position, Durability::Synced)
    }

    /// Syncs the log while it fills, so that little is left for the write that fills a file. Runs
    /// in a thread, until it is told to stop.
    pub(crate) fn sync_when_due(&self) {
        while self.sync_due.wait() {
            // The next write returns the failure.
            drop(self.sync());
        }
    }

    /// Returns when everything up to `position` is as durable as asked.
    pub(crate) fn wait_durable(
        &self,
        position: LogPosition,
        durability: Durability,
    ) -> Result<(), Error> {
        if durability == Durability::None || self.durable() >= position {
            return Ok(());
        }
        let _one_at_a_time = lock(&self.syncing);
        if self.durable() >= position {
            return Ok(());
        }
        self.poison.check()?;
        let (file, position) = {
            let end = self.end();
            (end.file.clone(), end.position())
        };
        if let Some(file) = file {
            file.sync().map_err(|error| self.poison.set(error))?;
            self.set_durable(position);
        }
        Ok(())
    }

    /// Returns the position up to which everything is durable.
    pub(crate) fn durable(&self) -> LogPosition {
        *lock(&self.durable)
    }

    /// Notes that everything up to `position` is durable.
    pub(crate) fn set_durable(&self, position: LogPosition) {
        let mut durable = lock(&self.durable);
        *durable = position.max(*durable);
    }

    /// Appends a batch to `file`, the last one. Returns the offset of its first record.
    pub(crate) fn append(
        &self,
        end: &mut LogEnd<T>,
        file: &Segment,
        batch: &Batch,
    ) -> Result<u64, Error> {
        let mut offset = 0;
        self.append_with(end, file, |end, buffer| {
            let (at, first) = (file.end(), buffer.len());
            offset = at + first as u64;
            memory::reserve(buffer, batch.bytes().len())?;
            buffer.extend_from_slice(batch.bytes());
            for (i, unsealed) in batch.records().iter().enumerate() {
                let more = i + 1 < batch.len();
                let header = Header { more, sequence: end.sequence, ..unsealed.header };
                end.sequence += 1;
                let start = first + unsealed.start;
                let position = file.position(at + start as u64);
                let record = &mut buffer[start..start + usize_of(header.size())];
                record::seal(record, &header, &position);
            }
            file.write(buffer, at)?;
            Ok(at + buffer.len() as u64)
        })?;
        Ok(offset)
    }

    /// Appends what `write` writes at the end of `file`, the last one. It gets a buffer, which is
    /// empty but for a mark if one is due, and returns where the file ends.
    pub(crate) fn append_with(
        &self,
        end: &mut LogEnd<T>,
        file: &Segment,
        write: impl FnOnce(&mut LogEnd<T>, &mut Vec<u8>) -> Result<u64, Error>,
    ) -> Result<(), Error> {
        let (at, marked) = (file.end(), end.marked);
        let mut buffer = std::mem::take(&mut end.buffer);
        buffer.clear();
        let durable = self.durable();
        if durable.segment == file.number && durable.offset > marked {
            record::append_mark(&mut buffer, durable.offset, end.sequence, &file.position(at));
            end.sequence += 1;
            end.marked = durable.offset;
        }
        let written = write(end, &mut buffer);
        buffer.shrink_to(KEPT_BUFFER);
        end.buffer = buffer;
        match written {
            Ok(now) => {
                file.set_end(now);
                self.request_sync(end, now);
                Ok(())
            }
            Err(error) => {
                end.marked = marked;
                Err(self.cut_off(file, at, error))
            }
        }
    }

    /// Cuts off what a failed append has written after `at`, durably: otherwise records of later
    /// writes could be followed by some of its own. Returns its error. If it cannot even be cut
    /// off, it is not known whether the write is there.
    fn cut_off(&self, file: &Segment, at: u64, error: Error) -> Error {
        if file.truncate(at).is_err() {
            return self.poison.set(error).in_doubt();
        }
        if file.sync().is_err() { self.poison.set(error) } else { error }
    }

    /// Wakes the sync thread if much of the log is not durable.
    fn request_sync(&self, end: &mut LogEnd<T>, now: u64) {
        if now - end.sync_requested.max(end.marked) >= self.bytes_per_sync {
            end.sync_requested = now;
            self.sync_due.send(Signal::Work);
        }
    }

    /// Makes the last file durable, before the next one starts: so only the last one can have a
    /// torn end.
    pub(crate) fn seal(&self, end: &LogEnd<T>) -> Result<(), Error> {
        if let Some(file) = &end.file {
            file.sync().map_err(|error| self.poison.set(error))?;
            self.set_durable(end.position());
        }
        Ok(())
    }

    /// Goes on in a new file, which the manifest names.
    pub(crate) fn go_on_in(&self, end: &mut LogEnd<T>, file: Arc<Segment>) {
        end.file = Some(file);
        (end.marked, end.sync_requested, end.announced) = (FIRST_RECORD, FIRST_RECORD, true);
        self.set_durable(end.position());
    }

    /// Makes everything durable, and lets `store` write a manifest with exact ends. That it cannot
    /// be written, as on a full disk, is no error: the next opening finds the ends as after a
    /// crash.
    pub(crate) fn close(&self, store: impl FnOnce(&mut LogEnd<T>)) -> Result<(), Error> {
        if self.poison.is_read_only() {
            return Ok(());
        }
        self.poison.check()?;
        self.sync()?;
        store(&mut self.end());
        Ok(())
    }
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// When the operating system has it. Until the next sync it survives a crash of the process,
    /// but not one of the machine.
    None,
    /// When it and every earlier write is on disk. Threads that wait at the same time share one
    /// sync.
    Synced,
}

/// A position in the log: the number of the active segment, and an offset in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogPosition {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}
