//! A wide bucket in registers of 64 bits: a comparison takes a fraction there of what it takes in one of 128, and can be vector code.
//!
//! ```text
//!     semi-sorted, lanes of at most 16 bits      | code | lane 3 | lane 2 | lane 1 | lane 0 |      one part: all lanes, the code is looked up apart
//!     all others (plain ones have no code)       | code | lane 3 | lane 2 | lane 1 | lane 0 |      two parts: the halves
//!                                                       '- upper half -' '- lower half -'
//! ```
//!
//! The first are those of filters for 0.1 to 0.4 % that have grown, among others: with two parts, lookups in batches take a third longer (docs/decisions/0008-growth.md).

use super::super::sorted::LOW_BITS;
use super::super::{Codec, Layout, SLOTS, Word, sorted};
use super::{Form, Lanes};

/// How many bytes the second read of a bucket in one part is after the first: so it has what of the lanes the first may lack, and the code.
pub(crate) const LATER: usize = 2;

/// The same in bits.
const LATER_BITS: u32 = 16;

impl Lanes {
    /// The lanes of a *part* of a wide bucket, in 64 bits: all four where they fit without their code, otherwise two. What [`whole`](Self::whole) or [`halves`](Self::halves) gives
    /// is compared with these.
    pub(crate) fn of_part(layout: Layout) -> Self {
        let fit =
            layout.codec() == Codec::SemiSorted && 4 * (layout.slot_bits() - LOW_BITS) <= u64::BITS;
        Self::with(layout, if fit { 4 } else { 2 }, true)
    }

    /// The lanes of buckets that are read and written as slots taken apart, four registers of 64 bits, however they are stored.
    pub(crate) fn apart(layout: Layout) -> Self {
        let bucket_bits = u64::from(layout.bucket_bits());
        Self { form: Form::Apart, bucket_bits, ..Self::new(layout.apart()) }
    }

    /// All lanes of a wide semi-sorted bucket, where they fit into 64 bits, beside their nibbles. The bucket starts at bit `shift` of the first read, 0 or 4; the second one
    /// is [`LATER`], and has the code.
    #[inline(always)]
    pub(crate) fn whole(&self, reads: [u64; 2], shift: u32) -> (u64, u64) {
        (joined(reads, u64::from(shift)), self.nibbles_later(reads[1], shift))
    }

    /// The nibbles of a bucket of which this is the second read.
    #[inline(always)]
    pub(crate) fn nibbles_later(&self, later: u64, shift: u32) -> u64 {
        sorted::nibbles_of(later >> (4 * self.width - LATER_BITS + shift))
    }

    /// The bucket that has these lanes beside their nibbles, with `new` in place of one slot `old`; `None` if there is none.
    #[inline(always)]
    pub(crate) fn whole_with(&self, word: (u64, u64), old: u64, new: u64) -> Option<u128> {
        let equal = self.exactly::<u64, true>(word, self.pattern::<u64, true>(old));
        let with = || {
            let (lanes, code) = self.replaced(word, equal.lowest(), (old, new));
            let end = 4 * self.width;
            lanes.wide() & u128::low_ones(end) | u128::from(code) << end
        };
        (equal != 0).then(with)
    }

    /// The halves of a wide bucket, two lanes each, beside their nibbles: in registers of 64 bits a comparison takes a fraction of what it takes in one of 128, and
    /// can be vector code. `load` gives what follows a bit of the bucket: of 64 bits at least 58, or 60 where that is a multiple of four; above
    /// the lanes it may be anything, for [`Lanes::of_part`] does not look there. A plain bucket, which may fill all 128 bits, has no code after its lanes: none is asked for.
    #[inline(always)]
    pub(crate) fn halves<const SORTED: bool>(&self, load: impl Fn(u64) -> u64) -> [(u64, u64); 2] {
        let nibbles = if SORTED { Self::nibbles_at::<true>(load(2 * self.half()), 0) } else { 0 };
        [(load(0), nibbles), (load(self.half()), nibbles >> 8)]
    }

    /// How far the upper half of a wide bucket is from its start, and the code from the upper half.
    #[inline(always)]
    pub(crate) fn half(&self) -> u64 {
        2 * u64::from(self.width)
    }

    /// The four slots of the wide bucket that these are the halves of.
    #[inline(always)]
    pub(crate) fn slots_of<const SORTED: bool>(&self, halves: [(u64, u64); 2]) -> [u64; SLOTS] {
        let slot = |(word, nibbles): (u64, u64), i: u32| {
            let high = word.lane(i, self.width);
            if SORTED { high << LOW_BITS | (nibbles >> (4 * i)) & 15 } else { high }
        };
        let [lower, upper] = halves;
        [slot(lower, 0), slot(lower, 1), slot(upper, 0), slot(upper, 1)]
    }
}

/// What starts at bit `shift` of the first of two reads and goes on in the second, which is [`LATER`].
#[inline(always)]
pub(crate) fn joined([first, later]: [u64; 2], shift: u64) -> u64 {
    first >> shift | later << (u64::from(LATER_BITS) - shift)
}

#[cfg(test)]
use super::super::{Bucket, Register as _};

#[cfg(test)]
impl Lanes {
    /// What a comparison of a wide bucket with the lanes of a part looks at: its halves, or twice the whole of it, as it is read wherever it may start.
    pub(super) fn parts<const SORTED: bool>(
        &self,
        part: &Self,
        word: u128,
    ) -> alloc::vec::Vec<[(u64, u64); 2]> {
        if !part.are_all() {
            return alloc::vec![self.halves::<SORTED>(|bit| u64::narrow(word >> bit))];
        }
        let at = |shift: u32| {
            let before = 0b1010 & u128::low_ones(shift);
            let bits = word << shift | before;
            part.whole([0, LATER_BITS].map(|later| u64::narrow(bits >> later)), shift)
        };
        [0, 4].map(|shift| [at(shift); 2]).to_vec()
    }

    /// Everything that a part can do with a bucket, against its slots.
    pub(super) fn check<const SORTED: bool>(
        &self,
        lanes: &Self,
        layout: Layout,
        (word, slots): (u128, Bucket),
        probe: u64,
    ) {
        let fingerprint = layout.fingerprint_of(probe);
        let holds = slots.0.iter().any(|&slot| layout.fingerprint_of(slot) == fingerprint);
        let pattern = self.pattern::<u64, SORTED>(fingerprint);
        for pair in lanes.parts::<SORTED>(self, word) {
            assert_eq!(self.pair_has::<SORTED>(pair, fingerprint), holds);
            assert_eq!(self.match_byte::<SORTED>(pair, pattern), u8::from(holds));
            if self.are_all() {
                self.check_whole(layout, pair[0], (slots, probe));
            }
        }
    }

    /// What only a part that is the whole bucket can do.
    fn check_whole(&self, layout: Layout, whole: (u64, u64), (slots, probe): (Bucket, u64)) {
        assert_eq!(self.slots_beside::<u64, true>(whole), slots.0);
        assert_eq!(self.count(self.empty::<u64, false>(whole.0)), slots.copies(0));
        for new in [0, 1, 16, slots.0[1], u64::MAX >> (u64::BITS - layout.slot_bits())] {
            let at = slots.0.iter().position(|&slot| slot == probe);
            let expected = at.map(|at| {
                let mut with = slots;
                with.0[at] = new;
                layout.encode(with)
            });
            assert_eq!(self.whole_with(whole, probe, new), expected, "{layout} {probe:x} {new:x}");
        }
    }
}
