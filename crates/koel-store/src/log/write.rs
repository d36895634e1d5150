//! Writing: room at the end of the log, records sealed and written there, and only then the index.
//!
//! * What the index will need to know (is the key there, and where?) is read *before* anything is written, so an unreadable record refuses the write and nothing has happened.
//! * One write per batch. The index changes under the lock of the writer, so it follows the order of the log.
//! * Group commit: who needs a sync waits for the lock `syncing`. The first one syncs everything written so far, by anybody; whoever waited meanwhile finds
//!   their write durable and leaves.
//! * A mark goes in front of the first write after a sync, so that recovery knows what had been durable (`open.rs`).
//! * A segment is full when the next write would pass its size; one with a single record may be larger. It is synced before the next one begins, so only the last segment can have a torn end.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::batch::{Batch, Planned, length};
use super::hint::{self, Note};
use super::options::Durability;
use super::read::Located;
use super::store::{Call, Position, Store, Writer, lock};
use super::view::watched;
use crate::Error;
use crate::kernel::record::{self, Head, Kind};
use crate::kernel::segment::{FIRST, Segment};

/// Bytes of a mark.
const MARK: u64 = 32;

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

    pub(super) fn delete(&self, key: &[u8], durability: Durability) -> Result<bool, Error> {
        let mut batch = Batch::new();
        batch.delete(key)?;
        let (was_there, position) = {
            let mut writer = lock(&self.writer);
            self.poison.check()?;
            let was_there = self.locate(key, self.hash(key))?.is_some();
            let position =
                if was_there { self.append(&mut writer, &batch)? } else { writer.position() };
            (was_there, position)
        };
        self.settle(position, durability)?;
        Ok(was_there)
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
        if head.kind == Kind::Value {
            let mut value = vec![0; record::usize_of(len)];
            source.read_exact(&mut value).map_err(|error| Error::Source { error })?;
            let mut batch = Batch::new();
            batch.put(key, &value)?;
            return self.write(&batch, durability);
        }
        let position = {
            let mut writer = lock(&self.writer);
            self.append_from(&mut writer, &head, key, source)?
        };
        self.settle(position, durability)
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
        let mut buffer = std::mem::take(&mut writer.buffer);
        buffer.clear();
        self.mark_if_due(writer, &active, &mut buffer);
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
        buffer.shrink_to(1 << 20);
        writer.buffer = buffer;
        written?;
        active.saw(writer.sequence - 1);
        active.set_end(end);
        let user = batch.records().iter().map(|planned| user_bytes(&planned.head)).sum();
        self.counts.user.fetch_add(user, Ordering::Relaxed);
        self.counts.appended.fetch_add(end - at, Ordering::Relaxed);
        self.enter(writer, &active, at + first as u64, batch, before);
        Ok(writer.position())
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
                None => self.locate(key, hash)?.map_or(Before::Nothing, Before::Stored),
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
        writer.notes.push(*note);
        active.add_records(1);
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

    fn append_from(
        &self,
        writer: &mut Writer,
        head: &Head,
        key: &[u8],
        source: &mut dyn Read,
    ) -> Result<Position, Error> {
        self.poison.check()?;
        let hash = self.hash(key);
        let old = self.locate(key, hash)?;
        let active = self.make_room(writer, head.size() + MARK)?;
        let at = active.end();
        let mut buffer = Vec::new();
        self.mark_if_due(writer, &active, &mut buffer);
        let start = buffer.len();
        let head = Head { sequence: writer.sequence, ..*head };
        record::append(&mut buffer, &head, key, &[]);
        record::seal(&mut buffer[start..], &head, &active.place(at + start as u64));
        let end = match self.stream(&active, at, &head, buffer, source) {
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
        active.saw(head.sequence);
        active.set_end(end);
        self.counts.user.fetch_add(user_bytes(&head), Ordering::Relaxed);
        self.counts.appended.fetch_add(end - at, Ordering::Relaxed);
        self.enter_one(writer, &active, &Note::new(hash, at + start as u64, &head), old);
        Ok(writer.position())
    }

    /// Writes `buffer` at `at`, and behind it the blocks of a large value: where they end.
    fn stream(
        &self,
        active: &Segment,
        mut at: u64,
        head: &Head,
        mut buffer: Vec<u8>,
        source: &mut dyn Read,
    ) -> Result<u64, Error> {
        let mut block_bytes = vec![0; record::BLOCK];
        for block in record::block_sizes(head) {
            let content = &mut block_bytes[..block.content];
            source.read_exact(content).map_err(|error| Error::Source { error })?;
            let start = buffer.len();
            record::append_block(&mut buffer, content);
            record::seal_block(&mut buffer[start..], &active.place(at + start as u64));
            if buffer.len() >= 4 * record::BLOCK {
                active.write(&buffer, at)?;
                at += buffer.len() as u64;
                buffer.clear();
            }
        }
        active.write(&buffer, at)?;
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
            self.publish(&self.manifest(writer, &self.segments.all(), false))?;
            writer.announced = true;
        }
        Ok(active)
    }

    /// Ends the active segment, durable and with its hint, and begins the next.
    pub(super) fn begin_segment(&self, writer: &mut Writer) -> Result<Arc<Segment>, Error> {
        let number = self.segments.free_number(writer.number)?;
        if let Some(active) = &writer.active {
            active.sync().map_err(|error| self.poison.by(error))?;
            self.set_durable(writer.position());
            hint::write(&*self.folder, active, &writer.notes);
            self.bell.ring(Call::Look);
        }
        writer.notes.clear();
        let created = self.create_segment(number).map_err(|error| self.poison.by(error))?;
        let mut order = self.segments.all();
        order.push(created.clone());
        writer.number = number + 1;
        writer.active = Some(created.clone());
        writer.marked = FIRST;
        self.publish(&self.manifest(writer, &order, false))?;
        writer.announced = true;
        self.set_durable(writer.position());
        self.segments.push(created.clone());
        Ok(created)
    }

    /// A new segment, durable with its name.
    pub(super) fn create_segment(&self, number: u64) -> Result<Arc<Segment>, Error> {
        let created = Segment::create(&*self.folder, self.salt, number)?;
        created.sync()?;
        self.folder.sync().map_err(Error::io("sync", "the folder"))?;
        Ok(Arc::new(created))
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
    u64::from(head.key_len) + u64::from(head.value_len)
}
