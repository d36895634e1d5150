//! Records that cannot be read any more, and whose they were.
//!
//! What takes the place of a record must be of the same key, and that is compared. Where the bytes of the record are damaged, the hint of its segment decides: it has 64 bits of a hash of the key, under a
//! checksum of its own. Two keys have the same as rarely as wrong bytes have the right checksum. So a damaged record keeps no other key from being read, and its own key can be written again, or
//! deleted. Where no hint tells, the damage stays an error.
//!
//! Cost: the hint is read, once for all damage in one segment that is met in a row.

use super::hint::{self, Hint, Note};
use super::read::Located;
use super::store::{Store, lock};
use crate::Error;
use crate::kernel::segment::Segment;

/// What the hint of a segment tells of its records, in order.
#[derive(Debug)]
pub(super) struct Told {
    /// The number of the segment.
    segment: u64,
    /// Where the records end that it tells of.
    covered: u64,
    notes: Vec<Note>,
}

impl Store {
    /// The live record of a key that is about to be written again or deleted, where `found` is what reading it came to.
    pub(super) fn found_or_told(
        &self,
        found: Result<Option<Located>, Error>,
        hash: u64,
    ) -> Result<Option<Located>, Error> {
        match found {
            Err(Error::Damaged { .. }) => self.told(hash),
            found => found,
        }
    }

    /// The live record of a key with this hash, by the hash alone.
    fn told(&self, hash: u64) -> Result<Option<Located>, Error> {
        for location in self.index.candidates(hash).into_iter().flatten() {
            let Some((segment, offset)) = self.segments.at(location) else { continue };
            let (known, size) = self.hash_at(&segment, offset)?;
            if known == hash {
                return Ok(Some(Located { segment, location, size }));
            }
        }
        Ok(None)
    }

    /// The hash of the key of a record, and how long it is: by the hint where it is damaged.
    fn hash_at(&self, segment: &Segment, offset: u64) -> Result<(u64, u64), Error> {
        let mut buffer = Vec::new();
        match segment.record(offset, &mut buffer) {
            Ok(head) => Ok((self.hash(head.key(&buffer)), head.size())),
            Err(error @ Error::Damaged { .. }) => {
                let note = self.note_at(segment, offset);
                note.map(|note| (note.hash, note.size())).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The note of the record at an offset, if the segment has a hint with one.
    fn note_at(&self, segment: &Segment, offset: u64) -> Option<Note> {
        let mut told = lock(&self.told);
        let tells = |told: &Told| told.segment == segment.number && offset < told.covered;
        if !told.as_ref().is_some_and(tells) {
            let end = segment.place(segment.end());
            let Hint { notes, covered, .. } = hint::read(&*self.folder, end, self.segment_bytes)?;
            let notes = notes.iter().collect();
            *told = Some(Told { segment: segment.number, covered, notes });
        }
        let notes = &told.as_ref()?.notes;
        let at = notes.binary_search_by_key(&offset, Note::offset).ok()?;
        Some(notes[at])
    }
}
