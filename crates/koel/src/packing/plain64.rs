//! Plain slots in buckets of at most 64 bits: the fastest packing, and the only one whose lanes are
//! the slots.

use super::bits::lowest;
use super::layout::Layout;
use super::narrow::Narrow;
use super::register::Opened;
use super::slot_coding::Plain;
use super::swar::Lanes;

/// Four plain slots in one register.
#[derive(Clone, Copy)]
pub(crate) struct Plain64 {
    lanes: Lanes,
}

impl Plain64 {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { lanes: Lanes::new::<Plain>(layout, 4) }
    }
}

impl Narrow for Plain64 {
    type Coding = Plain;

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The lowest bit of the lane times a slot is the slot in the lane.
    #[inline(always)]
    fn change<const IN_VECTOR: bool>(
        &self,
        _word: Opened<u64>,
        tops: u64,
        old: Option<u64>,
        new: u64,
    ) -> u64 {
        (lowest(tops) >> (self.lanes.width - 1)).wrapping_mul(old.unwrap_or(0) ^ new)
    }
}
