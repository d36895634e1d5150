//! The cuckoo table: buckets in a row of bytes, each entry in one of its two buckets.
//!
//! ```text
//!     | bucket 0 | bucket 1 | ... | bucket N-1 | zeros to a multiple of 8 bytes | 16 zeros |
//! ```
//!
//! The zeros at the end let every bucket be read as a whole register. A lookup loads both buckets
//! before it looks at either, so that the two cache misses overlap. All methods work on single
//! entries in single buckets; `placement.rs` says which entries may move where, and `packing/` how
//! a bucket is read and written.

use alloc::vec::Vec;

use crate::address::geometry::{Geometry, Locations};
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::mem::vector::{BLOCK, Column, InstructionSet};
use crate::packing::{
    AnyPacking, Batch, Bucket, Layout, Matching, Packing, SLOTS, Widening, bit_in_byte, byte_index,
    load, with_packing,
};

pub(crate) mod blocks;
mod cuckoo;
mod edits;
mod fixed;
mod growing;
mod grown;
mod linear_hashing;
mod load;
mod matches;
mod pair;
mod room;
pub(crate) mod search;
mod widening;

pub(crate) use crate::packing::{Candidates, Put, Taken, Words};
pub(crate) use cuckoo::{Cuckoo, CuckooMut, EntryTest, LocationOf, Removed, grows};
pub(crate) use edits::BlockEdits;
pub(crate) use growing::Growing;
pub(crate) use linear_hashing::{GrowingLocation, LeveledBucket, LinearHashing};
pub(crate) use load::{FULL_LOAD, has_room_for};
pub(crate) use matches::{Match, Prefix, Prefixes};
pub(crate) use pair::BucketPairMut;

/// Zeros behind the last bucket, so that it can be read like any other.
const PADDING: usize = 16;

/// Bytes of a table of `buckets` buckets; `None` where no machine could address them.
pub(crate) fn table_bytes(layout: Layout, buckets: u64) -> Option<usize> {
    let bits = buckets.checked_mul(u64::from(layout.bucket_bits()))?;
    let words = usize::try_from(bits.div_ceil(64)).ok()?;
    words.checked_mul(8)?.checked_add(PADDING).filter(|&bytes| isize::try_from(bytes).is_ok())
}

/// Buckets and their shape. The addressing `A` says where a key may live: [`Geometry`] in a table
/// of one size, `LinearHashing` in one that grows.
///
/// The invariant that unchecked reads rely on: `bytes` has all buckets and the padding behind them.
#[derive(Clone)]
pub(crate) struct Table<B, A = Geometry> {
    geometry: A,
    layout: Layout,
    packing: AnyPacking,
    bucket_bits: u64,
    /// The bit at which the last bucket ends.
    end: u64,
    /// How far the last byte that is read of a bucket is from the first.
    reach: usize,
    bytes: B,
}

/// The same addressing, layout and bytes.
impl<B: PartialEq, A: PartialEq> PartialEq for Table<B, A> {
    fn eq(&self, other: &Self) -> bool {
        self.geometry == other.geometry && self.layout == other.layout && self.bytes == other.bytes
    }
}

/// Where the keys of a table may live, and how entries are compared with them.
pub(crate) trait Addressing: Clone {
    /// How an entry matches a key.
    type Matching: Matching;

    /// Buckets of the whole table.
    fn buckets(&self) -> u64;

    /// How far the table is, if its buckets are being widened.
    fn widening(&self) -> Option<Widening> {
        None
    }

    /// The places of the hashes that `hash` writes, in buckets of so many bits.
    fn locate_many(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        hash: impl FnOnce(&mut Column),
        locations: &mut Locations,
    );

    /// What entries in the one and the other bucket of place `i` are compared with.
    #[inline]
    fn keys(locations: &Locations, i: usize) -> [u64; 2] {
        let [home, other] = Self::Matching::keys(locations);
        [home[i], other[i]]
    }
}

