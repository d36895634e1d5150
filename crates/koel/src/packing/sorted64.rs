//! Semi-sorted slots in buckets of at most 64 bits: one bit less for each slot, for the cost of
//! decoding the nibbles.
//!
//! A bucket may start in the middle of a byte. The 64 bits from that byte on have all of it: a
//! bucket of more than 60 bits has 64, and starts with a byte.

use super::bits::lowest;
use super::layout::Layout;
use super::narrow::Narrow;
use super::register::Opened;
use super::semisort::{self, Open};
use super::slot_coding::Sorted;
use super::swar::Lanes;

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
        self.lanes.core_in_lane
    }
}

impl Narrow for Sorted64 {
    type Coding = Sorted;

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    #[inline(always)]
    fn change<const IN_VECTOR: bool>(
        &self,
        word: Opened<u64>,
        tops: u64,
        old: Option<u64>,
        new: u64,
    ) -> u64 {
        let (lanes, nibbles) = replaced(&self.lanes, word, tops, old, new);
        let code = if IN_VECTOR {
            semisort::computed_code_of(nibbles)
        } else {
            semisort::code_of(nibbles)
        };
        (word.0 ^ (lanes | code << (4 * self.lanes.width))) & self.bucket
    }
}

/// The lanes of a word, without anything above them, and its nibbles, after `new` has replaced
/// entry `old` in the lowest lane of `tops`. An `old` of `None` and a `new` of 0 are empty slots.
#[inline(always)]
pub(super) fn replaced(
    lanes: &Lanes,
    word: Opened<u64>,
    tops: u64,
    old: Option<u64>,
    new: u64,
) -> Opened<u64> {
    let (top, width) = (lowest(tops), lanes.width);
    let lane = lanes.count(top.wrapping_sub(1) & lanes.tops());
    let open = Open { lanes: word.0, nibbles: word.1, width };
    let rest = if old.is_none() { open } else { open.without((top, lane)) };
    let open = if new == 0 { rest } else { rest.with(new) };
    (open.lanes & (u64::MAX >> (u64::BITS - 4 * width)), open.nibbles)
}
