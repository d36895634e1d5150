//! The slots of a pair of buckets that may belong to a key. A lookup in a maplet reads them.
//!
//! Optimised for keys that are there: a maplet first asks whether there are candidates, and absent
//! keys seldom have any. Plain slots in two registers of 64 bits are taken out one after the other.
//! Other buckets are decoded as a whole, and a bit a slot says which of them match.

use super::bits::{SLOTS, either, low_ones, lowest};
use super::lanes::Lanes;

/// Iterates over the slots of a pair of buckets that match a key.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    /// The slots still to come, a bit for each.
    coming: u64,
    slots: Slots,
}

/// The slots of a pair, and what the bits that are still to come mean.
#[derive(Clone, Debug)]
enum Slots {
    /// Plain lanes of two words. The bits are the top bits of lanes for the first word, and the
    /// bits below those for the second. No branch chooses the word, because it would be
    /// mispredicted half of the time.
    Lanes {
        words: [u64; 2],
        /// The top bits of all lanes.
        tops: u64,
        /// Bits of a lane.
        width: u32,
    },
    /// Decoded slots. Bit i is that of slot i of both buckets.
    Decoded([[u64; SLOTS]; 2]),
}

impl Candidates {
    /// No slots.
    #[inline]
    pub(crate) fn none() -> Self {
        Self { coming: 0, slots: Slots::Lanes { words: [0; 2], tops: 0, width: 1 } }
    }

    /// The plain slots of two words in the lanes that these tops show.
    #[inline]
    pub(super) fn of_lanes(lanes: &Lanes, words: [u64; 2], [home, other]: [u64; 2]) -> Self {
        let slots = Slots::Lanes { words, tops: lanes.tops(), width: lanes.width };
        Self { coming: home | other >> 1, slots }
    }

    /// The decoded slots whose bit is set in `coming`.
    #[inline]
    pub(super) fn of_slots(slots: [[u64; SLOTS]; 2], coming: u32) -> Self {
        Self { coming: coming.into(), slots: Slots::Decoded(slots) }
    }

    /// How many are to come.
    #[inline]
    pub(crate) fn count_left(&self) -> usize {
        self.coming.count_ones() as usize
    }

    /// The next slot, and the number of its bucket, 0 or 1.
    #[inline(always)]
    pub(crate) fn next_of_pair(&mut self) -> Option<(usize, u64)> {
        let first = lowest(self.coming);
        if first == 0 {
            return None;
        }
        self.coming ^= first;
        let position = first.trailing_zeros();
        match &self.slots {
            Slots::Lanes { words, tops, width } => {
                let is_other = first & *tops == 0;
                let above = position + 1 + u32::from(is_other);
                let slot = either(is_other, *words) >> (above - *width) & low_ones(*width);
                Some((usize::from(is_other), slot))
            }
            Slots::Decoded(slots) => {
                let slot = *slots.as_flattened().get(position as usize)?;
                Some((position as usize / SLOTS, slot))
            }
        }
    }
}

impl Iterator for Candidates {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.next_of_pair().map(|(_, slot)| slot)
    }
}