/// What a walk over blocks of keys needs of a table, of plain bytes or of atomic words.
pub(crate) trait Buckets {
    /// The places of the hashes that `hash` writes.
    fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        locations: &mut Locations,
    );

    /// Asks the memory for both buckets of place `i`.
    fn prefetch_both(&self, locations: &Locations, i: usize);
}

impl<B: Buckets> Buckets for &B {
    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        (*self).locate_many(set, hash, locations);
    }

    #[inline]
    fn prefetch_both(&self, locations: &Locations, i: usize) {
        (*self).prefetch_both(locations, i);
    }
}

impl<B: AsRef<[u8]>, A: Addressing> Buckets for Table<B, A> {
    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        self.geometry.locate_many(set, self.bucket_bits, hash, locations);
    }

    #[inline(always)]
    fn prefetch_both(&self, locations: &Locations, i: usize) {
        for column in locations.bytes() {
            self.prefetch_from(byte_index(column[i]));
        }
    }
}

/// Whatever the addressing.
impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// The table in `bytes`, which are as many as [`table_bytes`] says.
    pub(crate) fn new(geometry: A, layout: Layout, bytes: B) -> Self {
        assert_eq!(Some(bytes.as_ref().len()), table_bytes(layout, geometry.buckets()));
        let packing = AnyPacking::new(layout, geometry.widening());
        let (bucket_bits, reach) = (u64::from(layout.bucket_bits()), packing.reach());
        let end = geometry.buckets() * bucket_bits;
        Self { geometry, layout, packing, bucket_bits, end, reach, bytes }
    }

    pub(crate) fn geometry(&self) -> &A {
        &self.geometry
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Where a bucket starts.
    #[inline]
    fn start<P: Packing>(&self, _packing: &P, bucket: u64) -> u64 {
        P::start(bucket, self.bucket_bits)
    }

    /// The same of a pair.
    #[inline]
    fn starts<P: Packing>(&self, packing: &P, (home, other): (u64, u64)) -> [u64; 2] {
        [self.start(packing, home), self.start(packing, other)]
    }

    /// Asks the memory for a bucket: for the first byte that is read of it and for the last one,
    /// which may be in another cache line, even where the bucket itself ends before.
    #[inline]
    fn prefetch(&self, bucket: u64) {
        self.prefetch_from(byte_index(bucket * self.bucket_bits / 8));
    }

    /// The same for a bucket that starts in this byte.
    #[inline(always)]
    fn prefetch_from(&self, byte: usize) {
        for byte in [byte, byte + self.reach] {
            prefetch(self.bytes(), byte);
        }
    }

    /// The decoded bucket.
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        Bucket(with_packing!(&self.packing, packing => self.slots_in(packing, bucket)))
    }

    #[inline(always)]
    fn slots_in<P: Packing>(&self, packing: &P, bucket: u64) -> [u64; SLOTS] {
        packing.slots(self.bytes(), self.start(packing, bucket))
    }

    /// Whether a slot of `bucket` is empty.
    #[inline(always)]
    fn has_room_in<P: Packing>(&self, packing: &P, bucket: u64) -> bool {
        packing.has_room(self.bytes(), self.start(packing, bucket))
    }

    /// The bucket as it is stored, in a table without values: with them, it may have more bits.
    pub(crate) fn word(&self, bucket: u64) -> u128 {
        load(self.bytes(), bucket * self.bucket_bits, self.layout.bucket_bits())
    }

    /// Whether entries match the keys of a block of places, whose buckets the memory was asked for,
    /// while it is asked for those of the `coming` block.
    pub(crate) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Locations, &Locations),
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        let batch = Batch { set, bytes: self.bytes(), reach: self.reach, ready, coming };
        with_packing!(
            &self.packing,
            packing => packing.match_block::<A::Matching>(&batch, words, found)
        );
    }

    /// The slots of a pair of buckets that match the key of either. O(1): two loads.
    #[inline]
    pub(crate) fn candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Candidates {
        with_packing!(&self.packing, packing => self.candidates_in(packing, pair, keys))
    }

    /// The same where slots are plain, in 64 bits; `None` elsewhere.
    #[inline(always)]
    pub(crate) fn plain_candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Option<Candidates> {
        match &self.packing {
            AnyPacking::Plain64(packing) => Some(self.candidates_in(packing, pair, keys)),
            _ => None,
        }
    }

    #[inline(always)]
    fn candidates_in<P: Packing>(
        &self,
        packing: &P,
        pair: (u64, u64),
        keys: [u64; 2],
    ) -> Candidates {
        packing.candidates::<A::Matching>(self.bytes(), self.starts(packing, pair), keys)
    }

    /// A copy in memory of its own, to grow in if it `grows`. `None` where the system has no memory
    /// for it.
    pub(crate) fn to_owned_table(&self, grows: bool) -> Option<Table<Buffer, A>> {
        let bytes = Buffer::copy_of(self.bytes(), grows)?;
        Some(Table::new(self.geometry.clone(), self.layout, bytes))
    }

    /// Whether all bits behind the last bucket are zero.
    pub(crate) fn is_padded_with_zeros(&self) -> bool {
        let rest = &self.bytes()[byte_index(self.end / 8)..];
        rest[0] >> bit_in_byte(self.end) == 0 && rest[1..].iter().all(|&byte| byte == 0)
    }

    /// All buckets in order, decoded.
    #[cfg(any(test, all(feature = "std", target_has_atomic = "64")))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> {
        (0..self.geometry.buckets()).map(|bucket| self.read(bucket))
    }
}

