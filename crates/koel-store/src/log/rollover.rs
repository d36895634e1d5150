//! The end of the log: room in the active segment, marks, and the next segment.
//!
//! * A segment is full if the next write would exceed its size; only a single record may. It is
//!   synced before the next segment starts, so only the last segment can have a torn end. Most of
//!   it is durable by then: a thread syncs it while it fills (`background.rs`).
//! * The first write after a sync is preceded by a mark (`kernel/durability.rs`).

use std::sync::Arc;

use super::state::Writer;
use super::store::Store;
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::wakeup::Signal;

/// Bytes of a mark.
pub(super) const MARK: u64 = 32;

impl Store {
    /// Returns a segment with room for this many bytes, starting a new one if needed.
    pub(super) fn segment_with_room(
        &self,
        writer: &mut Writer,
        bytes: u64,
    ) -> Result<Arc<Segment>, Error> {
        let has_room = |active: &&Arc<Segment>| {
            active.end() == FIRST_RECORD || active.end() + bytes <= self.segment_bytes
        };
        let Some(active) = writer.active.as_ref().filter(has_room).cloned() else {
            return self.start_segment(writer);
        };
        if !writer.announced {
            self.announce(writer, &self.segments.all(), [])?;
        }
        Ok(active)
    }

    /// Seals the active segment, durably and with its hint, and starts the next one.
    pub(super) fn start_segment(&self, writer: &mut Writer) -> Result<Arc<Segment>, Error> {
        let number = self.segments.free_number(writer.number)?;
        if let Some(active) = writer.active.clone() {
            active.sync().map_err(|error| self.poison.set(error))?;
            self.commits.set_durable(writer.position());
            writer.notes.write(&*self.folder, &active);
            self.segment_filled.send(Signal::Work);
        }
        writer.notes.clear();
        let created = self.create_segment(writer, number).and_then(|created| {
            self.make_durable(&created)?;
            Ok(created)
        });
        let created = created.map_err(|error| self.poison.set(error))?;
        let mut order = self.segments.all();
        order.push(created.clone());
        writer.active = Some(created.clone());
        writer.marked = FIRST_RECORD;
        writer.sync_requested = FIRST_RECORD;
        self.announce(writer, &order, [&created])?;
        self.commits.set_durable(writer.position());
        self.segments.push(created.clone());
        Ok(created)
    }

    /// Creates the file of a segment with a free number. The number is never used again.
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

    /// Writes the header of a new segment, and makes it and its name durable. Removes the file if
    /// that fails.
    pub(super) fn make_durable(&self, created: &Segment) -> Result<(), Error> {
        let durable = created.write_header().and_then(|()| {
            created.sync()?;
            self.folder.sync().map_err(Error::io("sync", FOLDER))
        });
        if durable.is_err() {
            self.remove_new(created);
        }
        durable
    }

    /// Returns the buffer of the writer, empty except for a mark if one is due.
    pub(super) fn take_buffer(&self, writer: &mut Writer, active: &Segment) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut writer.buffer);
        buffer.clear();
        let Writer { sequence, marked, .. } = writer;
        self.commits.append_mark_if_due(active, sequence, marked, &mut buffer);
        buffer
    }

    /// Moves the end of the log to `end`, after a write of this many bytes of keys and values.
    pub(super) fn advance_end(
        &self,
        writer: &mut Writer,
        active: &Segment,
        end: u64,
        user_bytes: u64,
    ) {
        self.counts.user.add_exclusive(user_bytes);
        self.counts.appended.add_exclusive(end - active.end());
        active.observe_sequence(writer.sequence - 1);
        active.set_end(end);
        if end - writer.sync_requested.max(writer.marked) >= self.bytes_per_sync {
            writer.sync_requested = end;
            self.sync_due.send(Signal::Work);
        }
    }
}
