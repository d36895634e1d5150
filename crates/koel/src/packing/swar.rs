//! Lanes of a register, all tested at once (SWAR: SIMD within a register).
//!
//! A lane is `width` bits, lane 0 lowest. It holds a slot, or what a semi-sorted bucket stores of a
//! slot beside its code. [`Lanes`] has the masks of one layout, computed once, so that one piece of
//! code serves every width.
//!
//! A test takes the difference of a word and a slot and asks which lanes of it are zero. No carry
//! leaves a lane: adding `0111..1` to the low bits of a lane sets its top bit exactly when one of
//! them is set. Results are *tops*: the top bit of every lane that passed.
//! Source: H. Warren, Hacker's Delight, section 6-1.

use core::ops::{Add, BitAnd, BitOr, BitXor, Not, Shl, Shr, Sub};

use wide::u64x2;

use super::Layout;
use super::prefix::Prefixes;
use super::slot_coding::Coding;
use crate::address::geometry::CORE_BITS;

/// The lower two of four nibbles, in each of two registers.
const LOW_PAIR: u128 = 0xff | 0xff << u64::BITS;

/// A register of lanes: one of 64 bits, or two side by side in a vector register.
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
    /// The mask, which has the same 64 bits twice.
    fn of(mask: u128) -> Self;
    /// The difference, modulo 2^64.
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

/// The vector unit of every x86-64 processor works on both at once.
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

/// The low 64 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "truncating is what it is for")]
pub(crate) const fn low_word(wide: u128) -> u64 {
    wide as u64
}

/// So many ones: fewer than 64.
#[inline]
pub(crate) const fn low_ones(bits: u32) -> u64 {
    !(u64::MAX << bits)
}

/// The lowest bit that is set, alone; 0 of 0.
#[inline]
pub(crate) const fn lowest(word: u64) -> u64 {
    word & word.wrapping_neg()
}

/// Lanes beside the nibbles of their slots; plain lanes have zeros there.
pub(crate) type Opened<R> = (R, R);

/// A slot in every lane, to be compared with words.
#[derive(Clone, Copy)]
pub(crate) struct Pattern<R> {
    pub(super) lanes: R,
    pub(super) nibbles: R,
}

impl Pattern<u64> {
    /// Two patterns side by side.
    #[inline]
    pub(super) fn pair([one, other]: [Self; 2]) -> Pattern<u64x2> {
        Pattern {
            lanes: u64x2::new([one.lanes, other.lanes]),
            nibbles: u64x2::new([one.nibbles, other.nibbles]),
        }
    }
}

/// Two opened words side by side.
#[inline]
pub(super) fn pair([one, other]: [Opened<u64>; 2]) -> Opened<u64x2> {
    (u64x2::new([one.0, other.0]), u64x2::new([one.1, other.1]))
}

/// The masks of a layout. Each has its 64 bits twice, so that the vector unit loads both at once.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    width: u32,
    /// The lowest bit of every lane.
    ones: u128,
    /// The top bit of every lane, and all bits below it.
    tops: u128,
    below: u128,
    /// Where sums of lanes are gathered: the lowest bit of the last lane.
    sum: u32,
    /// The low bits of that lane, which hold a count.
    count: u64,
    /// The bits of every lane that belong to the fingerprint.
    pub(super) fingerprints: u128,
    /// The low four bits of every second lane, where nibbles go.
    even_nibbles: u128,
    /// Whether the core of a fingerprint, which is never 0, is in the lane: then an empty slot is
    /// a lane of zeros.
    core_in_lane: bool,
    /// The masks of marked fingerprints, where there are any.
    pub(super) prefixes: Prefixes,
}

impl Lanes {
    /// The masks of `count` lanes of a layout.
    pub(super) fn new<C: Coding>(layout: Layout, count: u32) -> Self {
        Self::of_width(layout, C::CUT, layout.slot_bits() - C::CUT, count)
    }

    /// The masks of a layout whose slots are unpacked: one plain lane of 64 bits.
    pub(super) fn unpacked(layout: Layout) -> Self {
        Self::of_width(layout, 0, u64::BITS, 1)
    }

