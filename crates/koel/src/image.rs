//! The header of a filter's bytes: what it says, and which values of it are refused.
//!
//! ```text
//!     | header, 192 bytes | buckets (table.rs) | counters, 16 bytes each (counters.rs) |
//!                         '------------------ body, guarded by its own checksum ------'
//! ```
//!
//! docs/FORMAT.md describes every byte, with test vectors; a test compares its table of fields with [`FIELDS`]. All numbers are
//! little-endian. Reading never trusts: each field is bounded before it is used in arithmetic.

use alloc::vec::Vec;
use core::convert::Infallible;

use crate::body::Body;
use crate::counters::{self, RECORD_BYTES, ReadCounters};
use crate::error::ImageError;
use crate::filter::Profile;
use crate::geometry::{CORE_BITS, Geometry};
use crate::growth::Grown;
use crate::hash::KeyHasher;
use crate::layout::{Codec, Layout, MAX_VALUE_BITS, SLOTS};
use crate::sizing::{self, Shape};
use crate::table::{Stretch, Table, table_bytes};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 192;
/// The format this crate writes, and the newest it reads.
pub(crate) const VERSION: u16 = 2;
/// The version of what does not grow: what is marked does, so that the flag alone decides.
const VERSION_WITHOUT_GROWTH: u16 = 1;
/// The first bytes of every filter. The line ends and the end-of-file mark catch transfers that change text.
const MAGIC: [u8; 8] = *b"koel\r\n\x1a\n";

/// A field of the header: offset, bytes, name.
pub(crate) type Field = (usize, usize, &'static str);

const MAGIC_FIELD: Field = (0, 8, "magic");
const VERSION_FIELD: Field = (8, 2, "version");
const HEADER_LENGTH: Field = (10, 2, "header length");
const KIND: Field = (12, 1, "kind");
const CODEC: Field = (13, 1, "codec");
const SLOT_COUNT: Field = (14, 1, "slots");
const FINGERPRINT_BITS: Field = (15, 1, "fingerprint bits");
const CORE: Field = (16, 1, "core bits");
const VALUE_BITS: Field = (17, 1, "value bits");
const SEGMENT_BITS: Field = (18, 1, "segment bits");
const HASH: Field = (19, 1, "hash");
const SEGMENT_BUCKETS: Field = (20, 4, "segment buckets");
const LEVEL: Field = (24, 1, "level");
const MARKED: Field = (25, 1, "marked");
const FIRST_BITS: Field = (26, 1, "fraction bits at first");
const FRACTION_BITS: Field = (27, 1, "fraction bits");
const FLAGS: Field = (28, 4, "flags");
const SPLIT: Field = (32, 8, "split buckets");
const MASS_LOW: Field = (40, 8, "mass, low half");
const SEED: Field = (48, 16, "seed");
const CAPACITY: Field = (64, 8, "capacity");
const RATE: Field = (72, 8, "requested rate");
const LEN: Field = (80, 8, "keys");
const ENTRIES: Field = (88, 8, "entries");
const COUNTERS: Field = (96, 8, "counters");
const COUNTER_LIMIT: Field = (104, 8, "counter limit");
const DISTINCT: Field = (112, 8, "distinct entries");
const MASS_HIGH: Field = (120, 8, "mass, high half");
const RESERVED: Field = (128, 48, "reserved");
const BODY_CHECKSUM: Field = (176, 8, "body checksum");
const HEADER_CHECKSUM: Field = (184, 8, "header checksum");

/// Every field, in order and without gaps.
#[cfg(test)]
const FIELDS: [Field; 31] = [
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
    MASS_LOW,
    SEED,
    CAPACITY,
    RATE,
    LEN,
    ENTRIES,
    COUNTERS,
    COUNTER_LIMIT,
    DISTINCT,
    MASS_HIGH,
    RESERVED,
    BODY_CHECKSUM,
    HEADER_CHECKSUM,
];

/// Fields that have one value.
const FIXED: [(Field, u64); 3] =
    [(HEADER_LENGTH, HEADER_BYTES as u64), (SLOT_COUNT, SLOTS as u64), (CORE, CORE_BITS as u64)];
/// Fields that are zero in a table that has not been marked.
const OF_GROWTH: [Field; 5] = [LEVEL, MARKED, SPLIT, MASS_LOW, MASS_HIGH];
/// The flag of what grows when it is full.
const GROWABLE: u64 = 1;

/// What the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Fingerprints, and counters for copies.
    Filter,
    /// Fingerprints with values.
    Maplet,
    /// Fingerprints with counts, and counters for what does not fit there.
    Counting,
}

