//! Buckets of 65 to 128 bits in two registers of two lanes each. Operations on one register of 128
//! bits take several times as many instructions, and cannot become vector code.
//!
//! ```text
//!     | code | lane 3 | lane 2 | lane 1 | lane 0 |        no code above plain lanes
//!              '- upper half -' '- lower half -'
//! ```
//!
//! Each half is read from the byte that it starts in.

use core::marker::PhantomData;

use super::bits::{bit_in_byte, byte_index};
use super::block::{Batch, InRegisters, Words};
use super::coding::Coding;
use super::lanes::{Lanes, Opened};
use super::layout::Layout;
use super::{Matching, Packing};
use crate::mem::vector::BLOCK;

/// How many bytes after the first byte of a bucket a read starts, at most. 24 bytes are always in
/// the table: the bucket has more than 8 itself, and 16 of padding follow the last one.
pub(super) const LATER: usize = 16;

/// Plain or semi-sorted buckets, as halves.
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
        128.max(4 + 4 * self.lanes.width as usize + 64)
    }
}

impl<C: Coding> InRegisters for Halves<C> {
    const LATER: usize = LATER;

    #[inline(always)]
    fn open(&self, shift: u32, read: impl Fn(usize) -> u64) -> [Opened<u64>; 2] {
        let half = 2 * u64::from(self.lanes.width);
        let load = |offset: u64| {
            let bit = u64::from(shift) + offset;
            // The remainder is the number itself. It tells the compiler that one check of the
            // table's length is enough for all reads.
            read(byte_index(bit / 8) % LATER) >> bit_in_byte(bit)
        };
        let nibbles = if C::SORTED { C::nibbles(load(2 * half)) } else { 0 };
        [(load(0), nibbles), (load(half), nibbles >> 8)]
    }
}

impl<C: Coding> Packing for Halves<C> {
    type Coding = C;
    type Registers = [Opened<u64>; 2];

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    #[inline]
    fn registers(&self, bytes: &[u8], start: u64) -> [Opened<u64>; 2] {
        self.open_at(bytes, start)
    }

    #[inline]
    fn match_block<M: Matching>(
        &self,
        batch: &Batch<'_>,
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        self.match_columns::<M>(batch, words, found);
    }
}

#[cfg(test)]
impl<C: Coding> Halves<C> {
    /// The last bit that is read of a bucket that starts at bit `shift` of a byte.
    pub(super) fn last_bit_read(&self, shift: u32) -> u64 {
        let last = core::cell::Cell::new(0);
        self.open(shift, |later| {
            last.set(last.get().max(8 * later as u64 + 63));
            0
        });
        last.get()
    }
}
