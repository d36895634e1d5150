//! Hash to buckets: which two buckets a key may live in, and which fingerprint stands for it there.
//!
//! The 64-bit hash is read as a fraction in [0, 1) and taken apart digit by digit, each digit the
//! high half of a product whose low half is the fraction that remains. The digits of a uniform hash
//! are therefore independent:
//!
//! ```text
//!     hash * buckets      ->  bucket = segment * M + local   any number of buckets, no modulus
//!     rest * 63           ->  core   = 1 ..= 63              never 0: 0 means "empty slot"
//!     rest (its top)      ->  fraction, r bits               further bits wait there for growth
//!
//!     fingerprint = core << r | fraction                     6 + r bits
//!     alternate   = (S(core) - local) mod M, same segment    its own inverse
//! ```
//!
//! * There are 2^k segments of M buckets, M any number. The two buckets of a key are in one segment
//!   of about 2 MiB, so that they share a huge page, and so that a bulk build can work on one
//!   segment at a time. With a power of two of segments the bucket's segment is the top k bits of
//!   the hash.
//! * The alternate depends on the core alone. When a filter grows, fractions lose bits and cores do
//!   not, so no address changes.
//! * S mixes its argument over the whole segment: 63 offsets in arithmetic progression would keep
//!   eviction paths in a small neighbourhood (docs/decisions/0001-addressing.md has the figures).
//! * Every product with fewer than 2^32 buckets splits into 32x32-bit products, so that vector code
//!   can repeat it bit for bit.
//!
//! A bias of at most 2^-8 per digit is guaranteed by [`HASH_BITS`]. When both buckets are the same
//! one, the pair counts as a single bucket.

mod many;

use core::hint::select_unpredictable;

pub(crate) use many::{Locations, product};

use crate::address::wide_product::wide_product;

/// Bits of the fingerprint that choose the alternate bucket.
pub(crate) const CORE_BITS: u32 = 6;
/// Values of the core: 1 to 63.
pub(crate) const CORES: u64 = (1 << CORE_BITS) - 1;
/// Values of so many bits.
const CORE_VALUES: usize = 1 << CORE_BITS;
/// What bucket number and fingerprint may use of a 64-bit hash: the other 8 bits keep the digits
/// uniform.
pub(crate) const HASH_BITS: u32 = 56;

/// The shape of a table: how a hash falls apart into buckets and fingerprint.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Geometry {
    buckets: u64,
    segment_bits: u32,
    segment_buckets: u32,
    fraction_bits: u32,
    /// The bits of a hash that are its segment: the top ones.
    segments: u64,
    /// How many fingerprints there are, `CORES << fraction_bits`, and the least of them.
    fingerprints: u64,
    least_fingerprint: u64,
    /// S(core) for each core; index 0 is unused, and the last one there for an index to be known to
    /// be in bounds.
    reflections: [u32; CORE_VALUES + 1],
}

/// Where one key may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The first bucket of the segment.
    pub(crate) base: u64,
    /// The home bucket, by its number in the table.
    pub(crate) home: u64,
    /// The other bucket, by its number in the table; may be the home bucket again.
    pub(crate) alternate: u64,
    /// What stands for the key in either bucket; never 0.
    pub(crate) fingerprint: u64,
}

impl Location {
    /// Both buckets, by their number in the table.
    #[inline]
    pub(crate) fn buckets(&self) -> (u64, u64) {
        (self.home, self.alternate)
    }

