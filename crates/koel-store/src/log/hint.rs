//! Hints: what the index needs to know of a segment, so that opening a store does not read the
//! values.
//!
//! ```text
//! 0       8         12  16     24       32        40         48
//! +-------+---------+---+------+--------+---------+----------+------+------+-- -+----------+
//! | magic | version | 0 | salt | number | covered | sequence | note | note | .. | checksum |
//! +-------+---------+---+------+--------+---------+----------+------+------+-- -+----------+
//! note: hash of the key : 64, bytes of the record / 8 << 2 | gap << 1 | tombstone;
//!       if there is a gap, its bytes / 8
//! ```
//!
//! The numbers after the hash are in LEB128. A gap is the bytes between the previous record and
//! this one; only marks are in gaps. So most notes take 9 bytes, and notes cannot be out of order.
//!
//! The notes are of all records before `covered`; the rest of the segment is scanned. A hint is an
//! optimisation: if it is missing, damaged or of another segment, the segment is scanned instead.
//! So it is written without a sync, and errors in writing it are ignored.
//!
//! The notes of one hint are kept in memory, for the keys of records that cannot be read: a hint is
//! read once for consecutive damage in one segment.

use std::ops::Range;
use std::sync::Mutex;

use xxhash_rust::xxh3::xxh3_64;

use crate::Error;
use crate::kernel::access::{read_whole, write_all};
use crate::kernel::bytes::{put_varint, take_varint, u32_at, u64_at};
use crate::kernel::files::Folder;
use crate::kernel::memory;
use crate::kernel::record::{self, ALIGNMENT, Kind, Position, SEQUENCE_LIMIT};
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::store_files::HINT;
use crate::kernel::threads::lock;

const HEADER: usize = 48;
const CHECKSUM: usize = 8;
/// Bytes of the longest note: a hash, and two numbers of at most 35 bits.
const MAX_NOTE: usize = 18;

/// One record, as the index sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) hash: u64,
    /// The offset of the record, in units of [`ALIGNMENT`].
    unit: u32,
    /// The size of the record in the same units, times two; plus one for a tombstone.
    units: u32,
}

/// The records of a segment in order, encoded as in its hint, so that the put which fills a segment
/// has nothing to encode.
#[derive(Debug)]
pub(super) struct Notes {
    /// Space for the header, then the notes.
    bytes: Vec<u8>,
    /// Where the last record ends.
    end: u64,
}

/// A hint that was read.
#[derive(Debug)]
pub(super) struct Hint {
    pub(super) notes: Notes,
    /// The notes are of all records before this offset.
    pub(super) covered: u64,
    /// The greatest sequence number of those records.
    pub(super) sequence: u64,
}

impl Note {
    pub(super) fn new(hash: u64, offset: u64, header: &record::Header) -> Self {
        let units = |bytes: u64| u32::try_from(bytes / ALIGNMENT).unwrap_or(u32::MAX);
        let tombstone = u32::from(header.kind == Kind::Tombstone);
        Self { hash, unit: units(offset), units: units(header.size()) << 1 | tombstone }
    }

    pub(super) fn offset(&self) -> u64 {
        u64::from(self.unit) * ALIGNMENT
    }

    pub(super) fn size(&self) -> u64 {
        u64::from(self.units >> 1) * ALIGNMENT
    }

    pub(super) fn is_tombstone(&self) -> bool {
        self.units & 1 == 1
    }

    /// Adds the record to the figures of its segment.
    pub(super) fn count_in(&self, segment: &Segment) {
        segment.add_record(self.size());
        if self.is_tombstone() {
            segment.tombstones.add(self.size());
        }
    }

    fn end(&self) -> u64 {
        self.offset() + self.size()
    }

    /// Appends the note to `bytes`; the previous record ends at `end`.
    fn append(&self, bytes: &mut Vec<u8>, end: u64) {
        let gap = self.offset().saturating_sub(end) / ALIGNMENT;
        let [units, tombstone] = [self.units >> 1, self.units & 1].map(u64::from);
        bytes.extend_from_slice(&self.hash.to_le_bytes());
        put_varint(bytes, units << 2 | u64::from(gap > 0) << 1 | tombstone);
        if gap > 0 {
            put_varint(bytes, gap);
        }
    }

    /// Takes a note from the front of `bytes`, if [`append`](Self::append) could have written it.
    fn take(bytes: &mut &[u8], end: u64) -> Option<Self> {
        let (hash, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        let number = take_number(bytes)?;
        let gap = if number & 2 == 0 { 0 } else { take_number(bytes).filter(|&gap| gap > 0)? };
        Some(Self {
            hash: u64::from_le_bytes(*hash),
            unit: u32::try_from(end / ALIGNMENT + gap).ok()?,
            units: u32::try_from(number >> 2 << 1 | number & 1).ok()?,
        })
    }
}

impl Default for Notes {
    fn default() -> Self {
        Self { bytes: vec![0; HEADER], end: FIRST_RECORD }
    }
}

impl Notes {
    /// Makes room for `more` notes, so that [`push`](Self::push) needs no memory.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), Error> {
        memory::reserve(&mut self.bytes, more.saturating_mul(MAX_NOTE))
    }

    /// Adds the note of a record that follows all others.
    pub(super) fn push(&mut self, note: &Note) {
        note.append(&mut self.bytes, self.end);
        self.end = note.end();
    }

