//! Fingerprints that say how much of them is known: those of a table that has grown.
//!
//! ```text
//!     | core, high 2 bits | 0 ... 0 1 | known bits of the string | core, low 4 bits |
//!                         '--- at most all but one bit known ----'
//! ```
//!
//! When a bucket splits, the first bit that its entries know beyond its number says to which half
//! each goes, and is then part of the number: the entry forgets it. So entries of one bucket know
//! more or fewer bits, the older the fewer. A one above the known bits marks where they end. The
//! first bit of the string is the lowest one, so that forgetting is a shift. An entry matches a key
//! when the bits that it knows are the key's; one that knows none is *void*, and matches every key
//! of its bucket and core.
//!
//! The low half of the core is in the low four bits because a semi-sorted bucket keeps those apart,
//! where prefixes could not be compared.

use super::semisort::LOW_BITS as LOW_CORE;
use crate::address::geometry::CORE_BITS;

/// The bits of the core below the known bits.
const LOW_CORE_MASK: u64 = (1 << LOW_CORE) - 1;

/// How marked fingerprints of a width are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    /// The most bits of a string that a fingerprint can know.
    most: u32,
    /// These bits, in their place.
    known: u64,
    /// The mark of a fingerprint that knows so many.
    mark: u64,
}

impl Marked {
    /// Bits of a fingerprint that no bit of the string can have: those of the core, and the mark.
    pub(crate) const OVERHEAD: u32 = CORE_BITS + 1;

    pub(crate) const fn new(fingerprint_bits: u32) -> Self {
        let most = fingerprint_bits - Self::OVERHEAD;
        let mark = 1 << (most + LOW_CORE);
        Self { most, known: mark - (1 << LOW_CORE), mark }
    }

    /// The most bits of a string that a fingerprint can know.
    #[inline]
    pub(crate) fn most(self) -> u32 {
        self.most
    }

    /// The fingerprint that knows the first `known` bits of `string`, at most [`most`](Self::most).
    #[inline(always)]
    pub(crate) fn fingerprint(self, core: u64, string: u64, known: u32) -> u64 {
        let bits = 1 << known | string & !(u64::MAX << known);
        self.around(core) | bits << LOW_CORE
    }

    /// The fingerprint that knows as much of `string` as there is room for.
    #[inline(always)]
    pub(crate) fn longest(self, core: u64, string: u64) -> u64 {
        self.around(core) | self.mark | string << LOW_CORE & self.known
    }

    /// The fingerprint that knows what one without a mark does: `bits` bits below its core.
    pub(super) fn of_unmarked(self, fingerprint: u64, bits: u32) -> u64 {
        self.fingerprint(fingerprint >> bits, fingerprint, bits)
    }

    /// The fingerprint without a mark that knows the first `bits` bits of one that knows no fewer.
    pub(super) fn unmarked(self, fingerprint: u64, bits: u32) -> u64 {
        let (string, known) = self.known(fingerprint);
        debug_assert!(known >= bits, "a slot without a mark cannot say that it knows less");
        self.core(fingerprint) << bits | string & !(u64::MAX << bits)
    }

    /// The core of a fingerprint that knows nothing yet.
    #[inline(always)]
    fn around(self, core: u64) -> u64 {
        (core >> LOW_CORE) << (self.most + 1 + LOW_CORE) | core & LOW_CORE_MASK
    }

    /// The core of a fingerprint.
    #[inline]
    pub(crate) fn core(self, fingerprint: u64) -> u64 {
        fingerprint >> (self.most + 1 + LOW_CORE) << LOW_CORE | fingerprint & LOW_CORE_MASK
    }

    /// The known bits, with the mark above them.
    #[inline]
    fn field(self, fingerprint: u64) -> u64 {
        fingerprint >> LOW_CORE & !(u64::MAX << (self.most + 1))
    }

    /// The known bits, and how many they are. 0 bits of something that is no fingerprint.
    #[inline]
    pub(crate) fn known(self, fingerprint: u64) -> (u64, u32) {
        let field = self.field(fingerprint);
        let count = 63 - (field | 1).leading_zeros();
        (field & !(u64::MAX << count), count)
    }

    /// The first known bit, or the mark of a fingerprint that knows none.
    #[inline]
    pub(crate) fn first(self, fingerprint: u64) -> u64 {
        fingerprint >> LOW_CORE & 1
    }

    /// Whether a fingerprint knows no bit.
    #[inline]
    pub(crate) fn is_void(self, fingerprint: u64) -> bool {
        fingerprint & (self.mark | self.known) == 1 << LOW_CORE
    }

    /// Whether a slot that is not empty could hold this: there is a core and a mark.
    pub(crate) fn is_sound(self, fingerprint: u64) -> bool {
        self.core(fingerprint) != 0 && self.field(fingerprint) != 0
    }

    /// The highest bit of the core, the lowest one of its high part, and the lowest of the known
    /// bits.
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
    fn a_fingerprint_gives_back_what_it_was_made_of() {
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
    fn without_core_or_mark_there_is_no_fingerprint() {
        let marked = Marked::new(13);
        assert!(!marked.is_sound(0) && !marked.is_sound(7) && !marked.is_sound(1 << 5));
    }
}
