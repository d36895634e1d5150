//! Recovery: the records of all segments are replayed into the index, in log order.
//!
//! Bytes that are not sound lead to one of three results:
//!
//! 1. **Damage**, an error: in any segment but the last, before the end in the manifest, or before
//!    an offset that a later mark says was durable. After [`close`](super::LogStore::close) the
//!    manifest has the end of every segment, so every missing or unsound byte is damage.
//! 2. **A torn end** (`kernel/torn.rs`), cut off and reported in
//!    [`LogOpenReport::torn`](super::LogOpenReport::torn): unsound bytes, or a batch without
//!    its end.
//! 3. **Nothing**, for an unsound hint: the segment is scanned. Nor for a damaged record that a
//!    sound hint covers: the read of its key is an error, and other keys stay readable.
//!
//! The log is in order, whatever compaction did (`compact.rs`): a later record of a key follows an
//! earlier one. So replaying the records in order gives the state, and deleted keys stay deleted.

use std::sync::Arc;

use super::hint::{self, Note, Notes};
use super::manifest::Manifest;
use super::replay_hints::NotesByShard;
use super::store::Store;
use crate::Error;
use crate::kernel::memory;
use crate::kernel::record::{Kind, SEQUENCE_LIMIT};
use crate::kernel::scan::{Record, Scan};
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::torn::is_torn;

/// What replaying a segment led to.
struct Replayed {
    notes: Notes,
    /// Where the segment stops being sound, and why, if it does not end with a whole batch.
    lost: Option<(u64, Error)>,
}

/// The scan of the part of a segment that no hint covers.
struct Tail {
    notes: Notes,
    /// The records of a batch whose end was not reached yet.
    batch: Vec<Note>,
    /// Where the last whole batch ends.
    whole: u64,
}

impl Store {
    /// Replays all segments. Returns the notes for the hint of the last segment, and where its
    /// records end.
    pub(super) fn recover(
        &mut self,
        manifest: &Manifest,
        segments: &[Arc<Segment>],
    ) -> Result<(Notes, u64), Error> {
        for segment in segments {
            self.segments.push(segment.clone());
        }
        let mut last = (Notes::default(), FIRST_RECORD);
        let mut by_shard = NotesByShard::default();
        for (i, (segment, entry)) in segments.iter().zip(&manifest.segments).enumerate() {
            let Replayed { notes, lost } = self.replay_segment(segment, &mut by_shard)?;
            let end = match lost {
                None => segment.end(),
                Some((offset, _))
                    if !manifest.has_exact_end(i) && is_torn(segment, entry.end, offset)? =>
                {
                    offset
                }
                Some((_, error)) => return Err(error),
            };
            last = (notes, end);
        }
        Ok(last)
    }

    /// Replays all whole batches of a segment.
    fn replay_segment(
        &mut self,
        segment: &Arc<Segment>,
        by_shard: &mut NotesByShard,
    ) -> Result<Replayed, Error> {
        let end = segment.end();
        let (mut notes, mut from) = (Notes::default(), FIRST_RECORD);
        if let Some(hint) = hint::read(&*self.folder, segment.position(end), self.segment_bytes) {
            self.replay_hint(segment, &hint.notes, by_shard)?;
            self.observe_sequence(segment, hint.sequence)?;
            self.open_report.hinted += 1;
            (notes, from) = (hint.notes, hint.covered);
        }
        self.open_report.scanned += end - from;
        let mut scan = Scan::from(segment.clone(), from, end);
        let mut tail = Tail { notes, batch: Vec::new(), whole: from };
        let lost = loop {
            match scan.next() {
                Ok(Some(record)) => {
                    let ends_batch = !record.header.more;
                    self.replay_scanned(segment, &record, &mut tail)?;
                    if ends_batch {
                        tail.whole = scan.offset();
                    }
                }
                Ok(None) if tail.batch.is_empty() => break None,
                Ok(None) => break Some(segment.damaged(tail.whole, "a batch has no end")),
                Err(error @ Error::Damaged { .. }) => break Some(error),
                Err(error) => return Err(error),
            }
        };
        Ok(Replayed { notes: tail.notes, lost: lost.map(|error| (tail.whole, error)) })
    }

    /// Replays a record that was scanned, once its batch is whole.
    fn replay_scanned(
        &self,
        segment: &Arc<Segment>,
        record: &Record<'_>,
        tail: &mut Tail,
    ) -> Result<(), Error> {
        if record.offset >= self.segment_bytes {
            let what = "a record starts after the size of a segment";
            return Err(segment.damaged(record.offset, what));
        }
        if record.header.kind != Kind::Mark {
            let note = Note::new(self.hash(record.key()), record.offset, &record.header);
            memory::push(&mut tail.batch, note)?;
        }
        if record.header.more {
            return Ok(());
        }
        self.observe_sequence(segment, record.header.sequence)?;
        // The key of the last record is at hand, those of the others are read again if needed.
        let last = tail.batch.len().saturating_sub(1);
        for (i, note) in tail.batch.drain(..).enumerate() {
            note.count_in(segment);
            let is_last = i == last && record.header.kind != Kind::Mark;
            self.replay_record(segment, &note, is_last.then(|| record.key()))?;
            tail.notes.push(&note);
        }
        Ok(())
    }

    fn observe_sequence(&self, segment: &Segment, sequence: u64) -> Result<(), Error> {
        segment.observe_sequence(sequence);
        let mut end = self.log.end();
        end.sequence = end.sequence.max(sequence + 1);
        if end.sequence < SEQUENCE_LIMIT {
            Ok(())
        } else {
            Err(segment.damaged(FIRST_RECORD, "its sequence numbers are out of range"))
        }
    }
}
