//! Address to buckets: the two buckets that may hold a key, and its fingerprint there.
//!
//! The 64-bit address is a fraction in [0, 1). Multiplying it by a range gives a digit in the high
//! half of the product, and the fraction that remains in the low half. The digits of a uniform
//! address are therefore independent:
//!
//! ```text
//!     address * buckets   ->  bucket = segment * M + local   any number of buckets, no modulus
//!     rest * 63           ->  core   = 1 ..= 63              never 0: 0 means "empty slot"
//!     rest (its top)      ->  fraction, r bits               further bits wait there for growth
//!
//!     fingerprint = core << r | fraction                     6 + r bits
//!     alternate   = (S(core) - local) mod M, same segment    its own inverse
//! ```
//!
//! * There are 2^k segments of M buckets, for any M. The two buckets of a key are in one segment of
//!   about 2 MiB, so they share a huge page, and a bulk build can work on one segment at a time.
//!   The segment of a bucket is the top k bits of the address.
//! * The alternate bucket depends on the core alone. When a filter grows, fractions lose bits and
//!   cores do not, so no entry changes its pair.
//! * S scatters its argument over the whole segment. With 63 offsets in arithmetic progression,
//!   eviction paths would stay in a small neighbourhood (docs/decisions/0001-addressing.md).
//! * Below 2^32 buckets every product splits into 32x32-bit products, so vector code can repeat it
//!   bit for bit.
//!
//! [`HASH_BITS`] guarantees a bias of at most 2^-8 per digit. If both buckets are the same one, the
//! pair counts as a single bucket.
//!
//! Cost: three products of 64 x 64 bits for one address, four with several segments.

mod many;
#[cfg(test)]
mod tests;

use core::hint::select_unpredictable;

pub(crate) use many::{Locations, product};

/// Bits of the fingerprint that choose the alternate bucket.
pub(crate) const CORE_BITS: u32 = 6;
/// Values of the core: 1 to 63.
pub(crate) const CORES: u64 = (1 << CORE_BITS) - 1;
/// The number of values of [`CORE_BITS`] bits.
const CORE_VALUES: usize = 1 << CORE_BITS;
/// How many bits of a 64-bit address bucket number and fingerprint may use. The other 8 keep the
/// digits uniform.
pub(crate) const HASH_BITS: u32 = 56;

/// The shape of a table: how an address splits into buckets and fingerprint.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Geometry {
    buckets: u64,
    segment_bits: u32,
    segment_buckets: u32,
    fraction_bits: u32,
    /// A mask of the bits of an address that select the segment: the top ones.
    segments: u64,
    /// The zeros at the end of the names of entries.
    end_of_names: u32,
    /// The number of fingerprints, `CORES << fraction_bits`, and the least of them.
    fingerprints: u64,
    least_fingerprint: u64,
    /// S(core) for each core. Index 0 is unused. The last element proves to the compiler that an
    /// index is in bounds.
    reflections: [u32; CORE_VALUES + 1],
}

/// The buckets and the fingerprint of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The first bucket of the segment.
    pub(crate) base: u64,
    /// The home bucket, by its number in the table.
    pub(crate) home: u64,
    /// The other bucket, by its number in the table. It may be the home bucket again.
    pub(crate) alternate: u64,
    /// The fingerprint of the key in either bucket, never 0.
    pub(crate) fingerprint: u64,
}

impl Location {
    /// Both buckets, by their number in the table.
    #[inline]
    pub(crate) fn buckets(&self) -> (u64, u64) {
        (self.home, self.alternate)
    }

    /// The [name](Geometry::name) of the entry, whichever of its buckets is home.
    pub(crate) fn name(&self, geometry: &Geometry) -> u64 {
        let base = self.home.min(self.alternate);
        let bits = base << (CORE_BITS + geometry.fraction_bits) | self.fingerprint;
        (2 * bits + 1) << geometry.end_of_names
    }
}

impl Geometry {
    /// `1 << segment_bits` segments of `segment_buckets` buckets each.
    ///
    /// The caller has checked that `segment_buckets > 0`, that `fingerprint_bits > CORE_BITS`, and
    /// that bucket number and fingerprint fit in [`HASH_BITS`].
    pub(crate) fn new(segment_bits: u32, segment_buckets: u32, fingerprint_bits: u32) -> Self {
        let mut reflections = [0; CORE_VALUES + 1];
        for (core, reflection) in (0..).zip(&mut reflections) {
            *reflection = scale(mix(core), segment_buckets);
        }
        let buckets = u64::from(segment_buckets) << segment_bits;
        let fraction_bits = fingerprint_bits - CORE_BITS;
        // At most 58, because bucket number and fingerprint fit in `HASH_BITS`.
        let bits_of_names = u64::BITS - buckets.leading_zeros() + fingerprint_bits + 1;
        Self {
            end_of_names: u64::BITS - bits_of_names,
            buckets,
            segment_bits,
            segment_buckets,
            fraction_bits,
            segments: !(u64::MAX >> segment_bits),
            fingerprints: CORES << fraction_bits,
            least_fingerprint: 1 << fraction_bits,
            reflections,
        }
    }

