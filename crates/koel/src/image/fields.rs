//! The fields of the header: their offsets, and how they are read and written.
//!
//! docs/FORMAT.md describes every field. A test compares its table with `FIELDS`, and another
//! checks that the fields fill the header without gaps. All numbers are little-endian.

use super::format::HEADER_BYTES;
use crate::address::geometry::CORE_BITS;
use crate::error::ImageError;
use crate::packing::SLOTS;

/// A field of the header: offset, bytes, name.
pub(crate) type Field = (usize, usize, &'static str);

pub(super) const MAGIC_FIELD: Field = (0, 8, "magic");
pub(super) const VERSION_FIELD: Field = (8, 2, "version");
pub(super) const HEADER_LENGTH: Field = (10, 2, "header length");
pub(super) const KIND: Field = (12, 1, "kind");
pub(super) const CODEC: Field = (13, 1, "codec");
pub(super) const SLOT_COUNT: Field = (14, 1, "slots");
pub(super) const FINGERPRINT_BITS: Field = (15, 1, "fingerprint bits");
pub(super) const CORE: Field = (16, 1, "core bits");
pub(super) const VALUE_BITS: Field = (17, 1, "value bits");
pub(super) const SEGMENT_BITS: Field = (18, 1, "segment bits");
pub(super) const HASH: Field = (19, 1, "hash");
pub(super) const SEGMENT_BUCKETS: Field = (20, 4, "segment buckets");
pub(super) const LEVEL: Field = (24, 1, "level");
pub(super) const MARKED: Field = (25, 1, "marked");
pub(super) const FIRST_BITS: Field = (26, 1, "fraction bits at first");
pub(super) const FRACTION_BITS: Field = (27, 1, "fraction bits");
pub(super) const FLAGS: Field = (28, 4, "flags");
pub(super) const SPLIT: Field = (32, 8, "split buckets");
pub(super) const WEIGHT_LOW: Field = (40, 8, "match weight, low half");
pub(super) const SEED: Field = (48, 16, "seed");
pub(super) const CAPACITY: Field = (64, 8, "capacity");
pub(super) const RATE: Field = (72, 8, "requested rate");
pub(super) const LEN: Field = (80, 8, "keys");
pub(super) const ENTRIES: Field = (88, 8, "entries");
pub(super) const COUNTERS: Field = (96, 8, "counters");
pub(super) const COUNTER_LIMIT: Field = (104, 8, "counter limit");
pub(super) const DISTINCT: Field = (112, 8, "distinct entries");
pub(super) const WEIGHT_HIGH: Field = (120, 8, "match weight, high half");
pub(super) const ROUTE: Field = (128, 1, "route");
pub(super) const SECRET_KIND: Field = (129, 1, "secret kind");
pub(super) const RESERVED: Field = (130, 6, "reserved");
pub(super) const LINE_OPTIONS: Field = (136, 16, "line options");
pub(super) const EXPIRY: Field = (152, 24, "expiry");
pub(super) const BODY_CHECKSUM: Field = (176, 8, "body checksum");
pub(super) const HEADER_CHECKSUM: Field = (184, 8, "header checksum");

/// Every field, in order and without gaps.
#[cfg(test)]
const FIELDS: [Field; 35] = [
    MAGIC_FIELD,
    VERSION_FIELD,
    HEADER_LENGTH,
    KIND,
    CODEC,
    SLOT_COUNT,
    FINGERPRINT_BITS,
    CORE,
    VALUE_BITS,
    SEGMENT_BITS,
    HASH,
    SEGMENT_BUCKETS,
    LEVEL,
    MARKED,
    FIRST_BITS,
    FRACTION_BITS,
    FLAGS,
    SPLIT,
    WEIGHT_LOW,
    SEED,
    CAPACITY,
    RATE,
    LEN,
    ENTRIES,
    COUNTERS,
    COUNTER_LIMIT,
    DISTINCT,
    WEIGHT_HIGH,
    ROUTE,
    SECRET_KIND,
    RESERVED,
    LINE_OPTIONS,
    EXPIRY,
    BODY_CHECKSUM,
    HEADER_CHECKSUM,
];

/// Fields that have one value.
pub(super) const FIXED: [(Field, u64); 3] =
    [(HEADER_LENGTH, HEADER_BYTES as u64), (SLOT_COUNT, SLOTS as u64), (CORE, CORE_BITS as u64)];
/// Fields that are zero in a table without marked fingerprints.
pub(super) const OF_GROWTH: [Field; 5] = [LEVEL, MARKED, SPLIT, WEIGHT_LOW, WEIGHT_HIGH];
/// Fields that later versions of the program will define. A reader refuses any byte but 0.
pub(super) const FOR_LATER: [Field; 4] = [SECRET_KIND, RESERVED, LINE_OPTIONS, EXPIRY];
/// The flag of a filter that grows when it is full.
pub(super) const GROWABLE: u64 = 1;

/// Reads the fields of a header.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8; HEADER_BYTES]);

impl<'a> Reader<'a> {
    /// A field of up to 8 bytes.
    pub(super) fn number(self, field: Field) -> u64 {
        little_endian(self.raw(field))
    }

    /// A field of one byte.
    pub(super) fn byte(self, (offset, _, _): Field) -> u32 {
        u32::from(self.0[offset])
    }

    /// The bytes of a field.
    pub(super) fn raw(self, (offset, bytes, _): Field) -> &'a [u8] {
        &self.0[offset..offset + bytes]
    }

    /// Refuses the header unless the field `holds`.
    pub(super) fn require(self, field: Field, holds: bool) -> Result<(), ImageError> {
        if holds { Ok(()) } else { Err(self.refuse(field)) }
    }

    /// Refuses the header unless all bytes of the field are 0.
    pub(super) fn require_zero(self, field: Field) -> Result<(), ImageError> {
        match self.raw(field).iter().find(|&&byte| byte != 0) {
            Some(&byte) => Err(ImageError::Field { field: field.2, got: u64::from(byte) }),
            None => Ok(()),
        }
    }

    /// The error that names a field of up to 8 bytes and its value.
    pub(super) fn refuse(self, field: Field) -> ImageError {
        ImageError::Field { field: field.2, got: self.number(field) }
    }
}

/// Writes the fields of a header.
pub(super) struct Writer(pub(super) [u8; HEADER_BYTES]);

impl Writer {
    /// A field of up to 8 bytes.
    pub(super) fn number(&mut self, field: Field, value: u64) {
        self.raw(field, &value.to_le_bytes()[..field.1]);
    }

    /// The bytes of a field.
    pub(super) fn raw(&mut self, (offset, bytes, _): Field, content: &[u8]) {
        self.0[offset..offset + bytes].copy_from_slice(content);
    }
}

/// The number in up to 8 bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    #[test]
    fn the_fields_are_contiguous_and_fill_the_header() {
        let mut end = 0;
        for (offset, bytes, name) in FIELDS {
            assert_eq!(offset, end, "{name}");
            end = offset + bytes;
        }
        assert_eq!(end, HEADER_BYTES);
    }

    #[test]
    fn the_format_page_lists_exactly_these_fields() {
        let page = include_str!("../../../../docs/FORMAT.md");
        let table = page.lines().skip_while(|line| !line.starts_with("| offset"));
        let rows: Vec<_> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), FIELDS.len());
        for ((offset, bytes, name), row) in FIELDS.into_iter().zip(rows) {
            assert!(row.starts_with(&format!("| {offset} | {bytes} | {name} |")), "{row}");
        }
    }
}
