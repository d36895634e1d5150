//! The next segment of the log.
//!
//! A segment is full if the next write would exceed its size; only a single record may. It is
//! synced before the next segment starts, so only the last segment can have a torn end. Most of it
//! is durable by then: a thread syncs it while it fills (`background.rs`). Until the manifest names
//! the next one nothing has changed: a failure before that refuses the write.

use std::sync::Arc;

use super::state::End;
use super::store::Store;
use crate::Error;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::wakeup::Signal;

impl Store {
    /// Returns a segment with room for this many bytes, starting a new one if needed.
    pub(super) fn segment_with_room(
        &self,
        end: &mut End,
        bytes: u64,
    ) -> Result<Arc<Segment>, Error> {
        let has_room = |last: &&Arc<Segment>| {
            last.end() == FIRST_RECORD || last.end() + bytes <= self.segment_bytes
        };
        let Some(last) = end.file.as_ref().filter(has_room).cloned() else {
            return self.start_segment(end);
        };
        if !end.announced {
            self.announce(end, &self.segments.all(), [])?;
        }
        Ok(last)
    }

    /// Seals the last segment, durably and with its hint, and starts the next one.
    pub(super) fn start_segment(&self, end: &mut End) -> Result<Arc<Segment>, Error> {
        self.log.seal(end)?;
        let created = self.create_segment(end)?;
        created.make_durable(&*self.folder)?;
        let mut order = self.segments.all();
        order.push(created.clone());
        self.announce(end, &order, [&created])?;
        if let Some(sealed) = end.file.take() {
            end.own.notes.write(&*self.folder, &sealed);
            self.segment_filled.send(Signal::Work);
        }
        end.own.notes.clear();
        self.log.go_on_in(end, created.clone());
        self.segments.push(created.clone());
        Ok(created)
    }

    /// Creates the file of a segment with a free number. The number is never used again.
    pub(super) fn create_segment(&self, end: &mut End) -> Result<Arc<Segment>, Error> {
        let number = self.segments.free_number(end.own.number)?;
        end.own.number = number + 1;
        let created = Arc::new(Segment::create(&*self.folder, self.salt, number)?);
        self.segments.reserve(&created);
        Ok(created)
    }

    /// Makes everything durable, and writes a manifest with exact ends.
    pub(super) fn close(&self) -> Result<(), Error> {
        self.log.close(|end| {
            if !end.announced {
                return;
            }
            if let Some(last) = &end.file {
                end.own.notes.write(&*self.folder, last);
            }
            let manifest = self.manifest(end, &self.segments.all(), true);
            end.announced = manifest.store(&*self.folder, &self.log.poison).is_err();
        })
    }
}
