//! The header of a filter's bytes: its content, and the values that are refused.
//!
//! docs/FORMAT.md describes every byte, with test vectors. `fields.rs` says where each field is.
//! Reading trusts nothing: each field is bounded before it is used in arithmetic.

use core::cmp::Ordering;

use super::clock::{Clock, sweep_records};
use super::format::{CORRECTION_BYTES, HEADER_BYTES, MAGIC, RECORD_BYTES, VERSION};
use crate::address::geometry::{CORE_BITS, Geometry};
use crate::address::hash::KeyHasher;
use crate::address::route::Route;
use crate::error::{ImageError, require};
use crate::image::shape::{Profile, Shape};
use crate::image::sizing;
use crate::packing::{Codec, Layout, MAX_VALUE_BITS, SLOTS};
use crate::table::{Addressing, Growing, LinearHashing, table_bytes};

use xxhash_rust::xxh3::xxh3_64;

use super::fields::{
    APPLICATION, BODY_CHECKSUM, CAPACITY, CODEC, CORRECTIONS, COUNTER_LIMIT, COUNTERS, DISTINCT,
    ENTRIES, FINGERPRINT_BITS, FIRST_BITS, FIXED, FLAGS, FOR_LATER, FRACTION_BITS, HASH,
    HEADER_CHECKSUM, KIND, LEN, LEVEL, MAGIC_FIELD, MARKED, NARROW, OF_EXPIRY, OF_GROWTH, RATE,
    ROUTE, Reader, SEED, SEGMENT_BITS, SEGMENT_BUCKETS, SPLIT, STASHED, VALUE_BITS, VERSION_FIELD,
    WEIGHT_HIGH, WEIGHT_LOW, Writer,
};
use super::kind::Kind;

/// The codecs, at the index that is their discriminant and their number in a file.
const CODECS: [Codec; 2] = [Codec::Plain, Codec::SemiSorted];

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// The number of buckets that were built, and the present layout.
    pub(crate) shape: Shape,
    pub(crate) growth: Option<Growth>,
    /// The time of an expiring filter.
    pub(crate) clock: Option<Clock>,
    pub(crate) profile: Profile,
    pub(crate) len: u64,
    pub(crate) entries: u64,
    pub(crate) distinct: u64,
    pub(crate) counters: u64,
    /// Keys in the stash, and corrections.
    pub(crate) exact: [u64; 2],
    pub(crate) body_checksum: u64,
}

/// How far a table of marked fingerprints has grown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    /// Fraction bits that the table was built with.
    pub(crate) first_bits: u32,
    pub(crate) level: u32,
    pub(crate) split: u64,
    pub(crate) match_weight: u128,
    /// Buckets that were still to be widened: the file has them wide.
    pub(crate) narrow: u64,
}