    /// Of each slot, the low `cut` bits are not in its lane.
    fn of_width(layout: Layout, cut: u32, width: u32, count: u32) -> Self {
        let twice = |mask: u128| mask | mask << u64::BITS;
        let ones = twice((0..count).fold(0, |ones, lane| ones | 1 << (lane * width)));
        let tops = ones << (width - 1);
        let sum = (count - 1) * width;
        let even_nibbles = if cut == 0 { 0 } else { twice(0xf | 0xf << (2 * width)) };
        Self {
            width,
            ones,
            tops,
            below: tops - ones,
            sum,
            count: 7 << sum,
            fingerprints: ones * u128::from(low_ones(layout.fingerprint_bits() - cut)),
            even_nibbles,
            // A marked fingerprint has its mark there.
            core_in_lane: layout.fingerprint_bits() >= CORE_BITS + cut,
            prefixes: layout.marks().map_or(Prefixes::default(), |marked| {
                Prefixes::new(marked, ones, (cut, layout.fingerprint_bits()), width)
            }),
        }
    }

    /// Bits of a lane.
    #[inline]
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// Whether an empty slot is a lane of zeros, whatever the nibbles.
    #[inline]
    pub(super) fn core_in_lane(&self) -> bool {
        self.core_in_lane
    }

    /// The lowest bit of every lane.
    #[inline]
    pub(super) fn ones(&self) -> u64 {
        low_word(self.ones)
    }

    /// The top bit of every lane.
    #[inline]
    pub(crate) fn tops(&self) -> u64 {
        low_word(self.tops)
    }

    /// A lane of a word.
    #[inline]
    pub(super) fn lane(&self, word: u64, index: u32) -> u64 {
        (word >> (index * self.width)) & (u64::MAX >> (u64::BITS - self.width))
    }

    /// Not 0 where a lane is zero, whatever is above the lanes. Fewer steps than
    /// [`zero`](Self::zero) takes, but lanes above a zero one may show as zero too, because it
    /// borrows from them.
    #[inline]
    pub(super) fn any_zero<R: Register>(&self, word: R) -> R {
        word.less(R::of(self.ones)) & !word & R::of(self.tops)
    }

    /// The lanes that are not zero, whatever is above the lanes.
    #[inline]
    pub(super) fn nonzero<R: Register>(&self, word: R) -> R {
        let below = R::of(self.below);
        (((word & below) + below) | word) & R::of(self.tops)
    }

    /// The lanes that are zero, whatever is above the lanes.
    #[inline]
    pub(super) fn zero<R: Register>(&self, word: R) -> R {
        self.nonzero(word) ^ R::of(self.tops)
    }

    /// `slot` in every lane.
    #[inline]
    pub(super) fn pattern<C: Coding>(&self, slot: u64) -> Pattern<u64> {
        let ones = self.ones();
        if C::SORTED {
            let (high, nibble) = (slot >> C::CUT, slot & 15);
            Pattern { lanes: ones.wrapping_mul(high), nibbles: ones.wrapping_mul(nibble) }
        } else {
            Pattern { lanes: ones.wrapping_mul(slot), nibbles: 0 }
        }
    }

    /// Four nibbles, each at the low end of a lane.
    #[inline]
    pub(super) fn spread<R: Register>(&self, nibbles: R) -> R {
        let pairs = (nibbles & R::of(LOW_PAIR)) | ((nibbles >> 8) << (2 * self.width));
        let even = R::of(self.even_nibbles);
        (pairs & even) | (((pairs >> 4) & even) << self.width)
    }

    /// Lane by lane, which of the bits in `mask` differ from those of `pattern`.
    #[inline(always)]
    pub(super) fn difference<R: Register, C: Coding>(
        &self,
        (word, nibbles): Opened<R>,
        pattern: Pattern<R>,
        mask: u128,
    ) -> R {
        let lanes = (word ^ pattern.lanes) & R::of(mask);
        if C::SORTED { lanes | (self.spread(nibbles) ^ pattern.nibbles) } else { lanes }
    }

    /// The lanes that hold exactly the slot of `pattern`.
    #[inline]
    pub(super) fn equal<R: Register, C: Coding>(&self, word: Opened<R>, pattern: Pattern<R>) -> R {
        self.zero(self.difference::<R, C>(word, pattern, u128::MAX))
    }

    /// Whether exactly one lane of two words passed.
    #[inline]
    pub(super) fn is_one([one, other]: [u64; 2]) -> bool {
        let both = one | (other >> 1);
        both != 0 && both == lowest(both)
    }

    /// Whether more lanes passed in `these` than in `those`.
    #[inline]
    pub(super) fn more(&self, these: u64, those: u64) -> bool {
        let sum = |tops: u64| (tops >> (self.width - 1)).wrapping_mul(self.ones()) & self.count;
        sum(these) > sum(those)
    }

    /// How many lanes passed: their sum, which one product gathers in the last lane.
    #[inline]
    pub(super) fn count(&self, tops: u64) -> u64 {
        ((tops >> (self.width - 1)).wrapping_mul(self.ones()) >> self.sum) & 7
    }
}
