//! Hints: what the index needs to know of a segment, so that opening a store does not read the values.
//!
//! ```text
//! 0        8         12   16     24       32        40         48
//! +--------+---------+----+------+--------+---------+----------+------+------+----- - -+----------+
//! | magic  | version | 0  | salt | number | covered | sequence | note | note |         | checksum |
//! +--------+---------+----+------+--------+---------+----------+------+------+----- - -+----------+
//! note: hash of the key : 64, bytes of the record / 8 << 2 | gap << 1 | tombstone; where there is a gap, its bytes / 8
//! ```
//!
//! The numbers behind the hash are in LEB128. A gap lies between the record before and this one, and only marks are in gaps: so most notes take 9 bytes, and no notes can be out of order.
//!
//! `covered` is where the records end that the notes are of; what is behind it is scanned. A hint is never needed: one that is missing, damaged or of another segment is as good as none,
//! so it is written without a sync and its errors are nobody's.

use xxhash_rust::xxh3::xxh3_64;

use crate::kernel::access::{read_whole, u32_at, u64_at, write_all};
use crate::kernel::files::Folder;
use crate::kernel::record::{self, Head, Kind, Place, SEQUENCES, UNIT};
use crate::kernel::segment::{FIRST, Segment};

const MAGIC: [u8; 8] = *b"koelhnt\n";
const VERSION: u32 = 1;
const HEADER: usize = 48;
/// Bytes of the longest: a hash, and two numbers of at most 35 bits.
const LONGEST_NOTE: u64 = 18;
const SUFFIX: &str = ".hint";

/// One record, as the index sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) hash: u64,
    unit: u32,
    /// Units of the record, times two; plus one for a tombstone.
    units: u32,
}

/// The records of a segment in order, as its hint will say it: a put that fills a segment has nothing to encode.
#[derive(Debug)]
pub(super) struct Notes {
    /// Room for the header, and the notes.
    bytes: Vec<u8>,
    /// Where the last record ends.
    end: u64,
}

/// A hint that was read.
#[derive(Debug)]
pub(super) struct Hint {
    pub(super) notes: Notes,
    pub(super) covered: u64,
    /// The greatest of the records that are covered.
    pub(super) sequence: u64,
}

impl Note {
    pub(super) fn new(hash: u64, offset: u64, head: &Head) -> Self {
        let units = |bytes: u64| u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        let tombstone = u32::from(head.kind == Kind::Tombstone);
        Self { hash, unit: units(offset), units: units(head.size()) << 1 | tombstone }
    }

    pub(super) fn offset(&self) -> u64 {
        u64::from(self.unit) * UNIT
    }

    pub(super) fn size(&self) -> u64 {
        u64::from(self.units >> 1) * UNIT
    }

    pub(super) fn is_tombstone(&self) -> bool {
        self.units & 1 == 1
    }

    fn end(&self) -> u64 {
        self.offset() + self.size()
    }

    /// Adds the note to `bytes`; the record before it ends at `end`.
    fn append(&self, bytes: &mut Vec<u8>, end: u64) {
        let gap = self.offset().saturating_sub(end) / UNIT;
        let [units, tombstone] = [self.units >> 1, self.units & 1].map(u64::from);
        bytes.extend_from_slice(&self.hash.to_le_bytes());
        write_number(bytes, units << 2 | u64::from(gap > 0) << 1 | tombstone);
        if gap > 0 {
            write_number(bytes, gap);
        }
    }

    /// Takes a note from the front of `bytes`, if [`append`](Self::append) could have left it there.
    fn take(bytes: &mut &[u8], end: u64) -> Option<Self> {
        let (hash, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        let number = take_number(bytes)?;
        let gap = if number & 2 == 0 { 0 } else { take_number(bytes).filter(|&gap| gap > 0)? };
        Some(Self {
            hash: u64::from_le_bytes(*hash),
            unit: u32::try_from(end / UNIT + gap).ok()?,
            units: u32::try_from(number >> 2 << 1 | number & 1).ok()?,
        })
    }
}

impl Default for Notes {
    fn default() -> Self {
        Self { bytes: vec![0; HEADER], end: FIRST }
    }
}

impl Notes {
    /// Adds the note of a record behind all others.
    pub(super) fn push(&mut self, note: &Note) {
        note.append(&mut self.bytes, self.end);
        self.end = note.end();
    }

    /// Forgets all notes.
    pub(super) fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        self.end = FIRST;
    }

