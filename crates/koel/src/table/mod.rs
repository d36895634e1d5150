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
//! | `linear_hashing`, `load`, `widening` | where keys live in a table, and when it grows |
//! | `place`, `fixed`, `growing` | the hot paths, in tables of one size and in those that grow |
//! | `matches`, `split` | entries and those that match a key; growth |
//! | `pair` | edits of the two buckets of a key |
//! | `search`, `room` | the search for room, and what it asks of a table |
//! | `blocks`, `edits` | batches: blocks of 64 keys, and edits planned for a block |

use alloc::vec::Vec;
use core::ops::Range;

use bytemuck::try_cast_slice_mut;

use crate::address::geometry::{Geometry, Locations};
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::mem::vector::{BLOCK, Column, InstructionSet};
use crate::packing::{
    AnyPacking, Batch, Bucket, Exact, Layout, Matching, Packing, Prefixed, SLOTS, bit_in_byte,
    byte_index, load, store, with_packing,
};

pub(crate) mod blocks;
mod edits;
mod fixed;
mod growing;
mod linear_hashing;
mod load;
mod matches;
mod orders;
mod pair;
pub(crate) mod place;
pub(crate) mod room;
pub(crate) mod search;
mod split;
mod widening;

pub(crate) use crate::packing::{Candidates, Put, Taken, Words};
pub(crate) use edits::{BlockEdits, PUTS, TAKES};
pub(crate) use linear_hashing::{GrowingLocation, LeveledBucket, LinearHashing, Prefix};
#[cfg(test)]
pub(crate) use load::tried_load;
pub(crate) use load::{buckets_for, design_load, most_entries};
pub(crate) use matches::{Entry, EntryTest};
pub(crate) use place::{NOT_COUNTED, Place, at_place};
pub(crate) use split::Step;

/// Buckets that [`Table::each_piece`] widens at once: they end with a byte.
const PIECE: usize = 64;
/// Bytes of so many buckets of up to 128 bits, and of the padding behind the last one.
const PIECE_BYTES: usize = PIECE * 16 + 32;

/// Zeros behind the last bucket, so that it can be read like any other.
const PADDING: usize = 16;

/// Bytes of a table of `buckets` buckets in a file; `None` where no file has so many.
pub(crate) fn stored_bytes(layout: Layout, buckets: u64) -> Option<u64> {
    let bits = buckets.checked_mul(u64::from(layout.bucket_bits()))?;
    bits.div_ceil(64).checked_mul(8)?.checked_add(PADDING as u64)
}

/// The same in memory; `None` where this machine cannot address them.
pub(crate) fn table_bytes(layout: Layout, buckets: u64) -> Option<usize> {
    let bytes = isize::try_from(stored_bytes(layout, buckets)?).ok()?;
    usize::try_from(bytes).ok()
}

/// Buckets and their shape, of one size or growing. A table starts to grow in place, once
/// ([`begin_to_grow`](Self::begin_to_grow)).
///
/// The invariant that unchecked reads rely on: `bytes` has all buckets and the padding behind them.
#[derive(Clone)]
pub(crate) struct Table<B> {
    addresses: LinearHashing,
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

/// Equal if they are when all buckets are wide.
impl<B: AsRef<[u8]>> PartialEq for Table<B> {
    fn eq(&self, other: &Self) -> bool {
        if !self.addresses.is_like(&other.addresses)
            || self.layout != other.layout
            || self.match_weight != other.match_weight
        {
            return false;
        }
        if !self.is_midway() && !other.is_midway() {
            return self.bytes() == other.bytes();
        }
        let word = |table: &Self, bucket| table.layout.encode(table.read(bucket));
        (0..self.buckets()).all(|bucket| word(self, bucket) == word(other, bucket))
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

impl<B: AsRef<[u8]>> Buckets for Table<B> {
    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        write: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        if self.grows() {
            self.addresses.locate_many(set, self.bucket_bits, write, locations);
        } else {
            self.base().locate_many(set, self.bucket_bits, write, locations);
        }
    }

    #[inline]
    fn prefetch_both(&self, locations: &Locations, i: usize) {
        for column in locations.bytes() {
            self.prefetch_from(byte_index(column[i]));
        }
    }
}

impl<B: AsRef<[u8]>> Table<B> {
    /// The table in `bytes`, which are as many as [`table_bytes`] says.
    pub(crate) fn new(addresses: LinearHashing, layout: Layout, bytes: B) -> Self {
        assert_eq!(Some(bytes.as_ref().len()), table_bytes(layout, addresses.buckets()));
        let packing = AnyPacking::new(layout, addresses.widening());
        let (bucket_bits, reach) = (u64::from(layout.bucket_bits()), packing.reach());
        let end = addresses.buckets() * bucket_bits;
        let match_weight = 0;
        let mut table = Self {
            addresses,
            layout,
            packing,
            bucket_bits,
            end,
            reach,
            match_weight,
            limit: u64::MAX,
            bytes,
        };
        table.set_limit();
        table
    }

    /// A table of one size in `bytes`.
    #[cfg(any(test, all(feature = "std", target_has_atomic = "64")))]
    pub(crate) fn fixed(base: Geometry, layout: Layout, bytes: B) -> Self {
        Self::new(LinearHashing::fixed(base), layout, bytes)
    }

    /// The table with this match weight of its entries.
    pub(crate) fn with_weight(self, match_weight: u128) -> Self {
        Self { match_weight, ..self }
    }

