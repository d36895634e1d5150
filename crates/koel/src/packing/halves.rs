//! Buckets of 65 to 128 bits in two registers of two lanes each: a shift or a comparison in one of
//! 128 bits takes several times as many instructions, and cannot be vector code.
//!
//! ```text
//!     | code | lane 3 | lane 2 | lane 1 | lane 0 |        no code above plain lanes
//!              '- upper half -' '- lower half -'
//! ```
//!
//! Each half is loaded from the byte that it starts in.

use core::marker::PhantomData;

use super::block::{Batch, Words, align, match_words};
use super::bytes::{bit_in_byte, byte_index, read, store};
use super::slot_coding::Coding;
use super::swar::{Lanes, Opened};
use super::{Layout, Matching, Packing, SLOTS};
use crate::mem::vector::BLOCK;

/// So many bytes from the start of a bucket are in the table: it has more than 8 itself, and 16 of
/// padding follow the last one.
pub(super) const WINDOW: usize = 24;

/// Plain or semi-sorted buckets, by halves.
#[derive(Clone, Copy)]
pub(crate) struct Halves<C> {
    /// The lanes of a half.
    lanes: Lanes,
    coding: PhantomData<C>,
}

impl<C: Coding> Halves<C> {
    pub(super) fn new(layout: Layout) -> Self {
        Self { lanes: Lanes::new::<C>(layout, 2), coding: PhantomData }
    }

    /// Bits that are read of a bucket, from the byte on that it starts in.
    pub(super) fn bits_read(&self) -> usize {
        128.max(4 + 4 * self.lanes.width() as usize + 64)
    }

    /// How far the upper half is from the start of the bucket.
    #[inline]
    fn half(&self) -> u64 {
        2 * u64::from(self.lanes.width())
    }

    /// Reads what is at so many bits from the start of a bucket: eight bytes from the one that
    /// holds that bit, and which of its bits that is.
    #[inline(always)]
    fn reader(bytes: &[u8], start: u64) -> impl Fn(u64) -> (u64, u32) {
        let (byte, shift) = (byte_index(start / 8), C::shift(start));
        let range = byte..byte + WINDOW;
        let bytes: &[u8; WINDOW] = bytes[range].try_into().expect("a range of so many bytes");
        move |offset| {
            let bit = u64::from(shift) + offset;
            // The remainder is the number itself, of a bit among 128. It tells the compiler that
            // one check of the table's length is enough for all reads.
            (read(bytes, byte_index(bit / 8) % (WINDOW - 8)), bit_in_byte(bit))
        }
    }

    /// The halves as `read` gives them, not shifted yet, and the nibbles of both.
    #[inline(always)]
    fn raw(&self, read: impl Fn(u64) -> (u64, u32)) -> [u64; 3] {
        let (code, shift) = if C::SORTED { read(2 * self.half()) } else { (0, 0) };
        [read(0).0, read(self.half()).0, C::nibbles(code >> shift)]
    }

    /// The halves, each beside its nibbles.
    #[inline]
    fn open(&self, bytes: &[u8], start: u64) -> [Opened<u64>; 2] {
        let read = Self::reader(bytes, start);
        let load = |offset| {
            let (bits, shift) = read(offset);
            bits >> shift
        };
        let nibbles = if C::SORTED { C::nibbles(load(2 * self.half())) } else { 0 };
        [(load(0), nibbles), (load(self.half()), nibbles >> 8)]
    }
}

impl<C: Coding> Packing for Halves<C> {
    #[inline]
    fn slots(&self, bytes: &[u8], start: u64) -> [u64; SLOTS] {
        let [lower, upper] = self.open(bytes, start);
        let slot = |(word, nibbles), i| C::slot(self.lanes.lane(word, i), nibbles, i);
        [slot(lower, 0), slot(lower, 1), slot(upper, 0), slot(upper, 1)]
    }

    #[inline]
    fn write(&self, bytes: &mut [u8], start: u64, slots: [u64; SLOTS]) {
        let width = self.lanes.width();
        store(bytes, start, C::bucket_bits(width), C::encode(slots, width));
    }

    #[inline]
    fn has_room(&self, bytes: &[u8], start: u64) -> bool {
        if !self.lanes.core_in_lane() {
            return self.slots(bytes, start).contains(&0);
        }
        if C::SORTED {
            // Empty slots come first.
            let first = read(bytes, byte_index(start / 8)) >> C::shift(start);
            return self.lanes.lane(first, 0) == 0;
        }
        let [lower, upper] = self.open(bytes, start).map(|(word, _)| self.lanes.any_zero(word));
        (lower | upper) != 0
    }

    #[inline]
    fn vacancies(&self, bytes: &[u8], start: u64) -> u64 {
        if !self.lanes.core_in_lane() {
            return super::copies_in(self.slots(bytes, start), 0);
        }
        let empty = |(word, _)| self.lanes.count(self.lanes.zero(word));
        self.open(bytes, start).map(empty).iter().sum()
    }

    #[inline]
    fn matches<M: Matching>(&self, bytes: &[u8], starts: [u64; 2], keys: [u64; 2]) -> bool {
        let (home, other) = (self.open(bytes, starts[0]), self.open(bytes, starts[1]));
        self.lanes.pair_matches::<M, C>(home, [keys[0]; 2])
            | self.lanes.pair_matches::<M, C>(other, [keys[1]; 2])
    }

    #[inline]
    fn matching<M: Matching>(&self, bytes: &[u8], start: u64, key: u64) -> u32 {
        let [lower, upper] = self.open(bytes, start);
        let bits = |half| self.lanes.matching_bits::<M, C>(half, key, 2);
        bits(lower) | bits(upper) << 2
    }

    /// The lower halves are in the first of `words`, the upper ones in the second.
    #[inline]
    fn match_block<M: Matching>(
        &self,
        batch: &Batch<'_>,
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        for i in 0..BLOCK {
            let [lower, upper] = &mut *words;
            batch.prefetch(i);
            let [home, other] = batch.ready.bits(i);
            let raw = |start| self.raw(Self::reader(batch.bytes, start));
            let (home, other) = (raw(home), raw(other));
            lower.set::<C>(i, [(home[0], home[2]), (other[0], other[2])]);
            upper.set::<C>(i, [(home[1], home[2] >> 8), (other[1], other[2] >> 8)]);
        }
        batch.set.run(
            #[inline(always)]
            || {
                let [lower, upper] = &mut *words;
                if C::SORTED {
                    align(batch.ready, 0, lower);
                }
                align(batch.ready, self.half(), upper);
                match_words::<M, C>(&self.lanes, batch.ready, words, found);
            },
        );
    }
}

#[cfg(test)]
impl<C: Coding> Halves<C> {
    /// The last bit that is read of a bucket that starts at bit `shift` of a byte.
    pub(super) fn last_bit_read(&self, shift: u64) -> u64 {
        let last = core::cell::Cell::new(0);
        self.raw(|offset| {
            last.set(last.get().max((shift + offset) / 8 * 8 + 63));
            (0, 0)
        });
        last.get()
    }
}
