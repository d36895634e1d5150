//! Scans of segments: whole, damaged, and with marks after damage.

use super::*;
use crate::kernel::disk::DiskFolder;
use crate::kernel::store_files::SEGMENT;

/// Returns a segment with records of all sizes, and the offset of each.
fn segment(folder: &DiskFolder, number: u64) -> Result<(Arc<Segment>, Vec<u64>), Error> {
    let segment = Segment::create(folder, 5, number)?;
    segment.make_durable(folder)?;
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for (sequence, len) in (1..).zip([0_usize, 100, 3000, 70_000, 2_000_000, 5, 0]) {
        let offset = FIRST_RECORD + bytes.len() as u64;
        let header = Header { sequence, ..Header::of_value(3, len as u64) };
        record::append(&mut bytes, &header, b"key", &vec![7; len]);
        let start = usize_of(offset - FIRST_RECORD);
        record::seal(&mut bytes[start..], &header, &segment.position(offset));
        starts.push(offset);
    }
    let mark = FIRST_RECORD + bytes.len() as u64;
    record::append_mark(&mut bytes, starts[2], 100, &segment.position(mark));
    starts.push(mark);
    segment.write(&bytes, FIRST_RECORD)?;
    segment.set_end(FIRST_RECORD + bytes.len() as u64);
    Ok((Arc::new(segment), starts))
}

/// Returns the offsets of the sound records, and how often damage was met.
fn scan_all(segment: &Arc<Segment>) -> Result<(Vec<u64>, usize), Error> {
    let mut scan = Scan::new(segment.clone(), segment.end());
    let (mut starts, mut damages) = (Vec::new(), 0);
    loop {
        match scan.next() {
            Ok(Some(record)) => starts.push(record.offset),
            Ok(None) => return Ok((starts, damages)),
            Err(error @ Error::Damaged { .. }) => {
                damages += 1;
                scan.resume(&error)?;
            }
            Err(error) => return Err(error),
        }
    }
}

fn flip(segment: &Segment, offset: u64) -> Result<(), Error> {
    let mut byte = [0];
    segment.read(&mut byte, offset)?;
    segment.write(&[byte[0] ^ 0x10], offset)
}

#[test]
fn a_scan_returns_every_record() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let (segment, starts) = segment(&DiskFolder::new(temporary.path())?, 1)?;
    assert_eq!(scan_all(&segment)?, (starts, 0));
    Ok(())
}

#[test]
fn a_scan_goes_on_after_a_damaged_record() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = DiskFolder::new(temporary.path())?;
    for damaged in 0..7 {
        let (segment, mut starts) = segment(&folder, 1 + damaged as u64)?;
        let end = starts[damaged + 1];
        for offset in [starts[damaged] + 8, starts[damaged] + 20, end - 1] {
            flip(&segment, offset)?;
        }
        starts.remove(damaged);
        assert_eq!(scan_all(&segment)?, (starts, 1), "record {damaged}");
    }
    Ok(())
}

#[test]
fn a_mark_is_found_after_unreadable_bytes() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let (segment, starts) = segment(&DiskFolder::new(temporary.path())?, 1)?;
    for from in [FIRST_RECORD, FIRST_RECORD + 1, starts[4] + 13, starts[7]] {
        assert_eq!(last_durable_offset(&segment, from, segment.end())?, starts[2], "from {from}");
    }
    assert_eq!(last_durable_offset(&segment, starts[7] + 1, segment.end())?, 0);
    flip(&segment, starts[7])?;
    assert_eq!(last_durable_offset(&segment, FIRST_RECORD, segment.end())?, 0);
    Ok(())
}

#[test]
fn a_segment_of_another_store_or_number_is_refused() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let folder = DiskFolder::new(temporary.path())?;
    segment(&folder, 1)?;
    assert!(Segment::open(&folder, 5, 1).is_ok());
    let other = Segment::open(&folder, 6, 1);
    assert!(
        matches!(&other, Err(Error::OtherStore { file }) if *file == SEGMENT.name(1)),
        "{other:?}"
    );
    let other = Segment::open(&folder, 5, 2);
    assert!(matches!(other, Err(Error::Damaged { offset: 0, .. })), "{other:?}");
    Ok(())
}
