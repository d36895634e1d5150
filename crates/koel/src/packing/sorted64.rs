//! Semi-sorted slots in buckets of at most 64 bits: one bit less for each slot, at the price of a
//! look at the code.
//!
//! A bucket may start in the middle of a byte. Its 64 bits from that byte on are enough: one of
//! more than 60 bits has all 64, and starts with a byte.

use super::semisort::{self, Open};
use super::slot_coding::Sorted;
use super::swar::{Lanes, Opened, lowest};
use super::{Layout, Narrow};

/// Four semi-sorted slots in one register.
#[derive(Clone, Copy)]
pub(crate) struct Sorted64 {
    lanes: Lanes,
    /// The bits of the bucket.
    bucket: u64,
}

impl Sorted64 {
    pub(crate) fn new(layout: Layout) -> Self {
        let bucket = u64::MAX >> (u64::BITS - layout.bucket_bits());
        Self { lanes: Lanes::new::<Sorted>(layout, 4), bucket }
    }

    /// Whether blocks of new entries can be planned: whether lanes show the cores of fingerprints.
    pub(crate) fn plans_entries(&self) -> bool {
        self.lanes.core_in_lane()
    }

    #[inline]
    fn opened(&self, (lanes, nibbles): Opened<u64>) -> Open {
        Open { lanes, nibbles, width: self.lanes.width() }
    }

    /// The number of the lane with this top bit.
    #[inline]
    fn lane_of(&self, top: u64) -> u64 {
        self.lanes.count(top.wrapping_sub(1) & self.lanes.tops())
    }

    /// The bits of a word that change when it becomes `closed`.
    #[inline]
    fn difference(&self, word: Opened<u64>, closed: u64) -> u64 {
        (word.0 ^ closed) & self.bucket
    }
}

impl Narrow for Sorted64 {
    type Coding = Sorted;

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// A slot is filled in the integer unit, which needs the words there. The way to the vector
    /// unit and back would cost more than it saves.
    #[inline]
    fn may_equal(&self, [one, other]: [u64; 2], slot: u64) -> bool {
        let pattern = self.lanes.pattern::<Sorted>(slot).lanes;
        (self.lanes.any_zero(one ^ pattern) | self.lanes.any_zero(other ^ pattern)) != 0
    }

    #[inline]
    fn empty(&self, words: [u64; 2]) -> [u64; 2] {
        words.map(|word| {
            if self.lanes.core_in_lane() { self.lanes.zero(word) } else { self.equal(word, 0) }
        })
    }

    /// Empty slots come first, so more of them are a greater number.
    #[inline]
    fn is_emptier(&self, these: u64, those: u64) -> bool {
        these > those
    }

    #[inline]
    fn word_has_room(&self, word: u64) -> bool {
        if self.lanes.core_in_lane() {
            self.lanes.lane(word, 0) == 0
        } else {
            self.equal(word, 0) != 0
        }
    }

    #[inline(always)]
    fn change(&self, word: Opened<u64>, tops: u64, old: u64, new: u64) -> u64 {
        let top = lowest(tops);
        let open = self.opened(word).replace((top, self.lane_of(top)), old, new);
        self.difference(word, open.close(semisort::code_of(open.nibbles)))
    }

    #[inline(always)]
    fn filled(&self, word: Opened<u64>, _room: u64, slot: u64) -> u64 {
        let open = self.opened(word).with(slot);
        self.difference(word, open.close(semisort::computed_code_of(open.nibbles)))
    }

    #[inline(always)]
    fn emptied(&self, word: Opened<u64>, top: u64, _slot: u64) -> u64 {
        let open = self.opened(word).without((top, self.lane_of(top)));
        self.difference(word, open.close(semisort::computed_code_of(open.nibbles)))
    }
}
