//! The locations of a block of addresses: the vector form of `locate`.
//!
//! It computes the digits of `Geometry::locate` in products of 32 x 32 bits and without branches,
//! so that the compiler turns eight addresses at a time into vector code (mem/vector.rs). A test
//! compares every instruction set with `locate`.

use super::{CORE_BITS, Geometry, Location};
use crate::mem::vector::{BLOCK, Column, InstructionSet};

/// The low half of a lane.
const LOW: u64 = 0xffff_ffff;

/// Locations in columns, for vector code.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Locations {
    address: Column,
    base: Column,
    home: Column,
    alternate: Column,
    fingerprint: Column,
    /// The bits of the table where the two buckets start, and the bytes that have these bits.
    bits: [Column; 2],
    bytes: [Column; 2],
    /// What the key's entry in each bucket has to match, in a growing table.
    keys: [Column; 2],
}

impl Locations {
    pub(crate) fn new() -> Self {
        let column = [0; BLOCK];
        Self {
            address: column,
            base: column,
            home: column,
            alternate: column,
            fingerprint: column,
            bits: [column; 2],
            bytes: [column; 2],
            keys: [column; 2],
        }
    }

    /// Both buckets of a location, by their number in the table.
    #[inline]
    pub(crate) fn buckets(&self, index: usize) -> (u64, u64) {
        (self.home[index], self.alternate[index])
    }

    /// The address of key `index`.
    #[inline]
    pub(crate) fn address(&self, index: usize) -> u64 {
        self.address[index]
    }

    /// The [name](Location::name) of a location's entry.
    #[inline]
    pub(crate) fn name(&self, index: usize, geometry: &Geometry) -> u64 {
        self.get(index).name(geometry)
    }

    /// The bits of the table where the two buckets of a location start.
    #[inline]
    pub(crate) fn bits(&self, index: usize) -> [u64; 2] {
        [self.bits[0][index], self.bits[1][index]]
    }

    /// The bytes of the table where the two buckets of each location start.
    #[inline]
    pub(crate) fn bytes(&self) -> &[Column; 2] {
        &self.bytes
    }

    /// The fingerprints.
    pub(crate) fn fingerprints(&self) -> &Column {
        &self.fingerprint
    }

    /// What the keys' entries in either bucket have to match, in a growing table.
    pub(crate) fn keys(&self) -> &[Column; 2] {
        &self.keys
    }

    /// Replaces each bucket by its present bucket in a growing table, and sets what the key's entry
    /// has to match there.
    ///
    /// `refine` computes both pairs from address, first bucket of the segment, both buckets and
    /// fingerprint. It does so in one call, because they share half of the work.
    #[inline(always)]
    pub(crate) fn refine(
        &mut self,
        bucket_bits: u64,
        refine: impl Fn(u64, u64, [u64; 2], u64) -> [(u64, u64); 2],
    ) {
        for i in 0..BLOCK {
            let buckets = [self.home[i], self.alternate[i]];
            let refined = refine(self.address[i], self.base[i], buckets, self.fingerprint[i]);
            [self.home[i], self.alternate[i]] = [refined[0].0, refined[1].0];
            for (number, (bucket, key)) in refined.into_iter().enumerate() {
                let bit = product(bucket, bucket_bits);
                self.keys[number][i] = key;
                self.bits[number][i] = bit;
                self.bytes[number][i] = bit / 8;
            }
        }
    }

    fn set(&mut self, index: usize, location: &Location, bucket_bits: u64) {
        (self.home[index], self.alternate[index]) = location.buckets();
        for (start, bucket) in [self.home[index], self.alternate[index]].into_iter().enumerate() {
            self.bits[start][index] = bucket * bucket_bits;
            self.bytes[start][index] = bucket * bucket_bits / 8;
        }
        self.base[index] = location.base;
        self.fingerprint[index] = location.fingerprint;
    }

    /// One location, as `locate` returns it.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Location {
        Location {
            base: self.base[index],
            home: self.home[index],
            alternate: self.alternate[index],
            fingerprint: self.fingerprint[index],
        }
    }
}

impl Geometry {
    /// Locates the addresses that `write` writes, as `locate` does, in a table whose buckets have
    /// `bucket_bits` bits.
    #[inline]
    pub(crate) fn locate_many(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        write: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        if self.is_narrow() && self.is_one_segment() {
            self.locate_narrow::<true>(set, bucket_bits, write, locations);
        } else if self.is_narrow() {
            self.locate_narrow::<false>(set, bucket_bits, write, locations);
        } else {
            write(&mut locations.address);
            for i in 0..BLOCK {
                locations.set(i, &self.locate(locations.address[i]), bucket_bits);
            }
        }
    }

    #[inline(always)]
    fn locate_narrow<const ONE: bool>(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        write: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        set.run(
            #[inline(always)]
            || {
                write(&mut locations.address);
                self.locate_addresses::<ONE>(bucket_bits, locations);
            },
        );
    }

