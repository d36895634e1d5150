//! Hash to buckets: which two buckets a key may live in, and which fingerprint stands for it there.
//!
//! The 64-bit hash is read as a fraction in [0, 1) and taken apart digit by digit, each digit the high half of a product whose low
//! half is the fraction that remains. The digits of a uniform hash are therefore independent:
//!
//! ```text
//!     hash * buckets        ->  bucket = segment * M + local      any number of buckets, no modulus
//!     rest * 63             ->  core   = 1 ..= 63                  never 0, so 0 can mean "empty slot"
//!     rest (from its top)   ->  fraction, r bits                   further bits wait there for growth
//!
//!     fingerprint = core << r | fraction                           6 + r bits
//!     alternate   = (S(core) - local) mod M, same segment          its own inverse
//! ```
//!
//! * There are 2^k segments of M buckets, M any number. The two buckets of a key are in one segment of about 2 MiB, so that they
//!   share a huge page, and so that a bulk build can work on one segment at a time. With a power of two of segments the bucket's segment is the top k
//!   bits of the hash.
//! * The alternate depends on the core alone. When a filter grows, fractions lose bits and cores do not, so no address changes.
//! * S mixes its argument over the whole segment: 63 offsets in arithmetic progression would keep eviction paths in a small
//!   neighbourhood (docs/decisions/0001-addressing.md has the figures).
//! * Every product with fewer than 2^32 buckets splits into 32x32-bit products, so that vector code can repeat it bit for bit.
//!
//! A bias of at most 2^-8 per digit is guaranteed by [`HASH_BITS`]. When both buckets are the same one, the pair counts as a single bucket.

/// Bits of the fingerprint that choose the alternate bucket.
pub(crate) const CORE_BITS: u32 = 6;
/// Values of the core: 1 to 63.
pub(crate) const CORES: u64 = (1 << CORE_BITS) - 1;
/// What bucket number and fingerprint may use of a 64-bit hash: the other 8 bits keep the digits uniform.
pub(crate) const HASH_BITS: u32 = 56;

/// The shape of a table: how a hash falls apart into buckets and fingerprint.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Geometry {
    segment_bits: u32,
    segment_buckets: u32,
    fingerprint_bits: u32,
    /// S(core) for each core, index 0 unused.
    reflections: [u32; 1 << CORE_BITS],
}

/// Where one key may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The first bucket of the segment.
    pub(crate) base: u64,
    /// The home bucket, within the segment.
    pub(crate) home: u32,
    /// The other bucket, within the segment; may be the home bucket again.
    pub(crate) alternate: u32,
    /// What stands for the key in either bucket; never 0.
    pub(crate) fingerprint: u64,
}

impl Place {
    /// Both buckets, by their number in the table.
    #[inline]
    pub(crate) fn buckets(&self) -> (u64, u64) {
        (self.base + u64::from(self.home), self.base + u64::from(self.alternate))
    }
}

impl Geometry {
    /// `1 << segment_bits` segments of `segment_buckets` buckets each.
    ///
    /// The caller has checked that `segment_buckets > 0`, that `fingerprint_bits > CORE_BITS`, and that bucket number and fingerprint fit
    /// in [`HASH_BITS`].
    pub(crate) fn new(segment_bits: u32, segment_buckets: u32, fingerprint_bits: u32) -> Self {
        let mut reflections = [0; 1 << CORE_BITS];
        for (core, reflection) in (0..).zip(&mut reflections) {
            *reflection = scale(mix(core), segment_buckets);
        }
        Self { segment_bits, segment_buckets, fingerprint_bits, reflections }
    }

    pub(crate) fn segment_bits(&self) -> u32 {
        self.segment_bits
    }

    pub(crate) fn segment_buckets(&self) -> u32 {
        self.segment_buckets
    }

    pub(crate) fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Buckets of the whole table.
    #[inline]
    pub(crate) fn buckets(&self) -> u64 {
        u64::from(self.segment_buckets) << self.segment_bits
    }

    /// Fingerprints that a key may have, each as likely as any other.
    pub(crate) fn fingerprints(&self) -> u64 {
        CORES << self.fraction_bits()
    }

    #[inline]
    fn fraction_bits(&self) -> u32 {
        self.fingerprint_bits - CORE_BITS
    }

    /// Where a key with this hash may live.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> Place {
        let (rest, bucket) = hash.carrying_mul(self.buckets(), 0);
        let (string, core) = rest.carrying_mul(CORES, 0);
        let fraction = string >> (u64::BITS - self.fraction_bits());
        let fingerprint = ((core + 1) << self.fraction_bits()) | fraction;
        // Two shifts, because a table of one segment would shift by all 64 bits.
        let segment = (hash >> 1) >> (63 - self.segment_bits);
        let base = segment * u64::from(self.segment_buckets);
        let home = low_half(bucket - base);
        Place { base, home, alternate: self.alternate(home, fingerprint), fingerprint }
    }

    /// The other bucket of a fingerprint that lies in bucket `local` of a segment: an involution.
    #[inline]
    pub(crate) fn alternate(&self, local: u32, fingerprint: u64) -> u32 {
        let core = low_half(fingerprint >> self.fraction_bits());
        let reflection = self.reflections[core as usize % self.reflections.len()];
        let (difference, borrow) = reflection.overflowing_sub(local);
        if borrow { difference.wrapping_add(self.segment_buckets) } else { difference }
    }

    /// The place of a fingerprint found in bucket `bucket` of the table.
    pub(crate) fn place_of(&self, bucket: u64, fingerprint: u64) -> Place {
        let home = low_half(bucket % u64::from(self.segment_buckets));
        let base = bucket - u64::from(home);
        Place { base, home, alternate: self.alternate(home, fingerprint), fingerprint }
    }
}

/// The low 32 bits, for values that are known to have no others.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "callers pass numbers within a segment")]
fn low_half(value: u64) -> u32 {
    debug_assert!(value <= u64::from(u32::MAX));
    value as u32
}

/// A 32-bit fraction scaled to `0..range`.
#[inline]
fn scale(fraction: u32, range: u32) -> u32 {
    low_half((u64::from(fraction) * u64::from(range)) >> 32)
}

/// The 32-bit finaliser of MurmurHash3: every output bit depends on every input bit.
fn mix(value: u32) -> u32 {
    let value = (value ^ (value >> 16)).wrapping_mul(0x85eb_ca6b);
    let value = (value ^ (value >> 13)).wrapping_mul(0xc2b2_ae35);
    value ^ (value >> 16)
}
