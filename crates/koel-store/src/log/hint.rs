//! Hints: what the index needs to know of a segment, so that opening a store does not read the values.
//!
//! ```text
//! 0        8         12   16     24       32        40         48      56
//! +--------+---------+----+------+--------+---------+----------+-------+------+------+----- - -+----------+
//! | magic  | version | 0  | salt | number | covered | sequence | count | note | note |         | checksum |
//! +--------+---------+----+------+--------+---------+----------+-------+------+------+----- - -+----------+
//! note: hash of the key : 64, offset / 8 : 32, tombstone : 1, bytes of the record / 8 : 31
//! ```
//!
//! `covered` is where the records end that the notes are of; what is behind it is scanned. A hint is never needed: one that is missing, damaged or of another segment is as good as none,
//! so it is written without a sync and its errors are nobody's.

use xxhash_rust::xxh3::xxh3_64;

use crate::kernel::access::{read_whole, u32_at, u64_at, write_all};
use crate::kernel::files::Folder;
use crate::kernel::record::{Head, Kind, SEQUENCES, UNIT};
use crate::kernel::segment::{FIRST, Segment};

const MAGIC: [u8; 8] = *b"koelhnt\n";
const VERSION: u32 = 1;
const HEADER: usize = 56;
const NOTE: usize = 16;
const SUFFIX: &str = ".hint";

/// One record, as the index sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) hash: u64,
    unit: u32,
    /// Units of the record, times two; plus one for a tombstone.
    units: u32,
}

/// The records of a segment in order.
pub(super) type Notes = Vec<Note>;

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

/// Writes the hint of a segment, if it can be written.
pub(super) fn write(folder: &dyn Folder, segment: &Segment, notes: &[Note]) {
    let mut bytes = Vec::with_capacity(HEADER + notes.len() * NOTE + 8);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&u64::from(VERSION).to_le_bytes());
    let place = segment.place(0);
    let count = notes.len() as u64;
    let header = [place.salt, segment.number, segment.end(), segment.last(), count];
    bytes.extend(header.into_iter().flat_map(u64::to_le_bytes));
    for note in notes {
        bytes.extend_from_slice(&note.hash.to_le_bytes());
        bytes.extend_from_slice(&note.unit.to_le_bytes());
        bytes.extend_from_slice(&note.units.to_le_bytes());
    }
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    remove(folder, segment.number);
    if let Ok(file) = folder.create(&name_of(segment.number)) {
        drop(write_all(&*file, &bytes, 0));
    }
}

/// The hint of a segment, if there is a sound one.
pub(super) fn read(folder: &dyn Folder, segment: &Segment) -> Option<Hint> {
    let bytes = read_whole(&*folder.open(&name_of(segment.number)).ok()?).ok()?;
    let content = bytes.len().checked_sub(8).filter(|&content| content >= HEADER)?;
    let known = bytes[..8] == MAGIC && u32_at(&bytes, 8) == VERSION;
    if !known || u64_at(&bytes, content) != xxh3_64(&bytes[..content]) {
        return None;
    }
    let [salt, number, covered, sequence, count] =
        [16, 24, 32, 40, 48].map(|at| u64_at(&bytes, at));
    let of_segment = salt == segment.place(0).salt && number == segment.number;
    let inside = (FIRST..=segment.end()).contains(&covered) && sequence < SEQUENCES;
    let notes = bytes[HEADER..content].chunks_exact(NOTE);
    if !of_segment || !inside || notes.len() as u64 != count || !notes.remainder().is_empty() {
        return None;
    }
    let note = |bytes: &[u8]| Note {
        hash: u64_at(bytes, 0),
        unit: u32_at(bytes, 8),
        units: u32_at(bytes, 12),
    };
    let notes: Notes = notes.map(note).collect();
    let mut end = FIRST;
    let follows = |note: &Note| {
        let in_order = note.offset() >= end;
        end = note.offset() + note.size();
        in_order
    };
    (notes.iter().all(follows) && end <= covered).then_some(Hint { notes, covered, sequence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::disk::DiskFolder;

    #[test]
    fn a_hint_is_read_as_it_was_written_and_never_otherwise()
    -> Result<(), Box<dyn std::error::Error>> {
        let temporary = tempfile::tempdir()?;
        let folder = DiskFolder::new(temporary.path())?;
        let segment = Segment::create(&folder, 1, 2)?;
        const END: u64 = 4_000_488_400;
        segment.set_end(END);
        segment.saw(9);
        let value = Note::new(11, 40, &Head::of_value(3, 4_000_000_000));
        let tombstone = Head::of_tombstone(5);
        let notes = [value, Note::new(12, 4_000_488_360, &tombstone)];
        assert_eq!(
            (value.offset(), value.size(), value.is_tombstone()),
            (40, 4_000_488_320, false)
        );
        assert!(notes[1].is_tombstone());
        assert!(read(&folder, &segment).is_none());
        write(&folder, &segment, &notes);
        let hint = read(&folder, &segment).expect("a hint");
        assert_eq!((hint.notes, hint.covered, hint.sequence), (notes.to_vec(), END, 9));
        segment.set_end(END - 1);
        assert!(read(&folder, &segment).is_none(), "it covers more than there is");
        segment.set_end(END + 904);
        assert!(read(&folder, &segment).is_some(), "it covers less");
        let path = temporary.path().join(name_of(2));
        let bytes = std::fs::read(&path)?;
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, bytes)?;
            assert!(read(&folder, &segment).is_none(), "bit {bit}");
        }
        Ok(())
    }
}