    /// The notes, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Note> {
        let (mut rest, mut end) = (&self.bytes[HEADER..], FIRST);
        std::iter::from_fn(move || {
            let note = Note::take(&mut rest, end)?;
            end = note.end();
            Some(note)
        })
    }

    /// Writes the hint of the segment that the notes are of, if it can be written.
    pub(super) fn write(&mut self, folder: &dyn Folder, segment: &Segment) {
        let numbers = [
            u64::from_le_bytes(MAGIC),
            VERSION.into(),
            segment.place(0).salt,
            segment.number,
            segment.end(),
            segment.last(),
        ];
        self.bytes[..HEADER].copy_from_slice(numbers.map(u64::to_le_bytes).as_flattened());
        let content = self.bytes.len();
        let checksum = xxh3_64(&self.bytes);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        remove(folder, segment.number);
        if let Ok(file) = folder.create(&name_of(segment.number)) {
            drop(write_all(&*file, &self.bytes, 0));
        }
        self.bytes.truncate(content);
    }
}

/// Adds a number in LEB128: seven bits a byte, the lowest ones first; every byte but the last has its highest bit set.
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Takes a number of at most 35 bits, in no more bytes than it needs, from the front of `bytes`.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut bits) = (0, 0);
    while bits < 35 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << bits;
        if byte < 0x80 {
            return (byte > 0 || bits == 0).then_some(number);
        }
        bits += 7;
    }
    None
}

/// The name of the hint of segment `number`.
fn name_of(number: u64) -> String {
    format!("{number:016x}{SUFFIX}")
}

/// The number in the name of a hint.
pub(super) fn number_in(name: &str) -> Option<u64> {
    let number = u64::from_str_radix(name.strip_suffix(SUFFIX)?, 16).ok()?;
    (name_of(number) == name).then_some(number)
}

/// Takes the hint of a segment away, if there is one and it can be.
pub(super) fn remove(folder: &dyn Folder, number: u64) {
    drop(folder.remove(&name_of(number)));
}

/// Bytes of the longest hint of a segment of so many bytes: no record is shorter than a head.
fn most(end: u64) -> u64 {
    (HEADER + 8) as u64 + end / record::HEAD as u64 * LONGEST_NOTE
}

