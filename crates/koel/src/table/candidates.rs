//! The slots of a pair of buckets that may belong to a key: what a lookup in a maplet reads.
//!
//! Made for keys that are there: a maplet asks first whether there are candidates, which absent keys seldom have. Slots of two registers of 64 bits are taken out one after the
//! other; wider buckets are taken apart at once, and a bit says which slots count.

use super::{Addressing, Table, either};
use crate::geometry::low_half;
use crate::layout::{Apart, Form, Lanes, Quad, Register, SLOTS, Word};

/// The slots of a pair of buckets that have the fingerprint, one after the other.
#[derive(Clone, Debug)]
pub(crate) enum Candidates {
    /// Lanes of two words. In which of them a lane is, no branch asks, for it would be taken wrongly half of the time.
    Lanes {
        words: [u64; 2],
        /// The top bit of every lane of the one word that is still to come, and the bit below it for the other word.
        coming: u64,
        /// The top bits of all lanes.
        tops: u64,
        /// Bits of a lane.
        width: u32,
    },
    /// Slots taken apart.
    Slots {
        slots: [u64; 2 * SLOTS],
        /// Bit i: whether slot i is still to come.
        coming: u32,
    },
}

impl Lanes {
    /// The slots of two words whose lanes have their top bit in `coming`.
    #[inline(always)]
    fn candidates<W: Word, const SORTED: bool>(&self, words: [W; 2], coming: [W; 2]) -> Candidates {
        let width = self.width();
        if W::BITS == u64::BITS && !SORTED {
            let narrow =
                |[home, other]: [W; 2]| [u64::narrow(home.wide()), u64::narrow(other.wide())];
            let ([home, other], tops) = (narrow(coming), self.tops());
            let coming = home | other >> 1;
            return Candidates::Lanes { words: narrow(words), coming, tops, width };
        }
        let [home, other] = words.map(|word| self.slots::<W, SORTED>(word));
        let mut slots = [0; 2 * SLOTS];
        slots[..SLOTS].copy_from_slice(&home);
        slots[SLOTS..].copy_from_slice(&other);
        let bits = |tops: W| {
            (0..4).map(|i| low_half(tops.lane(i, width) >> (width - 1)) << i).sum::<u32>()
        };
        Candidates::Slots { slots, coming: bits(coming[0]) | bits(coming[1]) << SLOTS }
    }
}

impl Candidates {
    /// No slots.
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self::Lanes { words: [0; 2], coming: 0, tops: 0, width: 1 }
    }

    /// How many are to come.
    #[inline]
    pub(crate) fn count_left(&self) -> usize {
        let count = match self {
            Self::Lanes { coming, .. } => coming.count_ones(),
            Self::Slots { coming, .. } => coming.count_ones(),
        };
        count as usize
    }

    /// The next slot, and in which bucket of the pair it is.
    #[inline(always)]
    pub(super) fn next_of_pair(&mut self) -> Option<(usize, u64)> {
        match self {
            Self::Lanes { words, coming, tops, width } => {
                if *coming == 0 {
                    return None;
                }
                let first = coming.lowest();
                *coming ^= first;
                let is_other = first & *tops == 0;
                let above = first.trailing_zeros() + 1 + u32::from(is_other);
                let slot = either(is_other, *words) >> (above - *width) & u64::low_ones(*width);
                Some((usize::from(is_other), slot))
            }
            Self::Slots { slots, coming } => {
                let i = coming.trailing_zeros() as usize;
                let slot = *slots.get(i)?;
                *coming &= *coming - 1;
                Some((i / SLOTS, slot))
            }
        }
    }
}

impl Iterator for Candidates {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        self.next_of_pair().map(|(_, slot)| slot)
    }
}

impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// The slots of a pair of buckets that match the key of either. O(1): two loads.
    #[inline]
    pub(crate) fn candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Candidates {
        in_any_form!(self, candidates_in(pair, keys))
    }

    /// The same where slots are plain, in 64 bits; `None` elsewhere.
    #[inline(always)]
    pub(crate) fn plain_candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Option<Candidates> {
        let is_plain = self.lanes.form() == Form::Plain;
        is_plain.then(|| self.candidates_in::<u64, false>(pair, keys))
    }

    #[inline(always)]
    fn candidates_in<W: Word, const SORTED: bool>(
        &self,
        pair: (u64, u64),
        keys: [u64; 2],
    ) -> Candidates {
        let words = self.load_pair::<W, SORTED>(pair);
        let [home, other] =
            [0, 1].map(|i| A::matching::<W, SORTED>(&self.lanes, words[i], keys[i]));
        let other = if pair.0 == pair.1 { W::ZERO } else { other };
        self.lanes.candidates::<W, SORTED>(words, [home, other])
    }
}
