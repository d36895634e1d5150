//! The places of a block of hashes at once: the vector form of `locate`.
//!
//! The same digits as in `geometry.rs`, written as products of 32 x 32 bits and without branches, so that the compiler turns eight
//! hashes at a time into vector code. `dispatch.rs` compiles the function for each instruction set and chooses one for each block; the portable form
//! is always there, and a test holds all of them to `locate`.

use super::{CORE_BITS, CORES, Geometry, Place};

/// Hashes of a block: enough to keep the memory busy, few enough to stay in registers and the first cache.
pub(crate) const BLOCK: usize = 64;

/// Places in columns, for vector code.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Places {
    base: [u64; BLOCK],
    home: [u64; BLOCK],
    alternate: [u64; BLOCK],
    fingerprint: [u64; BLOCK],
}

impl Places {
    pub(crate) fn new() -> Self {
        let column = [0; BLOCK];
        Self { base: column, home: column, alternate: column, fingerprint: column }
    }

    /// Both buckets of a place, by their number in the table.
    #[inline(always)]
    pub(crate) fn buckets(&self, index: usize) -> (u64, u64) {
        (self.home[index], self.alternate[index])
    }

    /// The fingerprint of a place.
    #[inline(always)]
    pub(crate) fn fingerprint(&self, index: usize) -> u64 {
        self.fingerprint[index]
    }

    fn set(&mut self, index: usize, place: &Place) {
        (self.home[index], self.alternate[index]) = place.buckets();
        self.base[index] = place.base;
        self.fingerprint[index] = place.fingerprint;
    }

    /// One place in the form of `locate`.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Place {
        let base = self.base[index];
        Place {
            base,
            home: super::low_half(self.home[index] - base),
            alternate: super::low_half(self.alternate[index] - base),
            fingerprint: self.fingerprint[index],
        }
    }
}

impl Geometry {
    /// The places of `hashes`, one by one.
    pub(super) fn locate_each(&self, hashes: &[u64; BLOCK], places: &mut Places) {
        for (i, &hash) in hashes.iter().enumerate() {
            places.set(i, &self.locate(hash));
        }
    }

    /// The places of `hashes`, as `locate` gives them, for a geometry that is narrow.
    #[inline(always)]
    pub(super) fn locate_narrow(&self, hashes: &[u64; BLOCK], places: &mut Places) {
        let (buckets, segment_buckets) = (self.buckets(), u64::from(self.segment_buckets));
        let (segment_shift, fraction_bits) = (63 - self.segment_bits, self.fraction_bits());
        for (i, &hash) in hashes.iter().enumerate() {
            let (bucket, rest) = digit(hash, buckets);
            let (core, string) = digit(rest, CORES);
            let fraction = string >> (u64::BITS - fraction_bits);
            let base = ((hash >> 1) >> segment_shift) * segment_buckets;
            let reflection = (mix(core + 1) * segment_buckets) >> 32;
            let difference = reflection.wrapping_sub(bucket - base);
            // All ones where the difference is negative.
            let borrow = (difference >> 63).wrapping_neg();
            places.base[i] = base;
            places.home[i] = bucket;
            places.alternate[i] =
                base.wrapping_add(difference).wrapping_add(segment_buckets & borrow);
            places.fingerprint[i] = ((core + 1) << fraction_bits) | fraction;
        }
    }
}

/// `fraction * range`, high and low half, for a range of 32 bits.
#[inline(always)]
fn digit(fraction: u64, range: u64) -> (u64, u64) {
    let low = (fraction & 0xffff_ffff) * range;
    let high = (fraction >> 32) * range + (low >> 32);
    (high >> 32, (high << 32) | (low & 0xffff_ffff))
}

/// `mix` of `geometry.rs` in a 64-bit lane: the core has 6 bits, so the first shift has nothing to do.
#[inline(always)]
fn mix(core: u64) -> u64 {
    const { assert!(CORE_BITS <= 16) };
    let value = (core * 0x85eb_ca6b) & 0xffff_ffff;
    let value = ((value ^ (value >> 13)) * 0xc2b2_ae35) & 0xffff_ffff;
    value ^ (value >> 16)
}
