//! Plain slots in buckets of at most 64 bits: the fastest packing, and the only one whose lanes are
//! the slots.

use wide::u64x2;

use super::bytes::byte_index;
use super::slot_coding::Plain;
use super::swar::{Lanes, Opened, lowest};
use super::{Layout, Narrow};

/// Four plain slots in one register.
#[derive(Clone, Copy)]
pub(crate) struct Plain64 {
    lanes: Lanes,
}

impl Plain64 {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { lanes: Lanes::new::<Plain>(layout, 4) }
    }

    /// The lowest of `tops` as the lowest bit of its lane: times a slot, it is the slot there.
    #[inline]
    fn unit(&self, tops: u64) -> u64 {
        lowest(tops) >> (self.lanes.width() - 1)
    }
}

impl Narrow for Plain64 {
    type Coding = Plain;

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Buckets are whole bytes.
    #[inline]
    fn position(bucket: u64, bucket_bits: u64) -> (usize, u32) {
        (byte_index(bucket * (bucket_bits / 8)), 0)
    }

    #[inline]
    fn may_equal(&self, words: [u64; 2], slot: u64) -> bool {
        let pattern = u64x2::new([self.lanes.pattern::<Plain>(slot).lanes; 2]);
        let [one, other] = self.lanes.any_zero(u64x2::new(words) ^ pattern).to_array();
        (one | other) != 0
    }

    #[inline]
    fn empty(&self, words: [u64; 2]) -> [u64; 2] {
        self.lanes.zero(u64x2::new(words)).to_array()
    }

    #[inline]
    fn is_emptier(&self, these: u64, those: u64) -> bool {
        self.lanes.more(these, those)
    }

    #[inline]
    fn word_has_room(&self, word: u64) -> bool {
        self.lanes.any_zero(word) != 0
    }

    #[inline]
    fn change(&self, _word: Opened<u64>, tops: u64, old: u64, new: u64) -> u64 {
        self.unit(tops).wrapping_mul(old ^ new)
    }

    #[inline(always)]
    fn filled(&self, _word: Opened<u64>, room: u64, slot: u64) -> u64 {
        self.unit(room).wrapping_mul(slot)
    }

    #[inline(always)]
    fn emptied(&self, _word: Opened<u64>, top: u64, slot: u64) -> u64 {
        (top >> (self.lanes.width() - 1)).wrapping_mul(slot)
    }
}
