//! The buckets of a block of keys at once: loaded one by one, compared in vector code.

use super::slot_coding::Coding;
use super::sorted_wide::joined;
use super::swar::{Lanes, Opened};
use super::{Matching, Packing, byte_index};
use crate::address::geometry::Locations;
use crate::mem::prefetch::prefetch;
use crate::mem::vector::{BLOCK, Column, InstructionSet};

/// From a table of so many bytes a processor fetches as fast as the loads of a block follow each
/// other. Tests have larger ones too.
const NEAR: usize = if cfg!(test) { 1 << 10 } else { 2 << 20 };

/// Whether a table of `bytes` bytes is in a cache that answers soon.
#[inline]
pub(crate) fn is_near(bytes: usize) -> bool {
    bytes <= NEAR
}

/// A block of keys to be looked up in a table, and the block after it.
pub(crate) struct Batch<'a> {
    pub(crate) set: InstructionSet,
    /// The table, and how far the last byte that is read of a bucket is from the first.
    pub(crate) bytes: &'a [u8],
    pub(crate) reach: usize,
    /// The keys, whose buckets the memory was asked for.
    pub(crate) ready: &'a Locations,
    /// The keys whose buckets the memory is asked for meanwhile.
    pub(crate) coming: &'a Locations,
}

impl Batch<'_> {
    /// What key `i` is compared with.
    #[inline]
    pub(super) fn keys<M: Matching>(&self, i: usize) -> [u64; 2] {
        let [home, other] = M::keys(self.ready);
        [home[i], other[i]]
    }

    /// Asks the memory for the buckets of place `i` of the block after this one.
    #[inline(always)]
    pub(super) fn prefetch(&self, i: usize) {
        for column in self.coming.bytes() {
            let byte = byte_index(column[i]);
            prefetch(self.bytes, byte);
            prefetch(self.bytes, byte + self.reach);
        }
    }

    /// Whether a lookup by this packing asks for the coming buckets: not where that costs more than
    /// it saves.
    #[inline]
    pub(super) fn looks_ahead<P: Packing>(&self) -> bool {
        P::PREFETCHES_NEAR || !is_near(self.bytes.len())
    }
}

/// The buckets of a block of places as registers, in columns.
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

    /// The words of the buckets of place `i`, each beside its nibbles if there are any.
    #[inline(always)]
    pub(crate) fn set<C: Coding>(&mut self, i: usize, [home, other]: [Opened<u64>; 2]) {
        self.set_lanes(i, [home.0, other.0]);
        if C::SORTED {
            (self.home_nibbles[i], self.other_nibbles[i]) = (home.1, other.1);
        }
    }

    /// The words alone.
    #[inline]
    pub(super) fn set_lanes(&mut self, i: usize, [home, other]: [u64; 2]) {
        (self.home[i], self.other[i]) = (home, other);
    }
}

/// Shifts what was loaded from the byte that holds bit `offset` of each bucket, so that it begins
/// with that bit.
#[inline(always)]
pub(super) fn align(locations: &Locations, offset: u64, words: &mut Words) {
    for i in 0..BLOCK {
        let [home, other] = locations.bits(i);
        words.home[i] >>= (home + offset) % 8;
        words.other[i] >>= (other + offset) % 8;
    }
}

/// Makes one word of two reads of each bucket, `words` and `later`.
#[inline(always)]
pub(super) fn join(locations: &Locations, words: &mut Words, later: &Words) {
    for i in 0..BLOCK {
        let [home, other] = locations.bits(i);
        words.home[i] = joined([words.home[i], later.home[i]], home % 8);
        words.other[i] = joined([words.other[i], later.other[i]], other % 8);
    }
}

/// Whether either word of each place matches its key, in any of `words`.
#[inline(always)]
pub(super) fn match_words<M: Matching, C: Coding>(
    lanes: &Lanes,
    locations: &Locations,
    words: &[Words],
    found: &mut [bool; BLOCK],
) {
    let keys = M::keys(locations);
    // Answers as bytes first: these are narrowed by one instruction, where bools would be exchanged
    // with a mask register.
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