impl Growth {
    pub(crate) fn of<B: AsRef<[u8]>>(growing: &Growing<B>) -> Self {
        let addresses = growing.geometry();
        Self {
            first_bits: addresses.base().fraction_bits(),
            level: addresses.level(),
            split: addresses.split(),
            match_weight: growing.match_weight(),
            narrow: addresses.narrow_buckets(),
        }
    }
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let layout = self.shape.layout;
        let (hash, seed) = encode_hasher(self.profile.route.hasher());
        let fraction_bits = u64::from(layout.fraction_bits());
        let mut bytes = Writer([0; HEADER_BYTES]);
        bytes.raw(MAGIC_FIELD, &MAGIC);
        bytes.number(VERSION_FIELD, VERSION.into());
        for (field, value) in FIXED {
            bytes.number(field, value);
        }
        bytes.number(KIND, self.kind as u64);
        bytes.number(VALUE_BITS, u64::from(layout.value_bits()));
        bytes.number(CODEC, layout.codec() as u64);
        bytes.number(FINGERPRINT_BITS, u64::from(layout.fingerprint_bits()));
        bytes.number(SEGMENT_BITS, u64::from(self.shape.segment_bits));
        bytes.number(HASH, hash);
        bytes.number(SEGMENT_BUCKETS, u64::from(self.shape.segment_buckets));
        bytes.number(
            FIRST_BITS,
            self.growth.map_or(fraction_bits, |growth| growth.first_bits.into()),
        );
        bytes.number(FRACTION_BITS, fraction_bits);
        bytes.number(FLAGS, self.profile.growable.into());
        if let Some(Growth { level, split, match_weight, narrow, .. }) = self.growth {
            bytes.number(MARKED, 1);
            bytes.number(NARROW, narrow);
            bytes.number(LEVEL, u64::from(level));
            bytes.number(SPLIT, split);
            bytes.raw(WEIGHT_LOW, &match_weight.to_le_bytes()[..8]);
            bytes.raw(WEIGHT_HIGH, &match_weight.to_le_bytes()[8..]);
        }
        bytes.raw(SEED, &seed);
        bytes.number(ROUTE, self.profile.route.trusts_hashes().into());
        bytes.raw(APPLICATION, &self.profile.application);
        bytes.number(CAPACITY, self.profile.capacity);
        bytes.number(RATE, self.profile.rate.to_bits());
        bytes.number(LEN, self.len);
        bytes.number(ENTRIES, self.entries);
        bytes.number(DISTINCT, self.distinct);
        bytes.number(COUNTERS, self.counters);
        bytes.number(STASHED, self.exact[0]);
        bytes.number(CORRECTIONS, self.exact[1]);
        bytes.number(COUNTER_LIMIT, self.profile.counter_limit);
        if let Some(clock) = &self.clock {
            clock.encode(&mut bytes);
        }
        bytes.number(BODY_CHECKSUM, self.body_checksum);
        let checksum = xxh3_64(&bytes.0[..HEADER_CHECKSUM.0]);
        bytes.number(HEADER_CHECKSUM, checksum);
        bytes.0
    }

    /// The bytes of the header of the empty filter with these settings, with zeros for the seed or
    /// secret and for the checksums.
    pub(crate) fn settings(&self) -> [u8; HEADER_BYTES] {
        let counts = Self { len: 0, entries: 0, distinct: 0, counters: 0, exact: [0; 2], ..*self };
        let mut bytes = Self { body_checksum: 0, ..counts }.encode();
        for (start, len, _) in [SEED, HEADER_CHECKSUM] {
            bytes[start..start + len].fill(0);
        }
        bytes
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
        let kind = fields.choice(KIND, &Kind::ALL)?;
        let growable = fields.choice(FLAGS, &[false, true])?;
        let growth = decode_growth(fields, growable)?;
        let shape = decode_shape(fields, kind, growth)?;
        let clock = decode_clock(fields, kind, &shape)?;
        let header = Self {
            kind,
            shape,
            growth,
            clock,
            profile: Profile {
                route: decode_route(fields)?,
                capacity: fields.number(CAPACITY),
                rate: f64::from_bits(fields.number(RATE)),
                counter_limit: if clock.is_none() { fields.number(COUNTER_LIMIT) } else { 0 },
                growable,
                application: fields.number(APPLICATION).to_le_bytes(),
            },
            len: fields.number(LEN),
            entries: fields.number(ENTRIES),
            distinct: fields.number(DISTINCT),
            counters: fields.number(COUNTERS),
            exact: [fields.number(STASHED), fields.number(CORRECTIONS)],
            body_checksum: fields.number(BODY_CHECKSUM),
        };
        header.check_counts(fields)?;
        Ok(header)
    }

    /// The header at the start of `image`, if it is one of this kind.
    pub(crate) fn decode_as(kind: Kind, image: &[u8]) -> Result<Self, ImageError> {
        let header = Self::decode(image)?;
        if header.kind != kind {
            return Err(ImageError::Kind { asked: kind.name(), found: header.kind.name() });
        }
        header.check_kind()?;
        Ok(header)
    }

    /// Refuses values that no header of its kind has.
    fn check_kind(&self) -> Result<(), ImageError> {
        let (limit, growable) = (self.profile.counter_limit, self.profile.growable);
        let grows = self.growth.is_some();
        match self.kind {
            Kind::Filter => return Ok(()),
            Kind::Maplet => {
                require("counters", self.counters, self.counters == 0)?;
                require("counter limit", limit, limit == 0)?;
                require("keys", self.len, self.len == self.entries || grows)?;
                require("keys", self.len, self.len <= self.entries)?;
            }
            Kind::Expiring => {
                let records = sweep_records(self.buckets());
                require("counters", self.counters, self.counters == records)?;
                require("keys", self.len, self.len <= self.entries)?;
            }
            Kind::Counting => require("counter limit", limit, limit == u64::MAX)?,
        }
        require("distinct entries", self.distinct, self.distinct == 0)?;
        require("flags", u64::from(growable), growable == grows)
    }

    /// The buckets of `image`, and what is behind them, if it is exactly as long as the header
    /// says.
    pub(crate) fn parts<'a>(&self, image: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), ImageError> {
        let split = || {
            let (table, rest) = self.lengths()?;
            let (table, trailer) = image.get(HEADER_BYTES..)?.split_at_checked(table)?;
            (trailer.len() == rest).then_some((table, trailer))
        };
        split().ok_or_else(|| self.wrong_length(image.len() as u64))
    }

    /// Bytes of the buckets, and of what is behind them. `None` where this machine cannot address
    /// them.
    pub(crate) fn lengths(&self) -> Option<(usize, usize)> {
        let trailer = usize::try_from(self.trailer_bytes()).ok()?;
        Some((table_bytes(self.shape.layout, self.buckets())?, trailer))
    }

    /// Bytes of counters, stash and corrections.
    fn trailer_bytes(&self) -> u64 {
        let [stashed, corrections] = self.exact;
        let records = self.counters.saturating_add(stashed).saturating_mul(RECORD_BYTES as u64);
        records.saturating_add(corrections.saturating_mul(CORRECTION_BYTES as u64))
    }

    /// The bytes behind the buckets: counters, stash and corrections.
    pub(crate) fn split_trailer<'a>(&self, trailer: &'a [u8]) -> [&'a [u8]; 3] {
        let at = |records: u64| {
            let bytes = usize::try_from(records.saturating_mul(RECORD_BYTES as u64));
            bytes.unwrap_or(usize::MAX)
        };
        let (counters, exact) = trailer.split_at(at(self.counters).min(trailer.len()));
        let (stash, corrections) = exact.split_at(at(self.exact[0]).min(exact.len()));
        [counters, stash, corrections]
    }

    /// Bytes of the whole file.
    pub(crate) fn file_bytes(&self) -> u64 {
        let table = table_bytes(self.shape.layout, self.buckets());
        let table = table.map_or(u64::MAX, |bytes| bytes as u64);
        table.saturating_add(self.trailer_bytes()).saturating_add(HEADER_BYTES as u64)
    }

    /// The error for a file of `got` bytes.
    pub(crate) fn wrong_length(&self, got: u64) -> ImageError {
        ImageError::Length { expected: self.file_bytes(), got }
    }

    /// Whether the table may grow, so that it should be in memory to grow in.
    #[cfg(any(feature = "std", feature = "serde"))]
    pub(crate) fn grows(&self) -> bool {
        self.profile.growable || self.growth.is_some()
    }

    /// Buckets that the table has now.
    pub(crate) fn buckets(&self) -> u64 {
        buckets_of(&self.shape, self.growth)
    }

    /// The addressing that the table was built with.
    pub(crate) fn geometry(&self) -> Geometry {
        let layout = self.shape.layout;
        let first_bits = self.growth.map_or(layout.fraction_bits(), |growth| growth.first_bits);
        let (segment_bits, buckets) = (self.shape.segment_bits, self.shape.segment_buckets);
        Geometry::new(segment_bits, buckets, first_bits + CORE_BITS)
    }

    /// The present addressing of a table with marked fingerprints.
    pub(crate) fn linear_hashing(&self) -> Option<LinearHashing> {
        let (growth, marked) = (self.growth?, self.shape.layout.marks()?);
        let mut addresses = LinearHashing::new(self.geometry(), marked, growth.level, growth.split);
        addresses.set_narrow_buckets(growth.narrow);
        Some(addresses)
    }

    /// Whether a table with this header can have buckets that are still to be widened: as it was
    /// built, with the layout that its first one becomes.
    fn may_have_narrow_buckets(&self) -> bool {
        let Some(Growth { first_bits, level: 0, split: 0, narrow, .. }) = self.growth else {
            return false;
        };
        let first = Layout::new(self.shape.layout.codec(), first_bits + CORE_BITS, 0);
        self.kind == Kind::Filter
            && narrow <= self.shape.buckets()
            && first.and_then(sizing::marked_layout) == Some(self.shape.layout)
    }

    /// Bounds what later arithmetic relies on: a table that can have grown so far, a rate that is a
    /// probability, counts that do not exceed each other.
    fn check_counts(&self, fields: Reader<'_>) -> Result<(), ImageError> {
        fields
            .require(SPLIT, self.linear_hashing().is_none_or(|addresses| addresses.is_sound()))?;
        let narrow = self.growth.map_or(0, |growth| growth.narrow);
        fields.require(NARROW, narrow == 0 || self.may_have_narrow_buckets())?;
        fields.require(RATE, self.profile.rate > 0.0 && self.profile.rate < 1.0)?;
        fields.require(ENTRIES, self.entries <= self.buckets() * SLOTS as u64)?;
        // Growth may leave behind entries that belong to no key, and time entries that are dead.
        let has_others = self.growth.is_some() || self.clock.is_some();
        fields.require(LEN, self.len >= self.entries || has_others)?;
        fields.require(DISTINCT, self.distinct <= self.entries)?;
        let [stashed, corrections] = self.exact;
        let may_be_exact =
            self.kind == Kind::Filter || self.kind == Kind::Counting && corrections == 0;
        fields.require(STASHED, stashed == 0 || may_be_exact && stashed <= self.len)?;
        fields.require(CORRECTIONS, corrections == 0 || may_be_exact)?;
        let by_entry = self.growth.is_some() || self.kind.has_values();
        let named = if by_entry { self.entries } else { self.distinct };
        // The records of an expiring filter are not counters.
        let has_counters = self.clock.is_none();
        fields.require(COUNTERS, self.counters <= named || !has_counters)?;
        // When growth splits an entry into two, both get its counter, whatever the limit.
        let limited = self.counters <= self.profile.counter_limit;
        fields.require(COUNTER_LIMIT, limited || self.growth.is_some() || !has_counters)
    }
}

