//! The four slots of a bucket as lanes of one register (SWAR): tested, counted and replaced without unpacking them.
//!
//! A lane is `width` bits, lane 0 lowest: a slot, or what a semi-sorted bucket holds of it beside its code. [`Lanes`] has the masks of a
//! layout, computed once, so that one piece of code serves every width of a codec. `slot` in the functions is never wider than the layout's.
//!
//! A test takes the *difference* of a word and a slot, lane by lane, and asks which lanes of it are zero, without carries
//! between lanes: adding 0111..1 to a lane's low bits sets its top bit exactly when one of them is set.
//! Source: H. Warren, Hacker's Delight, section 6-1.

mod both;
mod parts;
mod prefix;

use super::sorted::{self, LOW_BITS};
use super::{Codec, Layout, Quad, Register, SLOTS, WIDE_SLOT_BITS, Word};
use crate::geometry::CORE_BITS;
pub(crate) use parts::{LATER, joined};
use prefix::Prefixes;

/// The lower two of four nibbles, in each of two registers.
const LOW_PAIR: u128 = 0xff | 0xff << u64::BITS;

/// The masks of a layout: of registers of 64 bits for two of them, so that the vector unit reads both at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes {
    form: Form,
    bucket_bits: u64,
    /// How far the last byte that is read of a bucket is from the first.
    reach: u32,
    width: u32,
    /// The lowest bit of every lane.
    ones: u128,
    /// The highest bit of every lane, and all below it.
    tops: u128,
    below: u128,
    /// Where sums of lanes are gathered: the lowest bit of the last lane, or of the first where lanes are registers of their own.
    sum: u32,
    /// The low bits of that lane, which hold a count.
    count: u128,
    /// The bits of every lane that belong to the fingerprint.
    fingerprints: u128,
    /// The low four bits of every second lane, where nibbles go.
    even_nibbles: u128,
    /// The bits of the bucket.
    bucket: u128,
    /// Whether these are all lanes of a bucket.
    are_all: bool,
    /// Whether the core of a fingerprint, which is never 0, is in the lane: then an empty lane needs no look at the nibbles.
    core_in_lane: bool,
    /// The masks of marked fingerprints, where there are any.
    prefixes: Prefixes,
}

/// Codec and register of a layout. Hot code is compiled once for each, and asks which before its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Plain slots, in 64 bits.
    Plain,
    /// Semi-sorted slots, in 64 bits.
    Sorted,
    /// Plain slots, in 128 bits.
    WidePlain,
    /// Semi-sorted slots, in 128 bits.
    WideSorted,
    /// Plain slots of 64 bits, each a register of its own: the masks of [`Lanes`] are those of one lane.
    Quad,
    /// Slots taken apart into such registers, however they are stored.
    Apart,
}

impl Form {
    fn of(layout: Layout) -> Self {
        let bits = layout.bucket_bits();
        match layout.codec() {
            Codec::Plain if bits <= u64::BITS => Self::Plain,
            Codec::Plain if layout.slot_bits() == WIDE_SLOT_BITS => Self::Quad,
            Codec::Plain => Self::WidePlain,
            // One of 64 bits starts with a byte, and a smaller one leaves room for the four bits before it.
            Codec::SemiSorted if bits <= u64::BITS => Self::Sorted,
            Codec::SemiSorted => Self::WideSorted,
        }
    }

    /// The last byte that is read of a bucket, counted from the one that it starts in: registers are read whole, and the code of a wide bucket in 64 bits of its own.
    fn reach(self, width: u32) -> u32 {
        let last_of = |bits: u32| bits / 8 - 1;
        match self {
            Self::Plain | Self::Sorted => last_of(u64::BITS),
            Self::WidePlain => last_of(u128::BITS),
            Self::WideSorted => last_of(u128::BITS.max(4 + 4 * width + u64::BITS)),
            Self::Quad | Self::Apart => last_of(Quad::BITS),
        }
    }
}

/// A slot in every lane, to be compared with words.
#[derive(Clone, Copy)]
pub(crate) struct Pattern<W> {
    lanes: W,
    nibbles: W,
}

