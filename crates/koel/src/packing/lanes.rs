//! Compares a key with all slots in a register at once (SWAR: SIMD within a register).
//!
//! A register is one of 64 bits, or two side by side in a vector register. A lane of it is `width`
//! bits, lane 0 lowest. It holds a slot, or the part of a semi-sorted slot that its code does not
//! have. [`Lanes`] has the masks of one layout, computed once, so one piece of code serves every
//! width.
//!
//! A test takes the difference of a word and a slot, and finds the lanes of it that are zero. No
//! carry leaves a lane: adding `0111..1` to the low bits of a lane sets its top bit exactly when
//! one of them is set. Results are *tops*: the top bit of every lane that passed. Bits above the
//! lanes do not matter.
//!
//! There are two ways to compare an entry with a key, each a [`Matching`]. In a table of one size,
//! an entry matches the key whose fingerprint it is. In a table that grows, it matches the keys
//! that it is a prefix of (prefix.rs).
//!
//! Source: H. Warren, Hacker's Delight, section 6-1.

use core::ops::{Add, BitAnd, BitOr, BitXor, Not, Shl, Shr, Sub};

use wide::u64x2;

use super::bits::{low_ones, low_word};
use super::coding::Coding;
use super::layout::Layout;
use super::prefix::Prefixes;
use crate::address::geometry::{CORE_BITS, Locations, low_half};
use crate::mem::vector::Column;

/// A register on which lane tests work.
pub(crate) trait Register:
    Copy
    + Add<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + Sub<Output = Self>
{
    /// The register with this mask, whose upper 64 bits equal its lower ones.
    fn of(mask: u128) -> Self;
    /// The difference modulo 2^64.
    fn less(self, other: Self) -> Self;
}

impl Register for u64 {
    #[inline]
    fn of(mask: u128) -> Self {
        low_word(mask)
    }

    #[inline]
    fn less(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

/// Every x86-64 processor has a vector unit that works on both words at once.
impl Register for u64x2 {
    #[inline]
    fn of(mask: u128) -> Self {
        Self::new([low_word(mask), low_word(mask >> u64::BITS)])
    }

    #[inline]
    fn less(self, other: Self) -> Self {
        self - other
    }
}

/// Lanes, and the packed nibbles of their slots; the nibbles of plain slots are 0.
pub(crate) type Opened<R> = (R, R);

/// A slot in every lane, to compare with opened words: its lanes, and its nibble at the low end of
/// each.
pub(crate) type Pattern<R> = (R, R);

/// Two words or two patterns side by side.
#[inline]
pub(super) fn pair([one, other]: [(u64, u64); 2]) -> (u64x2, u64x2) {
    (u64x2::new([one.0, other.0]), u64x2::new([one.1, other.1]))
}

/// The lower two of four nibbles, in each of two registers.
const LOW_PAIR: u128 = 0xff | 0xff << u64::BITS;

/// The masks of a layout. Each has its 64 bits twice, so that the vector unit loads both at once.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    /// Bits of a lane.
    pub(super) width: u32,
    /// The lowest bit of every lane.
    ones: u128,
    /// The top bit of every lane, and all bits below it.
    tops: u128,
    below: u128,
    /// The lowest bit of the last lane, where a product puts the sum of all lanes.
    sum: u32,
    /// The bits of every lane that belong to the fingerprint.
    pub(super) fingerprints: u128,
    /// The low four bits of every second lane, where nibbles go.
    even_nibbles: u128,
    /// Whether the core of a fingerprint, which is never 0, is in the lane. Then an empty slot is
    /// a lane of zeros.
    pub(super) core_in_lane: bool,
    /// The masks of marked fingerprints, if the layout has them.
    pub(super) prefixes: Prefixes,
}

impl Lanes {
    /// The masks of `count` lanes of a layout. One lane is an unpacked slot, in all 64 bits.
    pub(super) fn new<C: Coding>(layout: Layout, count: u32) -> Self {
        let (cut, bits) = (C::CUT, layout.fingerprint_bits());
        let width = if count == 1 { u64::BITS } else { layout.slot_bits() - cut };
        let twice = |mask: u128| mask | mask << u64::BITS;
        let ones = twice((0..count).fold(0, |ones, lane| ones | 1 << (lane * width)));
        let tops = ones << (width - 1);
        let even_nibbles = if C::SORTED { twice(0xf | 0xf << (2 * width)) } else { 0 };
        Self {
            width,
            ones,
            tops,
            below: tops - ones,
            sum: (count - 1) * width,
            fingerprints: ones * u128::from(low_ones(bits - cut)),
            even_nibbles,
            // Where the core of a marked fingerprint would be, it has its mark.
            core_in_lane: bits >= CORE_BITS + cut,
            prefixes: layout.marks().map_or(Prefixes::default(), |marked| {
                Prefixes::new(marked, ones, (cut, bits), width)
            }),
        }
    }