impl Kind {
    /// In the order of their numbers.
    const ALL: [Self; 3] = [Self::Filter, Self::Maplet, Self::Counting];

    fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Maplet => "maplet",
            Self::Counting => "counting filter",
        }
    }

    fn has_values(self) -> bool {
        self != Self::Filter
    }
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// Buckets as they were built, in the layout that they have now.
    pub(crate) shape: Shape,
    pub(crate) growth: Option<Growth>,
    pub(crate) profile: Profile,
    pub(crate) len: u64,
    pub(crate) entries: u64,
    pub(crate) distinct: u64,
    pub(crate) counters: u64,
    pub(crate) body_checksum: u64,
}

/// How far a table of marked fingerprints has grown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    /// Fraction bits that the table was built with.
    pub(crate) first_bits: u32,
    pub(crate) level: u32,
    pub(crate) split: u64,
    pub(crate) mass: u128,
}

impl Growth {
    pub(crate) fn of<B: AsRef<[u8]>>(grown: &Grown<B>) -> Self {
        let addresses = grown.addresses();
        Self {
            first_bits: addresses.base().fraction_bits(),
            level: addresses.level(),
            split: addresses.split(),
            mass: grown.mass(),
        }
    }
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let layout = self.shape.layout;
        let (hash, seed) = encode_hasher(self.profile.hasher);
        let fraction_bits = u64::from(layout.fraction_bits());
        let version = if self.profile.growable { VERSION } else { VERSION_WITHOUT_GROWTH };
        let mut bytes = Writer([0; HEADER_BYTES]);
        bytes.raw(MAGIC_FIELD, &MAGIC);
        bytes.number(VERSION_FIELD, u64::from(version));
        for (field, value) in FIXED {
            bytes.number(field, value);
        }
        bytes.number(KIND, self.kind as u64);
        bytes.number(VALUE_BITS, u64::from(layout.value_bits()));
        bytes.number(CODEC, encode_codec(layout.codec()));
        bytes.number(FINGERPRINT_BITS, u64::from(layout.fingerprint_bits()));
        bytes.number(SEGMENT_BITS, u64::from(self.shape.segment_bits));
        bytes.number(HASH, hash);
        bytes.number(SEGMENT_BUCKETS, u64::from(self.shape.segment_buckets));
        bytes.number(
            FIRST_BITS,
            self.growth.map_or(fraction_bits, |growth| growth.first_bits.into()),
        );
        bytes.number(FRACTION_BITS, fraction_bits);
        bytes.number(FLAGS, u64::from(self.profile.growable) * GROWABLE);
        if let Some(Growth { level, split, mass, .. }) = self.growth {
            bytes.number(MARKED, 1);
            bytes.number(LEVEL, u64::from(level));
            bytes.number(SPLIT, split);
            bytes.raw(MASS_LOW, &mass.to_le_bytes()[..8]);
            bytes.raw(MASS_HIGH, &mass.to_le_bytes()[8..]);
        }
        bytes.raw(SEED, &seed);
        bytes.number(CAPACITY, self.profile.capacity);
        bytes.number(RATE, self.profile.rate.to_bits());
        bytes.number(LEN, self.len);
        bytes.number(ENTRIES, self.entries);
        bytes.number(DISTINCT, self.distinct);
        bytes.number(COUNTERS, self.counters);
        bytes.number(COUNTER_LIMIT, self.profile.counter_limit);
        bytes.number(BODY_CHECKSUM, self.body_checksum);
        let checksum = xxh3_64(&bytes.0[..HEADER_CHECKSUM.0]);
        bytes.number(HEADER_CHECKSUM, checksum);
        bytes.0
    }

    /// The header at the start of `image`.
    pub(crate) fn decode(image: &[u8]) -> Result<Self, ImageError> {
        if !image.starts_with(&MAGIC[..image.len().min(MAGIC.len())]) || image.is_empty() {
            return Err(ImageError::NotAFilter);
        }
        let Some(bytes) = image.first_chunk::<HEADER_BYTES>() else {
            return Err(ImageError::Length {
                expected: HEADER_BYTES as u64,
                got: image.len() as u64,
            });
        };
        let fields = Reader(bytes);
        check_frame(fields)?;
        let kind = decode_kind(fields)?;
        let growth = decode_growth(fields)?;
        let shape = decode_shape(fields, kind, growth)?;
        let header = Self {
            kind,
            shape,
            growth,
            profile: Profile {
                hasher: decode_hasher(fields)?,
                capacity: fields.number(CAPACITY),
                rate: f64::from_bits(fields.number(RATE)),
                counter_limit: fields.number(COUNTER_LIMIT),
                growable: fields.number(FLAGS) == GROWABLE,
            },
            len: fields.number(LEN),
            entries: fields.number(ENTRIES),
            distinct: fields.number(DISTINCT),
            counters: fields.number(COUNTERS),
            body_checksum: fields.number(BODY_CHECKSUM),
        };
        header.check_counts(fields)?;
        Ok(header)
    }

    /// The header, if the bytes are of the kind asked for.
    pub(crate) fn of_kind(self, kind: Kind) -> Result<Self, ImageError> {
        if self.kind == kind {
            return Ok(self);
        }
        Err(ImageError::Kind { asked: kind.name(), found: self.kind.name() })
    }

    /// The buckets and the counters of `image`, if it is exactly as long as the header says.
    pub(crate) fn parts<'a>(&self, image: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), ImageError> {
        let table = table_bytes(self.shape.layout, self.buckets());
        let split = || {
            let (table, records) = image.get(HEADER_BYTES..)?.split_at_checked(table?)?;
            let counters = usize::try_from(self.counters).ok()?.checked_mul(RECORD_BYTES)?;
            (records.len() == counters).then_some((table, records))
        };
        split().ok_or_else(|| {
            let table = table.map_or(u64::MAX, |bytes| bytes as u64);
            let counters = self.counters.saturating_mul(RECORD_BYTES as u64);
            let expected = table.saturating_add(counters).saturating_add(HEADER_BYTES as u64);
            ImageError::Length { expected, got: image.len() as u64 }
        })
    }

    /// Buckets of the table as it is now.
    pub(crate) fn buckets(&self) -> u64 {
        let built = self.shape.buckets();
        self.growth.map_or(built, |growth| (built << growth.level) + growth.split)
    }

    /// The addresses of the table as it was built.
    fn geometry(&self) -> Geometry {
        let layout = self.shape.layout;
        let first_bits = self.growth.map_or(layout.fraction_bits(), |growth| growth.first_bits);
        let (segment_bits, buckets) = (self.shape.segment_bits, self.shape.segment_buckets);
        Geometry::new(segment_bits, buckets, first_bits + CORE_BITS)
    }

    /// The buckets in `bytes`.
    pub(crate) fn body<B: AsRef<[u8]>>(&self, bytes: B) -> Body<B> {
        let layout = self.shape.layout;
        match (self.stretch(), self.growth) {
            (Some(stretch), Some(growth)) => Body::Grown(Grown::new(
                Table::new(stretch, layout, bytes),
                growth.mass,
                self.entries,
            )),
            _ => Body::Built(Table::new(self.geometry(), layout, bytes)),
        }
    }

    /// The addresses of the table as it is now, if its fingerprints are marked.
    fn stretch(&self) -> Option<Stretch> {
        let (growth, marked) = (self.growth?, self.shape.layout.marks()?);
        Some(Stretch::new(self.geometry(), marked, growth.level, growth.split))
    }

    /// Bounds what later arithmetic relies on: a table that can have grown so far, a rate that is a probability, counts that do not exceed each other.
    fn check_counts(&self, fields: Reader<'_>) -> Result<(), ImageError> {
        fields.require(SPLIT, self.stretch().is_none_or(|stretch| stretch.is_sound()))?;
        fields.require(RATE, self.profile.rate > 0.0 && self.profile.rate < 1.0)?;
        fields.require(ENTRIES, self.entries <= self.buckets() * SLOTS as u64)?;
        // Growth may leave entries behind that are nobody's.
        fields.require(LEN, self.len >= self.entries || self.growth.is_some())?;
        fields.require(DISTINCT, self.distinct <= self.entries)?;
        let by_entry = self.growth.is_some() || self.kind.has_values();
        let named = if by_entry { self.entries } else { self.distinct };
        fields.require(COUNTERS, self.counters <= named)?;
        // One that growth leaves to two entries becomes two, whatever the limit.
        let limited = self.counters <= self.profile.counter_limit;
        fields.require(COUNTER_LIMIT, limited || self.growth.is_some())
    }
}