impl Lanes {
    pub(crate) fn new(layout: Layout) -> Self {
        match Form::of(layout) {
            Form::Plain | Form::Sorted => Self::with(layout, 4, true),
            Form::WidePlain | Form::WideSorted => Self::with(layout, 4, false),
            Form::Quad | Form::Apart => Self::with(layout, 1, false),
        }
    }

    /// So many lanes, in registers of 64 bits if `is_narrow`.
    fn with(layout: Layout, lanes: u32, is_narrow: bool) -> Self {
        let sorted = layout.codec() == Codec::SemiSorted;
        let cut = if sorted { LOW_BITS } else { 0 };
        let width = layout.slot_bits() - cut;
        let form = Form::of(layout);
        // Registers of 64 bits are worked on two at a time: the masks are there for each.
        let twice = |mask: u128| if is_narrow { mask | mask << u64::BITS } else { mask };
        let ones = twice((0..lanes).fold(0, |ones, _| ones << width | 1));
        let tops = ones << (width - 1);
        let sum = (lanes - 1) * width;
        let fingerprint = u128::low_ones(layout.fingerprint_bits() - cut);
        Self {
            form,
            bucket_bits: u64::from(layout.bucket_bits()),
            reach: form.reach(width),
            width,
            ones,
            tops,
            below: tops - ones,
            sum,
            count: 7 << sum,
            fingerprints: ones * fingerprint,
            even_nibbles: twice(0xf | 0xf << (2 * width % u128::BITS)),
            bucket: u128::MAX >> u128::BITS.saturating_sub(layout.bucket_bits()),
            are_all: lanes == 4,
            // A marked fingerprint has its mark there.
            core_in_lane: layout.fingerprint_bits() >= CORE_BITS + cut,
            prefixes: layout.marks().map_or(Prefixes::default(), |marked| {
                Prefixes::new(marked, ones, (cut, layout.fingerprint_bits()), width)
            }),
        }
    }

    /// Whether these are all lanes of a bucket, not those of a half.
    #[inline(always)]
    pub(crate) fn are_all(&self) -> bool {
        self.are_all
    }

    /// Whether the lanes of a semi-sorted bucket show the cores of fingerprints, so that an empty slot is a lane of zeros.
    #[inline(always)]
    pub(crate) fn core_in_lane(&self) -> bool {
        self.core_in_lane
    }

    /// Which piece of code serves these lanes.
    #[inline(always)]
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Bits of a bucket.
    #[inline(always)]
    pub(crate) fn bucket_bits(&self) -> u64 {
        self.bucket_bits
    }

    /// How far the last byte that is read of a bucket is from the first.
    #[inline(always)]
    pub(crate) fn reach(&self) -> usize {
        self.reach as usize
    }

    /// Bits of a lane.
    #[inline(always)]
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// The top bits of the lanes of a bucket of 64 bits.
    #[inline(always)]
    pub(crate) fn tops(&self) -> u64 {
        u64::narrow(self.tops)
    }

    /// The bits of a register that a bucket fills.
    #[inline(always)]
    pub(crate) fn bucket<W: Word>(&self) -> W {
        W::narrow(self.bucket)
    }

    /// `slot` in every lane.
    #[inline(always)]
    pub(crate) fn pattern<W: Word, const SORTED: bool>(&self, slot: u64) -> Pattern<W> {
        let ones = W::narrow(self.ones);
        if SORTED {
            let (high, nibble) = (slot >> LOW_BITS, slot & 15);
            Pattern { lanes: ones.times(W::from(high)), nibbles: ones.times(W::from(nibble)) }
        } else {
            Pattern { lanes: ones.times(W::from(slot)), nibbles: W::ZERO }
        }
    }

    /// The nibbles of a semi-sorted word, 0 for a plain one.
    #[inline(always)]
    pub(crate) fn nibbles<W: Word, const SORTED: bool>(&self, word: W) -> u64 {
        if SORTED { sorted::nibbles(word, self.width) } else { 0 }
    }

    /// Lane by lane, which of the bits in `mask` differ from those of `pattern`.
    #[inline(always)]
    fn difference<R: Register, const SORTED: bool>(
        &self,
        (word, nibbles): (R, R),
        pattern: Pattern<R>,
        mask: u128,
    ) -> R {
        let plain = (word ^ pattern.lanes) & R::narrow(mask);
        if SORTED { plain | (self.spread(nibbles) ^ pattern.nibbles) } else { plain }
    }