/// The hint of the segment that ends at `end`, in which records begin in front of `behind`, if there is a sound one.
pub(super) fn read(folder: &dyn Folder, end: Place, behind: u64) -> Option<Hint> {
    let file = folder.open(&name_of(end.segment)).ok()?;
    let mut bytes = read_whole(&*file, most(end.offset)).ok()??;
    let content = bytes.len().checked_sub(8).filter(|&content| content >= HEADER)?;
    let known = bytes[..8] == MAGIC && u32_at(&bytes, 8) == VERSION;
    if !known || u64_at(&bytes, content) != xxh3_64(&bytes[..content]) {
        return None;
    }
    let [salt, number, covered, sequence] = [16, 24, 32, 40].map(|at| u64_at(&bytes, at));
    let of_segment = salt == end.salt && number == end.segment;
    let inside = (FIRST..=end.offset).contains(&covered) && sequence < SEQUENCES;
    if !of_segment || !inside {
        return None;
    }
    let mut rest = &bytes[HEADER..content];
    let mut at = FIRST;
    while !rest.is_empty() {
        at = Note::take(&mut rest, at).filter(|note| note.offset() < behind)?.end();
    }
    bytes.truncate(content);
    let notes = Notes { bytes, end: at };
    (at <= covered).then_some(Hint { notes, covered, sequence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::disk::DiskFolder;

    /// Behind all records, as most segments have it.
    const END: u64 = 16 << 30;

    fn noted(notes: &[Note]) -> Notes {
        let mut all = Notes::default();
        notes.iter().for_each(|note| all.push(note));
        all
    }

    #[test]
    fn notes_that_were_read_go_on_as_those_that_were_made() -> Result<(), Box<dyn std::error::Error>>
    {
        let temporary = tempfile::tempdir()?;
        let folder = DiskFolder::new(temporary.path())?;
        let segment = Segment::create(&folder, 1, 2)?;
        segment.set_end(400);
        let record = |i: u64| Note::new(i, FIRST + 40 * i, &Head::of_value(3, 4));
        let mut made = noted(&[record(0), record(1)]);
        made.write(&folder, &segment);
        let mut read_back = read(&folder, segment.place(segment.end()), END).expect("a hint").notes;
        // Behind a gap, as a mark leaves one.
        made.push(&record(4));
        read_back.push(&record(4));
        assert!(read_back.iter().eq([0, 1, 4].map(record)));
        assert_eq!((made.bytes.len(), made.end), (read_back.bytes.len(), read_back.end));
        read_back.clear();
        read_back.push(&record(2));
        assert!(read_back.iter().eq([record(2)]));
        Ok(())
    }

    #[test]
    fn a_hint_is_read_as_it_was_written_and_never_otherwise()
    -> Result<(), Box<dyn std::error::Error>> {
        let temporary = tempfile::tempdir()?;
        let folder = DiskFolder::new(temporary.path())?;
        let segment = Segment::create(&folder, 1, 2)?;
        const COVERED: u64 = 4_000_488_400;
        segment.set_end(COVERED);
        segment.saw(9);
        let value = Note::new(11, 40, &Head::of_value(3, 4_000_000_000));
        let tombstone = Head::of_tombstone(5);
        let notes = [value, Note::new(12, 4_000_488_360, &tombstone)];
        assert_eq!(
            (value.offset(), value.size(), value.is_tombstone()),
            (40, 4_000_488_320, false)
        );
        assert!(notes[1].is_tombstone());
        assert!(read(&folder, segment.place(segment.end()), END).is_none());
        noted(&notes).write(&folder, &segment);
        let hint = read(&folder, segment.place(segment.end()), END).expect("a hint");
        assert_eq!((hint.covered, hint.sequence), (COVERED, 9));
        assert!(hint.notes.iter().eq(notes));
        segment.set_end(COVERED - 1);
        assert!(
            read(&folder, segment.place(segment.end()), END).is_none(),
            "it covers more than there is"
        );
        segment.set_end(COVERED + 904);
        assert!(read(&folder, segment.place(segment.end()), END).is_some(), "it covers less");
        assert!(
            read(&folder, segment.place(segment.end()), 4_000_488_360).is_none(),
            "a record begins too far behind"
        );
        let path = temporary.path().join(name_of(2));
        let bytes = std::fs::read(&path)?;
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, bytes)?;
            assert!(read(&folder, segment.place(segment.end()), END).is_none(), "bit {bit}");
        }
        Ok(())
    }

    /// The hint file of these bytes of notes, with a checksum that is right.
    fn with_notes(notes: &[u8], covered: u64) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let numbers = [VERSION.into(), 1, 2, covered, 5];
        bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend_from_slice(notes);
        let checksum = xxh3_64(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn notes_that_nobody_writes_are_refused_under_a_right_checksum()
    -> Result<(), Box<dyn std::error::Error>> {
        let temporary = tempfile::tempdir()?;
        let folder = DiskFolder::new(temporary.path())?;
        let segment = Segment::create(&folder, 1, 2)?;
        segment.set_end(FIRST + 10 * UNIT);
        let cases: [(&[u8], bool); 13] = [
            (&[10 << 2], true),
            (&[7 << 2 | 2, 3], true),
            (&[11 << 2], false),
            (&[8 << 2 | 2, 3], false),
            (&[7 << 2 | 2, 0x80, 0x80, 0x80, 0x80, 0x10], false),
            (&[10 << 2 | 0x80, 0], false),
            (&[7 << 2 | 2, 0x83, 0], false),
            (&[10 << 2 | 2, 0], false),
            (&[10 << 2 | 2], false),
            (&[10 << 2 | 0x80], false),
            (&[10 << 2, 0], false),
            (&[0xff, 0xff, 0xff, 0xff, 0x7f], false),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 1], false),
        ];
        for (numbers, sound) in cases {
            let notes = [&[7; 8], numbers].concat();
            std::fs::write(temporary.path().join(name_of(2)), with_notes(&notes, segment.end()))?;
            assert_eq!(
                read(&folder, segment.place(segment.end()), END).is_some(),
                sound,
                "{numbers:02x?}"
            );
        }
        Ok(())
    }

    #[test]
    fn a_hint_is_the_bytes_of_the_format() -> Result<(), Box<dyn std::error::Error>> {
        let temporary = tempfile::tempdir()?;
        let folder = DiskFolder::new(temporary.path())?;
        let segment = Segment::create(&folder, 1, 2)?;
        segment.set_end(128);
        segment.saw(5);
        let value = Note::new(11, 40, &Head::of_value(3, 4));
        noted(&[value, Note::new(12, 104, &Head::of_tombstone(3))]).write(&folder, &segment);
        let bytes = std::fs::read(temporary.path().join(name_of(2)))?;
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
        let format = include_str!("../../../../docs/FORMAT.md");
        assert!(format.contains(&lines.join("\n")), "{}", lines.join("\n"));
        Ok(())
    }
}
