//! Edits the bytes of a filter.
//!
//! Checksums detect every change to a file, so random changes never reach the checks behind them.
//! [`reseal`] makes the checksums valid again, for tests of those checks. [`reshape`] makes filters
//! of a few buckets, which no builder makes: full tables, keys whose two buckets are one, and
//! segments with a single bucket.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 192;
/// Bytes of the header that its own checksum covers.
const COVERED: usize = 184;
/// The sections behind the buckets: how many records, and the bytes of each.
const SECTIONS: [(&str, usize); 4] =
    [("counters", 16), ("stashed keys", 24), ("corrections", 8), ("sweeps", 2)];

/// docs/FORMAT.md, which says where each field is. No test knows an offset.
pub const FORMAT: &str = include_str!("../../../docs/FORMAT.md");

/// The rows of the table of the page whose first line starts so, each with its cells.
#[must_use]
pub fn rows(start: &str) -> Vec<Vec<&'static str>> {
    let table = FORMAT.lines().skip_while(|line| !line.starts_with(start)).skip(2);
    let cells = |row: &'static str| row.trim_matches('|').split('|').map(str::trim).collect();
    table.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// The bytes of a field of the header.
///
/// # Panics
/// If the page has no such field.
#[must_use]
pub fn field(name: &str) -> Range<usize> {
    static FIELDS: OnceLock<BTreeMap<&str, Range<usize>>> = OnceLock::new();
    let fields = FIELDS.get_or_init(|| {
        let rows = rows("| offset | bytes | field | content");
        let number = |cell: &str| cell.parse::<usize>().expect("a number");
        let range = |row: &[&str]| number(row[0])..number(row[0]) + number(row[1]);
        rows.iter().map(|row| (row[2], range(row))).collect()
    });
    fields.get(name).unwrap_or_else(|| panic!("no field {name}")).clone()
}

/// A field, of a longer one the first 8 bytes.
///
/// # Panics
/// If `image` ends before the field does.
#[must_use]
pub fn read(image: &[u8], name: &str) -> u64 {
    let bytes = image[field(name)].iter().take(8).rev();
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Sets fields, of longer ones the first 8 bytes, and leaves the checksums as they are.
///
/// # Panics
/// If `image` ends before a field does.
pub fn set(image: &mut [u8], fields: &[(&str, u64)]) {
    for &(name, value) in fields {
        let bytes = image[field(name)].iter_mut().zip(value.to_le_bytes());
        bytes.for_each(|(byte, value)| *byte = value);
    }
}

/// Makes fields zeros.
///
/// # Panics
/// If `image` ends before a field does.
pub fn zero(image: &mut [u8], fields: &[&str]) {
    fields.iter().for_each(|name| image[field(name)].fill(0));
}

/// Makes both checksums of `image` valid. Does nothing if `image` is shorter than a header.
pub fn reseal(image: &mut [u8]) {
    let Some((_, body)) = image.split_at_checked(HEADER_BYTES) else { return };
    let body = xxh3_64(body);
    set(image, &[("body checksum", body)]);
    reseal_header(image);
}

/// Makes the checksum of the header valid, and does not change that of the body.
///
/// # Panics
/// If `image` is shorter than a header.
pub fn reseal_header(image: &mut [u8]) {
    let header = xxh3_64(&image[..COVERED]);
    set(image, &[("header checksum", header)]);
}

/// The records of a section behind the buckets, named after the field that counts them.
///
/// # Panics
/// If `image` is not that of a filter.
pub fn section<'a>(image: &'a [u8], name: &str) -> std::slice::ChunksExact<'a, u8> {
    let range = section_bytes(image, name);
    let (_, width) = SECTIONS.iter().find(|section| section.0 == name).expect("a section");
    image[range].chunks_exact(*width)
}

/// Where the records of a section are.
///
/// # Panics
/// If `image` is not that of a filter.
#[must_use]
pub fn section_bytes(image: &[u8], name: &str) -> Range<usize> {
    let bytes = |section: &(&str, usize)| {
        usize::try_from(read(image, section.0)).expect("fits the image") * section.1
    };
    let at = SECTIONS.iter().position(|section| section.0 == name).expect("a section");
    let start = image.len() - SECTIONS[at..].iter().map(bytes).sum::<usize>();
    start..start + bytes(&SECTIONS[at])
}

/// Adds a record of these words to a section, in its order. Leaves the checksums as they are.
///
/// # Panics
/// If `image` is not that of a filter.
pub fn add_record(image: &mut Vec<u8>, name: &str, record: &[u64]) {
    let before = section(image, name).take_while(|it| word(it, 0) < record[0]).count();
    let at = section_bytes(image, name).start + before * 8 * record.len();
    image.splice(at..at, record.iter().flat_map(|word| word.to_le_bytes()));
    let records = read(image, name) + 1;
    set(image, &[(name, records)]);
}