    /// What names the entry, whichever of its buckets is home:
    /// `smaller bucket << fingerprint bits | fingerprint`.
    pub(crate) fn identity(&self, fingerprint_bits: u32) -> u64 {
        let (home, alternate) = self.buckets();
        home.min(alternate) << fingerprint_bits | self.fingerprint
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
        Self {
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

    /// Where a key with this hash may live.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> Location {
        // One segment starts at bucket 0, and a table of up to 2 MiB has no other: the first bucket
        // worked out all the same would be up to a fifth of a lookup. Nothing after this branch,
        // which is always taken alike, is common to both: a base that may be 0 costs as much as one
        // that is not.
        if self.is_one_segment() {
            self.located(0, hash)
        } else {
            self.located(self.segment_start(hash), hash)
        }
    }

    /// Whether the table is one segment.
    #[inline]
    pub(crate) fn is_one_segment(&self) -> bool {
        self.segments == 0
    }

    /// The same where the segment is known to start at bucket `base`.
    #[inline]
    fn located(&self, base: u64, hash: u64) -> Location {
        let (home, rest) = self.home_and_rest(hash);
        // Not by way of the fingerprint: what is one step later there is one step later for the
        // bucket.
        let reflection =
            self.reflections[1 + low_half(rest >> self.fraction_bits) as usize % CORE_VALUES];
        let alternate = self.reflected_by(reflection, base, home);
        Location { base, home, alternate, fingerprint: rest + self.least_fingerprint }
    }

    /// The first bucket of the segment that a hash is in.
    #[inline]
    pub(crate) fn segment_start(&self, hash: u64) -> u64 {
        // The home bucket of the least hash of the segment. A product takes fewer steps than two
        // shifts by numbers read from memory.
        wide_product(hash & self.segments, self.buckets).1
    }

    /// The home bucket by its number in the table, and `core - 1` with the fraction below it.
    #[inline]
    pub(crate) fn home_and_rest(&self, hash: u64) -> (u64, u64) {
        let (rest, home) = wide_product(hash, self.buckets);
        // Core and fraction at once: the digits of `rest * CORES` after r bits of its fraction.
        let (_, rest) = wide_product(rest, self.fingerprints);
        (home, rest)
    }

    /// The number of the segment that a hash is in.
    #[inline]
    pub(crate) fn segment(&self, hash: u64) -> u64 {
        // Two shifts, because a table of one segment would shift by all 64 bits.
        (hash >> 1) >> (63 - self.segment_bits)
    }

    /// The number of a bucket of a segment where those of all segments are counted in turn, as
    /// cards are dealt: bucket 0 of each, then bucket 1 of each.
    #[inline]
    pub(crate) fn interleave(&self, segment: u64, local: u64) -> u64 {
        local << self.segment_bits | segment
    }

    /// The bucket with this number in turn.
    pub(crate) fn bucket_at(&self, dealt: u64) -> u64 {
        let (segment, local) = self.deinterleave(dealt);
        segment * u64::from(self.segment_buckets) + local
    }

    /// Segment, and number in it, of the bucket with this number in turn.
    #[inline]
    pub(crate) fn deinterleave(&self, dealt: u64) -> (u64, u64) {
        (dealt & !(u64::MAX << self.segment_bits), dealt >> self.segment_bits)
    }

    /// Whether every product of a place fits into 32 x 32 bits.
    fn is_narrow(&self) -> bool {
        self.buckets.max(self.fingerprints) <= u64::from(u32::MAX)
    }

    /// The other bucket of a fingerprint that lies in `bucket`, of the segment that starts at
    /// `base`: an involution. What the slot has above the fingerprint is of no account.
    #[inline]
    pub(crate) fn alternate(&self, base: u64, bucket: u64, slot: u64) -> u64 {
        self.reflected(base, bucket, slot >> self.fraction_bits)
    }

    /// The same for the core of a fingerprint, and whatever is above it.
    #[inline]
    pub(crate) fn reflected(&self, base: u64, bucket: u64, core: u64) -> u64 {
        let core = low_half(core % CORE_VALUES as u64);
        self.reflected_by(self.reflections[core as usize], base, bucket)
    }

    #[inline]
    fn reflected_by(&self, reflection: u32, base: u64, bucket: u64) -> u64 {
        let (difference, borrow) = (base + u64::from(reflection)).overflowing_sub(bucket);
        let wrapped = difference.wrapping_add(u64::from(self.segment_buckets));
        // Drawn by lot: a branch would be taken wrongly half of the time.
        base.wrapping_add(select_unpredictable(borrow, wrapped, difference))
    }

    /// The place of a fingerprint found in bucket `bucket` of the table.
    pub(crate) fn location_of(&self, bucket: u64, fingerprint: u64) -> Location {
        let base = bucket - bucket % u64::from(self.segment_buckets);
        let alternate = self.alternate(base, bucket, fingerprint);
        Location { base, home: bucket, alternate, fingerprint }
    }
}

/// The low 32 bits, for values that are known to have no others.
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

/// The 32-bit finaliser of MurmurHash3: every output bit depends on every input bit.
fn mix(value: u32) -> u32 {
    let value = (value ^ (value >> 16)).wrapping_mul(0x85eb_ca6b);
    let value = (value ^ (value >> 13)).wrapping_mul(0xc2b2_ae35);
    value ^ (value >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use testkit::keys::splitmix64 as hash;

    /// How far `counts` are from equal: chi-square, in standard deviations from its mean.
    fn chi_square_sigmas(counts: &[u64]) -> f64 {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let distance = |&count: &u64| (count as f64 - expected).powi(2) / expected;
        let degrees = (counts.len() - 1) as f64;
        (counts.iter().map(distance).sum::<f64>() - degrees) / (2.0 * degrees).sqrt()
    }

    #[test]
    fn the_alternate_of_the_alternate_is_home_in_segments_of_every_size_up_to_5000() {
        for buckets in 1..=5000 {
            let geometry = Geometry::new(1, buckets, 8);
            let base = u64::from(buckets);
            for fingerprint in (1..=CORES).map(|core| core << 2) {
                for bucket in base..2 * base {
                    let other = geometry.alternate(base, bucket, fingerprint);
                    assert!((base..2 * base).contains(&other));
                    assert_eq!(geometry.alternate(base, other, fingerprint), bucket);
                }
            }
        }
    }

    #[test]
    fn the_alternate_is_an_involution_in_large_segments_and_ignores_the_fraction() {
        for i in 0..1_000_000 {
            let buckets = low_half(hash(i) >> 32).max(1);
            let fingerprint_bits = 8 + low_half(hash(i) % 25);
            let geometry = Geometry::new(0, buckets, fingerprint_bits);
            let local = hash(!i) % u64::from(buckets);
            let core = 1 + hash(i + 7) % CORES;
            let fingerprint = core << (fingerprint_bits - CORE_BITS);
            let other = geometry.alternate(0, local, fingerprint);
            assert!(other < u64::from(buckets));
            assert_eq!(geometry.alternate(0, other, fingerprint | 3), local);
        }
    }

    #[test]
    fn an_entry_found_in_either_bucket_leads_back_to_the_same_pair() {
        let geometry = Geometry::new(3, 1234, 13);
        for i in 0..100_000 {
            let location = geometry.locate(hash(i));
            let (home, alternate) = location.buckets();
            assert_eq!(geometry.location_of(home, location.fingerprint), location);
            let back = geometry.location_of(alternate, location.fingerprint);
            assert_eq!(back.buckets(), (alternate, home));
            assert!(home < geometry.buckets() && alternate < geometry.buckets());
        }
    }

    #[test]
    fn buckets_counted_in_turn_are_one_of_each_segment_after_the_other() {
        for (segment_bits, segment_buckets) in [(0, 7), (1, 1), (3, 5), (5, 77)] {
            let geometry = Geometry::new(segment_bits, segment_buckets, 13);
            let mut buckets: Vec<_> = (0..geometry.buckets()).collect();
            buckets.sort_by_key(|&bucket| bucket % u64::from(segment_buckets));
            for (dealt, bucket) in (0..).zip(buckets) {
                let (segment, local) = geometry.deinterleave(dealt);
                assert_eq!(geometry.interleave(segment, local), dealt);
                assert_eq!(geometry.bucket_at(dealt), bucket);
            }
        }
        let geometry = Geometry::new(3, 1234, 13);
        for hash in (0..10_000).map(hash) {
            let Location { base, home, .. } = geometry.locate(hash);
            let turn = geometry.interleave(geometry.segment(hash), home - base);
            assert_eq!(geometry.bucket_at(turn), home);
        }
    }

    #[test]
    fn the_digits_are_uniform_and_independent() {
        const KEYS: u64 = 8_000_000;
        let (buckets, fraction_bits) = (100_u32, 4);
        let geometry = Geometry::new(2, buckets, CORE_BITS + fraction_bits);
        let fingerprints = usize::try_from(CORES << fraction_bits).unwrap();
        let mut joint = alloc::vec![0; 4 * buckets as usize * fingerprints];
        let mut by_bucket = [0; 400];
        let mut by_fingerprint = alloc::vec![0; fingerprints];
        for i in 0..KEYS {
            let location = geometry.locate(hash(i));
            let bucket = usize::try_from(location.buckets().0).unwrap();
            let fingerprint = usize::try_from(location.fingerprint).unwrap() - (1 << fraction_bits);
            by_bucket[bucket] += 1;
            by_fingerprint[fingerprint] += 1;
            joint[bucket * fingerprints + fingerprint] += 1;
        }
        for counts in [&by_bucket[..], &by_fingerprint, &joint] {
            let sigmas = chi_square_sigmas(counts);
            assert!(sigmas.abs() < 5.0, "{} cells, {sigmas} sigmas", counts.len());
        }
    }

    #[test]
    fn the_top_bits_of_the_hash_are_the_segment() {
        let geometry = Geometry::new(5, 77, 12);
        for i in 0..10_000 {
            assert_eq!(geometry.locate(hash(i)).base, (hash(i) >> 59) * 77);
        }
    }

    /// The digits once more, the way a vector unit computes them: no product wider than 32 x 32
    /// bits.
    #[test]
    fn products_of_32_by_32_bits_give_the_same_addresses() {
        fn digit(fraction: u64, range: u64) -> (u64, u64) {
            let low = (fraction & 0xffff_ffff) * range;
            let high = (fraction >> 32) * range + (low >> 32);
            (high >> 32, (high << 32) | (low & 0xffff_ffff))
        }
        for i in 0..1_000_000 {
            let segment_bits = low_half(hash(i) % 8);
            let segment_buckets = low_half(hash(i) >> 40).max(1);
            let geometry = Geometry::new(segment_bits, segment_buckets, 17);
            let (bucket, rest) = digit(hash(!i), geometry.buckets());
            let (core, string) = digit(rest, CORES);
            let location = geometry.locate(hash(!i));
            assert_eq!(location.buckets().0, bucket);
            assert_eq!(location.fingerprint, ((core + 1) << 11) | (string >> 53));
        }
    }

    #[test]
    fn the_places_of_the_format_page_are_those_of_the_code() {
        let page = include_str!("../../../../../docs/FORMAT.md");
        let table = page.lines().skip_while(|line| !line.starts_with("| k | M"));
        let rows: Vec<_> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 15);
        for row in rows {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [k, m, f] = [0, 1, 2].map(|cell| cells[cell].parse().unwrap());
            let hex = |cell: usize| u64::from_str_radix(cells[cell], 16).unwrap();
            let location = Geometry::new(k, m, f).locate(hex(3));
            let (home, other) = location.buckets();
            assert_eq!([home, other], [4, 5].map(|cell| cells[cell].parse().unwrap()), "{row}");
            assert_eq!(location.fingerprint, hex(6), "{row}");
        }
    }
}