    /// The top bit of every lane of which the bits in `mask` differ from those of `pattern`.
    #[inline(always)]
    fn different<R: Register, const SORTED: bool>(
        &self,
        word: (R, R),
        pattern: Pattern<R>,
        mask: u128,
    ) -> R {
        self.nonzero(self.difference::<R, SORTED>(word, pattern, mask))
    }

    /// Not 0 where a lane is zero, whatever is above the lanes: the top bit of that one, and perhaps those of lanes above it, which it borrows from. Fewer steps than it takes to tell which
    /// lanes are zero.
    #[inline(always)]
    fn any_zero<R: Register>(&self, word: R) -> R {
        word.less(R::narrow(self.ones)) & !word & R::narrow(self.tops)
    }

    /// The top bit of every lane that is not zero, whatever is above the lanes.
    #[inline(always)]
    fn nonzero<R: Register>(&self, word: R) -> R {
        let tops = R::narrow(self.tops);
        let below = R::narrow(self.below);
        (((word & below) + below) | word) & tops
    }

    /// Four nibbles, each at the low end of a lane.
    #[inline(always)]
    fn spread<R: Register>(&self, nibbles: R) -> R {
        let pairs = (nibbles & R::narrow(LOW_PAIR)) | ((nibbles >> 8) << (2 * self.width));
        let even = R::narrow(self.even_nibbles);
        (pairs & even) | (((pairs >> 4) & even) << self.width)
    }

    /// Two words, each beside its nibbles, to be compared. Written out, because a map over them would go through the stack.
    #[inline(always)]
    pub(crate) fn opened<const SORTED: bool>(&self, [one, other]: [u64; 2]) -> [(u64, u64); 2] {
        [(one, self.nibbles::<u64, SORTED>(one)), (other, self.nibbles::<u64, SORTED>(other))]
    }

    /// The nibbles of the code at bit `shift`, 0 where there is none.
    #[inline(always)]
    pub(crate) fn nibbles_at<const SORTED: bool>(code: u64, shift: u32) -> u64 {
        if SORTED { sorted::nibbles_of(code >> shift) } else { 0 }
    }

    /// Whether a lane of one word or of the other, each beside its nibbles, has the fingerprint of `pattern`: as 1 or 0, by arithmetic alone, for vector code.
    #[inline(always)]
    pub(crate) fn match_byte<const SORTED: bool>(
        &self,
        words: [(u64, u64); 2],
        pattern: Pattern<u64>,
    ) -> u8 {
        let [one, other] =
            words.map(|word| self.difference::<u64, SORTED>(word, pattern, self.fingerprints));
        let matches = self.any_zero(one) | self.any_zero(other);
        ((matches | matches.wrapping_neg()) >> 63) as u8
    }

    /// The top bit of every lane that has the fingerprint of `pattern`.
    #[inline(always)]
    pub(crate) fn alike<W: Word, const SORTED: bool>(&self, word: W, pattern: Pattern<W>) -> W {
        let word = (word, W::from(self.nibbles::<W, SORTED>(word)));
        self.different::<W, SORTED>(word, pattern, self.fingerprints) ^ W::narrow(self.tops)
    }

    /// The top bit of every lane that holds exactly `slot`.
    #[inline(always)]
    pub(crate) fn equal<W: Word, const SORTED: bool>(&self, word: W, pattern: Pattern<W>) -> W {
        let word = (word, W::from(self.nibbles::<W, SORTED>(word)));
        self.exactly::<W, SORTED>(word, pattern)
    }

    #[inline(always)]
    fn exactly<R: Register, const SORTED: bool>(&self, word: (R, R), pattern: Pattern<R>) -> R {
        self.different::<R, SORTED>(word, pattern, u128::MAX) ^ R::narrow(self.tops)
    }

    /// The top bit of every empty lane.
    #[inline(always)]
    pub(crate) fn empty<W: Word, const SORTED: bool>(&self, word: W) -> W {
        if self.core_in_lane {
            self.zero(word)
        } else {
            self.equal::<W, SORTED>(word, Pattern { lanes: W::ZERO, nibbles: W::ZERO })
        }
    }

