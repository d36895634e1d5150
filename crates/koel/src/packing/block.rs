//! Lookups of a block of keys: their buckets are loaded one by one, and compared in vector code.

use super::bits::{byte_index, read};
use super::coding::Coding;
use super::lanes::{Lanes, Opened};
use super::{Matching, Packing};
use crate::address::geometry::Locations;
use crate::mem::prefetch::{self, prefetch};
use crate::mem::unchecked::Reader;
use crate::mem::vector::{BLOCK, Column, InstructionSet};

/// The largest table that a processor fetches as fast as the loads of a block follow each other.
/// Tests have larger ones too.
const NEAR: usize = if cfg!(test) { 1 << 10 } else { 2 << 20 };

/// Whether a table of `bytes` bytes is in a cache that answers soon. Always true where there are no
/// prefetches, so that the code around them is not compiled.
#[inline]
pub(crate) fn is_near(bytes: usize) -> bool {
    !prefetch::AVAILABLE || bytes <= NEAR
}

/// A block of keys to look up in a table, and the block after it.
pub(crate) struct Batch<'a> {
    pub(crate) set: InstructionSet,
    /// The table, and how far the last byte that is read of a bucket is from the first.
    pub(crate) bytes: &'a [u8],
    pub(crate) reach: usize,
    /// The keys to look up, whose buckets were prefetched.
    pub(crate) ready: &'a Locations,
    /// The keys whose buckets are prefetched meanwhile.
    pub(crate) coming: &'a Locations,
}

impl Batch<'_> {
    /// The keys of location `i`, one for each bucket.
    #[inline]
    pub(super) fn keys<M: Matching>(&self, i: usize) -> [u64; 2] {
        let [home, other] = M::keys(self.ready);
        [home[i], other[i]]
    }

    /// Prefetches the buckets of location `i` of the coming block.
    #[inline(always)]
    pub(super) fn prefetch(&self, i: usize) {
        for column in self.coming.bytes() {
            let byte = byte_index(column[i]);
            prefetch(self.bytes, byte);
            prefetch(self.bytes, byte + self.reach);
        }
    }
}

/// One register of each bucket of a block of locations, in columns.
#[repr(align(64))]
pub(crate) struct Words {
    home: Column,
    home_nibbles: Column,
    other: Column,
    other_nibbles: Column,
}

impl Words {
    pub(crate) fn new() -> Self {
        let column = [0; BLOCK];
        Self { home: column, home_nibbles: column, other: column, other_nibbles: column }
    }

    #[inline(always)]
    fn set<C: Coding>(&mut self, i: usize, home: Opened<u64>, other: Opened<u64>) {
        (self.home[i], self.other[i]) = (home.0, other.0);
        if C::SORTED {
            (self.home_nibbles[i], self.other_nibbles[i]) = (home.1, other.1);
        }
    }
}

/// A packing whose buckets are read from a row of bytes as one or two registers.
pub(super) trait InRegisters: Packing {
    /// How many bytes after the first byte of a bucket its last read starts, at most.
    const LATER: usize;

    /// The registers of a bucket that starts at bit `shift` of a byte. `read(n)` returns the eight
    /// bytes that start `n` bytes after that byte.
    fn open(&self, shift: u32, read: impl Fn(usize) -> u64) -> Self::Registers;

    /// [`Packing::registers`].
    #[inline(always)]
    fn open_at(&self, bytes: &[u8], start: u64) -> Self::Registers {
        let byte = byte_index(start / 8);
        let bytes = &bytes[byte..byte + Self::LATER + 8];
        self.open(Self::Coding::shift(start), |later| read(bytes, later))
    }

    /// [`Packing::match_block`], with a column for each register.
    #[inline(always)]
    fn match_columns<M: Matching>(
        &self,
        batch: &Batch<'_>,
        words: &mut [Words],
        found: &mut [bool; BLOCK],
    ) {
        let reader = Reader::new(batch.bytes, batch.ready.bytes(), Self::LATER, batch.set);
        let open = |column: usize, i: usize, start: u64| {
            self.open(Self::Coding::shift(start), |later| reader.read_later(column, i, later))
        };
        let load = |i: usize| {
            let [home, other] = batch.ready.bits(i);
            [open(0, i, home), open(1, i, other)]
        };
        let (set, size, ready) = (batch.set, batch.bytes.len(), batch.ready);
        match_words::<M, Self>(self, (set, ready, size), words, found, |i| batch.prefetch(i), load);
    }
}

/// Whether either bucket of each location matches its key, in a table of `size` bytes. `prefetch`
/// prefetches location i of the coming block. `load` returns the registers of both buckets of a
/// location; `words` has a column for each.
#[inline(always)]
pub(crate) fn match_words<M: Matching, P: Packing + ?Sized>(
    packing: &P,
    (set, locations, size): (InstructionSet, &Locations, usize),
    words: &mut [Words],
    found: &mut [bool; BLOCK],
    prefetch: impl Fn(usize),
    load: impl Fn(usize) -> [P::Registers; 2],
) {
    let prefetches = P::PREFETCHES_NEAR || !is_near(size);
    for i in 0..BLOCK {
        if prefetches {
            prefetch(i);
        }
        let [home, other] = load(i);
        let pairs = home.as_ref().iter().zip(other.as_ref());
        for (words, (&home, &other)) in words.iter_mut().zip(pairs) {
            words.set::<P::Coding>(i, home, other);
        }
    }
    set.run(
        #[inline(always)]
        || compare::<M, P::Coding>(packing.lanes(), locations, words, found),
    );
}

/// The part of [`match_words`] that is compiled as vector code.
#[inline(always)]
fn compare<M: Matching, C: Coding>(
    lanes: &Lanes,
    locations: &Locations,
    words: &[Words],
    found: &mut [bool; BLOCK],
) {
    let keys = M::keys(locations);
    // Bytes first: one instruction narrows them, where bools would go through a mask register.
    let mut bytes = [0_u8; BLOCK];
    for words in words {
        for (i, byte) in bytes.iter_mut().enumerate() {
            let home = (words.home[i], words.home_nibbles[i]);
            let other = (words.other[i], words.other_nibbles[i]);
            *byte |= lanes.match_byte::<M, C>([home, other], [keys[0][i], keys[1][i]]);
        }
    }
    for (found, byte) in found.iter_mut().zip(bytes) {
        *found = byte != 0;
    }
}
