//! Replaying the notes of a hint: millions of them, so shard by shard on all processors, in batches
//! that prefetch.
//!
//! The effect of a note depends only on the earlier notes of its key, and those are in the same
//! shard. Within a shard, a batch takes notes in order until one may have the hash of another in
//! the batch. So all keys of a batch differ, and their order does not matter. Notes with a hash
//! that is new to the index are inserted at once. The others are replayed one by one, which
//! compares keys, or hashes if a record is damaged.

use std::sync::Arc;
use std::thread;

use super::hint::{Note, Notes};
use super::index::{NO_LOCATION, SHARDS, shard_of};
use super::store::Store;
use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::memory;
use crate::kernel::segment::Segment;

/// Maximum number of notes in a batch.
const BATCH: usize = 512;
/// Bits of the sketch of a batch.
const SKETCH_BITS: usize = 1 << 16;
/// More threads would wait for memory.
const MAX_THREADS: usize = 8;

/// The notes of a segment, by the shard of the index that they belong to. The memory is reused from
/// one segment to the next.
pub(super) type NotesByShard = [Vec<Note>; SHARDS];

/// Notes with different hashes.
struct Batch {
    hashes: Vec<u64>,
    locations: Vec<u64>,
    notes: Vec<Note>,
    /// One bit for each hash, chosen by its lowest 16 bits.
    sketch: Vec<u64>,
}

impl Store {
    /// Replays all records in the notes of a segment.
    pub(super) fn replay_hint(
        &self,
        segment: &Arc<Segment>,
        notes: &Notes,
        by_shard: &mut NotesByShard,
    ) -> Result<(), Error> {
        by_shard.iter_mut().for_each(Vec::clear);
        for note in notes.iter() {
            note.count_in(segment);
            memory::push(&mut by_shard[shard_of(note.hash)], note)?;
        }
        let count: usize = by_shard.iter().map(Vec::len).sum();
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        if count < 16 * BATCH || threads == 1 {
            return by_shard.iter().try_for_each(|notes| self.replay_shard(segment, notes));
        }
        let each = SHARDS.div_ceil(threads);
        thread::scope(|scope| {
            let replay = |shards: &[Vec<Note>]| {
                shards.iter().try_for_each(|notes| self.replay_shard(segment, notes))
            };
            let started: Vec<_> =
                by_shard.chunks(each).map(|shards| scope.spawn(move || replay(shards))).collect();
            started.into_iter().try_for_each(|thread| match thread.join() {
                Ok(replayed) => replayed,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }

    /// Replays the notes of one shard.
    fn replay_shard(&self, segment: &Arc<Segment>, notes: &[Note]) -> Result<(), Error> {
        let mut batch = Batch::new();
        for note in notes {
            if batch.notes.len() == BATCH || batch.may_have(note.hash) {
                self.replay_batch(segment, &mut batch)?;
            }
            let location = self.segments.location(segment, note.offset());
            batch.push(*note, if note.is_tombstone() { NO_LOCATION } else { location });
        }
        self.replay_batch(segment, &mut batch)
    }

    fn replay_batch(&self, segment: &Arc<Segment>, batch: &mut Batch) -> Result<(), Error> {
        let known = self.index.insert_new((&batch.hashes, &batch.locations));
        for i in known {
            self.replay_record(segment, &batch.notes[i], None)?;
        }
        batch.clear();
        Ok(())
    }
}

impl Batch {
    fn new() -> Self {
        let (hashes, locations, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { hashes, locations, notes, sketch: vec![0; SKETCH_BITS / 64] }
    }

    /// Returns the word of the sketch that has the bit of a hash, and that bit.
    fn bit(&mut self, hash: u64) -> (&mut u64, u64) {
        let bit = usize_of(hash) % SKETCH_BITS;
        (&mut self.sketch[bit / 64], 1 << (bit % 64))
    }

    /// Returns whether a note of the batch may have this hash.
    fn may_have(&mut self, hash: u64) -> bool {
        let (word, bit) = self.bit(hash);
        *word & bit != 0
    }

    fn push(&mut self, note: Note, location: u64) {
        self.hashes.push(note.hash);
        self.locations.push(location);
        self.notes.push(note);
        let (word, bit) = self.bit(note.hash);
        *word |= bit;
    }

    fn clear(&mut self) {
        for i in 0..self.hashes.len() {
            let hash = self.hashes[i];
            *self.bit(hash).0 = 0;
        }
        self.hashes.clear();
        self.locations.clear();
        self.notes.clear();
    }
}
