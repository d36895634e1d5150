//! Dropping damage: compaction leaves out damaged bytes if nothing needs them.
//!
//! The hint of the segment tells: each record that started there is a value that the index no
//! longer has, a tombstone that hides nothing (`pick.rs`), or a mark. Otherwise, or without a sound
//! hint, the segment is left as it is, and the damage is the error.
//!
//! A segment that is known to be damaged is not picked for its dead bytes, since it would be picked
//! again and again. A call of `compact` tries each such segment once, however few bytes are dead:
//! what was damaged may no longer be needed, or only a read may have failed.
//!
//! Cost: the hint is read once for all damaged places of a segment, unless another takes its place
//! in the cache.

use std::ops::Range;
use std::sync::Arc;

use super::hint::Note;
use super::store::Store;
use crate::Error;
use crate::kernel::scan::Scan;
use crate::kernel::segment::Segment;

/// Picks, one at a time, the segments that are damaged when it is first called. It gets the sealed
/// segments at each call.
pub(super) fn each_damaged() -> impl FnMut(&[Arc<Segment>]) -> Option<Range<usize>> {
    let mut untried = None;
    move |sealed| {
        let untried = untried.get_or_insert_with(|| damaged_numbers(sealed).into_iter());
        untried.find_map(|number| {
            let at = sealed.iter().position(|segment| segment.number == number)?;
            Some(at..at + 1)
        })
    }
}

fn damaged_numbers(segments: &[Arc<Segment>]) -> Vec<u64> {
    let damaged = segments.iter().filter(|segment| segment.damage().is_some());
    damaged.map(|segment| segment.number).collect()
}

impl Store {
    /// Moves a scan on to the next sound record, if nothing needs the damaged bytes before it.
    /// Tombstones up to the sequence number `floor` hide nothing.
    ///
    /// # Errors
    ///
    /// `error`, which stopped the scan, if it is not damage or if something needs those bytes.
    pub(super) fn skip_damage(
        &self,
        scan: &mut Scan,
        segment: &Segment,
        floor: u64,
        error: Error,
    ) -> Result<(), Error> {
        if !matches!(error, Error::Damaged { .. }) {
            return Err(error);
        }
        let from = scan.offset();
        scan.resume(&error)?;
        if self.needs(segment, from..scan.offset(), floor) { Err(error) } else { Ok(()) }
    }

    /// Returns whether a record that starts in a range of a segment is needed, or may be.
    fn needs(&self, segment: &Segment, bytes: Range<u64>, floor: u64) -> bool {
        let cache = &self.hint_cache;
        let Some(notes) = cache.notes_in(&*self.folder, segment, self.segment_bytes, bytes) else {
            return true;
        };
        let tombstones_hide_nothing = segment.last_sequence.get() <= floor;
        let is_needed = |note: &Note| {
            if note.is_tombstone() {
                !tombstones_hide_nothing
            } else {
                let location = self.segments.location(segment, note.offset());
                self.index.contains(note.hash, location)
            }
        };
        notes.iter().any(is_needed)
    }
}
