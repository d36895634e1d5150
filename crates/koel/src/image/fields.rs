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

/// Defines a constant for each field, and the list of all of them for the tests.
macro_rules! fields {
    ($($field:ident = ($offset:expr, $bytes:expr, $name:expr);)*) => {
        $(pub(super) const $field: Field = ($offset, $bytes, $name);)*
        #[cfg(test)]
        const FIELDS: &[Field] = &[$($field),*];
    };
}

fields! {
    MAGIC_FIELD = (0, 8, "magic");
    VERSION_FIELD = (8, 2, "version");
    HEADER_LENGTH = (10, 2, "header length");
    KIND = (12, 1, "kind");
    CODEC = (13, 1, "codec");
    SLOT_COUNT = (14, 1, "slots");
    FINGERPRINT_BITS = (15, 1, "fingerprint bits");
    CORE = (16, 1, "core bits");
    VALUE_BITS = (17, 1, "value bits");
    SEGMENT_BITS = (18, 1, "segment bits");
    HASH = (19, 1, "hash");
    SEGMENT_BUCKETS = (20, 4, "segment buckets");
    LEVEL = (24, 1, "level");
    MARKED = (25, 1, "marked");
    FIRST_BITS = (26, 1, "fraction bits at first");
    FRACTION_BITS = (27, 1, "fraction bits");
    FLAGS = (28, 4, "flags");
    SPLIT = (32, 8, "split buckets");
    WEIGHT_LOW = (40, 8, "match weight, low half");
    SEED = (48, 16, "seed");
    CAPACITY = (64, 8, "capacity");
    RATE = (72, 8, "requested rate");
    LEN = (80, 8, "keys");
    ENTRIES = (88, 8, "entries");
    COUNTERS = (96, 8, "counters");
    COUNTER_LIMIT = (104, 8, "counter limit");
    DISTINCT = (112, 8, "distinct entries");
    WEIGHT_HIGH = (120, 8, "match weight, high half");
    ROUTE = (128, 1, "route");
    SECRET_KIND = (129, 1, "secret kind");
    STEP = (130, 6, "step");
    APPLICATION = (136, 8, "application bytes");
    STASHED = (144, 4, "stashed keys");
    CORRECTIONS = (148, 4, "corrections");
    STEP_TICKS = (152, 8, "step length");
    STEP_BEGAN = (160, 8, "step began");
    STEPS = (168, 1, "steps");
    YOUNGEST_EVICTED = (169, 1, "youngest evicted");
    WHEN_FULL = (170, 1, "when full");
    RESERVED = (171, 1, "reserved");
    NARROW = (172, 4, "narrow buckets");
    BODY_CHECKSUM = (176, 8, "body checksum");
    HEADER_CHECKSUM = (184, 8, "header checksum");
}

/// Fields that have one value.
pub(super) const FIXED: [(Field, u64); 3] =
    [(HEADER_LENGTH, HEADER_BYTES as u64), (SLOT_COUNT, SLOTS as u64), (CORE, CORE_BITS as u64)];
/// Fields that are zero in a table without marked fingerprints.
pub(super) const OF_GROWTH: [Field; 6] = [LEVEL, MARKED, SPLIT, WEIGHT_LOW, WEIGHT_HIGH, NARROW];
/// Fields that are zero in what does not expire.
pub(super) const OF_EXPIRY: [Field; 6] =
    [STEP, STEP_TICKS, STEP_BEGAN, STEPS, YOUNGEST_EVICTED, WHEN_FULL];
/// An expiring filter has no counters, and stores here how many live entries were evicted.
pub(super) const EVICTED: Field = COUNTER_LIMIT;
/// Fields that later versions of the program will define. A reader refuses any byte but 0.
pub(super) const FOR_LATER: [Field; 2] = [SECRET_KIND, RESERVED];

/// Reads the fields of a header.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8; HEADER_BYTES]);

impl<'a> Reader<'a> {
    /// A field of up to 8 bytes.
    pub(super) fn number(self, field: Field) -> u64 {
        self.raw(field).iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// A field of up to 4 bytes.
    pub(super) fn word(self, field: Field) -> u32 {
        self.raw(field).iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
    }

    /// The one of `choices` whose index is in the field.
    pub(super) fn choice<T: Copy>(self, field: Field, choices: &[T]) -> Result<T, ImageError> {
        let index = usize::try_from(self.number(field)).ok();
        let choice = index.and_then(|index| choices.get(index));
        choice.copied().ok_or_else(|| self.refuse(field))
    }

    /// The bytes of a field.
    pub(super) fn raw(self, (offset, bytes, _): Field) -> &'a [u8] {
        &self.0[offset..offset + bytes]
    }

    /// Refuses the header unless the field `holds`.
    pub(super) fn require(self, field: Field, holds: bool) -> Result<(), ImageError> {
        if holds { Ok(()) } else { Err(self.refuse(field)) }
    }

    /// Refuses the header unless the field has this value.
    pub(super) fn require_value(self, field: Field, value: u64) -> Result<(), ImageError> {
        self.require(field, self.number(field) == value)
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    #[test]
    fn the_fields_are_contiguous_and_fill_the_header() {
        let mut end = 0;
        for &(offset, bytes, name) in FIELDS {
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
        for ((offset, bytes, name), row) in FIELDS.iter().zip(rows) {
            assert!(row.starts_with(&format!("| {offset} | {bytes} | {name} |")), "{row}");
        }
    }
}
