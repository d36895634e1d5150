//! Replaying one record while a store is opened: the index gets it in place of the previous record
//! of its key.

use std::sync::Arc;

use super::hint::Note;
use super::read::Located;
use super::store::Store;
use crate::Error;
use crate::kernel::segment::Segment;

impl Store {
    /// Replays a record. Its key is read from the segment if it is needed and the caller has none.
    pub(super) fn replay_record(
        &self,
        segment: &Arc<Segment>,
        note: &Note,
        key: Option<&[u8]>,
    ) -> Result<(), Error> {
        let location = self.segments.location(segment, note.offset());
        let old = self.previous_record(segment, note, key)?;
        if let Some(old) = &old {
            old.segment.add_dead(old.size);
        }
        let new = (!note.is_tombstone()).then_some(location);
        self.index.update(note.hash, old.map(|old| old.location), new);
        Ok(())
    }

    /// Returns the record of the same key that was replayed before.
    fn previous_record(
        &self,
        segment: &Arc<Segment>,
        note: &Note,
        key: Option<&[u8]>,
    ) -> Result<Option<Located>, Error> {
        if self.index.candidates(note.hash).is_none() {
            return Ok(None);
        }
        let located = match key {
            Some(key) => self.locate(key, note.hash),
            None => {
                self.key_at(segment, note.offset()).and_then(|key| self.locate(&key, note.hash))
            }
        };
        self.resolve_damaged(located, note.hash)
    }
}
