//! Compaction: segments are rewritten without dead records, at their own place in the log.
//!
//! 1. The records of a run of neighbouring sealed segments are read in order. A value is copied if
//!    the index has its location, which needs no key. A tombstone is copied unless it hides nothing
//!    (`pick.rs`). The copies keep their sequence numbers and their order. They go to new segments,
//!    which are synced.
//! 2. The log is synced: a dropped record is dead because of a later one, which may not be durable
//!    yet.
//! 3. One manifest names the new segments in place of the old ones. A crash before it leaves the
//!    old segments, a crash after it the new ones.
//! 4. The index gets the locations of the copies, a few hundred at a time, under the lock of the
//!    writer. If a record was overwritten meanwhile, the index has no entry for it and its copy is
//!    dead.
//! 5. The old files are removed. Readers that have them open can still read them.
//!
//! The log stays in the order of its sequence numbers, so recovery replays it record by record, and
//! the last record of a key wins: the copy of a value never follows the tombstone that deleted it.
//!
//! A segment without a live record needs no copy, only a new manifest. Its hint is removed first,
//! which makes room for that. So such segments can be removed on a full disk.
//!
//! Memory: the old location and the note of each copied record, mostly 17 bytes. If a step before
//! the manifest fails, the outputs are removed. After a failure of step 1 writes go on; after one
//! of step 2 or 3 the store takes no more writes, as after any failed sync.
//!
//! **Damage.** Damaged bytes are dropped if nothing needs them (`drop_damage.rs`). Otherwise the
//! segment is left as it is.
//!
//! **In a thread**, compaction waits until a segment is full, checks whether it is worthwhile, and
//! copies at a limited rate, so that other work gets the disk too.

use std::ops::{AddAssign, Range};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::drop_damage::each_damaged;
use super::hint::{self, Note, Notes};
use super::index::SHARDS;
use super::pick::{self, Policy, Usage};
use super::store::{Store, Watch};
use crate::Error;
use crate::kernel::events::tell;
use crate::kernel::memory;
use crate::kernel::record::{self, ALIGNMENT, Header, Kind};
use crate::kernel::scan::{Record, Scan};
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::threads::{Counter, lock};

/// Bytes that are collected before they are written.
const WRITE_BYTES: usize = 1 << 20;
/// Index entries that change under one lock.
const INDEX_BATCH: usize = 256;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// The number of segments that were rewritten.
    pub segments: u64,
    /// Bytes of those.
    pub read: u64,
    /// Bytes of the segments that replaced them.
    pub written: u64,
    /// The number of damaged places that were dropped, since nothing needed what was there.
    pub damage_dropped: u64,
}

impl CompactReport {
    fn has_gain(&self) -> bool {
        self.written < self.read
    }
}

impl AddAssign for CompactReport {
    fn add_assign(&mut self, other: Self) {
        self.segments += other.segments;
        self.read += other.read;
        self.written += other.written;
        self.damage_dropped += other.damage_dropped;
    }
}

/// Neighbouring sealed segments to be rewritten.
struct Run {
    segments: Vec<Arc<Segment>>,
    /// Tombstones up to this sequence number hide nothing.
    floor: u64,
    /// Records that are dead at this sequence number are dropped.
    now: u64,
    /// Damaged places that were not copied.
    damage_dropped: Counter,
}

/// A new segment that is being filled.
struct Output {
    segment: Arc<Segment>,
    buffer: Vec<u8>,
    /// Offset of the buffer in the segment.
    at: u64,
    notes: Notes,
    /// The old location of each record.
    moved: Vec<u64>,
}

/// Finds the next segments to rewrite among the sealed ones.
type Pick<'a> = &'a mut dyn FnMut(&[Arc<Segment>], &[Usage]) -> Option<Range<usize>>;

/// Called for each record with the bytes that were copied, 0 if it was dropped. Returns false to
/// stop the compaction.
pub(super) type Pace<'a> = &'a mut dyn FnMut(&Store, u64) -> bool;