/// Buckets of a table that was built with this shape and has grown so far. Saturates where a forged
/// header has more than any table.
fn buckets_of(shape: &Shape, growth: Option<Growth>) -> u64 {
    let built = shape.buckets();
    growth.map_or(built, |growth| (built << growth.level).saturating_add(growth.split))
}

/// Bits of `size_in_bytes` per key. No keys count as one.
pub(crate) fn bits_per_key(size_in_bytes: usize, keys: f64) -> f64 {
    size_in_bytes as f64 * 8.0 / keys.max(1.0)
}

/// Checks the version, the header's checksum and the fields that must have one value.
fn check_frame(fields: Reader<'_>) -> Result<(), ImageError> {
    let version = u16::from_le_bytes([fields.0[VERSION_FIELD.0], fields.0[VERSION_FIELD.0 + 1]]);
    match version.cmp(&VERSION) {
        Ordering::Less => return Err(ImageError::Older { version }),
        Ordering::Greater => return Err(ImageError::Newer { version }),
        Ordering::Equal => {}
    }
    if fields.number(HEADER_CHECKSUM) != xxh3_64(&fields.0[..HEADER_CHECKSUM.0]) {
        return Err(ImageError::Checksum { part: "header" });
    }
    FOR_LATER.into_iter().try_for_each(|field| fields.require_zero(field))?;
    FIXED.into_iter().try_for_each(|(field, value)| fields.require_value(field, value))
}

