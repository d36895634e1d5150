//! Writing: records are sealed and appended to the log, and only then the index changes.
//!
//! * The previous record of each key is located *before* anything is written. If it cannot be read,
//!   the write fails and nothing has happened.
//! * A batch takes one write call, and so does a single record, unless its value is large: that is
//!   written in pieces. The index changes under the lock of the writer, so it follows the order of
//!   the log.
//! * A compare-exchange reads the present value under the same lock, so no write comes between.
//!   Compaction may move the record meanwhile, but it changes the index under that lock too.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, MutexGuard};

use super::hint::Note;
use super::read::{Located, value_of};
use super::store::{End, Store, Watch};
use crate::Error;
use crate::kernel::access::read_exact;
use crate::kernel::batch::{Batch, Unsealed, length};
use crate::kernel::bytes::usize_of;
use crate::kernel::log_end::{Durability, LogPosition};
use crate::kernel::memory;
use crate::kernel::record::{self, Header, Kind, MARK};
use crate::kernel::segment::{FIRST_RECORD, Segment};

/// Bytes of a large value that are written at a time.
const PIECE: usize = 4 * record::BLOCK;

/// A single record to be written.
struct SingleRecord<'a> {
    header: Header,
    key: &'a [u8],
    /// The value, unless it is large.
    value: &'a [u8],
    /// Yields the value if it is large.
    source: &'a mut dyn Read,
}

impl<'a> SingleRecord<'a> {
    /// Returns the record that sets `key` to a value, which `source` yields too, or deletes it.
    fn new(
        key: &'a [u8],
        value: Option<&'a [u8]>,
        source: &'a mut dyn Read,
    ) -> Result<Self, Error> {
        let key_len = length("key", key.len())?;
        let header = match value {
            Some(value) => Header::of_value(key_len, length("value", value.len())?),
            None => Header::of_tombstone(key_len),
        };
        let is_large = header.kind == Kind::Large;
        let value = value.filter(|_| !is_large).unwrap_or_default();
        Ok(Self { header, key, value, source })
    }
}

/// Why [`compare_exchange`](super::LogStore::compare_exchange) did not write: the key has another
/// value than expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key {}, which is not what was expected; nothing was written", state_of(.current.as_ref()))]
#[non_exhaustive]
pub struct Mismatch {
    /// The value that the key has; none if it is absent.
    pub current: Option<Vec<u8>>,
}

fn state_of(current: Option<&Vec<u8>>) -> String {
    current.map_or("is absent".to_owned(), |value| format!("has a value of {} bytes", value.len()))
}

/// What a record of a batch replaces.
enum Previous {
    Absent,
    Stored(Located),
    /// An earlier record of the batch.
    InBatch(usize),
}

