//! The notes of a hint, entered into the index: millions of them, so shard by shard on all processors, in batches that ask the memory early.
//!
//! What a note does depends on the notes of its key in front of it alone, and those are in the same shard. Within a shard, notes are gathered in order until one may have the hash of another of the batch;
//! so in a batch all keys differ, and it may be entered in any order: those with a hash that is new to the index at once, the others, one after the other, with a look at the keys, or at the hashes
//! where a record is damaged.

use std::sync::Arc;
use std::thread;

use super::hint::{Note, Notes};
use super::index::{NOWHERE, SHARDS, shard_of};
use super::open::count;
use super::store::Store;
use crate::Error;
use crate::kernel::record::usize_of;
use crate::kernel::segment::Segment;

/// Notes of a batch, at most.
const BATCH: usize = 512;
/// Bits of the sketch of a batch.
const SKETCH_BITS: usize = 1 << 16;
/// More threads wait for the memory.
const MAX_THREADS: usize = 8;

/// The notes of a segment by the shard of the index that they are of; their memory serves one segment after the other.
pub(super) type ByShard = [Vec<Note>; SHARDS];

/// Notes with different hashes.
struct Batch {
    hashes: Vec<u64>,
    locations: Vec<u64>,
    notes: Vec<Note>,
    /// A bit for each hash, by its lowest 16 bits.
    sketch: Vec<u64>,
}

impl Store {
    /// Enters all records that the notes of a segment speak of.
    pub(super) fn enter_hint(
        &self,
        segment: &Arc<Segment>,
        notes: &Notes,
        by_shard: &mut ByShard,
    ) -> Result<(), Error> {
        by_shard.iter_mut().for_each(Vec::clear);
        for note in notes.iter() {
            count(segment, &note);
            by_shard[shard_of(note.hash)].push(note);
        }
        let all: usize = by_shard.iter().map(Vec::len).sum();
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        if all < 16 * BATCH || threads == 1 {
            return by_shard.iter().try_for_each(|notes| self.enter_shard(segment, notes));
        }
        let each = SHARDS.div_ceil(threads);
        thread::scope(|scope| {
            let enter = |shards: &[Vec<Note>]| {
                shards.iter().try_for_each(|notes| self.enter_shard(segment, notes))
            };
            let started: Vec<_> =
                by_shard.chunks(each).map(|shards| scope.spawn(move || enter(shards))).collect();
            started.into_iter().try_for_each(|thread| match thread.join() {
                Ok(entered) => entered,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }

    /// Enters the notes of one shard.
    fn enter_shard(&self, segment: &Arc<Segment>, notes: &[Note]) -> Result<(), Error> {
        let mut batch = Batch::new();
        for note in notes {
            if batch.notes.len() == BATCH || batch.may_have(note.hash) {
                self.enter_batch(segment, &mut batch)?;
            }
            let location = self.segments.location(segment, note.offset());
            batch.push(*note, if note.is_tombstone() { NOWHERE } else { location });
        }
        self.enter_batch(segment, &mut batch)
    }

    fn enter_batch(&self, segment: &Arc<Segment>, batch: &mut Batch) -> Result<(), Error> {
        let new = (&batch.hashes[..], &batch.locations[..]);
        let known = self.index.insert_new(new);
        for i in known {
            self.enter_again(segment, &batch.notes[i], None)?;
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

    fn bit(&mut self, hash: u64) -> (&mut u64, u64) {
        let bit = usize_of(hash) % SKETCH_BITS;
        (&mut self.sketch[bit / 64], 1 << (bit % 64))
    }

    /// Whether a note of the batch may have this hash.
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
