//! Recovery: the records of all segments are replayed into the index, in log order.
//!
//! Bytes that are not sound lead to one of three results:
//!
//! 1. **Damage**, an error: in any segment but the last, before the end in the manifest, or before
//!    an offset that a later mark says was durable. After [`close`](super::LogStore::close) the
//!    manifest has the end of every segment, so every missing or unsound byte is damage.
//! 2. **A torn end** (`kernel/recovery.rs`), cut off and reported in
//!    [`LogOpenReport::torn`](super::LogOpenReport::torn): unsound bytes, or a batch without
//!    its end.
//! 3. **Nothing**, for an unsound hint: the segment is scanned. Nor for a damaged record that a
//!    sound hint covers: the read of its key is an error, and other keys stay readable.
//!
//! The log is in order, whatever compaction did (`compact.rs`): a later record of a key follows an
//! earlier one. So replaying the records in order gives the state, and deleted keys stay deleted.

use std::sync::Arc;

use super::hint::{self, Note, Notes};
use super::replay_hints::NotesByShard;
use super::store::Store;
use crate::Error;
use crate::kernel::manifest::Manifest;
use crate::kernel::record::{Kind, SEQUENCE_LIMIT};
use crate::kernel::recovery;
use crate::kernel::segment::{FIRST_RECORD, Segment};

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
        for (place, segment) in segments.iter().enumerate() {
            last = self.replay_segment(segment, (manifest, place), &mut by_shard)?;
        }
        Ok(last)
    }

    /// Replays all whole batches of a segment: those in its hint, then those behind them.
    fn replay_segment(
        &mut self,
        segment: &Arc<Segment>,
        place: (&Manifest, usize),
        by_shard: &mut NotesByShard,
    ) -> Result<(Notes, u64), Error> {
        let end = segment.end();
        let (mut notes, mut from) = (Notes::default(), FIRST_RECORD);
        if let Some(hint) = hint::read(&*self.folder, segment.position(end), self.segment_bytes) {
            self.replay_hint(segment, &hint.notes, by_shard)?;
            self.observe_sequence(segment, hint.sequence)?;
            self.open_report.hinted += 1;
            (notes, from) = (hint.notes, hint.covered);
        }
        self.open_report.scanned += end - from;
        let end = recovery::replay(
            segment,
            place,
            from,
            |record| {
                if record.offset >= self.segment_bytes {
                    let what = "a record starts after the size of a segment";
                    return Err(segment.damaged(record.offset, what));
                }
                let note = || Note::new(self.hash(record.key()), record.offset, &record.header);
                Ok((record.header.kind != Kind::Mark).then(note))
            },
            |batch, record| {
                self.observe_sequence(segment, record.header.sequence)?;
                for note in batch {
                    note.count_in(segment);
                    // The keys of records before the last one are read again if needed.
                    let is_last = note.offset() == record.offset;
                    self.replay_record(segment, note, is_last.then(|| record.key()))?;
                    notes.push(note);
                }
                Ok(())
            },
        )?;
        Ok((notes, end))
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
