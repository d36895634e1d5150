//! The notes of one hint in memory: which key a record had that cannot be read.
//!
//! Cost: a hint is read once for consecutive damage in one segment.

use std::sync::Mutex;

use super::hint::{self, Hint, Note};
use crate::kernel::files::Folder;
use crate::kernel::lock::lock;
use crate::kernel::memory;
use crate::kernel::segment::Segment;

/// The hint of the segment in which damage was last met.
#[derive(Debug, Default)]
pub(super) struct HintCache(Mutex<Option<CachedHint>>);

#[derive(Debug)]
struct CachedHint {
    /// The segment number.
    segment: u64,
    /// The notes are of all records before this offset.
    covered: u64,
    notes: Vec<Note>,
}

impl HintCache {
    /// Returns the note of the record at `offset`, if the segment has a hint with one.
    pub(super) fn note_at(
        &self,
        folder: &dyn Folder,
        segment: &Segment,
        segment_bytes: u64,
        offset: u64,
    ) -> Option<Note> {
        let mut cached = lock(&self.0);
        let covers =
            |cached: &CachedHint| cached.segment == segment.number && offset < cached.covered;
        if !cached.as_ref().is_some_and(covers) {
            let end = segment.position(segment.end());
            *cached = Some(CachedHint::new(hint::read(folder, end, segment_bytes)?, segment)?);
        }
        let notes = &cached.as_ref()?.notes;
        let at = notes.binary_search_by_key(&offset, Note::offset).ok()?;
        Some(notes[at])
    }
}

impl CachedHint {
    /// Returns `None` if there is not enough memory.
    fn new(hint: Hint, segment: &Segment) -> Option<Self> {
        let mut notes = Vec::new();
        memory::reserve(&mut notes, hint.notes.iter().count()).ok()?;
        notes.extend(hint.notes.iter());
        Some(Self { segment: segment.number, covered: hint.covered, notes })
    }
}