impl Store {
    pub(super) fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        let max = self.segment_bytes - FIRST_RECORD - MARK as u64;
        let bytes = batch.bytes().len() as u64;
        if batch.len() > 1 && bytes > max {
            return Err(Error::BatchTooLarge { bytes, max });
        }
        let position = {
            let mut end = self.log.end();
            self.append_batch(&mut end, batch)?
        };
        self.log.wait_durable(position, durability).map_err(Error::in_doubt)
    }

    pub(super) fn put(
        &self,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<(), Error> {
        let mut source = value;
        let record = SingleRecord::new(key, Some(value), &mut source)?;
        self.write_single(record, durability).map(drop)
    }

    pub(super) fn delete(&self, key: &[u8], durability: Durability) -> Result<bool, Error> {
        let mut source = io::empty();
        self.write_single(SingleRecord::new(key, None, &mut source)?, durability)
    }

    /// Writes one record if the present value is as expected. No write can come between.
    pub(super) fn compare_exchange(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        durability: Durability,
    ) -> Result<Result<(), Mismatch>, Error> {
        let mut source = new.unwrap_or_default();
        let record = SingleRecord::new(key, new, &mut source)?;
        let hash = self.hash(key);
        let end = self.log.end();
        self.log.poison.check()?;
        let found = self.find(key, hash, |hit| {
            let value = value_of(hit.segment, &hit.record)?;
            Ok((hit.located(), value))
        })?;
        let (old, current) = found.unzip();
        if current.as_deref() != expected {
            return Ok(Err(Mismatch { current }));
        }
        self.replace_single(end, record, (hash, old), durability)?;
        Ok(Ok(()))
    }

    /// Writes a value of `len` bytes from a reader, in constant memory.
    pub(super) fn write_from(
        &self,
        key: &[u8],
        len: u64,
        source: &mut dyn Read,
        durability: Durability,
    ) -> Result<(), Error> {
        let header = Header::of_value(length("key", key.len())?, length("value", len)?);
        if header.kind == Kind::Large {
            let record = SingleRecord { header, key, value: &[], source };
            return self.write_single(record, durability).map(drop);
        }
        let mut value = Vec::new();
        memory::grow_to(&mut value, usize_of(len))?;
        read_exact(source, &mut value).map_err(|error| Error::Source { error })?;
        self.put(key, &value, durability)
    }

    /// Writes one record, except a tombstone of a key without a value. Returns whether the key had
    /// a value.
    fn write_single(
        &self,
        record: SingleRecord<'_>,
        durability: Durability,
    ) -> Result<bool, Error> {
        let hash = self.hash(record.key);
        let end = self.log.end();
        self.log.poison.check()?;
        let old = self.resolve_damaged(self.locate(record.key, hash), hash)?;
        let had_value = old.is_some();
        self.replace_single(end, record, (hash, old), durability)?;
        Ok(had_value)
    }

    /// Writes one record in place of the live one of its key, except a tombstone in place of none.
    /// Then waits until it is as durable as asked.
    fn replace_single(
        &self,
        mut end: MutexGuard<'_, End>,
        record: SingleRecord<'_>,
        (hash, old): (u64, Option<Located>),
        durability: Durability,
    ) -> Result<(), Error> {
        if old.is_some() || record.header.kind != Kind::Tombstone {
            self.append_single(&mut end, record, hash, old)?;
        }
        let position = end.position();
        drop(end);
        self.log.wait_durable(position, durability).map_err(Error::in_doubt)
    }

    /// Appends the records of a batch, and adds them to the index.
    fn append_batch(&self, end: &mut End, batch: &Batch) -> Result<LogPosition, Error> {
        self.log.poison.check()?;
        if batch.is_empty() {
            return Ok(end.position());
        }
        let previous = self.previous_records(batch)?;
        let last = self.segment_with_room(end, (batch.bytes().len() + MARK) as u64)?;
        let before = last.end();
        end.own.notes.reserve(batch.len())?;
        let at = self.log.append(end, &last, batch)?;
        let user = batch.records().iter().map(|record| user_bytes(&record.header)).sum();
        self.count(end, &last, before, user);
        self.index_batch(end, &last, at, batch, previous)?;
        Ok(end.position())
    }

    /// Counts a write to the last segment, which ended at `before`.
    fn count(&self, end: &End, last: &Segment, before: u64, user_bytes: u64) {
        self.counts.user.add_exclusive(user_bytes);
        self.counts.appended.add_exclusive(last.end() - before);
        last.observe_sequence(end.sequence - 1);
    }

    /// Returns what the records of a batch replace, with the hashes of their keys.
    fn previous_records(&self, batch: &Batch) -> Result<Vec<(u64, Previous)>, Error> {
        let mut in_batch = HashMap::new();
        let mut previous = Vec::new();
        memory::reserve(&mut previous, batch.len())?;
        for (i, unsealed) in batch.records().iter().enumerate() {
            let key = batch.key(unsealed);
            let hash = self.hash(key);
            let earlier = if batch.len() > 1 { in_batch.insert(key, i) } else { None };
            let replaced = match earlier {
                Some(earlier) => Previous::InBatch(earlier),
                None => {
                    let stored = self.resolve_damaged(self.locate(key, hash), hash)?;
                    stored.map_or(Previous::Absent, Previous::Stored)
                }
            };
            previous.push((hash, replaced));
        }
        Ok(previous)
    }

    /// Adds the records of a batch, written at `at`, to the index. Fails as
    /// [`index_record`](Self::index_record) does.
    fn index_batch(
        &self,
        end: &mut End,
        active: &Arc<Segment>,
        at: u64,
        batch: &Batch,
        previous: Vec<(u64, Previous)>,
    ) -> Result<(), Error> {
        let offset = |record: &Unsealed| at + record.start as u64;
        for (record, (hash, previous)) in batch.records().iter().zip(previous) {
            let old = match previous {
                Previous::Absent => None,
                Previous::Stored(located) => Some(located),
                Previous::InBatch(earlier) => {
                    let earlier = batch.records()[earlier];
                    let location = self.segments.location(active, offset(&earlier));
                    let size = earlier.header.size();
                    let located = Located { segment: active.clone(), location, size };
                    (earlier.header.kind != Kind::Tombstone).then_some(located)
                }
            };
            let note = Note::new(hash, offset(record), &record.header);
            self.index_record(end, active, &note, old)?;
        }
        Ok(())
    }

    /// Adds a record to the index in place of another. Without memory for it, nothing is written
    /// any more: the log has a record that the index has not.
    fn index_record(
        &self,
        end: &mut End,
        active: &Arc<Segment>,
        note: &Note,
        old: Option<Located>,
    ) -> Result<(), Error> {
        end.own.notes.push(note);
        note.count_in(active);
        let location = self.segments.location(active, note.offset());
        if let Some(old) = &old {
            Watch::notify(&mut end.own.watches, old.location);
            old.segment.dead.add(old.size);
        }
        let new = (!note.is_tombstone()).then_some(location);
        let indexed = self.index.update(note.hash, old.map(|old| old.location), new);
        indexed.map_err(|error| self.log.poison.set(error).in_doubt())
    }

    /// Appends one record, and adds it to the index in place of another.
    fn append_single(
        &self,
        end: &mut End,
        record: SingleRecord<'_>,
        hash: u64,
        old: Option<Located>,
    ) -> Result<(), Error> {
        let active = self.segment_with_room(end, record.header.size() + MARK as u64)?;
        let (at, mut offset) = (active.end(), 0);
        let mut header = record.header;
        end.own.notes.reserve(1)?;
        self.log.append_with(end, &active, |end, buffer| {
            let start = buffer.len();
            memory::reserve(buffer, usize_of(header.body()))?;
            header.sequence = end.sequence;
            end.sequence += 1;
            record::append(buffer, &header, record.key, record.value);
            offset = at + start as u64;
            record::seal(&mut buffer[start..], &header, &active.position(offset));
            // The source may panic when half of the value is written.
            let attempt = self.log.poison.attempt();
            let written = write_with_blocks(&active, at, &header, buffer, record.source);
            attempt.finish();
            written
        })?;
        self.count(end, &active, at, user_bytes(&header));
        self.index_record(end, &active, &Note::new(hash, offset, &header), old)
    }
}

/// Writes `buffer` at `at`, and after it the blocks of a large value. Returns where they end.
fn write_with_blocks(
    active: &Segment,
    mut at: u64,
    header: &Header,
    buffer: &mut Vec<u8>,
    source: &mut dyn Read,
) -> Result<u64, Error> {
    let mut block_bytes = Vec::new();
    for block in record::block_sizes(header) {
        memory::grow_to(&mut block_bytes, block.content)?;
        block_bytes.truncate(block.content);
        memory::reserve(buffer, block.stored)?;
        read_exact(source, &mut block_bytes).map_err(|error| Error::Source { error })?;
        let start = buffer.len();
        record::append_block(buffer, &block_bytes);
        record::seal_block(&mut buffer[start..], &active.position(at + start as u64));
        if buffer.len() >= PIECE {
            active.write(buffer, at)?;
            at += buffer.len() as u64;
            buffer.clear();
        }
    }
    active.write(buffer, at)?;
    Ok(at + buffer.len() as u64)
}

fn user_bytes(header: &Header) -> u64 {
    header.key_len + header.value_len
}
