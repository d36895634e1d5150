//! docs/FORMAT.md as the tests read it, and edits of files by the names of its fields: no other
//! test knows an offset.

use std::ops::Range;

use testkit::image::{self, HEADER_BYTES};

pub(crate) const FORMAT: &str = include_str!("../../../../docs/FORMAT.md");

/// The rows of the table whose first line starts so, each with its cells.
pub(crate) fn rows(start: &str) -> Vec<Vec<&'static str>> {
    let table = FORMAT.lines().skip_while(|line| !line.starts_with(start)).skip(2);
    let cells = |row: &'static str| row.trim_matches('|').split('|').map(str::trim).collect();
    table.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// The bytes of a field of the header.
pub(crate) fn field(name: &str) -> Range<usize> {
    let rows = rows("| offset | bytes | field | content");
    let row = rows.iter().find(|row| row[2] == name).unwrap_or_else(|| panic!("no field {name}"));
    let [offset, bytes] = [0, 1].map(|cell| row[cell].parse::<usize>().unwrap());
    offset..offset + bytes
}

/// A field of up to 8 bytes.
pub(crate) fn read(image: &[u8], name: &str) -> u64 {
    image[field(name)].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Sets fields, of longer ones the first 8 bytes, and leaves the checksums as they are.
pub(crate) fn set(image: &mut [u8], fields: &[(&str, u64)]) {
    for &(name, value) in fields {
        let bytes = image[field(name)].iter_mut().zip(value.to_le_bytes());
        bytes.for_each(|(byte, value)| *byte = value);
    }
}

/// The image with other values in these fields, and valid checksums.
pub(crate) fn forged(image: &[u8], fields: &[(&str, u64)]) -> Vec<u8> {
    let mut image = image.to_vec();
    set(&mut image, fields);
    image::reseal(&mut image);
    image
}

/// The records of counters: an identity and a count, eight bytes each.
pub(crate) fn counters(image: &mut [u8]) -> &mut [[u8; 16]] {
    let number = |name| usize::try_from(read(image, name)).unwrap();
    let end = image.len() - 16 * number("stashed keys") - 8 * number("corrections");
    let start = end - 16 * number("counters");
    image[start..end].as_chunks_mut().0
}

/// The image with these counts in its first counters, and valid checksums.
pub(crate) fn with_counts(image: &[u8], counts: &[u64]) -> Vec<u8> {
    let mut image = image.to_vec();
    for (record, count) in counters(&mut image).iter_mut().zip(counts) {
        record[8..].copy_from_slice(&count.to_le_bytes());
    }
    image::reseal(&mut image);
    image
}

/// Everything behind the header.
pub(crate) fn body(image: &[u8]) -> &[u8] {
    &image[HEADER_BYTES..]
}

/// Lines of bytes in hexadecimal, as the page prints messages.
pub(crate) fn dump(bytes: &[u8]) -> String {
    let hex = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
    bytes.chunks(24).map(|line| hex(line).join(" ") + "\n").collect()
}
