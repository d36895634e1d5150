//! Writing: room at the end of the log, records sealed and written there, and only then the index.
//!
//! * What the index will need to know (is the key there, and where?) is read *before* anything is written, so an unreadable record refuses the write and nothing has happened.
//! * One write per batch, and per record on its own, unless its value is large: that goes in pieces. The index changes under the lock of the writer, so it follows the order of the log.
//! * Group commit: who needs a sync waits for the lock `syncing`. The first one syncs everything written so far, by anybody; whoever waited meanwhile finds
//!   their write durable and leaves.
//! * A mark goes in front of the first write after a sync, so that recovery knows what had been durable (`open.rs`).
//! * A segment is full when the next write would pass its size; one with a single record may be larger. It is synced before the next one begins, so only the last segment can have a torn end. Most of it is durable by then: a thread
//!   syncs it while it fills (`background.rs`).

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use super::batch::{Batch, Planned, length};
use super::hint::Note;
use super::options::Durability;
use super::read::Located;
use super::store::{Call, Position, Store, Writer, lock};
use super::view::watched;
use crate::Error;
use crate::kernel::access;
use crate::kernel::record::{self, Head, Kind};
use crate::kernel::segment::{FIRST, Segment};

/// Bytes of a mark.
const MARK: u64 = 32;

/// A record to be written on its own.
struct One<'a> {
    head: Head,
    key: &'a [u8],
    /// The value, unless it is large.
    value: &'a [u8],
    /// Yields the value if it is large.
    source: &'a mut dyn Read,
}

/// What a record of a batch takes the place of.
enum Before {
    Nothing,
    Stored(Located),
    /// An earlier record of the batch.
    InBatch(usize),
}

