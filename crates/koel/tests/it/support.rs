//! docs/FORMAT.md as the tests read it, and edits of files by the names of its fields: no other
//! test knows an offset.

use testkit::image::{self, HEADER_BYTES};
pub(crate) use testkit::image::{FORMAT, field, read, rows, set};

/// The image with other values in these fields, and valid checksums.
pub(crate) fn forged(image: &[u8], fields: &[(&str, u64)]) -> Vec<u8> {
    let mut image = image.to_vec();
    set(&mut image, fields);
    image::reseal(&mut image);
    image
}

/// The records of counters: a name and a count, eight bytes each.
pub(crate) fn counters(image: &mut [u8]) -> &mut [[u8; 16]] {
    let range = image::section_bytes(image, "counters");
    image[range].as_chunks_mut().0
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
