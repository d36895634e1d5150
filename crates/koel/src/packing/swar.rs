//! Tests all lanes of a register at once (SWAR: SIMD within a register).
//!
//! A lane is `width` bits, lane 0 lowest. It holds a slot, or the part of a semi-sorted slot that
//! its code does not have. [`Lanes`] has the masks of one layout, computed once, so one piece of
//! code serves every width.
//!
//! A test takes the difference of a word and a slot, and finds the lanes of it that are zero. No
//! carry leaves a lane: adding `0111..1` to the low bits of a lane sets its top bit exactly when
//! one of them is set. Results are *tops*: the top bit of every lane that passed. Bits above the
//! lanes do not matter.
//! Source: H. Warren, Hacker's Delight, section 6-1.

use super::bits::{low_ones, low_word};
use super::layout::Layout;
use super::prefix::Prefixes;
use super::register::{Opened, Pattern, Register};
use super::slot_coding::Coding;
use crate::address::geometry::{CORE_BITS, low_half};

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
