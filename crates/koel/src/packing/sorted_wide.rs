//! Semi-sorted buckets of more than 64 bits whose lanes fit into one register.
//!
//! Filters for 0.1 to 0.4 % have them when they have grown. Read as halves, batched lookups would
//! take a third longer (docs/decisions/0008-growth.md).

use super::bits::{entry, store};
use super::block::{Batch, InRegisters, Words};
use super::coding::{Coding, Sorted, code_of};
use super::lanes::{Lanes, Opened};
use super::layout::Layout;
use super::narrow::replaced;
use super::{Matching, Packing};
use crate::mem::vector::BLOCK;

/// How many bytes after the first read of a bucket the second one starts. It has the code, and the
/// lanes that the first may lack.
const LATER: usize = 2;
/// The same in bits.
const LATER_BITS: u32 = 16;

/// Four wide semi-sorted slots: lanes in one register.
#[derive(Clone, Copy)]
pub(crate) struct SortedWide {
    lanes: Lanes,
}

impl SortedWide {
    /// Whether the lanes of a semi-sorted bucket fit into 64 bits.
    pub(super) fn fits(layout: Layout) -> bool {
        4 * (layout.slot_bits() - Sorted::CUT) <= u64::BITS
    }

    pub(super) fn new(layout: Layout) -> Self {
        Self { lanes: Lanes::new::<Sorted>(layout, 4) }
    }
}

impl InRegisters for SortedWide {
    const LATER: usize = LATER;

    #[inline(always)]
    fn open(&self, shift: u32, read: impl Fn(usize) -> u64) -> [Opened<u64>; 1] {
        let (first, later) = (read(0), read(LATER));
        let nibbles = Sorted::nibbles(later >> (4 * self.lanes.width - LATER_BITS + shift));
        [(first >> shift | later << (LATER_BITS - shift), nibbles)]
    }
}

impl Packing for SortedWide {
    type Coding = Sorted;
    type Registers = [Opened<u64>; 1];

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    #[inline]
    fn registers(&self, bytes: &[u8], start: u64) -> [Opened<u64>; 1] {
        self.open_at(bytes, start)
    }

    #[inline]
    fn match_block<M: Matching>(
        &self,
        batch: &Batch<'_>,
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        self.match_columns::<M>(batch, &mut words[..1], found);
    }

    #[inline]
    fn replace(&self, bytes: &mut [u8], start: u64, old: u64, new: u64) -> bool {
        let [word] = self.registers(bytes, start);
        let equal = self.lanes.holding::<Sorted>(word, old);
        if equal != 0 {
            let width = self.lanes.width;
            let (lanes, nibbles) = replaced(&self.lanes, word, equal, entry(old), new);
            let word = u128::from(lanes) | u128::from(code_of(nibbles)) << (4 * width);
            store(bytes, start, Sorted::bucket_bits(width), word);
        }
        equal != 0
    }
}