/// All parts that `write` hands to its sink, which are so many bytes.
pub(crate) fn collected(
    size: usize,
    write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Infallible>) -> Result<(), Infallible>,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    let Ok(()) = write(&mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    });
    bytes
}

/// XXH3-64 of the buckets and the counters as they are stored.
pub(crate) fn body_checksum(buckets: &[u8], counters: &impl ReadCounters) -> u64 {
    let mut state = Xxh3::new();
    state.update(buckets);
    counters.iter().for_each(|counter| state.update(&counters::encode(counter)));
    state.digest()
}

/// Bits of `size_in_bytes` for each of so many keys; for none, as for one.
pub(crate) fn bits_per_key(size_in_bytes: usize, keys: f64) -> f64 {
    size_in_bytes as f64 * 8.0 / keys.max(1.0)
}

/// Version, header checksum and the fields that must have one value.
fn check_frame(fields: Reader<'_>) -> Result<(), ImageError> {
    let version = u16::from_le_bytes([fields.0[VERSION_FIELD.0], fields.0[VERSION_FIELD.0 + 1]]);
    if version > VERSION {
        return Err(ImageError::Newer { version });
    }
    if fields.number(HEADER_CHECKSUM) != xxh3_64(&fields.0[..HEADER_CHECKSUM.0]) {
        return Err(ImageError::Checksum { part: "header" });
    }
    fields.require(FLAGS, fields.number(FLAGS) <= GROWABLE)?;
    let grows = fields.number(FLAGS) == GROWABLE;
    let expected = if grows { VERSION } else { VERSION_WITHOUT_GROWTH };
    fields.require(VERSION_FIELD, version == expected)?;
    let reserved = &fields.0[RESERVED.0..RESERVED.0 + RESERVED.1];
    if let Some(&byte) = reserved.iter().find(|&&byte| byte != 0) {
        return Err(ImageError::Field { field: RESERVED.2, got: u64::from(byte) });
    }
    FIXED
        .into_iter()
        .try_for_each(|(field, value)| fields.require(field, fields.number(field) == value))
}