    /// The top bit of every lane that is zero as far as lanes show it.
    #[inline(always)]
    fn zero<R: Register>(&self, word: R) -> R {
        self.nonzero(word) ^ R::narrow(self.tops)
    }

    /// Whether a lane of `word` is empty. Of semi-sorted ones the first is, if any is: nothing comes before a slot that is all zeros.
    #[inline(always)]
    pub(crate) fn has_room<W: Word, const SORTED: bool>(&self, word: W) -> bool {
        if !SORTED {
            self.any_zero(word) != W::ZERO
        } else if self.core_in_lane {
            word.lane(0, self.width) == 0
        } else {
            self.empty::<W, SORTED>(word) != W::ZERO
        }
    }

    /// Whether exactly one lane of two words has its top bit set.
    #[inline(always)]
    pub(crate) fn is_one<W: Word>(&self, [one, other]: [W; 2]) -> bool {
        let both = one | (other >> 1);
        both != W::ZERO && both == both.lowest()
    }

    /// Whether more lanes have their top bit in `these` than in `those`.
    #[inline(always)]
    pub(crate) fn more<W: Word>(&self, these: W, those: W) -> bool {
        let sum = |tops: W| {
            (tops >> (self.width - 1)).total(W::narrow(self.ones)) & W::narrow(self.count)
        };
        sum(these) > sum(those)
    }

    /// How many lanes have their top bit in `tops`: their sum, gathered in the last lane by one product.
    #[inline(always)]
    pub(crate) fn count<W: Word>(&self, tops: W) -> u64 {
        let each = tops >> (self.width - 1);
        u64::narrow((each.total(W::narrow(self.ones)) >> self.sum).wide()) & 7
    }

    /// The four slots.
    #[inline(always)]
    pub(crate) fn slots<W: Word, const SORTED: bool>(&self, word: W) -> [u64; SLOTS] {
        self.slots_beside::<W, SORTED>((word, self.nibbles::<W, SORTED>(word)))
    }

    /// The same of lanes beside their nibbles.
    #[inline(always)]
    pub(crate) fn slots_beside<W: Word, const SORTED: bool>(
        &self,
        (word, nibbles): (W, u64),
    ) -> [u64; SLOTS] {
        let slot = |i: u32| {
            let high = word.lane(i, self.width);
            if SORTED { high << LOW_BITS | (nibbles >> (4 * i)) & 15 } else { high }
        };
        [slot(0), slot(1), slot(2), slot(3)]
    }

    /// The bits of `word` that change when `new` takes the place of the slot `old` in the lowest lane of `tops`, of which there is one. None of them is outside the bucket, whatever
    /// follows it in `word`.
    #[inline(always)]
    pub(crate) fn change<W: Word, const SORTED: bool>(
        &self,
        word: W,
        tops: W,
        old: u64,
        new: u64,
    ) -> W {
        let nibbles = self.nibbles::<W, SORTED>(word);
        self.change_beside::<W, SORTED>((word, nibbles), tops, old, new)
    }

    /// The same for a word beside its nibbles.
    #[inline(always)]
    pub(crate) fn change_beside<W: Word, const SORTED: bool>(
        &self,
        (word, nibbles): (W, u64),
        tops: W,
        old: u64,
        new: u64,
    ) -> W {
        let first = tops.lowest();
        let lowest = first >> (self.width - 1);
        if !SORTED {
            return lowest.times(W::from(old ^ new));
        }
        let replaced = if W::BITS == u128::BITS {
            W::narrow(sorted::rewrite(word.wide(), self.width, old, new))
        } else {
            let (lanes, code) = self.replaced((word, nibbles), first, (old, new));
            let end = 4 * self.width;
            lanes & W::low_ones(end) | W::from(code) << end
        };
        (word ^ replaced) & self.bucket::<W>()
    }

    /// Semi-sorted lanes beside their nibbles, with `new` in place of the slot `old` whose top bit is `top`, and the code of the nibbles then.
    #[inline(always)]
    fn replaced<W: Word>(&self, word: (W, u64), top: W, slots: (u64, u64)) -> (W, u64) {
        let lane = self.count((top - W::from(1)) & W::narrow(self.tops));
        sorted::replace(word, self.width, (top, lane), slots)
    }
}

#[cfg(test)]
mod tests;