    /// The lowest bit of every lane.
    #[inline]
    fn ones(&self) -> u64 {
        low_word(self.ones)
    }

    /// The top bit of every lane.
    #[inline]
    pub(super) fn tops(&self) -> u64 {
        low_word(self.tops)
    }

    /// One lane of a word.
    #[inline]
    pub(super) fn lane(&self, word: u64, index: u32) -> u64 {
        (word >> (index * self.width)) & (u64::MAX >> (u64::BITS - self.width))
    }

    /// Not 0 if a lane is zero. Takes fewer steps than [`zero`](Self::zero), but lanes above a zero
    /// one may show as zero too, because it borrows from them.
    #[inline]
    pub(super) fn any_zero<R: Register>(&self, word: R) -> R {
        word.less(R::of(self.ones)) & !word & R::of(self.tops)
    }

    /// The lanes that are zero.
    #[inline]
    pub(super) fn zero<R: Register>(&self, word: R) -> R {
        let below = R::of(self.below);
        ((((word & below) + below) | word) & R::of(self.tops)) ^ R::of(self.tops)
    }

    /// `slot` in every lane.
    #[inline]
    pub(super) fn pattern<C: Coding>(&self, slot: u64) -> Pattern<u64> {
        let nibble = slot & low_ones(C::CUT);
        let fill = |lane: u64| self.ones().wrapping_mul(lane);
        (fill(slot >> C::CUT), fill(nibble))
    }

    /// The bits of four nibbles that differ from those of a pattern, each at the low end of a lane.
    #[inline]
    pub(super) fn nibble_difference<R: Register>(&self, nibbles: R, pattern: Pattern<R>) -> R {
        let pairs = (nibbles & R::of(LOW_PAIR)) | ((nibbles >> 8) << (2 * self.width));
        let even = R::of(self.even_nibbles);
        ((pairs & even) | (((pairs >> 4) & even) << self.width)) ^ pattern.1
    }

    /// In every lane, the bits of the slot within `mask` that differ from those of a pattern.
    #[inline(always)]
    pub(super) fn difference<R: Register, C: Coding>(
        &self,
        (word, nibbles): Opened<R>,
        pattern: Pattern<R>,
        mask: u128,
    ) -> R {
        let lanes = (word ^ pattern.0) & R::of(mask);
        if C::SORTED { lanes | self.nibble_difference(nibbles, pattern) } else { lanes }
    }

    /// The lanes that hold exactly the slot of a pattern.
    #[inline]
    pub(super) fn equal<R: Register, C: Coding>(&self, word: Opened<R>, pattern: Pattern<R>) -> R {
        self.zero(self.difference::<R, C>(word, pattern, u128::MAX))
    }

    /// The lanes of one word that hold exactly `slot`.
    #[inline]
    pub(super) fn holding<C: Coding>(&self, word: Opened<u64>, slot: u64) -> u64 {
        self.equal::<u64, C>(word, self.pattern::<C>(slot))
    }

    /// The lanes that are empty slots.
    #[inline]
    pub(super) fn empty<C: Coding>(&self, word: Opened<u64>) -> u64 {
        if C::SORTED && !self.core_in_lane { self.holding::<C>(word, 0) } else { self.zero(word.0) }
    }

    /// Whether a slot of a bucket in these registers is empty.
    #[inline]
    pub(super) fn has_room<C: Coding>(&self, registers: &[Opened<u64>]) -> bool {
        if C::SORTED {
            // Empty slots come first.
            let (word, nibbles) = registers[0];
            return self.lane(word, 0) == 0 && (self.core_in_lane || nibbles & 15 == 0);
        }
        registers.iter().fold(0, |any, word| any | self.any_zero(word.0)) != 0
    }

    /// How many lanes passed. One product puts their sum into the last lane.
    #[inline]
    pub(super) fn count(&self, tops: u64) -> u64 {
        ((tops >> (self.width - 1)).wrapping_mul(self.ones()) >> self.sum) & 7
    }

    /// Bit i is set if lane i, of `count`, passed.
    #[inline]
    pub(super) fn bits(&self, tops: u64, count: u32) -> u32 {
        let passed = tops >> (self.width - 1);
        (0..count).map(|i| low_half((passed >> (i * self.width)) & 1) << i).sum()
    }
}

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
