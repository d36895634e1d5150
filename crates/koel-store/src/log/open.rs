//! Opening a store: the records of all segments that the manifest names (`kernel/recovery.rs`) are
//! replayed into the index, in log order.
//!
//! Bytes that are not sound lead to one of three results:
//!
//! 1. **Damage**, an error: in any segment but the last, before the end in the manifest, or before
//!    an offset that a later mark says was durable. After [`close`](super::LogStore::close) the
//!    manifest has the end of every segment, so every missing or unsound byte is damage.
//! 2. **A torn end** (`kernel/recovery.rs`), cut off and reported in
//!    [`OpenReport::torn`](crate::OpenReport::torn): unsound bytes, or a batch without
//!    its end.
//! 3. **Nothing**, for an unsound hint: the segment is scanned. Nor for a damaged record that a
//!    sound hint covers: the read of its key is an error, and other keys stay readable.
//!
//! The log is in order, whatever compaction did (`compact.rs`): a later record of a key follows an
//! earlier one. So replaying the records in order gives the state, and deleted keys stay deleted.
//!
//! **Hints** have millions of notes, so they are replayed shard by shard on all processors, in
//! batches that prefetch. The effect of a note depends only on the earlier notes of its key, and
//! those are in the same shard. Within a shard, a batch takes notes in order until one may have the
//! hash of another in the batch. So all keys of a batch differ, and their order does not matter.
//! Notes with a hash that is new to the index are inserted at once. The others are replayed one by
//! one, which compares keys, or hashes if a record is damaged.

use std::sync::{Arc, Mutex, RwLock};
use std::thread;

use super::hint::{self, HintCache, Note, Notes};
use super::index::{Index, NO_LOCATION, SHARDS, shard_of};
use super::options::LogOptions;
use super::read::Located;
use super::segments::Segments;
use super::store::{AtEnd, Counts, Store};
use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::files::Folder;
use crate::kernel::log_end::{Log, LogEnd};
use crate::kernel::manifest::Manifest;
use crate::kernel::memory;
use crate::kernel::record::{Kind, SEQUENCE_LIMIT};
use crate::kernel::recovery::{self, OpenReport};
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::store_files::{MANIFEST, StoreKind};
use crate::kernel::threads::Wakeup;

impl Store {
    pub(super) fn open(folder: Arc<dyn Folder>, options: &LogOptions) -> Result<Self, Error> {
        let (read_only, kind) = (options.read_only, (StoreKind::Log, options.segment_bytes));
        let (manifest, names) = recovery::manifest(&*folder, kind, options.seed, read_only)?;
        let table = Segments::new(manifest.segment_bytes);
        if !table.have_different_slots(&manifest.logs) {
            let what = "two segments have numbers that cannot be in use at once";
            return Err(Error::damaged(MANIFEST, 0, what));
        }
        let segments = recovery::open_log(&*folder, &manifest)?;
        let keys = keys_to_expect(&*folder, &manifest, &segments, options.expected_keys);
        let own = AtEnd { number: manifest.number, ..AtEnd::default() };
        let end = LogEnd::new(None, manifest.sequence, !manifest.clean, own);
        let mut store = Self {
            salt: manifest.salt,
            seed: manifest.seed,
            fixed_seed: options.seed,
            segment_bytes: manifest.segment_bytes,
            segments: table,
            index: Index::new(keys)?,
            compacting: Mutex::default(),
            compaction_failure: Mutex::default(),
            relocating: RwLock::default(),
            log: Log::new(end, read_only, options.bytes_per_sync),
            hint_cache: HintCache::default(),
            counts: Counts::default(),
            segment_filled: Wakeup::default(),
            open_report: OpenReport { was_closed: manifest.clean, ..OpenReport::default() },
            folder,
        };
        let (notes, end) = store.recover(&manifest, &segments)?;
        // A crash only leaves segments with copies of records of the log, or without records. There
        // are no tables.
        let next = store.log.end().sequence;
        let files = (&manifest, &names[..]);
        store.open_report.removed =
            recovery::remove_leftovers(&*store.folder, files, next, read_only, |_| Ok(0))?;
        if let Some(last) = segments.last() {
            store.open_report.torn = recovery::cut(last, end, manifest.clean, read_only)?;
            let mut end = store.log.end();
            (end.file, end.own.notes) = (Some(last.clone()), notes);
            store.log.set_durable(end.position());
        }
        Ok(store)
    }
}

/// Returns the number of keys for which the index makes room. The manifest may ask for more than
/// `expected`, but for no more than there are records in sound hints: a number in a file alone does
/// not decide how much memory is taken.
fn keys_to_expect(
    folder: &dyn Folder,
    manifest: &Manifest,
    segments: &[Arc<Segment>],
    expected: u64,
) -> u64 {
    let mut records = 0;
    for segment in segments {
        if records.max(expected) >= manifest.keys {
            break;
        }
        let hint = hint::read(folder, segment.position(segment.end()), manifest.segment_bytes);
        records += hint.map_or(0, |hint| hint.notes.iter().count() as u64);
    }
    records.min(manifest.keys).max(expected)
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
        self.open_report.replayed += end - from;
        let end = recovery::replay(
            segment,
            place,
            from,
            |record| {
                if record.offset >= self.segment_bytes {
                    let what = "a record starts after the size of a segment";
                    return Err(segment.damaged(record.offset, what));
                }
                if record.header.kind == Kind::Range {
                    let what = "a record deletes a range, which only an ordered store can";
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
                    notes.reserve(1)?;
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
        let known = self.index.insert_new((&batch.hashes, &batch.locations))?;
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
            old.segment.dead.add(old.size);
        }
        let new = (!note.is_tombstone()).then_some(location);
        self.index.update(note.hash, old.map(|old| old.location), new)
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
