//! What a table asks of its addressing: which buckets a key may live in, and what an entry stands
//! for.
//!
//! An entry stands for the first bits of its keys, its [`Prefix`]. `Geometry` is the addressing of
//! a table of one size: all prefixes are equally long, so entries that match one key are equal.
//! `LinearHashing` is the addressing of a table that grows: prefixes differ in length.

use crate::address::geometry::{Geometry, Locations};
use crate::mem::vector::{Column, InstructionSet};
use crate::packing::{Layout, Matching, SLOTS, Widening};

/// The first bits of a string, with what else names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) core: u64,
    /// One of the two base buckets.
    pub(crate) base: u64,
    /// The bits, the first one lowest. Bits from `length` on have no meaning.
    pub(crate) string: u64,
    /// How many bits of the string count. A key has all of them.
    pub(crate) length: u32,
}

impl Prefix {
    /// Whether every key of `other`, a prefix with the same base buckets, has this prefix too.
    #[inline]
    pub(crate) fn is_start_of(&self, other: &Self) -> bool {
        self.in_common(other) == Some(self.length)
    }

    /// How many first bits two prefixes with the same base buckets share. `None` if their cores
    /// differ.
    #[inline]
    pub(crate) fn in_common(&self, other: &Self) -> Option<u32> {
        let common = (self.string ^ other.string).trailing_zeros();
        (self.core == other.core).then(|| common.min(self.length).min(other.length))
    }

    /// The two prefixes that are one bit longer.
    pub(crate) fn continuations(self) -> [Self; 2] {
        [0, 1].map(|bit| {
            let string = self.string & !(1 << self.length) | bit << self.length;
            Self { string, length: self.length + 1, ..self }
        })
    }
}

/// An entry: its bucket, the content of its slot, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) bucket: u64,
    pub(crate) slot: u64,
    pub(crate) prefix: Prefix,
}

/// Where the keys of a table may live, and what its entries stand for.
pub(crate) trait Addressing: Clone {
    /// How an entry is compared with a key.
    type Matching: Matching;

    /// The two buckets of a key, and what its entries are compared with.
    type Location: Copy;

    /// Whether the table grows, so that the entries that match a key may differ in length.
    const GROWS: bool;

    /// The addresses that the table was built with.
    fn base(&self) -> &Geometry;

    /// Buckets of the whole table.
    fn buckets(&self) -> u64;

    /// How far the widening of the buckets is, while it lasts.
    fn widening(&self) -> Option<Widening> {
        None
    }

    /// Locates the addresses that `write` writes, in a table of buckets of `bucket_bits` bits.
    fn locate_many(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        write: impl FnOnce(&mut Column),
        locations: &mut Locations,
    );

    /// Where the key with this address may live.
    fn locate(&self, address: u64) -> Self::Location;

    /// Where key `i` of a block may live now. The table may have grown since the block was located.
    fn locate_in_block(&self, locations: &Locations, i: usize) -> Self::Location;

    /// Where an entry with this prefix may live. `None` if the prefix is too short to tell.
    fn location(&self, prefix: Prefix) -> Option<Self::Location>;

    /// The same location after the table has grown.
    fn relocate(&self, location: &Self::Location) -> Self::Location {
        *location
    }

    /// Both buckets.
    fn pair(location: &Self::Location) -> (u64, u64);

    /// The first bucket of the segment, where [`other_buckets`](Self::other_buckets) needs it.
    fn segment_start(location: &Self::Location) -> u64;

    /// The fingerprint in each of the two buckets.
    fn fingerprints(&self, location: &Self::Location) -> [u64; 2];

    /// Whether an entry whose fingerprint matches has no bit more than the location.
    fn is_match(location: &Self::Location, prefix: &Prefix) -> bool;

    /// Whether the prefix of a location is too short to tell one of its buckets.
    fn is_short(&self, _location: &Self::Location) -> bool {
        false
    }

    /// What a fingerprint stands for in a bucket.
    fn prefix(&self, bucket: u64, fingerprint: u64) -> Prefix;

    /// The length of the prefix that one of the two buckets stores for a location.
    fn stored_length(&self, location: &Self::Location, which: usize) -> u32;

    /// The length of prefix that every bucket can store.
    fn common_length(&self) -> u32;

    /// The probability, in units of 2^-64, that an entry of this length matches a key with its core
    /// and base bucket. Only a table that grows needs it.
    fn weight_of(length: u32) -> u128 {
        if Self::GROWS { (u128::from(u64::MAX) + 1) >> length } else { 0 }
    }

    /// The other bucket of each slot of a full bucket, in the segment that starts at `base`. A slot
    /// that does not tell its other bucket gets `bucket`.
    fn other_buckets(
        &self,
        layout: Layout,
        base: u64,
        bucket: u64,
        slots: [u64; SLOTS],
    ) -> [u64; SLOTS];

    /// Whether a fingerprint loses bits when its entry moves to `other`, its other bucket.
    fn loses_bits(&self, _bucket: u64, _fingerprint: u64, _other: u64) -> bool {
        false
    }

    /// The content that the slot of an entry has in `other`, its other bucket, and the match weight
    /// that the bits it loses there add.
    fn moved_slot(&self, _layout: Layout, _bucket: u64, slot: u64, _other: u64) -> (u64, u128) {
        (slot, 0)
    }

    /// The other base bucket of the keys of this prefix.
    fn other_base(&self, prefix: &Prefix) -> u64;

    /// The bucket that base bucket `base` has become for this prefix. `None` if the prefix is too
    /// short to tell.
    fn bucket_of(&self, base: u64, prefix: &Prefix) -> Option<u64>;

    /// The name of an entry, which growth does not change.
    fn identity(&self, prefix: &Prefix) -> u64;

    /// The prefix with this name, if there is one.
    fn named(&self, identity: u64) -> Option<Prefix>;
}