fn decode_kind(fields: Reader<'_>) -> Result<Kind, ImageError> {
    let number = usize::try_from(fields.number(KIND)).ok();
    let kind = number.and_then(|number| Kind::ALL.get(number));
    kind.copied().ok_or(fields.refuse(KIND))
}

/// Layout and bucket counts, such that bucket numbers fit the hash.
fn decode_shape(
    fields: Reader<'_>,
    kind: Kind,
    growth: Option<Growth>,
) -> Result<Shape, ImageError> {
    let codec = match fields.number(CODEC) {
        0 => Codec::Plain,
        1 => Codec::SemiSorted,
        got => return Err(ImageError::Field { field: CODEC.2, got }),
    };
    let fingerprint_bits = fields.byte(FINGERPRINT_BITS);
    let value_bits = fields.byte(VALUE_BITS);
    let has_values = kind.has_values();
    fields.require(VALUE_BITS, has_values == (value_bits > 0) && value_bits <= MAX_VALUE_BITS)?;
    fields.require(CODEC, codec == Codec::Plain || !has_values)?;
    let layout =
        Layout::new(codec, fingerprint_bits, value_bits).ok_or(fields.refuse(FINGERPRINT_BITS))?;
    let layout = if growth.is_some() { layout.with_marks() } else { layout };
    let first_bits = fields.byte(FIRST_BITS);
    fields.require(FRACTION_BITS, fields.byte(FRACTION_BITS) == layout.fraction_bits())?;
    let least = if growth.is_some() { 2 } else { layout.fraction_bits() };
    fields.require(FIRST_BITS, (least..=layout.fraction_bits()).contains(&first_bits))?;
    let segment_bits = fields.byte(SEGMENT_BITS);
    let segment_buckets = u32::try_from(fields.number(SEGMENT_BUCKETS))
        .map_err(|_| fields.refuse(SEGMENT_BUCKETS))?;
    fields.require(SEGMENT_BUCKETS, segment_buckets > 0)?;
    fields.require(
        SEGMENT_BITS,
        sizing::fits_hash(segment_bits, segment_buckets, first_bits + CORE_BITS),
    )?;
    Ok(Shape { layout, segment_bits, segment_buckets })
}