/// A number of 8 bytes of a record.
///
/// # Panics
/// If the record is shorter.
#[must_use]
pub fn word(record: &[u8], number: usize) -> u64 {
    u64::from_le_bytes(record[8 * number..][..8].try_into().expect("a range of 8 bytes"))
}

/// The stash of a filter: copies by address. The bytes may be those of any filter with a stash.
///
/// # Panics
/// If `image` is not that of a filter.
#[must_use]
pub fn stash(image: &[u8]) -> BTreeMap<u64, u64> {
    section(image, "stashed keys").map(|record| (word(record, 0), word(record, 2))).collect()
}

/// The addresses of the corrections of a filter.
///
/// # Panics
/// If `image` is not that of a filter.
#[must_use]
pub fn corrections(image: &[u8]) -> Vec<u64> {
    section(image, "corrections").map(|record| word(record, 0)).collect()
}

/// The fields that say what a filter holds.
pub const CONTENT: [&str; 6] =
    ["keys", "entries", "distinct entries", "counters", "stashed keys", "corrections"];

/// The fields that only expiring filters have.
pub const TIME: [&str; 8] = [
    "when full",
    "evicted",
    "sweeps",
    "step",
    "steps",
    "youngest evicted",
    "step length",
    "step began",
];

/// The image of an empty filter or maplet like `image`, but with `1 << segment_bits` segments of
/// `segment_buckets` buckets.
///
/// # Panics
/// If `image` is shorter than a header, or the buckets would not fit into memory.
#[must_use]
pub fn reshape(image: &[u8], segment_bits: u8, segment_buckets: u32) -> Vec<u8> {
    let mut header = image[..HEADER_BYTES].to_vec();
    let shape =
        [("segment bits", segment_bits.into()), ("segment buckets", segment_buckets.into())];
    set(&mut header, &shape);
    zero(&mut header, &CONTENT);
    zero(&mut header, &["level", "split buckets", "match weight"]);
    let number = |name| usize::try_from(read(image, name)).expect("a small number");
    let slot_bits = match (number("fingerprint bits"), number("value bits")) {
        (fingerprint, value) if value > 0 && fingerprint + value > 32 => 64,
        (fingerprint, value) => fingerprint + value,
    };
    let bucket_bits = 4 * (slot_bits - number("codec"));
    let buckets = usize::try_from(segment_buckets).expect("32 bits") << segment_bits;
    // Steps at which groups of 16 buckets were swept.
    let sweeps = if number("kind") == 3 { buckets.div_ceil(16) } else { 0 };
    set(&mut header, &[("sweeps", sweeps as u64)]);
    header.resize(HEADER_BYTES + (buckets * bucket_bits).div_ceil(64) * 8 + 16 + 2 * sweeps, 0);
    reseal(&mut header);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use koel::{CuckooFilter, ImageError, Prefer};

    #[test]
    fn resealing_changes_no_valid_image_and_makes_a_changed_one_valid() {
        let mut filter = CuckooFilter::with_capacity(10);
        filter.insert("a").unwrap();
        let sealed = filter.to_bytes();
        let mut image = sealed.clone();
        reseal(&mut image);
        assert_eq!(image, sealed);

        set(&mut image, &[("keys", 2)]);
        assert_eq!(CuckooFilter::from_bytes(&image), Err(ImageError::Checksum { part: "header" }));
        reseal(&mut image);
        assert_eq!(
            CuckooFilter::from_bytes(&image),
            Err(ImageError::Field { field: "keys", got: 2 })
        );
        reseal(&mut image[..HEADER_BYTES - 1]);
    }

    #[test]
    fn a_reshaped_image_is_an_empty_filter_of_that_shape() {
        for (prefer, rate) in [(Prefer::Small, 0.03), (Prefer::Small, 0.001), (Prefer::Fast, 1e-5)]
        {
            let mut filter = CuckooFilter::builder(5, rate).prefer(prefer).build().unwrap();
            filter.insert("a").unwrap();
            for (segment_bits, segment_buckets) in
                [(0, 1), (0, 2), (0, 7), (1, 1), (2, 3), (0, 100)]
            {
                let image = reshape(&filter.to_bytes(), segment_bits, segment_buckets);
                let reshaped = CuckooFilter::from_bytes(&image).unwrap();
                assert_eq!(reshaped.buckets(), u64::from(segment_buckets) << segment_bits);
                assert!(reshaped.is_empty());
                assert_eq!(reshaped.to_bytes(), image);
            }
        }
    }
}
