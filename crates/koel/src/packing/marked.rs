//! Fingerprints of a growing table, which mark how many bits they store.
//!
//! ```text
//!     | core, high 2 bits | 0 ... 0 1 | stored bits of the string | core, low 4 bits |
//!                         '--- at most all but one bit stored ----'
//! ```
//!
//! When a bucket splits, the first stored bit of an entry says to which half it goes. From then on
//! the bit is part of the bucket's number, and the entry drops it. So entries of one bucket store
//! different numbers of bits, older ones fewer. The mark, a one above the stored bits, says where
//! they end. The first bit of the string is the lowest one, so an entry drops it by a shift. An
//! entry matches a key if the bits that it stores are the key's. An entry that stores none is
//! *void*: it matches every key of its bucket and core.
//!
//! The low half of the core is in the low four bits, because a semi-sorted bucket stores those
//! apart, where prefixes could not be compared.

use super::coding::LOW_BITS as LOW_CORE;
use crate::address::geometry::CORE_BITS;

/// The bits of the core below the stored bits.
const LOW_CORE_MASK: u64 = (1 << LOW_CORE) - 1;

/// Reads and writes marked fingerprints of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    /// The most bits of a string that a fingerprint can store.
    most: u32,
    /// A mask of these bits.
    known: u64,
    /// The mark of a fingerprint that stores that many.
    mark: u64,
}

impl Marked {
    /// Bits of a fingerprint that are not available to the string: the core and the mark.
    pub(crate) const OVERHEAD: u32 = CORE_BITS + 1;

    pub(crate) const fn new(fingerprint_bits: u32) -> Self {
        let most = fingerprint_bits - Self::OVERHEAD;
        let mark = 1 << (most + LOW_CORE);
        Self { most, known: mark - (1 << LOW_CORE), mark }
    }

    /// Stands in for marks in a table of one size, whose fingerprints have none and store so many
    /// bits: only [`most`](Self::most) and [`exist`](Self::exist) are of use.
    pub(crate) const fn none(most: u32) -> Self {
        Self { most, known: 0, mark: 0 }
    }

    /// Whether fingerprints have marks.
    #[inline(always)]
    pub(crate) fn exist(self) -> bool {
        self.mark != 0
    }

    /// The most bits of a string that a fingerprint can store.
    #[inline]
    pub(crate) fn most(self) -> u32 {
        self.most
    }

    /// The fingerprint that stores the first `known` bits of `string`; `known` is at most
    /// [`most`](Self::most).
    #[inline(always)]
    pub(crate) fn fingerprint(self, core: u64, string: u64, known: u32) -> u64 {
        let bits = 1 << known | string & !(u64::MAX << known);
        self.around(core) | bits << LOW_CORE
    }

    /// The fingerprint that stores as many bits of `string` as fit.
    #[inline(always)]
    pub(crate) fn longest(self, core: u64, string: u64) -> u64 {
        self.around(core) | self.mark | string << LOW_CORE & self.known
    }

    /// The fingerprint that stores the same `bits` bits below its core as one without a mark.
    pub(super) fn of_unmarked(self, fingerprint: u64, bits: u32) -> u64 {
        self.fingerprint(fingerprint >> bits, fingerprint, bits)
    }

    /// The fingerprint without a mark that stores the first `bits` bits of one with at least as
    /// many.
    pub(super) fn unmarked(self, fingerprint: u64, bits: u32) -> u64 {
        let (string, known) = self.known(fingerprint);
        debug_assert!(known >= bits, "a fingerprint without a mark cannot store fewer bits");
        self.core(fingerprint) << bits | string & !(u64::MAX << bits)
    }

    /// The core in a fingerprint whose other bits are 0.
    #[inline(always)]
    fn around(self, core: u64) -> u64 {
        (core >> LOW_CORE) << (self.most + 1 + LOW_CORE) | core & LOW_CORE_MASK
    }

    /// The core of a fingerprint.
    #[inline(always)]
    pub(crate) fn core(self, fingerprint: u64) -> u64 {
        fingerprint >> (self.most + 1 + LOW_CORE) << LOW_CORE | fingerprint & LOW_CORE_MASK
    }

    /// The stored bits, with the mark above them.
    #[inline(always)]
    pub(crate) fn field(self, fingerprint: u64) -> u64 {
        fingerprint >> LOW_CORE & !(u64::MAX << (self.most + 1))
    }

    /// The stored bits, and their number. 0 bits if this is not a fingerprint.
    #[inline]
    pub(crate) fn known(self, fingerprint: u64) -> (u64, u32) {
        let field = self.field(fingerprint);
        let count = 63 - (field | 1).leading_zeros();
        (field & !(u64::MAX << count), count)
    }

    /// The first stored bit, or the mark if none is stored.
    #[inline]
    pub(crate) fn first(self, fingerprint: u64) -> u64 {
        fingerprint >> LOW_CORE & 1
    }

    /// Whether a fingerprint stores no bit.
    #[inline]
    pub(crate) fn is_void(self, fingerprint: u64) -> bool {
        fingerprint & (self.mark | self.known) == 1 << LOW_CORE
    }

    /// Whether this can be a fingerprint: it has a core and a mark.
    pub(crate) fn is_sound(self, fingerprint: u64) -> bool {
        self.core(fingerprint) != 0 && self.field(fingerprint) != 0
    }

    /// The numbers of three bits: the highest of the core, the lowest of its high part, and the
    /// lowest stored one.
    pub(super) fn edges(self) -> [u32; 3] {
        let guard = self.most + 1 + LOW_CORE;
        [guard + 1, guard, LOW_CORE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::geometry::CORES;

    #[test]
    fn a_fingerprint_returns_its_parts() {
        for most in 1..=40 {
            let marked = Marked::new(most + Marked::OVERHEAD);
            for (core, known) in (1..=CORES).flat_map(|core| (0..=most).map(move |n| (core, n))) {
                let string = core.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
                let fingerprint = marked.fingerprint(core, string, known);
                assert!(
                    fingerprint >> (most + Marked::OVERHEAD) == 0 && marked.is_sound(fingerprint)
                );
                assert_eq!(marked.core(fingerprint), core);
                assert_eq!(marked.known(fingerprint), (string % (1 << known), known));
            }
        }
    }

    #[test]
    fn fingerprints_without_core_or_mark_are_invalid() {
        let marked = Marked::new(13);
        assert!(!marked.is_sound(0) && !marked.is_sound(7) && !marked.is_sound(1 << 5));
    }
}