    /// Bits of a fingerprint besides the core.
    #[inline]
    pub(crate) fn fraction_bits(&self) -> u32 {
        self.fraction_bits
    }

    pub(crate) fn segment_bits(&self) -> u32 {
        self.segment_bits
    }

    pub(crate) fn segment_buckets(&self) -> u32 {
        self.segment_buckets
    }

    /// Buckets of the whole table.
    #[inline]
    pub(crate) fn buckets(&self) -> u64 {
        self.buckets
    }

    /// The location of a key with this address.
    #[inline]
    pub(crate) fn locate(&self, address: u64) -> Location {
        // A table of up to 2 MiB is one segment, which starts at bucket 0. Computing that start
        // would be up to a fifth of a lookup. The branch is predictable. Each side has code of its
        // own, because a base that may be 0 costs as much as one that is not.
        if self.is_one_segment() {
            self.locate_from(0, address)
        } else {
            self.locate_from(self.segment_start(address), address)
        }
    }

    /// Whether the table is one segment.
    #[inline]
    pub(crate) fn is_one_segment(&self) -> bool {
        self.segments == 0
    }

    /// [`locate`](Self::locate) in the segment that starts at bucket `base`.
    #[inline]
    fn locate_from(&self, base: u64, address: u64) -> Location {
        let (home, rest) = self.home_and_rest(address);
        // Not from the fingerprint, which is ready one step later.
        let reflection =
            self.reflections[1 + low_half(rest >> self.fraction_bits) as usize % CORE_VALUES];
        let alternate = self.reflected_by(reflection, base, home);
        Location { base, home, alternate, fingerprint: rest + self.least_fingerprint }
    }

    /// The first bucket of the segment of an address.
    #[inline]
    pub(crate) fn segment_start(&self, address: u64) -> u64 {
        // The home bucket of the least address of the segment. A product takes fewer steps than two
        // shifts by numbers from memory.
        wide_product(address & self.segments, self.buckets).1
    }

    /// The home bucket by its number in the table, and `core - 1` with the fraction below it.
    #[inline]
    pub(crate) fn home_and_rest(&self, address: u64) -> (u64, u64) {
        let (rest, home) = wide_product(address, self.buckets);
        // Core and fraction together: `rest * CORES` with r bits of its fraction.
        let (_, rest) = wide_product(rest, self.fingerprints);
        (home, rest)
    }

    /// The number of the segment of an address.
    #[inline]
    pub(crate) fn segment(&self, address: u64) -> u64 {
        // Two shifts, because a table of one segment would shift by all 64 bits.
        (address >> 1) >> (63 - self.segment_bits)
    }

    /// The interleaved index of bucket `local` of a segment. It counts bucket 0 of each segment,
    /// then bucket 1 of each, and so on.
    #[inline]
    pub(crate) fn interleave(&self, segment: u64, local: u64) -> u64 {
        local << self.segment_bits | segment
    }

    /// The bucket with this interleaved index, by its number in the table.
    pub(crate) fn bucket_at(&self, interleaved_index: u64) -> u64 {
        let (segment, local) = self.deinterleave(interleaved_index);
        segment * u64::from(self.segment_buckets) + local
    }

    /// The segment of the bucket with this interleaved index, and the bucket's number in it.
    #[inline]
    pub(crate) fn deinterleave(&self, interleaved_index: u64) -> (u64, u64) {
        let segment = interleaved_index & !(u64::MAX << self.segment_bits);
        (segment, interleaved_index >> self.segment_bits)
    }

    /// Whether every product of a location fits into 32 x 32 bits.
    fn is_narrow(&self) -> bool {
        self.buckets.max(self.fingerprints) <= u64::from(u32::MAX)
    }

    /// The other bucket of the fingerprint in `slot`, which is in `bucket`, of the segment that
    /// starts at `base`. An involution. Ignores the bits of the slot above the fingerprint.
    #[inline]
    pub(crate) fn alternate(&self, base: u64, bucket: u64, slot: u64) -> u64 {
        self.reflected(base, bucket, slot >> self.fraction_bits)
    }

    /// [`alternate`](Self::alternate) for the core of a fingerprint. Ignores the bits above it.
    #[inline]
    pub(crate) fn reflected(&self, base: u64, bucket: u64, core: u64) -> u64 {
        let core = low_half(core % CORE_VALUES as u64);
        self.reflected_by(self.reflections[core as usize], base, bucket)
    }

    #[inline]
    fn reflected_by(&self, reflection: u32, base: u64, bucket: u64) -> u64 {
        let (difference, borrow) = (base + u64::from(reflection)).overflowing_sub(bucket);
        let wrapped = difference.wrapping_add(u64::from(self.segment_buckets));
        // A branch would be mispredicted half of the time.
        base.wrapping_add(select_unpredictable(borrow, wrapped, difference))
    }

