//! The slots of a pair of buckets that may belong to a key. A lookup in a maplet reads them.
//!
//! Optimised for keys that are there: a maplet first asks whether there are candidates, and absent
//! keys seldom have any. Plain slots in two registers of 64 bits are taken out one after the other.
//! Other buckets are decoded as a whole, and a bit a slot says which of them match.

use super::bits::{SLOTS, either, low_ones, lowest};
use super::swar::Lanes;

/// Iterates over the slots of a pair of buckets that match a key.
#[derive(Clone, Debug)]
pub(crate) enum Candidates {
    /// Plain lanes of two words. No branch chooses the word, because it would be mispredicted half
    /// of the time.
    Lanes {
        words: [u64; 2],
        /// The lanes still to come: their top bits for the first word, and the bits below for the
        /// second.
        coming: u64,
        /// The top bits of all lanes.
        tops: u64,
        /// Bits of a lane.
        width: u32,
    },
    /// Decoded slots.
    Slots {
        slots: [[u64; SLOTS]; 2],
        /// Bit i: whether slot i of both buckets is still to come.
        coming: u32,
    },
}

impl Candidates {
    /// No slots.
    #[inline]
    pub(crate) fn none() -> Self {
        Self::Lanes { words: [0; 2], coming: 0, tops: 0, width: 1 }
    }

    /// The plain slots of two words in the lanes that these tops show.
    #[inline]
    pub(super) fn of_lanes(lanes: &Lanes, words: [u64; 2], [home, other]: [u64; 2]) -> Self {
        let coming = home | other >> 1;
        Self::Lanes { words, coming, tops: lanes.tops(), width: lanes.width() }
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

    /// The next slot, and the number of its bucket, 0 or 1.
    #[inline(always)]
    pub(crate) fn next_of_pair(&mut self) -> Option<(usize, u64)> {
        match self {
            Self::Lanes { words, coming, tops, width } => {
                if *coming == 0 {
                    return None;
                }
                let first = lowest(*coming);
                *coming ^= first;
                let is_other = first & *tops == 0;
                let above = first.trailing_zeros() + 1 + u32::from(is_other);
                let slot = either(is_other, *words) >> (above - *width) & low_ones(*width);
                Some((usize::from(is_other), slot))
            }
            Self::Slots { slots, coming } => {
                let i = coming.trailing_zeros() as usize;
                let slot = *slots.as_flattened().get(i)?;
                *coming &= *coming - 1;
                Some((i / SLOTS, slot))
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