/// How far the table has grown; `None` where its fingerprints are not marked.
fn decode_growth(fields: Reader<'_>) -> Result<Option<Growth>, ImageError> {
    if fields.number(MARKED) == 0 {
        OF_GROWTH
            .into_iter()
            .try_for_each(|field| fields.require(field, fields.number(field) == 0))?;
        return Ok(None);
    }
    fields.require(MARKED, fields.number(MARKED) == 1)?;
    fields.require(FLAGS, fields.number(FLAGS) == GROWABLE)?;
    fields.require(LEVEL, fields.byte(LEVEL) < u32::BITS)?;
    Ok(Some(Growth {
        first_bits: fields.byte(FIRST_BITS),
        level: fields.byte(LEVEL),
        split: fields.number(SPLIT),
        mass: u128::from(fields.number(MASS_HIGH)) << 64 | u128::from(fields.number(MASS_LOW)),
    }))
}

fn encode_codec(codec: Codec) -> u64 {
    match codec {
        Codec::Plain => 0,
        Codec::SemiSorted => 1,
    }
}

fn encode_hasher(hasher: KeyHasher) -> (u64, [u8; 16]) {
    match hasher {
        KeyHasher::Xxh3 { seed } => (0, u128::from(seed).to_le_bytes()),
        KeyHasher::Sip13 { key } => (1, key),
    }
}

fn decode_hasher(fields: Reader<'_>) -> Result<KeyHasher, ImageError> {
    let mut key = [0; 16];
    key.copy_from_slice(&fields.0[SEED.0..SEED.0 + SEED.1]);
    match fields.number(HASH) {
        0 => match u64::try_from(u128::from_le_bytes(key)) {
            Ok(seed) => Ok(KeyHasher::Xxh3 { seed }),
            Err(_) => Err(fields.refuse((SEED.0 + 8, 8, SEED.2))),
        },
        1 => Ok(KeyHasher::Sip13 { key }),
        got => Err(ImageError::Field { field: HASH.2, got }),
    }
}

#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8; HEADER_BYTES]);

impl Reader<'_> {
    /// A field of up to 8 bytes.
    fn number(self, (offset, bytes, _): Field) -> u64 {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(&self.0[offset..offset + bytes]);
        u64::from_le_bytes(wide)
    }

    /// A field of one byte.
    fn byte(self, (offset, _, _): Field) -> u32 {
        u32::from(self.0[offset])
    }

    fn require(self, field: Field, holds: bool) -> Result<(), ImageError> {
        if holds { Ok(()) } else { Err(self.refuse(field)) }
    }

    fn refuse(self, field: Field) -> ImageError {
        ImageError::Field { field: field.2, got: self.number(field) }
    }
}

struct Writer([u8; HEADER_BYTES]);

impl Writer {
    /// A field of up to 8 bytes.
    fn number(&mut self, field: Field, value: u64) {
        self.raw(field, &value.to_le_bytes()[..field.1]);
    }

    fn raw(&mut self, (offset, bytes, _): Field, content: &[u8]) {
        self.0[offset..offset + bytes].copy_from_slice(content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    #[test]
    fn the_fields_follow_one_another_and_fill_the_header() {
        let mut end = 0;
        for (offset, bytes, name) in FIELDS {
            assert_eq!(offset, end, "{name}");
            end = offset + bytes;
        }
        assert_eq!(end, HEADER_BYTES);
    }

    #[test]
    fn the_format_page_lists_exactly_these_fields() {
        let page = include_str!("../../../docs/FORMAT.md");
        let table = page.lines().skip_while(|line| !line.starts_with("| offset"));
        let rows: Vec<_> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), FIELDS.len());
        for ((offset, bytes, name), row) in FIELDS.into_iter().zip(rows) {
            assert!(row.starts_with(&format!("| {offset} | {bytes} | {name} |")), "{row}");
        }
    }
}
