//! Semi-sorted buckets of more than 64 bits whose lanes fit into 64 without their code: one
//! register beside the nibbles.
//!
//! Filters for 0.1 to 0.4 % have them when they have grown. By halves, lookups in batches would
//! take a third longer (docs/decisions/0008-growth.md).

use super::block::{Batch, Words, join, match_words};
use super::bytes::{bit_in_byte, byte_index, read, store};
use super::semisort::{self, Open};
use super::slot_coding::{Coding, Sorted};
use super::swar::{Lanes, Opened, lowest};
use super::{Layout, Matching, Packing, SLOTS};
use crate::mem::unchecked::Reader;
use crate::mem::vector::BLOCK;

/// How many bytes the second read of a bucket is after the first. It has the code, and what the
/// first may lack of the lanes.
const LATER: usize = 2;
/// The same in bits.
const LATER_BITS: u32 = 16;

/// Wide semi-sorted buckets in one register.
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

    /// The nibbles of a bucket of which this is the second read.
    #[inline(always)]
    fn nibbles(&self, later: u64, shift: u32) -> u64 {
        Sorted::nibbles(later >> (4 * self.lanes.width() - LATER_BITS + shift))
    }

    /// All lanes, beside their nibbles. Ten bytes from the start of the bucket are read.
    #[inline(always)]
    fn open(&self, bytes: &[u8], start: u64) -> Opened<u64> {
        let (byte, shift) = (byte_index(start / 8), Sorted::shift(start));
        let bytes = &bytes[byte..byte + LATER + 8];
        let reads = [read(bytes, 0), read(bytes, LATER)];
        (joined(reads, u64::from(shift)), self.nibbles(reads[1], shift))
    }
}

/// What starts at bit `shift` of the first of two reads and goes on in the second.
#[inline]
pub(super) fn joined([first, later]: [u64; 2], shift: u64) -> u64 {
    first >> shift | later << (u64::from(LATER_BITS) - shift)
}

impl Packing for SortedWide {
    #[inline]
    fn slots(&self, bytes: &[u8], start: u64) -> [u64; SLOTS] {
        let (word, nibbles) = self.open(bytes, start);
        let slot = |i| Sorted::slot(self.lanes.lane(word, i), nibbles, i);
        [slot(0), slot(1), slot(2), slot(3)]
    }

    #[inline]
    fn write(&self, bytes: &mut [u8], start: u64, slots: [u64; SLOTS]) {
        let width = self.lanes.width();
        store(bytes, start, Sorted::bucket_bits(width), Sorted::encode(slots, width));
    }

    /// Empty slots come first.
    #[inline]
    fn has_room(&self, bytes: &[u8], start: u64) -> bool {
        if !self.lanes.core_in_lane() {
            return self.slots(bytes, start)[0] == 0;
        }
        let first = read(bytes, byte_index(start / 8)) >> Sorted::shift(start);
        self.lanes.lane(first, 0) == 0
    }

    #[inline]
    fn vacancies(&self, bytes: &[u8], start: u64) -> u64 {
        if !self.lanes.core_in_lane() {
            return super::copies_in(self.slots(bytes, start), 0);
        }
        self.lanes.count(self.lanes.zero(self.open(bytes, start).0))
    }

    #[inline]
    fn matches<M: Matching>(&self, bytes: &[u8], starts: [u64; 2], keys: [u64; 2]) -> bool {
        let words = [self.open(bytes, starts[0]), self.open(bytes, starts[1])];
        self.lanes.pair_matches::<M, Sorted>(words, keys)
    }

    #[inline]
    fn matching<M: Matching>(&self, bytes: &[u8], start: u64, key: u64) -> u32 {
        self.lanes.matching_bits::<M, Sorted>(self.open(bytes, start), key, 4)
    }

    #[inline]
    fn replace(&self, bytes: &mut [u8], start: u64, old: u64, new: u64) -> bool {
        let (lanes, nibbles) = self.open(bytes, start);
        let pattern = self.lanes.pattern::<Sorted>(old);
        let equal = self.lanes.equal::<u64, Sorted>((lanes, nibbles), pattern);
        if equal == 0 {
            return false;
        }
        let (top, width) = (lowest(equal), self.lanes.width());
        let lane = self.lanes.count((top - 1) & self.lanes.tops());
        let open = Open { lanes, nibbles, width }.replace((top, lane), old, new);
        let end = 4 * width;
        let lanes = u128::from(open.lanes) & (u128::MAX >> (u128::BITS - end));
        let word = lanes | u128::from(semisort::code_of(open.nibbles)) << end;
        store(bytes, start, Sorted::bucket_bits(width), word);
        true
    }

    /// The first reads are in the first of `words`, the second ones in the second.
    #[inline]
    fn match_block<M: Matching>(
        &self,
        batch: &Batch<'_>,
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        let [first, later] = words;
        let reader = Reader::<LATER>::new(batch.bytes, batch.ready.bytes(), batch.set);
        for i in 0..BLOCK {
            batch.prefetch(i);
            let [home, other] = batch.ready.bits(i);
            let second = [reader.read_later(0, i), reader.read_later(1, i)];
            let nibbles = |read: u64, bit: u64| self.nibbles(read, bit_in_byte(bit));
            let (of_home, of_other) = (nibbles(second[0], home), nibbles(second[1], other));
            first.set::<Sorted>(i, [(reader.read(0, i), of_home), (reader.read(1, i), of_other)]);
            later.set_lanes(i, second);
        }
        batch.set.run(
            #[inline(always)]
            || {
                join(batch.ready, first, later);
                match_words::<M, Sorted>(
                    &self.lanes,
                    batch.ready,
                    core::slice::from_ref(first),
                    found,
                );
            },
        );
    }
}
