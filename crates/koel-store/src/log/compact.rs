//! Compaction: segments are written again without what nobody asks for any more, in their own place in the log.
//!
//! 1. The records of a run of neighbouring sealed segments are read in order; a value is copied if the index has its location (which needs no key), a tombstone unless it has nothing left to hide (`pick.rs`).
//!    The copies keep their sequences and their order, and go to new segments, which are synced.
//! 2. The log is synced: a record that was left out is dead because of a later one, and that one may not have been durable.
//! 3. One manifest names the new segments in the place of the old ones. A crash before it leaves the old ones and nothing else; after it the new ones.
//! 4. The index is told where each copy is, a few hundred at a time, under the lock of the writer. A record that was overwritten meanwhile is not in the index at its old place: its copy is dead.
//! 5. The old files are removed. Readers that have them open read on.
//!
//! Since the log stays in the order of its sequences, recovery enters record after record, and the last one of a key counts: a copy of a value can never come behind the tombstone that deleted it.
//!
//! Memory: for each record that is copied its old location and its note for the hint, 17 bytes mostly. A failure of step 1 is an error and nothing else: the outputs are removed, and writing goes on. One of step 2 or 3 ends all writing, as any failed sync does;
//! files that the manifest does not name then are removed when the store is opened again. A segment that is found damaged stays as it is until then.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::hint::{self, Note, Notes};
use super::index::SHARDS;
use super::pick::{self, Policy};
use super::store::{Store, lock};
use super::view::watched;
use crate::Error;
use crate::kernel::record::{self, Head, Kind};
use crate::kernel::scan::{Found, Scan};
use crate::kernel::segment::{FIRST, Segment};

/// Bytes that are gathered before they are written.
const GATHER: usize = 1 << 20;
/// Entries of the index that change under one lock.
const AT_ONCE: usize = 256;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Segments that went.
    pub segments: u64,
    /// Bytes of them.
    pub read: u64,
    /// Bytes of the segments that took their place.
    pub written: u64,
}

/// Neighbouring sealed segments to be written again.
struct Run {
    segments: Vec<Arc<Segment>>,
    /// Tombstones up to here have nothing left to hide.
    floor: u64,
    /// What is dead up to here goes.
    now: u64,
}

/// A new segment being filled.
struct Output {
    segment: Arc<Segment>,
    buffer: Vec<u8>,
    /// Where the buffer begins in the segment.
    at: u64,
    notes: Notes,
    /// The old location of each record.
    moved: Vec<u64>,
}

/// Told of each record how many bytes were copied, 0 where it does not stay; false ends the compaction.
pub(super) type Pace<'a> = &'a mut dyn FnMut(&Store, u64) -> bool;

impl Store {
    /// Compacts as long as the policy finds something worth it, or until `pace` ends it. A damaged segment is left out, and is the error at the end.
    pub(super) fn compact(&self, policy: Policy, pace: Pace<'_>) -> Result<Compacted, Error> {
        let _one_at_a_time = lock(&self.compacting);
        let mut done = Compacted::default();
        loop {
            self.poison.check()?;
            let Some(run) = self.next_run(policy) else { break };
            let outputs = match self.copy_or_clean_up(&run, pace) {
                Ok(Some(outputs)) => outputs,
                Ok(None) => break,
                Err(error) if run.remember(&error) => continue,
                Err(error) => return Err(error),
            };
            let written: u64 = outputs.iter().map(|output| output.segment.end()).sum();
            self.counts.compacted.fetch_add(written, Ordering::Relaxed);
            let read = run.segments.iter().map(|segment| segment.end()).sum();
            done.segments += run.segments.len() as u64;
            done.read += read;
            done.written += written;
            self.switch(run.segments, &outputs)?;
            if written >= read {
                break;
            }
        }
        self.shrink_index();
        let damage = self.segments.all().iter().find_map(|segment| segment.damage());
        damage.map_or(Ok(done), Err)
    }

