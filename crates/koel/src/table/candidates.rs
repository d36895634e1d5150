//! The slots of a pair of buckets that may belong to a key: what a lookup in a maplet reads.
//!
//! An absent key is the rule, and then no slot is taken apart: the lanes show that none has the fingerprint. Otherwise all eight are, each to a place of its own,
//! and a bit says which of them count: no address depends on what the memory has yet to answer, so that a processor can begin the next lookup before this one ends.

use super::{Addressing, Table};
use crate::layout::{Form, Quad, SLOTS, Word};

/// The slots of a pair of buckets, and those of them that have the fingerprint, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    slots: [u64; 2 * SLOTS],
    /// Bit i: whether slot i is still to come.
    coming: u32,
}

impl Candidates {
    /// No slots.
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self { slots: [0; 2 * SLOTS], coming: 0 }
    }

    /// Those that `matches` says yes to, by the number of the bucket and the slot; the second bucket is not looked at if it is the first one once more.
    #[inline(always)]
    fn among(
        [home, other]: [[u64; SLOTS]; 2],
        same: bool,
        matches: impl Fn(usize, u64) -> bool,
    ) -> Self {
        let [a, b, c, d] = home;
        let [e, f, g, h] = other;
        let slots = [a, b, c, d, e, f, g, h];
        let bit = |i: usize| u32::from(matches(i / SLOTS, slots[i])) << i;
        let coming = (0..slots.len()).map(bit).sum::<u32>();
        Self { slots, coming: coming & if same { 0x0f } else { 0xff } }
    }

    /// How many are to come.
    #[inline]
    pub(crate) fn count_left(&self) -> usize {
        self.coming.count_ones() as usize
    }
}

impl Iterator for Candidates {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let index = self.coming.trailing_zeros() as usize;
        let slot = *self.slots.get(index)?;
        self.coming &= self.coming - 1;
        Some(slot)
    }
}

impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// The slots of the pair at `bits` that match the key of either bucket. O(1): two loads, and a branch only on
    /// whether there are any.
    #[inline(always)]
    pub(crate) fn candidates(&self, bits: [u64; 2], keys: [u64; 2]) -> Candidates {
        match self.lanes.form() {
            Form::Plain => self.candidates_in::<u64, false>(bits, keys),
            _ => self.candidates_in_form(bits, keys),
        }
    }

    #[inline(never)]
    fn candidates_in_form(&self, bits: [u64; 2], keys: [u64; 2]) -> Candidates {
        in_form!(self, candidates_in(bits, keys))
    }

    #[inline(always)]
    fn candidates_in<W: Word, const SORTED: bool>(
        &self,
        bits: [u64; 2],
        keys: [u64; 2],
    ) -> Candidates {
        let words = bits.map(|bit| self.load_at::<W, SORTED>(bit));
        let [home, other] =
            [0, 1].map(|i| A::matching::<W, SORTED>(&self.lanes, words[i], keys[i]));
        if (home | other) == W::ZERO {
            return Candidates::none();
        }
        let slots = words.map(|word| self.lanes.slots::<W, SORTED>(word));
        let matches =
            |i: usize, slot| self.geometry.is_match(self.layout.fingerprint_of(slot), keys[i]);
        Candidates::among(slots, bits[0] == bits[1], matches)
    }
}