    /// The name of an entry: its smaller base bucket, its core, and the first `length` bits of its
    /// string, the first one lowest. The names of a segment are in a row.
    ///
    /// ```text
    ///     | base, as many bits as N has | core : 6 | string : length | 1 | zeros |
    /// ```
    pub(crate) fn name(&self, base: u64, core: u64, string: u64, length: u32) -> u64 {
        let bits = (base << CORE_BITS | core) << length | string & !(u64::MAX << length);
        (2 * bits + 1) << (self.end_of_names + self.fraction_bits - length)
    }

    /// The base, the core, the string and its length, of which this is the [name](Self::name), if
    /// it is one.
    pub(crate) fn named(&self, name: u64) -> Option<(u64, u64, u64, u32)> {
        let end = name.trailing_zeros();
        let is_long_enough = end <= self.end_of_names + self.fraction_bits;
        let parts @ (base, core, ..) = self.parts_of_name(name);
        (is_long_enough && core > 0 && base < self.buckets).then_some(parts)
    }

    /// [`named`](Self::named) for the name of an entry, and anything for another number.
    fn parts_of_name(&self, name: u64) -> (u64, u64, u64, u32) {
        let end = name.trailing_zeros().min(63);
        let length = (self.end_of_names + self.fraction_bits).saturating_sub(end);
        let (string, rest) = (name >> end >> 1, name >> end >> 1 >> length);
        let (base, core) = (rest >> CORE_BITS, rest & !(u64::MAX << CORE_BITS));
        (base, core, string & !(u64::MAX << length), length)
    }

    /// Where an entry comes in a [run](crate::state::runs): its name with the bits of the string in
    /// reverse, the first one highest. So a string comes between its continuations with a 0 and
    /// those with a 1. `marked` is the string with a one above its last bit.
    #[inline(always)]
    pub(crate) fn order(&self, base: u64, core: u64, marked: u64) -> u64 {
        let end = self.end_of_names + self.fraction_bits;
        (base << CORE_BITS | core) << (end + 1) | marked.reverse_bits() >> (u64::BITS - 1 - end)
    }

    /// The base, the core, the string and its length, of which this is the [order](Self::order).
    pub(crate) fn ordered(&self, order: u64) -> (u64, u64, u64, u32) {
        let (base, core, string, length) = self.parts_of_name(order);
        (base, core, reversed(string, length), length)
    }

    /// The base bucket of an order.
    pub(crate) fn base_of(&self, order: u64) -> u64 {
        order >> (u64::BITS - self.bits_of_bases())
    }

    /// The least number that is above the names of all entries with a smaller base bucket.
    pub(crate) fn first_name(&self, base: u64) -> u64 {
        base << (u64::BITS - self.bits_of_bases())
    }

    /// The name in the whole table of an entry that has this one in a table like a segment.
    pub(crate) fn name_in_whole(&self, segment: u64, name: u64) -> u64 {
        let bits = u32::BITS - self.segment_buckets.leading_zeros();
        let first = segment * u64::from(self.segment_buckets);
        let base = first + (name >> (u64::BITS - bits));
        self.first_name(base) | name << bits >> self.bits_of_bases()
    }

    /// The zeros at the end of the names in a table of one size.
    pub(crate) fn end_of_names(&self) -> u32 {
        self.end_of_names
    }

    fn bits_of_bases(&self) -> u32 {
        u64::BITS - self.buckets.leading_zeros()
    }

    /// The location of a fingerprint found in bucket `bucket` of the table, as its home.
    #[cfg(any(test, all(feature = "std", target_has_atomic = "64")))]
    pub(crate) fn location_of(&self, bucket: u64, fingerprint: u64) -> Location {
        let base = bucket - bucket % u64::from(self.segment_buckets);
        let alternate = self.alternate(base, bucket, fingerprint);
        Location { base, home: bucket, alternate, fingerprint }
    }
}

/// The first `length` bits of a string in reverse.
#[inline(always)]
fn reversed(string: u64, length: u32) -> u64 {
    string.reverse_bits().checked_shr(u64::BITS - length).unwrap_or(0)
}

/// The number of different entries, which are equally likely: buckets times fingerprints over two,
/// because an entry has two buckets.
pub(crate) fn possible_entries(fraction_bits: u32, buckets: u64) -> f64 {
    (CORES << fraction_bits) as f64 * buckets as f64 / 2.0
}

/// The low and the high half of `a * b`. `u64::carrying_mul` is stable since Rust 1.91, and the
/// library compiles with 1.89.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(crate) fn wide_product(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    (product as u64, (product >> u64::BITS) as u64)
}

/// The low 32 bits of a value that has no others.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "callers pass numbers of 32 bits")]
pub(crate) fn low_half(value: u64) -> u32 {
    debug_assert!(value <= u64::from(u32::MAX));
    value as u32
}

/// A 32-bit fraction scaled to `0..range`.
#[inline]
fn scale(fraction: u32, range: u32) -> u32 {
    low_half((u64::from(fraction) * u64::from(range)) >> 32)
}

/// The 32-bit finalizer of MurmurHash3: every output bit depends on every input bit.
fn mix(value: u32) -> u32 {
    let value = (value ^ (value >> 16)).wrapping_mul(0x85eb_ca6b);
    let value = (value ^ (value >> 13)).wrapping_mul(0xc2b2_ae35);
    value ^ (value >> 16)
}