    /// Gives back memory of the index, shard by shard: a write waits for one of them at most, and a read for none.
    fn shrink_index(&self) {
        for shard in 0..SHARDS {
            let _no_changes = lock(&self.writer);
            self.index.shrink(shard);
        }
    }

    /// The segments to rewrite next, if it is worth it.
    fn next_run(&self, policy: Policy) -> Option<Run> {
        let (order, now) = {
            let writer = lock(&self.writer);
            (self.segments.all(), writer.sequence - 1)
        };
        let sealed = &order[..order.len().saturating_sub(1)];
        let run = pick::pick(&pick::standings(sealed, now), self.segment_bytes, policy)?;
        let floor = pick::clean_up_to(&sealed[..run.start], now);
        Some(Run { segments: sealed[run].to_vec(), floor, now })
    }

    /// Seals the active segment, so that all of the log can be compacted, if there is anything to gain.
    pub(super) fn seal_for_compaction(&self) -> Result<(), Error> {
        self.poison.check()?;
        let mut writer = lock(&self.writer);
        // For few marks it would be a segment more, and none the less.
        let gain = |active: &Arc<Segment>| {
            let many_marks = active.marks() * 100 >= active.end() * Policy::THOROUGH.of_one;
            active.dead() + active.tombstones() > 0 || many_marks
        };
        if writer.active.as_ref().is_some_and(gain) {
            self.begin_segment(&mut writer)?;
        }
        Ok(())
    }

    /// Copies what stays of a run into new segments; leaves nothing behind where that fails or is ended.
    fn copy_or_clean_up(&self, run: &Run, pace: Pace<'_>) -> Result<Option<Vec<Output>>, Error> {
        let mut outputs = Vec::new();
        let copied = self.copy(run, &mut outputs, pace);
        if let Ok(true) = copied {
            for output in &outputs {
                output.segment.set_cleaned(run.now);
            }
            return Ok(Some(outputs));
        }
        for output in outputs {
            drop(self.folder.remove(&output.segment.name));
            hint::remove(&*self.folder, output.segment.number);
        }
        copied.map(|_| None)
    }

    fn copy(&self, run: &Run, outputs: &mut Vec<Output>, pace: Pace<'_>) -> Result<bool, Error> {
        for segment in &run.segments {
            let mut scan = Scan::new(segment.clone(), segment.end());
            while let Some(found) = scan.next()? {
                let hash = self.hash(found.key());
                let location = self.segments.location(segment, found.offset);
                let stays = match found.head.kind {
                    Kind::Value | Kind::Large => self.index.contains(hash, location),
                    Kind::Tombstone => found.head.sequence > run.floor,
                    Kind::Mark => false,
                };
                let size = if stays { found.head.size() } else { 0 };
                if stays {
                    self.output_for(outputs, size)?.take(segment, &found, hash, location)?;
                }
                if !pace(self, size) {
                    return Ok(false);
                }
            }
        }
        if let Some(last) = outputs.last_mut() {
            self.finish_output(last)?;
        }
        Ok(true)
    }

