//! Hints are read as they were written, and invalid ones are refused.

use super::*;
use crate::kernel::disk::DiskFolder;
use crate::kernel::store_files::HINT;

/// An offset after all records.
const END: u64 = 16 << 30;

/// A segment that ends at `end`, and its folder.
struct Place {
    temporary: tempfile::TempDir,
    folder: DiskFolder,
    segment: Segment,
}

impl Place {
    fn new(end: u64) -> Result<Self, Box<dyn std::error::Error>> {
        let temporary = tempfile::tempdir()?;
        let folder = DiskFolder::new(temporary.path())?;
        let segment = Segment::create(&folder, 1, 2)?;
        segment.set_end(end);
        Ok(Self { temporary, folder, segment })
    }

    fn path(&self) -> std::path::PathBuf {
        self.temporary.path().join(HINT.name(2))
    }

    fn write(&self, notes: &[Note]) {
        noted(notes).write(&self.folder, &self.segment);
    }

    /// Reads the hint, whose records start before `limit`.
    fn read(&self, limit: u64) -> Option<Hint> {
        read(&self.folder, self.segment.position(self.segment.end()), limit)
    }
}

fn noted(notes: &[Note]) -> Notes {
    let mut all = Notes::default();
    notes.iter().for_each(|note| all.push(note));
    all
}

#[test]
fn notes_continue_after_reading_as_after_writing() -> Result<(), Box<dyn std::error::Error>> {
    let place = Place::new(400)?;
    let record = |i: u64| Note::new(i, FIRST_RECORD + 40 * i, &record::Header::of_value(3, 4));
    let mut made = noted(&[record(0), record(1)]);
    made.write(&place.folder, &place.segment);
    let mut read_back = place.read(END).expect("a hint").notes;
    // After a gap, such as a mark leaves.
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
fn a_hint_is_read_only_as_it_was_written() -> Result<(), Box<dyn std::error::Error>> {
    const COVERED: u64 = 4_000_488_400;
    let place = Place::new(COVERED)?;
    place.segment.observe_sequence(9);
    let value = Note::new(11, 40, &record::Header::of_value(3, 4_000_000_000));
    let tombstone = record::Header::of_tombstone(5);
    let notes = [value, Note::new(12, 4_000_488_360, &tombstone)];
    assert_eq!((value.offset(), value.size(), value.is_tombstone()), (40, 4_000_488_320, false));
    assert!(notes[1].is_tombstone());
    assert!(place.read(END).is_none());
    place.write(&notes);
    let hint = place.read(END).expect("a hint");
    assert_eq!((hint.covered, hint.sequence), (COVERED, 9));
    assert!(hint.notes.iter().eq(notes));
    place.segment.set_end(COVERED - 1);
    assert!(place.read(END).is_none(), "it covers more than there is");
    place.segment.set_end(COVERED + 904);
    assert!(place.read(END).is_some(), "it covers less");
    assert!(place.read(4_000_488_360).is_none(), "a record starts after the limit");
    let bytes = std::fs::read(place.path())?;
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(place.path(), bytes)?;
        assert!(place.read(END).is_none(), "bit {bit}");
    }
    Ok(())
}

/// Returns a hint file with these bytes of notes and a matching checksum.
fn with_notes(notes: &[u8], covered: u64) -> Vec<u8> {
    let mut bytes = HINT.magic.to_vec();
    let numbers = [HINT.version.into(), 1, 2, covered, 5];
    bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
    bytes.extend_from_slice(notes);
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn invalid_notes_are_refused_under_a_matching_checksum() -> Result<(), Box<dyn std::error::Error>> {
    let place = Place::new(FIRST_RECORD + 10 * ALIGNMENT)?;
    let cases: [(&[u8], bool); 15] = [
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
        // A record that is shorter than any.
        (&[2 << 2], false),
        (&[0], false),
        (&[0xff, 0xff, 0xff, 0xff, 0x7f], false),
        (&[0x80, 0x80, 0x80, 0x80, 0x80, 1], false),
    ];
    for (numbers, sound) in cases {
        let notes = [&[7; 8], numbers].concat();
        std::fs::write(place.path(), with_notes(&notes, place.segment.end()))?;
        assert_eq!(place.read(END).is_some(), sound, "{numbers:02x?}");
    }
    Ok(())
}

#[test]
fn a_hint_has_the_bytes_in_the_format_description() -> Result<(), Box<dyn std::error::Error>> {
    let place = Place::new(128)?;
    place.segment.observe_sequence(5);
    let value = Note::new(11, 40, &record::Header::of_value(3, 4));
    place.write(&[value, Note::new(12, 104, &record::Header::of_tombstone(3))]);
    let bytes = std::fs::read(place.path())?;
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
    let format = include_str!("../../../../../docs/FORMAT-STORES.md");
    assert!(format.contains(&lines.join("\n")), "{}", lines.join("\n"));
    Ok(())
}