    #[inline(always)]
    fn locate_addresses<const ONE: bool>(&self, bucket_bits: u64, locations: &mut Locations) {
        let (buckets, segment_buckets) = (self.buckets, u64::from(self.segment_buckets));
        let (segment_shift, fraction_bits) = (63 - self.segment_bits, self.fraction_bits);
        let (fingerprints, least_fingerprint) = (self.fingerprints, self.least_fingerprint);
        for i in 0..BLOCK {
            let address = locations.address[i];
            let (bucket, rest) = digit([address >> 32, address], buckets);
            let fingerprint = digit(rest, fingerprints).0 + least_fingerprint;
            let base =
                if ONE { 0 } else { product((address >> 1) >> segment_shift, segment_buckets) };
            let reflection = product(mix(fingerprint >> fraction_bits), segment_buckets) >> 32;
            let difference = reflection.wrapping_sub(bucket - base);
            // All ones if the difference is negative.
            let borrow = (difference >> 63).wrapping_neg();
            locations.base[i] = base;
            locations.home[i] = bucket;
            let alternate = base.wrapping_add(difference).wrapping_add(segment_buckets & borrow);
            locations.alternate[i] = alternate;
            let bits = [product(bucket, bucket_bits), product(alternate, bucket_bits)];
            (locations.bits[0][i], locations.bits[1][i]) = (bits[0], bits[1]);
            (locations.bytes[0][i], locations.bytes[1][i]) = (bits[0] / 8, bits[1] / 8);
            locations.fingerprint[i] = fingerprint;
        }
    }
}

/// The product of the low halves. The masks tell the compiler that the high halves do not count, so
/// that it uses the vector instruction for such a product.
#[inline]
pub(crate) const fn product(one: u64, other: u64) -> u64 {
    (one & LOW) * (other & LOW)
}

/// `fraction * range` for a range of 32 bits: the digit above the 64 bits, and the fraction that
/// remains. A fraction is two halves of 32 bits, the upper one first; bits above them do not count.
#[inline]
fn digit([upper, lower]: [u64; 2], range: u64) -> (u64, [u64; 2]) {
    let low = product(lower, range);
    let high = product(upper, range) + (low >> 32);
    (high >> 32, [high, low])
}

/// `mix` of `geometry/mod.rs` in a 64-bit lane. It omits the first shift, which changes nothing for
/// a core of 6 bits.
#[inline]
fn mix(core: u64) -> u64 {
    const { assert!(CORE_BITS <= 16) };
    let value = product(core, 0x85eb_ca6b) & LOW;
    let value = product(value ^ (value >> 13), 0xc2b2_ae35) & LOW;
    value ^ (value >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::vector::each_set;
    use testkit::keys::splitmix64 as hash;

    fn shapes() -> impl Iterator<Item = Geometry> {
        // The last one is too large for products of 32 x 32 bits.
        let sizes = [
            (0, 1),
            (0, 7),
            (0, 4_000_000_000),
            (1, 41),
            (5, 123_457),
            (12, 262_144),
            (8, 1 << 27),
        ];
        let fitting = sizes.into_iter().flat_map(|(bits, buckets)| {
            [8, 13, 18, 21].map(|fingerprint_bits| Geometry::new(bits, buckets, fingerprint_bits))
        });
        // Fingerprints that just fit into 32 bits, and some that do not.
        fitting.chain([32, 33, 40].map(|fingerprint_bits| Geometry::new(1, 41, fingerprint_bits)))
    }

    #[test]
    fn every_instruction_set_computes_the_locations_of_locate() {
        let address_of = |block: u64, i: usize| match i {
            0 => 0,
            1 => u64::MAX,
            _ => hash(block << 8 | i as u64),
        };
        each_set(|set| {
            for geometry in shapes() {
                let mut locations = Locations::new();
                for block in 0..200 {
                    let addresses = core::array::from_fn(|i| address_of(block, i));
                    geometry.locate_many(set, 36, |column| *column = addresses, &mut locations);
                    for i in 0..BLOCK {
                        let location = geometry.locate(address_of(block, i));
                        assert_eq!(
                            locations.get(i),
                            location,
                            "{set:?}, address {:x}",
                            address_of(block, i)
                        );
                        let (home, alternate) = location.buckets();
                        assert_eq!(locations.buckets(i), (home, alternate));
                        assert_eq!(locations.bits(i), [36 * home, 36 * alternate]);
                        let bytes = locations.bytes().map(|column| column[i]);
                        assert_eq!(bytes, [36 * home / 8, 36 * alternate / 8]);
                        assert_eq!(locations.fingerprints()[i], location.fingerprint);
                    }
                }
            }
        });
    }

    #[test]
    fn a_table_of_more_than_32_bits_of_buckets_or_fingerprints_is_not_narrow() {
        assert!(!Geometry::new(8, 1 << 27, 13).is_narrow());
        assert!(Geometry::new(0, 4_000_000_000, 13).is_narrow());
        assert!(Geometry::new(0, 41, 32).is_narrow());
        assert!(!Geometry::new(0, 41, 33).is_narrow());
    }
}