impl Store {
    pub(super) fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        let most = self.segment_bytes - FIRST - MARK;
        let bytes = batch.bytes().len() as u64;
        if batch.len() > 1 && bytes > most {
            return Err(Error::BatchTooLarge { bytes, most });
        }
        let position = {
            let mut writer = lock(&self.writer);
            self.append(&mut writer, batch)?
        };
        self.settle(position, durability)
    }

    pub(super) fn put(
        &self,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<(), Error> {
        let head = Head::of_value(length("key", key.len())?, length("value", value.len())?);
        let large = head.kind == Kind::Large;
        let (value, mut source) = if large { (&[][..], value) } else { (value, &[][..]) };
        self.write_one(One { head, key, value, source: &mut source }, durability).map(drop)
    }

    pub(super) fn delete(&self, key: &[u8], durability: Durability) -> Result<bool, Error> {
        let head = Head::of_tombstone(length("key", key.len())?);
        self.write_one(One { head, key, value: &[], source: &mut io::empty() }, durability)
    }

    /// Writes a value of `len` bytes from a reader, in constant memory.
    pub(super) fn write_from(
        &self,
        key: &[u8],
        len: u64,
        source: &mut dyn Read,
        durability: Durability,
    ) -> Result<(), Error> {
        let head = Head::of_value(length("key", key.len())?, length("value", len)?);
        if head.kind == Kind::Large {
            return self.write_one(One { head, key, value: &[], source }, durability).map(drop);
        }
        let mut value = vec![0; record::usize_of(len)];
        source.read_exact(&mut value).map_err(|error| Error::Source { error })?;
        self.put(key, &value, durability)
    }

    /// Writes one record, but no tombstone of a key that has no value: whether it had one.
    fn write_one(&self, one: One<'_>, durability: Durability) -> Result<bool, Error> {
        let hash = self.hash(one.key);
        let (had_value, position) = {
            let mut writer = lock(&self.writer);
            self.poison.check()?;
            let old = self.found_or_told(self.locate(one.key, hash), hash)?;
            let had_value = old.is_some();
            if had_value || one.head.kind != Kind::Tombstone {
                self.append_one(&mut writer, one, hash, old)?;
            }
            (had_value, writer.position())
        };
        self.settle(position, durability)?;
        Ok(had_value)
    }

    /// Makes everything written so far durable.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let position = lock(&self.writer).position();
        self.settle(position, Durability::Synced)
    }

    fn settle(&self, position: Position, durability: Durability) -> Result<(), Error> {
        if durability == Durability::None || *lock(&self.durable) >= position {
            return Ok(());
        }
        let _one_at_a_time = lock(&self.syncing);
        if *lock(&self.durable) >= position {
            return Ok(());
        }
        self.poison.check()?;
        let (active, position) = {
            let writer = lock(&self.writer);
            (writer.active.clone(), writer.position())
        };
        if let Some(active) = active {
            active.sync().map_err(|error| self.poison.by(error))?;
            self.set_durable(position);
        }
        Ok(())
    }

    /// Appends the records of a batch, and enters them into the index.
    fn append(&self, writer: &mut Writer, batch: &Batch) -> Result<Position, Error> {
        self.poison.check()?;
        if batch.is_empty() {
            return Ok(writer.position());
        }
        let before = self.before(batch)?;
        let active = self.make_room(writer, batch.bytes().len() as u64 + MARK)?;
        let at = active.end();
        let mut buffer = self.take_buffer(writer, &active);
        let first = buffer.len();
        buffer.extend_from_slice(batch.bytes());
        for (i, planned) in batch.records().iter().enumerate() {
            let more = i + 1 < batch.len();
            let head = Head { more, sequence: writer.sequence, ..planned.head };
            writer.sequence += 1;
            let start = first + planned.start;
            let end = start + record::usize_of(head.size());
            record::seal(&mut buffer[start..end], &head, &active.place(at + start as u64));
        }
        let written = active.write(&buffer, at).map_err(|error| self.poison.by(error));
        let end = at + buffer.len() as u64;
        writer.keep_buffer(buffer);
        written?;
        let user = batch.records().iter().map(|planned| user_bytes(&planned.head)).sum();
        self.move_end(writer, &active, end, user);
        self.enter(writer, &active, at + first as u64, batch, before);
        Ok(writer.position())
    }

    /// The buffer of the writer, with nothing in it but a mark if one is due.
    fn take_buffer(&self, writer: &mut Writer, active: &Segment) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut writer.buffer);
        buffer.clear();
        self.mark_if_due(writer, active, &mut buffer);
        buffer
    }

    /// The log goes to `end` now, with so many bytes more of keys and values.
    fn move_end(&self, writer: &mut Writer, active: &Segment, end: u64, user: u64) {
        access::add(&self.counts.user, user);
        access::add(&self.counts.appended, end - active.end());
        active.saw(writer.sequence - 1);
        active.set_end(end);
        if end - writer.called.max(writer.marked) >= self.sync_behind {
            writer.called = end;
            self.unsynced.ring(Call::Work);
        }
    }

    /// What the records of a batch take the place of, with the hashes of their keys.
    fn before(&self, batch: &Batch) -> Result<Vec<(u64, Before)>, Error> {
        let mut earlier = HashMap::new();
        let mut before = Vec::with_capacity(batch.len());
        for (i, planned) in batch.records().iter().enumerate() {
            let key = batch.key(planned);
            let hash = self.hash(key);
            let in_batch = if batch.len() > 1 { earlier.insert(key, i) } else { None };
            let what = match in_batch {
                Some(earlier) => Before::InBatch(earlier),
                None => {
                    let stored = self.found_or_told(self.locate(key, hash), hash)?;
                    stored.map_or(Before::Nothing, Before::Stored)
                }
            };
            before.push((hash, what));
        }
        Ok(before)
    }

    /// Enters the records of a batch, written from `at` on, into the index. Cannot fail.
    fn enter(
        &self,
        writer: &mut Writer,
        active: &Arc<Segment>,
        at: u64,
        batch: &Batch,
        before: Vec<(u64, Before)>,
    ) {
        let offset = |planned: &Planned| at + planned.start as u64;
        for (planned, (hash, before)) in batch.records().iter().zip(before) {
            let old = match before {
                Before::Nothing => None,
                Before::Stored(located) => Some(located),
                Before::InBatch(earlier) => {
                    let earlier = batch.records()[earlier];
                    let location = self.segments.location(active, offset(&earlier));
                    let located =
                        Located { segment: active.clone(), location, size: earlier.head.size() };
                    (earlier.head.kind != Kind::Tombstone).then_some(located)
                }
            };
            self.enter_one(writer, active, &Note::new(hash, offset(planned), &planned.head), old);
        }
    }

    /// Enters one record into the index in place of another.
    fn enter_one(
        &self,
        writer: &mut Writer,
        active: &Arc<Segment>,
        note: &Note,
        old: Option<Located>,
    ) {
        writer.notes.push(note);
        active.add_record(note.size());
        let location = self.segments.location(active, note.offset());
        if let Some(old) = &old {
            watched(&mut writer.watches, old.location);
            old.segment.add_dead(old.size);
        }
        let live = (!note.is_tombstone()).then_some(location);
        self.index.change(note.hash, old.map(|old| old.location), live);
        if note.is_tombstone() {
            active.add_tombstones(note.size());
        }
    }

    /// Appends one record, and enters it into the index in place of another.
    fn append_one(
        &self,
        writer: &mut Writer,
        one: One<'_>,
        hash: u64,
        old: Option<Located>,
    ) -> Result<(), Error> {
        let active = self.make_room(writer, one.head.size() + MARK)?;
        let at = active.end();
        let mut buffer = self.take_buffer(writer, &active);
        let start = buffer.len();
        let head = Head { sequence: writer.sequence, ..one.head };
        record::append(&mut buffer, &head, one.key, one.value);
        let offset = at + start as u64;
        record::seal(&mut buffer[start..], &head, &active.place(offset));
        // The source may panic when half of the value is written.
        let attempt = self.poison.attempt();
        let written = self.stream(&active, at, &head, &mut buffer, one.source);
        attempt.over();
        writer.keep_buffer(buffer);
        let end = match written {
            Ok(end) => end,
            Err(Error::Source { error }) => {
                let cut = active.cut(at).and_then(|()| active.sync());
                cut.map_err(|error| self.poison.by(error))?;
                writer.marked = 0;
                return Err(Error::Source { error });
            }
            Err(error) => return Err(self.poison.by(error)),
        };
        writer.sequence += 1;
        self.move_end(writer, &active, end, user_bytes(&head));
        self.enter_one(writer, &active, &Note::new(hash, offset, &head), old);
        Ok(())
    }

    /// Writes `buffer` at `at`, and behind it the blocks of a large value: where they end.
    fn stream(
        &self,
        active: &Segment,
        mut at: u64,
        head: &Head,
        buffer: &mut Vec<u8>,
        source: &mut dyn Read,
    ) -> Result<u64, Error> {
        let mut block_bytes = Vec::new();
        for block in record::block_sizes(head) {
            block_bytes.resize(block.content, 0);
            source.read_exact(&mut block_bytes).map_err(|error| Error::Source { error })?;
            let start = buffer.len();
            record::append_block(buffer, &block_bytes);
            record::seal_block(&mut buffer[start..], &active.place(at + start as u64));
            if buffer.len() >= 4 * record::BLOCK {
                active.write(buffer, at)?;
                at += buffer.len() as u64;
                buffer.clear();
            }
        }
        active.write(buffer, at)?;
        Ok(at + buffer.len() as u64)
    }

    /// The segment that takes so many bytes more.
    fn make_room(&self, writer: &mut Writer, bytes: u64) -> Result<Arc<Segment>, Error> {
        let has_room = |active: &&Arc<Segment>| {
            active.end() == FIRST || active.end() + bytes <= self.segment_bytes
        };
        let Some(active) = writer.active.as_ref().filter(has_room).cloned() else {
            return self.begin_segment(writer);
        };
        if !writer.announced {
            self.announce(writer, &self.segments.all())?;
        }
        Ok(active)
    }

    /// Ends the active segment, durable and with its hint, and begins the next.
    pub(super) fn begin_segment(&self, writer: &mut Writer) -> Result<Arc<Segment>, Error> {
        let number = self.segments.free_number(writer.number)?;
        if let Some(active) = writer.active.clone() {
            active.sync().map_err(|error| self.poison.by(error))?;
            self.set_durable(writer.position());
            writer.notes.write(&*self.folder, &active);
            self.filled.ring(Call::Work);
        }
        writer.notes.clear();
        let created = self.create_segment(writer, number).and_then(|created| {
            self.make_durable(&created)?;
            Ok(created)
        });
        let created = created.map_err(|error| self.poison.by(error))?;
        let mut order = self.segments.all();
        order.push(created.clone());
        writer.active = Some(created.clone());
        writer.marked = FIRST;
        writer.called = FIRST;
        self.announce(writer, &order)?;
        self.set_durable(writer.position());
        self.segments.push(created.clone());
        Ok(created)
    }

    /// Creates the file of a segment with a number that is free, which is no other's from now on.
    pub(super) fn create_segment(
        &self,
        writer: &mut Writer,
        number: u64,
    ) -> Result<Arc<Segment>, Error> {
        writer.number = number + 1;
        let created = Arc::new(Segment::create(&*self.folder, self.salt, number)?);
        self.segments.reserve(&created);
        Ok(created)
    }

    /// Begins a new segment, and makes it durable with its name; there is no file any more where that fails.
    pub(super) fn make_durable(&self, created: &Segment) -> Result<(), Error> {
        let begun = created.begin().and_then(|()| {
            created.sync()?;
            self.folder.sync().map_err(Error::io("sync", "the folder"))
        });
        if begun.is_err() {
            drop(self.folder.remove(&created.name));
        }
        begun
    }

    /// Adds a mark to what is to be written, if more is durable than the last one says.
    fn mark_if_due(&self, writer: &mut Writer, active: &Segment, buffer: &mut Vec<u8>) {
        let durable = *lock(&self.durable);
        if durable.segment == active.number && durable.offset > writer.marked {
            let place = active.place(active.end());
            record::append_mark(buffer, durable.offset, writer.sequence, &place);
            writer.sequence += 1;
            writer.marked = durable.offset;
        }
    }
}

fn user_bytes(head: &Head) -> u64 {
    head.key_len + head.value_len
}