impl<A: Addressing> Table<Buffer, A> {
    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        self.bytes.as_mut().fill(0);
    }

    /// Moves each entry of a plan, a bucket and what a slot of it holds, to where the next one is.
    /// The last one goes first, so that no entry is ever in no place; a copy of it is elsewhere
    /// already. `slot` goes to where the first one was.
    pub(crate) fn shift(&mut self, moves: &[(u64, u64)], slot: u64) {
        let arriving = moves.iter().rev().skip(1).map(|&(_, moved)| moved).chain([slot]);
        for (&(bucket, old), new) in moves.iter().rev().zip(arriving) {
            self.replace(bucket, old, new);
        }
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if
    /// there is none. With 0 for `old` this fills an empty slot, with 0 for `new` it empties one.
    pub(crate) fn replace(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        with_packing!(&self.packing, packing => {
            let start = self.start(packing, bucket);
            packing.replace(self.bytes.as_mut(), start, old, new)
        })
    }

    /// Writes the whole bucket.
    pub(crate) fn write(&mut self, bucket: u64, slots: Bucket) {
        with_packing!(&self.packing, packing => {
            let start = self.start(packing, bucket);
            packing.write(self.bytes.as_mut(), start, slots.0);
        });
    }
}

impl Table<Buffer> {
    /// The bytes, without the shape.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn into_bytes(self) -> Buffer {
        self.bytes
    }

    /// The bytes of each segment, where segments are whole bytes.
    pub(crate) fn segments_mut(&mut self) -> Vec<&mut [u8]> {
        let bits = u64::from(self.geometry.segment_buckets()) * self.bucket_bits;
        let segments = 1 << self.geometry.segment_bits();
        debug_assert!(bits.is_multiple_of(8) || segments == 1);
        let bytes = self.bytes.as_mut();
        bytes.chunks_mut(byte_index(bits / 8)).take(segments).collect()
    }

    /// Writes a bucket of at most 64 bits, as it is stored.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn set_word(&mut self, bucket: u64, word: u64) {
        let (start, bits) = (bucket * self.bucket_bits, self.layout.bucket_bits());
        crate::packing::store(self.bytes.as_mut(), start, bits, word.into());
    }
}