impl Store {
    /// Compacts until the policy finds nothing worthwhile, or `pace` stops it. Damaged segments are
    /// left out; their damage is the error at the end.
    pub(super) fn compact(&self, policy: Policy, pace: Pace<'_>) -> Result<CompactReport, Error> {
        let mut worthwhile = |_: &[_], usages: &[_]| pick::pick(usages, self.segment_bytes, policy);
        let mut report = self.compact_runs(&mut worthwhile, CompactReport::has_gain, pace)?;
        if policy.tries_damaged {
            let mut each_damaged = each_damaged();
            let mut next = |sealed: &[_], _: &[_]| each_damaged(sealed);
            report += self.compact_runs(&mut next, |_| true, pace)?;
        }
        self.shrink_index();
        let damage = self.segments.all().iter().find_map(|segment| segment.damage());
        damage.map_or(Ok(report), Err)
    }

    /// Removes the sealed segments without a live record, which needs no space.
    pub(super) fn remove_dead(&self) -> Result<CompactReport, Error> {
        let mut dead = |_: &[_], usages: &[_]| pick::dead(usages);
        self.compact_runs(&mut dead, CompactReport::has_gain, &mut |_, _| true)
    }

    /// Compacts until `pick` finds nothing, `goes_on` returns false for a run that was rewritten,
    /// or `pace` stops it.
    fn compact_runs(
        &self,
        pick: Pick<'_>,
        goes_on: fn(&CompactReport) -> bool,
        pace: Pace<'_>,
    ) -> Result<CompactReport, Error> {
        let _one_at_a_time = lock(&self.compacting);
        let mut report = CompactReport::default();
        while let Some(run) = self.next_run(pick)? {
            match self.copy_or_clean_up(&run, pace) {
                Ok(Some(outputs)) => {
                    let done = self.finish_run(run, &outputs)?;
                    report += done;
                    if !goes_on(&done) {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) if run.exclude_damaged(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(report)
    }

    /// Replaces a run with the outputs.
    fn finish_run(&self, run: Run, outputs: &[Output]) -> Result<CompactReport, Error> {
        let report = CompactReport {
            segments: run.segments.len() as u64,
            read: run.segments.iter().map(|segment| segment.end()).sum(),
            written: outputs.iter().map(|output| output.segment.end()).sum(),
            damage_dropped: run.damage_dropped.get(),
        };
        self.counts.compacted.add(report.written);
        self.replace_run(run.segments, outputs)?;
        tell!(
            debug,
            "segments were compacted",
            segments = report.segments,
            read = report.read,
            written = report.written,
            damage_dropped = report.damage_dropped,
        );
        Ok(report)
    }

    /// Frees memory of the index, shard by shard. A write waits for one shard at most, a read for
    /// none.
    fn shrink_index(&self) {
        for shard in 0..SHARDS {
            let _no_changes = self.log.end();
            self.index.shrink(shard);
        }
    }

    /// Returns the segments to rewrite next, if `pick` finds any.
    fn next_run(&self, pick: Pick<'_>) -> Result<Option<Run>, Error> {
        self.log.poison.check()?;
        let (order, now) = {
            let end = self.log.end();
            (self.segments.all(), end.sequence - 1)
        };
        let sealed = &order[..order.len().saturating_sub(1)];
        let Some(run) = pick(sealed, &pick::usages(sealed, now)) else { return Ok(None) };
        let floor = pick::clean_up_to(&sealed[..run.start], now);
        let segments = sealed[run].to_vec();
        Ok(Some(Run { segments, floor, now, damage_dropped: Counter::default() }))
    }

    /// Seals the active segment if compacting it would gain anything, so that all of the log can be
    /// compacted.
    pub(super) fn seal_for_compaction(&self) -> Result<(), Error> {
        self.log.poison.check()?;
        let mut end = self.log.end();
        // For a few marks a new segment is not worthwhile.
        let has_gain = |active: &Arc<Segment>| {
            let many_marks =
                active.marks() * 100 >= active.end() * Policy::THOROUGH.segment_percent;
            let is_damaged = active.damage().is_some();
            active.dead.get() + active.tombstones.get() > 0 || many_marks || is_damaged
        };
        if end.file.as_ref().is_some_and(has_gain) {
            self.start_segment(&mut end)?;
        }
        Ok(())
    }

    /// Copies the live records of a run into new segments. Removes those if that fails or is
    /// stopped.
    fn copy_or_clean_up(&self, run: &Run, pace: Pace<'_>) -> Result<Option<Vec<Output>>, Error> {
        let mut outputs = Vec::new();
        let copied = self.copy(run, &mut outputs, pace);
        if let Ok(true) = copied {
            for output in &outputs {
                output.segment.cleaned.set(run.now);
            }
            return Ok(Some(outputs));
        }
        for output in outputs {
            self.remove_new(&output.segment);
        }
        copied.map(|_| None)
    }

    /// Copies the live records of a run. Returns false if `pace` stopped that.
    fn copy(&self, run: &Run, outputs: &mut Vec<Output>, pace: Pace<'_>) -> Result<bool, Error> {
        for segment in &run.segments {
            let mut scan = Scan::new(segment.clone(), segment.end());
            loop {
                let record = match scan.next() {
                    Ok(Some(record)) => record,
                    Ok(None) => break,
                    Err(error) => {
                        self.skip_damage(&mut scan, segment, run.floor, error)?;
                        run.damage_dropped.add(1);
                        continue;
                    }
                };
                let hash = self.hash(record.key());
                let location = self.segments.location(segment, record.offset);
                let stays = match record.header.kind {
                    Kind::Value | Kind::Large => self.index.contains(hash, location),
                    Kind::Tombstone => record.header.sequence > run.floor,
                    Kind::Mark | Kind::Range => false,
                };
                let size = if stays { record.header.size() } else { 0 };
                if stays {
                    let output = self.output_with_room(outputs, size)?;
                    output.copy_record(segment, &record, hash, location)?;
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

    /// Returns an output with room for a record of this size.
    fn output_with_room<'a>(
        &self,
        outputs: &'a mut Vec<Output>,
        size: u64,
    ) -> Result<&'a mut Output, Error> {
        let has_room = |output: &Output| output.end() + size <= self.segment_bytes;
        if !outputs.last().is_some_and(has_room) {
            if let Some(last) = outputs.last_mut() {
                self.finish_output(last)?;
            }
            let segment = self.create_segment(&mut self.log.end())?;
            segment.make_durable(&*self.folder)?;
            let (buffer, notes, moved) = (Vec::new(), Notes::default(), Vec::new());
            outputs.push(Output { segment, buffer, at: FIRST_RECORD, notes, moved });
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

    /// Replaces a run with the outputs: in the manifest, in the log, in the index, then in the
    /// folder.
    fn replace_run(&self, run: Vec<Arc<Segment>>, outputs: &[Output]) -> Result<(), Error> {
        self.log.sync()?;
        if outputs.is_empty() {
            run.iter().for_each(|segment| hint::remove(&*self.folder, segment.number));
        }
        let new: Vec<_> = outputs.iter().map(|output| output.segment.clone()).collect();
        let _no_new_views = self.relocating.write().unwrap_or_else(PoisonError::into_inner);
        {
            let mut end = self.log.end();
            self.log.poison.check()?;
            let mut order = self.segments.all();
            let first = order.iter().position(|segment| Arc::ptr_eq(segment, &run[0]));
            let first = first.unwrap_or(0);
            order.splice(first..first + run.len(), new.iter().cloned());
            self.announce(&mut end, &order, &new)?;
            self.segments.replace(order, &new);
        }
        for output in outputs {
            self.update_index(output);
        }
        self.segments.retire(&run);
        self.remove_segments(run)
    }

    /// Removes the files of segments that have left the log, as many as possible. The others are
    /// removed when the store is next opened.
    fn remove_segments(&self, run: Vec<Arc<Segment>>) -> Result<(), Error> {
        let mut removed = Ok(());
        for segment in run {
            let (number, name) = (segment.number, segment.name.clone());
            // The pool would open the file for its handles before it removes it; this is mostly the
            // last one.
            drop(segment);
            removed = removed.and(self.folder.remove(&name).map_err(Error::io("remove", &name)));
            hint::remove(&*self.folder, number);
        }
        removed
    }

    /// Gives the index the locations of the copies.
    fn update_index(&self, output: &Output) {
        let mut notes = output.notes.iter();
        for moved in output.moved.chunks(INDEX_BATCH) {
            let mut end = self.log.end();
            for (&old, note) in moved.iter().zip(notes.by_ref()) {
                if note.is_tombstone() {
                    continue;
                }
                if !self.index.contains(note.hash, old) {
                    output.segment.dead.add(note.size());
                    continue;
                }
                Watch::notify(&mut end.own.watches, old);
                let new = self.segments.location(&output.segment, note.offset());
                self.index.replace(note.hash, old, new);
            }
        }
    }
}

impl Run {
    /// Excludes a segment from compaction if the error is damage of it. Returns whether it is.
    fn exclude_damaged(&self, error: &Error) -> bool {
        let Error::Damaged { offset, .. } = *error else { return false };
        let bytes = offset..offset + ALIGNMENT;
        self.segments.iter().any(|segment| segment.note_if_damage(bytes.clone(), error))
    }
}

impl Output {
    fn end(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// Appends a copy of a record.
    fn copy_record(
        &mut self,
        from: &Segment,
        record: &Record<'_>,
        hash: u64,
        location: u64,
    ) -> Result<(), Error> {
        let header = Header { more: false, ..record.header };
        let offset = self.end();
        let start = self.buffer.len();
        memory::append(&mut self.buffer, record.body)?;
        record::seal(&mut self.buffer[start..], &header, &self.segment.position(offset));
        from.each_block(record.offset, &header, |stored, _| {
            record::seal_block(stored, &self.segment.position(self.end()));
            memory::append(&mut self.buffer, stored)?;
            self.flush_if_full()
        })?;
        let note = Note::new(hash, offset, &header);
        note.count_in(&self.segment);
        self.notes.reserve(1)?;
        self.notes.push(&note);
        memory::push(&mut self.moved, location)?;
        self.segment.observe_sequence(header.sequence);
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.segment.write(&self.buffer, self.at)?;
        self.at = self.end();
        self.segment.set_end(self.at);
        self.buffer.clear();
        Ok(())
    }
}

/// Bytes copied between two pauses.
const STEP: u64 = 1 << 20;
/// The longest sleep between two checks whether the thread is to stop.
const SLICE: Duration = Duration::from_millis(100);
/// If more than this percentage of the log is dead, the rate has no limit: space matters more then.
const URGENT_PERCENT: u64 = 28;

/// Compacts whenever a segment is full. [`Store::segment_filled`] wakes and stops it.
pub(super) fn compact_when_due(store: &Store, bytes_per_second: u64) {
    let mut copied = 0;
    let mut pace = |store: &Store, bytes: u64| {
        copied += bytes;
        if copied >= STEP {
            pause(store, duration_of(copied, bytes_per_second));
            copied = 0;
        }
        !store.segment_filled.is_stopped()
    };
    while store.segment_filled.wait() {
        // A failure loses nothing. It is kept for `stats`, and the next full segment is the next
        // try.
        let failure = store.compact(Policy::BACKGROUND, &mut pace).err();
        *lock(&store.compaction_failure) = failure.map(|error| error.to_string());
    }
}

/// Returns how long this many bytes take at a rate.
fn duration_of(bytes: u64, per_second: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1_000_000) / per_second.max(1))
}

/// Sleeps, but not while space is short or the thread is to stop.
fn pause(store: &Store, mut time: Duration) {
    while !time.is_zero() && !store.segment_filled.is_stopped() && !is_urgent(store) {
        let slice = time.min(SLICE);
        thread::sleep(slice);
        time -= slice;
    }
}

fn is_urgent(store: &Store) -> bool {
    let stats = store.stats();
    stats.dead_bytes * 100 >= stats.log_bytes * URGENT_PERCENT
}
