//! The cuckoo table: buckets in a row of bytes, each entry in one of its two buckets.
//!
//! ```text
//!     | bucket 0 | bucket 1 | ... | bucket N-1 | zeros to a multiple of 8 bytes | 16 zeros |
//! ```
//!
//! The zeros at the end let every bucket be read as a whole register. A lookup loads both buckets
//! before it looks at either, so that the two cache misses overlap.
//!
//! | file | |
//! |---|---|
//! | `addressing` | what a table asks of its addressing |
//! | `fixed`, `growing` | tables of one size, and tables that grow |
//! | `linear_hashing`, `load`, `widening` | where keys live in a growing table, and when it grows |
//! | `cuckoo`, `matches` | what the rules of `state/` ask of both |
//! | `pair` | edits of the two buckets of a key |
//! | `search`, `room` | the search for room, and what it asks of a table |
//! | `blocks`, `edits` | batches: blocks of 64 keys, and edits planned for a block |

use bytemuck::try_cast_slice_mut;

use crate::address::geometry::{Geometry, Locations};
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::mem::vector::{BLOCK, Column, InstructionSet};
use crate::packing::{
    AnyPacking, Batch, Bucket, Layout, Packing, SLOTS, bit_in_byte, byte_index, load, with_packing,
};

mod addressing;
pub(crate) mod blocks;
mod cuckoo;
mod edits;
mod fixed;
mod growing;
mod linear_hashing;
mod load;
mod matches;
mod pair;
mod room;
pub(crate) mod search;
mod widening;

pub(crate) use crate::packing::{Candidates, Put, Taken, Words};
pub(crate) use addressing::{Addressing, Match, Prefix};
pub(crate) use cuckoo::{Cuckoo, CuckooMut, EntryTest, LocationOf, Step, grows};
pub(crate) use edits::{BlockEdits, PUTS, TAKES};
pub(crate) use growing::Growing;
pub(crate) use linear_hashing::{GrowingLocation, LinearHashing};
#[cfg(test)]
pub(crate) use load::tried_load;
pub(crate) use load::{buckets_for, design_load, most_entries};
pub(crate) use room::Dead;

/// Zeros behind the last bucket, so that it can be read like any other.
const PADDING: usize = 16;

/// Bytes of a table of `buckets` buckets; `None` where no machine could address them.
pub(crate) fn table_bytes(layout: Layout, buckets: u64) -> Option<usize> {
    let bits = buckets.checked_mul(u64::from(layout.bucket_bits()))?;
    let words = usize::try_from(bits.div_ceil(64)).ok()?;
    words.checked_mul(8)?.checked_add(PADDING).filter(|&bytes| isize::try_from(bytes).is_ok())
}

/// Buckets and their shape. The addressing `A` says where a key may live: [`Geometry`] in a table
/// of one size, [`LinearHashing`] in one that grows.
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
    /// The sum of 2^-length of all entries, in units of 2^-64; 0 in a table of one size.
    match_weight: u128,
    /// A growing table makes its next step when it has more entries than this.
    limit: u64,
    bytes: B,
}

/// Equal addressing, layout and bytes, whatever is split next.
impl<B: PartialEq, A: PartialEq> PartialEq for Table<B, A> {
    fn eq(&self, other: &Self) -> bool {
        self.geometry == other.geometry
            && self.layout == other.layout
            && self.match_weight == other.match_weight
            && self.bytes == other.bytes
    }
}

/// What a walk over blocks of keys needs of a table, of plain bytes or of atomic words.
pub(crate) trait Buckets {
    /// Locates the addresses that `write` writes.
    fn locate_many(
        &self,
        set: InstructionSet,
        write: impl FnOnce(&mut Column),
        locations: &mut Locations,
    );

    /// Prefetches both buckets of key `i`.
    fn prefetch_both(&self, locations: &Locations, i: usize);
}

impl<B: AsRef<[u8]>, A: Addressing> Buckets for Table<B, A> {
    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        write: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        self.geometry.locate_many(set, self.bucket_bits, write, locations);
    }

    #[inline]
    fn prefetch_both(&self, locations: &Locations, i: usize) {
        for column in locations.bytes() {
            self.prefetch_from(byte_index(column[i]));
        }
    }
}

impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// The table in `bytes`, which are as many as [`table_bytes`] says.
    pub(crate) fn new(geometry: A, layout: Layout, bytes: B) -> Self {
        assert_eq!(Some(bytes.as_ref().len()), table_bytes(layout, geometry.buckets()));
        let packing = AnyPacking::new(layout, geometry.widening());
        let (bucket_bits, reach) = (u64::from(layout.bucket_bits()), packing.reach());
        let end = geometry.buckets() * bucket_bits;
        let (match_weight, limit) = (0, u64::MAX);
        Self { geometry, layout, packing, bucket_bits, end, reach, match_weight, limit, bytes }
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
    fn start(&self, bucket: u64) -> u64 {
        bucket * self.bucket_bits
    }

    /// Where both buckets of a pair start.
    #[inline]
    fn starts(&self, (home, other): (u64, u64)) -> [u64; 2] {
        [self.start(home), self.start(other)]
    }

    /// Prefetches a bucket: the first byte that is read of it, and the last one, which may be in
    /// another cache line even if the bucket itself ends before.
    #[inline]
    fn prefetch(&self, bucket: u64) {
        self.prefetch_from(byte_index(bucket * self.bucket_bits / 8));
    }

    /// Prefetches the bucket that starts in this byte.
    #[inline]
    fn prefetch_from(&self, byte: usize) {
        for byte in [byte, byte + self.reach] {
            prefetch(self.bytes(), byte);
        }
    }

    /// Reads and decodes a bucket.
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        Bucket(with_packing!(&self.packing, packing => self.slots_in(packing, bucket)))
    }

    #[inline]
    fn slots_in<P: Packing>(&self, packing: &P, bucket: u64) -> [u64; SLOTS] {
        packing.slots(self.bytes(), self.start(bucket))
    }

    /// Whether a slot of `bucket` is empty.
    #[inline]
    fn has_room_in<P: Packing>(&self, packing: &P, bucket: u64) -> bool {
        packing.has_room(self.bytes(), self.start(bucket))
    }

    /// The bucket as it is stored, in a table without values. With values it may have more bits.
    pub(crate) fn word(&self, bucket: u64) -> u128 {
        load(self.bytes(), bucket * self.bucket_bits, self.layout.bucket_bits())
    }

    /// Whether entries match each key of the `ready` block, whose buckets were prefetched.
    /// Prefetches those of the `coming` block meanwhile.
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

    /// The slots of a pair of buckets that match their keys. O(1): two loads.
    #[inline(never)]
    pub(crate) fn candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Candidates {
        match &self.packing {
            AnyPacking::Plain64(packing) => self.candidates_in(packing, pair, keys),
            _ => self.other_candidates(pair, keys),
        }
    }

    /// A function of its own, so that plain buckets save fewer registers.
    #[inline(never)]
    fn other_candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Candidates {
        with_packing!(&self.packing, packing => self.candidates_in(packing, pair, keys))
    }

    #[inline]
    fn candidates_in<P: Packing>(
        &self,
        packing: &P,
        pair: (u64, u64),
        keys: [u64; 2],
    ) -> Candidates {
        packing.candidates::<A::Matching>(self.bytes(), self.starts(pair), keys)
    }

    /// A copy in memory of its own, to grow in if it `grows`. `None` where the system has no memory
    /// for it.
    pub(crate) fn to_owned_table(&self, grows: bool) -> Option<Table<Buffer, A>> {
        let bytes = Buffer::copy_of(self.bytes(), grows)?;
        let copy = Table::new(self.geometry.clone(), self.layout, bytes);
        Some(Table { match_weight: self.match_weight, limit: self.limit, ..copy })
    }

    /// Whether so many entries are too many, so that a growing table splits buckets next.
    #[inline]
    pub(crate) fn is_overfull(&self, entries: u64) -> bool {
        entries > self.limit
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
    /// Empties every bucket. The size stays.
    pub(crate) fn clear(&mut self) {
        self.bytes.as_mut().fill(0);
        self.match_weight = 0;
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if
    /// there is none. An `old` of 0 fills an empty slot, a `new` of 0 empties one.
    pub(crate) fn replace(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        with_packing!(&self.packing, packing => {
            let start = self.start(bucket);
            packing.replace(self.bytes.as_mut(), start, old, new)
        })
    }

    /// Writes `change(slot)` over every slot in use. That must be another value beside the same
    /// fingerprint. O(bytes), and nearly as fast as a copy if slots have 16 bits.
    pub(crate) fn update_slots(&mut self, mut change: impl FnMut(u64) -> u64) {
        let bytes = self.bytes.as_mut();
        let is_plain = matches!(self.packing, AnyPacking::Plain64(_));
        if is_plain
            && self.layout.slot_bits() == u16::BITS
            && let Ok(slots) = try_cast_slice_mut::<u8, [u8; 2]>(bytes)
        {
            for bytes in slots {
                let slot = u16::from_le_bytes(*bytes);
                if slot != 0 {
                    *bytes = low_half(change(slot.into())).to_le_bytes();
                }
            }
            return;
        }
        for bucket in 0..self.geometry.buckets() {
            let slots = self.read(bucket).0;
            let changed = slots.map(|slot| if slot == 0 { 0 } else { change(slot) });
            if changed != slots {
                self.write_bucket(bucket, Bucket(changed));
            }
        }
    }

    /// Takes the entry in a slot out of the match weight, before it is written over.
    #[inline]
    pub(crate) fn forget(&mut self, bucket: u64, slot: u64) {
        if A::GROWS {
            self.match_weight -= A::weight_of(self.entry(bucket, slot).prefix.length);
        }
    }

    /// Writes the whole bucket.
    pub(crate) fn write_bucket(&mut self, bucket: u64, slots: Bucket) {
        with_packing!(&self.packing, packing => {
            let start = self.start(bucket);
            packing.write(self.bytes.as_mut(), start, slots.0);
        });
    }
}

/// The low 16 bits.
#[expect(clippy::cast_possible_truncation, reason = "truncation is the purpose")]
const fn low_half(word: u64) -> u16 {
    word as u16
}

impl Table<Buffer> {
    /// The bytes, without the shape.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn into_bytes(self) -> Buffer {
        self.bytes
    }

    /// The bytes of each segment. Several segments begin at whole bytes; one may end within one.
    pub(crate) fn segments_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let bits = u64::from(self.geometry.segment_buckets()) * self.bucket_bits;
        let segments = 1 << self.geometry.segment_bits();
        debug_assert!(bits.is_multiple_of(8) || segments == 1);
        let bytes = self.bytes.as_mut();
        bytes.chunks_mut(byte_index(bits.div_ceil(8))).take(segments)
    }

    /// Writes a bucket of at most 64 bits, as it is stored.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn set_word(&mut self, bucket: u64, word: u64) {
        let (start, bits) = (bucket * self.bucket_bits, self.layout.bucket_bits());
        crate::packing::store(self.bytes.as_mut(), start, bits, word.into());
    }
}
