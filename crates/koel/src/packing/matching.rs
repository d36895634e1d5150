//! The two ways to compare an entry with a key. In a table of one size, an entry matches the key
//! whose fingerprint it is. In a table that grows, it matches the keys that it is a prefix of.

use wide::u64x2;

use super::register::{Opened, Pattern, Register, pair};
use super::slot_coding::Coding;
use super::swar::Lanes;
use crate::address::geometry::Locations;
use crate::mem::vector::Column;

/// How lanes are compared with a key.
pub(crate) trait Matching {
    /// Not 0 if a lane matches.
    fn any<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R;

    /// The tops of all lanes that match.
    fn tops<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R;

    /// The keys of a block of locations: those to compare with the first bucket of each, and those
    /// for the second.
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

    /// Both buckets store the same fingerprint.
    #[inline]
    fn keys(locations: &Locations) -> [&Column; 2] {
        [locations.fingerprints(); 2]
    }
}

/// The marked fingerprint in the lane stores the first bits of the key. The key is given as its
/// longest fingerprint.
pub(crate) struct Prefixed;

impl Matching for Prefixed {
    #[inline(always)]
    fn any<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R {
        let nibbles = C::SORTED.then(|| lanes.nibble_difference(word.1, pattern));
        lanes.prefixes.matches(word.0, pattern.0, nibbles)
    }

    #[inline(always)]
    fn tops<R: Register, C: Coding>(lanes: &Lanes, word: Opened<R>, pattern: Pattern<R>) -> R {
        Self::any::<R, C>(lanes, word, pattern) << lanes.prefixes.above
    }

    #[inline]
    fn keys(locations: &Locations) -> [&Column; 2] {
        let [home, other] = locations.keys();
        [home, other]
    }
}

impl Lanes {
    /// Whether a lane of the first word matches the first key, or one of the second the second. The
    /// nibbles of both keys are equal. No branch on the data: the vector unit compares both words
    /// at once.
    #[inline(always)]
    pub(super) fn pair_matches<M: Matching, C: Coding>(
        &self,
        words: [Opened<u64>; 2],
        keys: [u64; 2],
    ) -> bool {
        let [home, other] = [self.pattern::<C>(keys[0]), self.pattern::<C>(keys[1])];
        let pattern = pair([home, (other.0, home.1)]);
        let [one, other] = M::any::<_, C>(self, pair(words), pattern).to_array();
        (one | other) != 0
    }

    /// Not 0 if a slot of a bucket of two or four registers matches the key. The vector unit
    /// compares two registers at once.
    #[inline(always)]
    pub(super) fn any_match<M: Matching, C: Coding>(
        &self,
        registers: &[Opened<u64>],
        key: u64,
    ) -> u64x2 {
        let (pairs, pattern) = (registers.as_chunks().0, pair([self.pattern::<C>(key); 2]));
        let any = |&words: &[Opened<u64>; 2]| M::any::<u64x2, C>(self, pair(words), pattern);
        pairs.iter().map(any).fold(u64x2::of(0), |found, any| found | any)
    }

    /// [`pair_matches`](Self::pair_matches) as 1 or 0, by arithmetic alone, for vector code.
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

    /// The tops of all lanes of a word that match the key.
    #[inline]
    pub(super) fn matching_tops<M: Matching, C: Coding>(&self, word: Opened<u64>, key: u64) -> u64 {
        M::tops::<u64, C>(self, word, self.pattern::<C>(key))
    }
}