    /// Removes all notes.
    pub(super) fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        self.end = FIRST_RECORD;
    }

    /// Returns the notes, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Note> {
        let (mut rest, mut end) = (&self.bytes[HEADER..], FIRST_RECORD);
        std::iter::from_fn(move || {
            let note = Note::take(&mut rest, end)?;
            end = note.end();
            Some(note)
        })
    }

    /// Writes the hint of the segment that has these notes. Failures are ignored.
    pub(super) fn write(&mut self, folder: &dyn Folder, segment: &Segment) {
        let numbers = [
            u64::from_le_bytes(HINT.magic),
            HINT.version.into(),
            segment.salt,
            segment.number,
            segment.end(),
            segment.last_sequence.get(),
        ];
        self.bytes[..HEADER].copy_from_slice(numbers.map(u64::to_le_bytes).as_flattened());
        let content = self.bytes.len();
        let checksum = xxh3_64(&self.bytes);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        remove(folder, segment.number);
        let created = folder.create(&HINT.name(segment.number));
        if created.is_ok_and(|file| write_all(&*file, &self.bytes, 0).is_err()) {
            remove(folder, segment.number);
        }
        self.bytes.truncate(content);
    }
}

/// Takes a number of at most 35 bits, in no more bytes than it needs, from the front of `bytes`.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let before = *bytes;
    let number = take_varint(bytes)?;
    let len = before.len() - bytes.len();
    let is_shortest = len == 1 || before[len - 1] > 0;
    (is_shortest && number >> 35 == 0).then_some(number)
}

/// Removes the hint of a segment. Failures are ignored.
pub(super) fn remove(folder: &dyn Folder, number: u64) {
    drop(folder.remove(&HINT.name(number)));
}

/// Returns the maximum length of the hint of a segment with this end: no record is shorter than the
/// longest header.
fn max_len(end: u64) -> u64 {
    (HEADER + CHECKSUM) as u64 + end / record::HEADER as u64 * MAX_NOTE as u64
}

/// Reads the hint of the segment that ends at `end` and whose records all start before
/// `start_limit`. Returns `None` if there is no sound one.
///
/// The notes are checked while they are read, so that only notes of possible records take memory.
pub(super) fn read(folder: &dyn Folder, end: Position, start_limit: u64) -> Option<Hint> {
    let file = folder.open(&HINT.name(end.segment)).ok()?;
    let mut check = None;
    let accepts = |bytes: &[u8]| {
        if check.is_none() {
            check = Check::of_header(bytes, &end, start_limit);
        }
        // Before this offset every note is complete.
        let complete = bytes.len().saturating_sub(MAX_NOTE + CHECKSUM);
        check.as_mut().is_some_and(|check| check.notes_until(complete, bytes))
    };
    let mut bytes = read_whole(&*file, max_len(end.offset), accepts).ok()??;
    let mut check = check?;
    let content = bytes.len().checked_sub(CHECKSUM).filter(|&content| content >= HEADER)?;
    if u64_at(&bytes, content) != xxh3_64(&bytes[..content]) {
        return None;
    }
    bytes.truncate(content);
    let are_sound = check.notes_until(content, &bytes);
    let Check { end, covered, sequence, .. } = check;
    are_sound.then_some(Hint { notes: Notes { bytes, end }, covered, sequence })
}

/// The check of a hint: its header, and its notes one after the other.
struct Check {
    covered: u64,
    sequence: u64,
    start_limit: u64,
    /// The next note.
    at: usize,
    /// Where the record of the previous note ends.
    end: u64,
}

impl Check {
    /// Checks the header in `bytes` against the segment. Returns `None` if it does not fit.
    fn of_header(bytes: &[u8], segment: &Position, start_limit: u64) -> Option<Self> {
        if bytes.len() < HEADER || bytes[..8] != HINT.magic || u32_at(bytes, 8) != HINT.version {
            return None;
        }
        let [salt, number, covered, sequence] = [16, 24, 32, 40].map(|at| u64_at(bytes, at));
        let is_own = salt == segment.salt && number == segment.segment;
        let is_inside = (FIRST_RECORD..=segment.offset).contains(&covered);
        let end = FIRST_RECORD;
        (is_own && is_inside && sequence < SEQUENCE_LIMIT).then_some(Self {
            covered,
            sequence,
            start_limit,
            at: HEADER,
            end,
        })
    }

    /// Checks the notes that start before `until`: each is of a record that lies before `covered`
    /// and is not shorter than any record.
    fn notes_until(&mut self, until: usize, bytes: &[u8]) -> bool {
        while self.at < until {
            let mut rest = &bytes[self.at..];
            let is_possible = |note: &Note| {
                note.offset() < self.start_limit
                    && note.end() <= self.covered
                    && note.size() >= record::HEADER as u64
            };
            let Some(note) = Note::take(&mut rest, self.end).filter(is_possible) else {
                return false;
            };
            self.at = bytes.len() - rest.len();
            self.end = note.end();
        }
        true
    }
}

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
        let bytes = offset..offset + ALIGNMENT;
        let found = self.notes_in(folder, segment, segment_bytes, bytes)?;
        found.first().copied().filter(|note| note.offset() == offset)
    }

    /// Returns the notes of all records that start in a range of a segment, or `None` if its hint
    /// does not tell.
    pub(super) fn notes_in(
        &self,
        folder: &dyn Folder,
        segment: &Segment,
        segment_bytes: u64,
        bytes: Range<u64>,
    ) -> Option<Vec<Note>> {
        let mut cached = lock(&self.0);
        let covers =
            |cached: &CachedHint| cached.segment == segment.number && bytes.end <= cached.covered;
        if !cached.as_ref().is_some_and(covers) {
            let end = segment.position(segment.end());
            *cached = Some(CachedHint::new(read(folder, end, segment_bytes)?, segment)?);
        }
        let CachedHint { notes, .. } = cached.as_ref().filter(|it| covers(it))?;
        let at = |offset| notes.partition_point(|note| note.offset() < offset);
        Some(notes[at(bytes.start)..at(bytes.end)].to_vec())
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

#[cfg(test)]
mod tests;
