//! What a key is compared with. In a table of one size an entry matches the key whose fingerprint
//! it is; in a table that grows it matches the keys that it is a prefix of.

use wide::u64x2;

use super::slot_coding::Coding;
use super::swar::{Lanes, Opened, Pattern, Register, pair};
use crate::address::geometry::Locations;
use crate::mem::vector::Column;

/// How lanes are compared with a key.
pub(crate) trait Matching {
    /// Not 0 where a lane matches, whatever is above the lanes.
    fn any<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R;

    /// The tops of all lanes that match.
    fn tops<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R;

    /// What entries in the one and the other bucket of each place are compared with.
    fn keys(locations: &Locations) -> [&Column; 2];
}

/// The fingerprint in the lane is the key's.
pub(crate) struct Exact;

impl Matching for Exact {
    #[inline(always)]
    fn any<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R {
        lanes.any_zero(lanes.difference::<R, C>(word, pattern, lanes.fingerprints))
    }

    #[inline(always)]
    fn tops<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R {
        lanes.zero(lanes.difference::<R, C>(word, pattern, lanes.fingerprints))
    }

    /// A fingerprint is the same in both buckets.
    #[inline]
    fn keys(locations: &Locations) -> [&Column; 2] {
        [locations.fingerprints(); 2]
    }
}

/// The marked fingerprint in the lane stores the first bits of the key, which is compared as its
/// longest fingerprint.
pub(crate) struct Prefixed;

impl Matching for Prefixed {
    #[inline(always)]
    fn any<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R {
        lanes.prefix_matches::<R, C>(word, pattern)
    }

    #[inline(always)]
    fn tops<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R {
        lanes.prefix_tops::<R, C>(word, pattern)
    }

    #[inline]
    fn keys(locations: &Locations) -> [&Column; 2] {
        let [home, other] = locations.keys();
        [home, other]
    }
}

impl Lanes {
    /// Whether a lane of the first word matches the first key, or one of the second the second. The
    /// low four bits of both keys are the same. No branch on the data: both words at once in the
    /// vector unit.
    #[inline(always)]
    pub(crate) fn pair_matches<M: Matching, C: Coding>(
        &self,
        words: [Opened<u64>; 2],
        keys: [u64; 2],
    ) -> bool {
        let patterns = [self.pattern::<C>(keys[0]), self.pattern::<C>(keys[1])];
        let pattern = Pattern {
            lanes: u64x2::new([patterns[0].lanes, patterns[1].lanes]),
            nibbles: u64x2::new([patterns[0].nibbles; 2]),
        };
        let [one, other] = M::any::<u64x2, C>(self, pair(words), pattern).to_array();
        (one | other) != 0
    }

    /// The same as 1 or 0, by arithmetic alone, for vector code.
    #[inline(always)]
    pub(super) fn match_byte<M: Matching, C: Coding>(
        &self,
        [one, other]: [Opened<u64>; 2],
        keys: [u64; 2],
    ) -> u8 {
        let any = |word, key| M::any::<u64, C>(self, word, self.pattern::<C>(key));
        let matches = any(one, keys[0]) | any(other, keys[1]);
        ((matches | matches.wrapping_neg()) >> 63) as u8
    }

    /// Bit i: whether lane i of a word matches the key.
    #[inline]
    pub(super) fn matching_bits<M: Matching, C: Coding>(
        &self,
        word: Opened<u64>,
        key: u64,
        count: u32,
    ) -> u32 {
        self.bits(M::tops::<u64, C>(self, word, self.pattern::<C>(key)), count)
    }

    /// Bit i: whether lane i, of so many, passed.
    #[inline]
    pub(super) fn bits(&self, tops: u64, count: u32) -> u32 {
        (0..count).map(|i| u32::from(self.lane(tops, i) != 0) << i).sum()
    }
}