    /// The output that has room for a record of so many bytes.
    fn output_for<'a>(
        &self,
        outputs: &'a mut Vec<Output>,
        size: u64,
    ) -> Result<&'a mut Output, Error> {
        let has_room = |output: &Output| output.end() + size <= self.segment_bytes;
        if !outputs.last().is_some_and(has_room) {
            if let Some(last) = outputs.last_mut() {
                self.finish_output(last)?;
            }
            let segment = {
                let mut writer = lock(&self.writer);
                let number = self.segments.free_number(writer.number)?;
                self.create_segment(&mut writer, number)?
            };
            self.make_durable(&segment)?;
            let (buffer, notes, moved) = (Vec::new(), Notes::default(), Vec::new());
            outputs.push(Output { segment, buffer, at: FIRST, notes, moved });
        }
        let last = outputs.len() - 1;
        Ok(&mut outputs[last])
    }

    fn finish_output(&self, output: &mut Output) -> Result<(), Error> {
        output.flush()?;
        output.segment.sync()?;
        output.notes.write(&*self.folder, &output.segment);
        Ok(())
    }

    /// Puts the outputs in the place of a run: in the manifest, in the log, in the index, and then in the folder.
    fn switch(&self, run: Vec<Arc<Segment>>, outputs: &[Output]) -> Result<(), Error> {
        self.sync()?;
        let new: Vec<_> = outputs.iter().map(|output| output.segment.clone()).collect();
        let _no_new_views = self.moving.write().unwrap_or_else(PoisonError::into_inner);
        {
            let mut writer = lock(&self.writer);
            self.poison.check()?;
            let mut order = self.segments.all();
            let first = order.iter().position(|segment| Arc::ptr_eq(segment, &run[0]));
            let first = first.unwrap_or(0);
            order.splice(first..first + run.len(), new.iter().cloned());
            self.announce(&mut writer, &order)?;
            self.segments.exchange(order, &new);
        }
        for output in outputs {
            self.tell_index(output);
        }
        self.segments.retire(&run);
        self.remove_files(run)
    }

    /// Removes the files of segments that are no part of the log any more: of all of them that can be. What stays goes when the store is opened.
    fn remove_files(&self, run: Vec<Arc<Segment>>) -> Result<(), Error> {
        let mut removed = Ok(());
        for segment in run {
            let (number, name) = (segment.number, segment.name.clone());
            // A file that somebody has is kept open, and here nobody else has it as a rule.
            drop(segment);
            removed = removed.and(self.folder.remove(&name).map_err(Error::io("remove", &name)));
            hint::remove(&*self.folder, number);
        }
        removed
    }

    fn tell_index(&self, output: &Output) {
        let mut notes = output.notes.iter();
        for moved in output.moved.chunks(AT_ONCE) {
            let mut writer = lock(&self.writer);
            for (&old, note) in moved.iter().zip(notes.by_ref()) {
                if note.is_tombstone() {
                    continue;
                }
                if !self.index.contains(note.hash, old) {
                    output.segment.add_dead(note.size());
                    continue;
                }
                watched(&mut writer.watches, old);
                let new = self.segments.location(&output.segment, note.offset());
                self.index.replace(note.hash, old, new);
            }
        }
    }
}

impl Run {
    /// Whether the error is damage of one of the segments, which is left out from now on.
    fn remember(&self, error: &Error) -> bool {
        let Error::Damaged { file, offset, what } = error else { return false };
        let damaged = self.segments.iter().find(|segment| segment.name == *file);
        damaged.map(|segment| segment.remember_damage(*offset, what)).is_some()
    }
}

impl Output {
    fn end(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// Adds a copy of a record.
    fn take(
        &mut self,
        from: &Segment,
        found: &Found<'_>,
        hash: u64,
        location: u64,
    ) -> Result<(), Error> {
        let head = Head { more: false, ..found.head };
        let offset = self.end();
        let start = self.buffer.len();
        self.buffer.extend_from_slice(found.body);
        record::seal(&mut self.buffer[start..], &head, &self.segment.place(offset));
        from.each_block(found.offset, &head, |stored, _| {
            record::seal_block(stored, &self.segment.place(self.end()));
            self.buffer.extend_from_slice(stored);
            self.flush_if_much()
        })?;
        let note = Note::new(hash, offset, &head);
        if note.is_tombstone() {
            self.segment.add_tombstones(note.size());
        }
        self.notes.push(&note);
        self.segment.add_record(note.size());
        self.moved.push(location);
        self.segment.saw(head.sequence);
        self.flush_if_much()
    }

    fn flush_if_much(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= GATHER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.segment.write(&self.buffer, self.at)?;
        self.at = self.end();
        self.segment.set_end(self.at);
        self.buffer.clear();
        Ok(())
    }
}