    pub(crate) fn addresses(&self) -> &LinearHashing {
        &self.addresses
    }

    /// The addresses that the table was built with.
    #[inline(always)]
    pub(crate) fn base(&self) -> &Geometry {
        self.addresses.base()
    }

    /// Whether the table grows. One that was built without marks does from its first growth on.
    #[inline(always)]
    pub(crate) fn grows(&self) -> bool {
        self.addresses.grows()
    }

    /// How many buckets there are.
    #[inline]
    pub(crate) fn buckets(&self) -> u64 {
        self.addresses.buckets()
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
        if self.grows() {
            with_packing!(&self.packing, packing => {
                packing.match_block::<Prefixed>(&batch, words, found)
            });
        } else {
            with_packing!(&self.packing, packing => {
                packing.match_block::<Exact>(&batch, words, found)
            });
        }
    }

    /// The slots of a pair of buckets that match their keys. O(1): two loads.
    #[inline]
    pub(crate) fn candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Candidates {
        if self.grows() {
            self.candidates_by_prefix(pair, keys)
        } else {
            self.equal_candidates(pair, keys)
        }
    }

    #[inline(never)]
    fn equal_candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Candidates {
        match &self.packing {
            AnyPacking::Plain64(packing, _) => self.candidates_in::<_, Exact>(packing, pair, keys),
            _ => self.other_candidates(pair, keys),
        }
    }

    #[inline(never)]
    fn candidates_by_prefix(&self, pair: (u64, u64), keys: [u64; 2]) -> Candidates {
        with_packing!(&self.packing, packing => {
            self.candidates_in::<_, Prefixed>(packing, pair, keys)
        })
    }

    /// A function of its own, so that plain buckets save fewer registers.
    #[inline(never)]
    fn other_candidates(&self, pair: (u64, u64), keys: [u64; 2]) -> Candidates {
        with_packing!(&self.packing, packing => {
            self.candidates_in::<_, Exact>(packing, pair, keys)
        })
    }

    #[inline]
    fn candidates_in<P: Packing, M: Matching>(
        &self,
        packing: &P,
        pair: (u64, u64),
        keys: [u64; 2],
    ) -> Candidates {
        packing.candidates::<M>(self.bytes(), self.starts(pair), keys)
    }

    /// A copy in these words or, if they are too few, in memory of its own, to grow in if it
    /// `grows`. `None` where the system has no memory for it.
    pub(crate) fn copy_in(&self, memory: Vec<u64>, grows: bool) -> Option<Table<Buffer>> {
        let bytes = Buffer::copy_in(self.bytes(), memory)
            .or_else(|| Buffer::copy_of(self.bytes(), grows || self.grows()))?;
        let copy = Table::new(self.addresses.clone(), self.layout, bytes);
        Some(copy.with_weight(self.match_weight).restored())
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

    /// Passes this range of the bytes of the buckets to `sink` as a file stores them: all of them
    /// wide. Buckets that are still narrow are widened on the stack.
    pub(crate) fn each_piece<E>(
        &self,
        range: Range<usize>,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.is_midway() {
            return sink(&self.bytes()[range]);
        }
        let (layout, len) = (self.layout, self.bytes().len());
        let bits = layout.bucket_bits();
        let piece_len = PIECE * bits as usize / 8;
        let skipped = range.start / piece_len;
        let firsts = (0..self.buckets()).step_by(PIECE).skip(skipped);
        for (first, start) in firsts.zip((skipped * piece_len..range.end).step_by(piece_len)) {
            let mut piece = [0; PIECE_BYTES];
            let end = self.buckets().min(first + PIECE as u64);
            for bucket in first..end {
                let at = (bucket - first) * u64::from(bits);
                store(&mut piece, at, bits, layout.encode(self.read(bucket)));
            }
            // The last piece has the padding too.
            let piece_end = if end < self.buckets() { start + piece_len } else { len };
            sink(&piece[range.start.max(start) - start..range.end.min(piece_end) - start])?;
        }
        Ok(())
    }

    /// All buckets in order, decoded.
    #[cfg(any(test, all(feature = "std", target_has_atomic = "64")))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> {
        (0..self.buckets()).map(|bucket| self.read(bucket))
    }
}

impl Table<Buffer> {
    /// Empty buckets, in memory to grow in if they `grow`. `None` if their bytes cannot be
    /// addressed or allocated.
    pub(crate) fn empty(base: Geometry, layout: Layout, grow: bool) -> Option<Self> {
        let addresses = match layout.marks() {
            Some(marked) => LinearHashing::new(base, marked, 0, 0),
            None => LinearHashing::fixed(base),
        };
        let fits = addresses.is_sound();
        let bytes = table_bytes(layout, addresses.buckets()).filter(|_| fits)?;
        let bytes = Buffer::zeroed(bytes, grow || addresses.grows())?;
        Some(Self::new(addresses, layout, bytes))
    }

    /// Empties every bucket. The size stays.
    pub(crate) fn clear(&mut self) {
        self.bytes.as_mut().fill(0);
        self.match_weight = 0;
        self.widen(u64::MAX);
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
        let is_plain = matches!(self.packing, AnyPacking::Plain64(..));
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
        for bucket in 0..self.buckets() {
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
        if self.grows() {
            self.match_weight -= self.addresses.weight(self.entry(bucket, slot).prefix.length);
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
        let bits = u64::from(self.base().segment_buckets()) * self.bucket_bits;
        let segments = 1 << self.base().segment_bits();
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