/// The layout and the bucket counts, whose bucket numbers fit the hash.
fn decode_shape(
    fields: Reader<'_>,
    kind: Kind,
    growth: Option<Growth>,
) -> Result<Shape, ImageError> {
    let codec = fields.choice(CODEC, &CODECS)?;
    let fingerprint_bits = fields.word(FINGERPRINT_BITS);
    let value_bits = fields.word(VALUE_BITS);
    let has_values = kind.has_values();
    fields.require(VALUE_BITS, has_values == (value_bits > 0) && value_bits <= MAX_VALUE_BITS)?;
    fields.require(CODEC, codec == Codec::Plain || !has_values)?;
    let layout =
        Layout::new(codec, fingerprint_bits, value_bits).ok_or(fields.refuse(FINGERPRINT_BITS))?;
    let layout = if growth.is_some() { layout.with_marks() } else { layout };
    let first_bits = fields.word(FIRST_BITS);
    fields.require(FRACTION_BITS, fields.word(FRACTION_BITS) == layout.fraction_bits())?;
    let least = if growth.is_some() { 2 } else { layout.fraction_bits() };
    fields.require(FIRST_BITS, (least..=layout.fraction_bits()).contains(&first_bits))?;
    let segment_bits = fields.word(SEGMENT_BITS);
    let segment_buckets = fields.word(SEGMENT_BUCKETS);
    fields.require(SEGMENT_BUCKETS, segment_buckets > 0)?;
    fields.require(
        SEGMENT_BITS,
        sizing::fits_hash(segment_bits, segment_buckets, first_bits + CORE_BITS),
    )?;
    Ok(Shape { layout, segment_bits, segment_buckets })
}

/// How far the table has grown; `None` where its fingerprints are not marked.
fn decode_growth(fields: Reader<'_>, growable: bool) -> Result<Option<Growth>, ImageError> {
    if !fields.choice(MARKED, &[false, true])? {
        OF_GROWTH.into_iter().try_for_each(|field| fields.require_value(field, 0))?;
        return Ok(None);
    }
    fields.require(FLAGS, growable)?;
    fields.require(LEVEL, fields.word(LEVEL) < u32::BITS)?;
    Ok(Some(Growth {
        first_bits: fields.word(FIRST_BITS),
        level: fields.word(LEVEL),
        split: fields.number(SPLIT),
        match_weight: u128::from(fields.number(WEIGHT_HIGH)) << 64
            | u128::from(fields.number(WEIGHT_LOW)),
        narrow: fields.number(NARROW),
    }))
}

/// The time of an expiring filter; `None` for other kinds.
fn decode_clock(
    fields: Reader<'_>,
    kind: Kind,
    shape: &Shape,
) -> Result<Option<Clock>, ImageError> {
    if kind == Kind::Expiring {
        return Clock::decode(fields, shape).map(Some);
    }
    OF_EXPIRY.into_iter().try_for_each(|field| fields.require_value(field, 0))?;
    Ok(None)
}

fn encode_hasher(hasher: KeyHasher) -> (u64, [u8; 16]) {
    match hasher {
        KeyHasher::Xxh3 { seed } => (0, u128::from(seed).to_le_bytes()),
        KeyHasher::Sip13 { key } => (1, key),
    }
}

fn decode_route(fields: Reader<'_>) -> Result<Route, ImageError> {
    let trusts_hashes = fields.choice(ROUTE, &[false, true])?;
    Ok(Route::new(decode_hasher(fields)?, trusts_hashes))
}

fn decode_hasher(fields: Reader<'_>) -> Result<KeyHasher, ImageError> {
    let mut key = [0; 16];
    key.copy_from_slice(fields.raw(SEED));
    match fields.number(HASH) {
        0 => match u64::try_from(u128::from_le_bytes(key)) {
            Ok(seed) => Ok(KeyHasher::Xxh3 { seed }),
            Err(_) => Err(fields.refuse((SEED.0 + 8, 8, SEED.2))),
        },
        1 => Ok(KeyHasher::Sip13 { key }),
        _ => Err(fields.refuse(HASH)),
    }
}
