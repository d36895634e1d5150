//! The cuckoo table: buckets in a row of bytes, each entry in one of its two buckets.
//!
//! ```text
//!     | bucket 0 | bucket 1 | ... | bucket N-1 | zeros up to a multiple of 8 bytes | 16 bytes of zeros |
//! ```
//!
//! The zeros at the end let every bucket be read as a whole register. A lookup loads both buckets before it looks at either, so
//! that the two cache misses overlap. All methods speak of single entries in single buckets; who may move where is `placement.rs`.

use alloc::vec::Vec;
use core::ops::Range;

use crate::geometry::{Geometry, Place, Places};
use crate::layout::{Bucket, Layout, Word};
use crate::prefetch::prefetch;

/// Zeros behind the last bucket, so that it can be read like any other.
const PADDING: usize = 16;

/// Bytes of a table of `buckets` buckets; `None` where no machine could address them.
pub(crate) fn table_bytes(layout: Layout, buckets: u64) -> Option<usize> {
    let bits = buckets.checked_mul(u64::from(layout.bucket_bits()))?;
    let words = usize::try_from(bits.div_ceil(64)).ok()?;
    words.checked_mul(8)?.checked_add(PADDING).filter(|&bytes| isize::try_from(bytes).is_ok())
}

/// Buckets and their shape.
#[derive(Clone, PartialEq)]
pub(crate) struct Table<B> {
    geometry: Geometry,
    layout: Layout,
    bytes: B,
}

impl<B: AsRef<[u8]>> Table<B> {
    /// The table in `bytes`, which are as many as [`table_bytes`] says.
    pub(crate) fn new(geometry: Geometry, layout: Layout, bytes: B) -> Self {
        debug_assert_eq!(Some(bytes.as_ref().len()), table_bytes(layout, geometry.buckets()));
        Self { geometry, layout, bytes }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Whether either bucket of `place` holds its fingerprint. O(1): two loads, no branch on the data of a plain layout.
    pub(crate) fn contains(&self, place: &Place) -> bool {
        self.layout.specialise(
            #[inline(always)]
            |layout| self.either_has(layout, place.buckets(), place.fingerprint, false),
        )
    }

    /// Whether either bucket of `pair` has the fingerprint, tested in the narrowest register that holds a bucket.
    #[inline(always)]
    fn either_has(&self, layout: Layout, pair: (u64, u64), fingerprint: u64, eager: bool) -> bool {
        if layout.bucket_bits() <= u64::BITS {
            self.either_has_in::<u64>(layout, pair, fingerprint, eager)
        } else {
            self.either_has_in::<u128>(layout, pair, fingerprint, eager)
        }
    }

    #[inline(always)]
    fn either_has_in<W: Word>(
        &self,
        layout: Layout,
        (home, alternate): (u64, u64),
        fingerprint: u64,
        eager: bool,
    ) -> bool {
        let (home, alternate) = (self.load::<W>(layout, home), self.load::<W>(layout, alternate));
        layout.has(home, fingerprint, eager) | layout.has(alternate, fingerprint, eager)
    }

    /// `contains` for places from `first` on, one answer each.
    pub(crate) fn contains_group(&self, places: &Places, first: usize, found: &mut [bool]) {
        self.layout.specialise(
            #[inline(always)]
            |layout| {
                for (i, found) in (first..).zip(found) {
                    let (pair, fingerprint) = (places.buckets(i), places.fingerprint(i));
                    *found = self.either_has(layout, pair, fingerprint, true);
                }
            },
        );
    }

    /// Asks the memory for the buckets of some places.
    #[inline]
    pub(crate) fn prefetch_group(&self, places: &Places, group: Range<usize>) {
        for i in group {
            let (home, alternate) = places.buckets(i);
            for bucket in [home, alternate] {
                prefetch(self.bytes.as_ref(), position(self.layout, bucket).0);
            }
        }
    }

    /// How many entries of the pair of buckets equal `slot`.
    pub(crate) fn copies(&self, place: &Place, slot: u64) -> u64 {
        self.layout.specialise(
            #[inline(always)]
            |layout| self.pair_in(layout, place, slot).2,
        )
    }

    /// The decoded bucket.
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        self.layout.specialise(
            #[inline(always)]
            |layout| self.read_in(layout, bucket),
        )
    }

    #[inline(always)]
    fn read_in(&self, layout: Layout, bucket: u64) -> Bucket {
        layout.decode(self.word_in(layout, bucket))
    }

    /// Both buckets of `place` and the copies of `slot` in them.
    #[inline(always)]
    fn pair_in(&self, layout: Layout, place: &Place, slot: u64) -> (Bucket, Bucket, u64) {
        let (home, alternate) = place.buckets();
        let (at_home, elsewhere) = (self.read_in(layout, home), self.read_in(layout, alternate));
        let others = if home == alternate { 0 } else { elsewhere.copies(slot) };
        (at_home, elsewhere, at_home.copies(slot) + others)
    }

    /// The bucket as it is stored.
    pub(crate) fn word(&self, bucket: u64) -> u128 {
        self.word_in(self.layout, bucket)
    }

    #[inline(always)]
    fn word_in(&self, layout: Layout, bucket: u64) -> u128 {
        let width = layout.bucket_bits();
        let word = if width <= u64::BITS {
            u128::from(self.load::<u64>(layout, bucket))
        } else {
            self.load::<u128>(layout, bucket)
        };
        word & low_ones(width)
    }

    /// A register that starts with the bucket; bits of the next one may follow.
    #[inline(always)]
    fn load<W: Word>(&self, layout: Layout, bucket: u64) -> W {
        let (byte, shift) = position(layout, bucket);
        W::read(self.bytes.as_ref(), byte) >> shift
    }

    /// The same table in memory of its own.
    pub(crate) fn to_owned_table(&self) -> Table<Vec<u8>> {
        Table { geometry: self.geometry.clone(), layout: self.layout, bytes: self.bytes().to_vec() }
    }

    /// Whether all bits behind the last bucket are zero.
    pub(crate) fn is_padded_with_zeros(&self) -> bool {
        let (byte, shift) = position(self.layout, self.geometry.buckets());
        self.bytes()[byte] >> shift == 0 && self.bytes()[byte + 1..].iter().all(|&byte| byte == 0)
    }

    /// All buckets in order, decoded.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> {
        (0..self.geometry.buckets()).map(|bucket| self.read(bucket))
    }

    /// The place of every entry, those stored twice only once. O(buckets).
    pub(crate) fn distinct_entries(&self) -> impl Iterator<Item = Place> {
        let segment_buckets = self.geometry.segment_buckets();
        let segments = (0..self.geometry.buckets()).step_by(segment_buckets as usize);
        segments.flat_map(move |base| {
            (0..segment_buckets).flat_map(move |home| self.first_entries(base, home))
        })
    }

    /// The entries of a bucket that stand in no slot before, of this bucket or of an earlier one.
    fn first_entries(&self, base: u64, home: u32) -> impl Iterator<Item = Place> {
        let bucket = self.read(base + u64::from(home)).0;
        (0..bucket.len()).filter_map(move |i| {
            let slot = bucket[i];
            let fingerprint = self.layout.fingerprint_of(slot);
            let alternate = self.geometry.alternate(home, fingerprint);
            let place = Place { base, home, alternate, fingerprint };
            let earlier = || self.read(base + u64::from(alternate)).copies(slot) > 0;
            let repeated = bucket[..i].contains(&slot) || (alternate < home && earlier());
            (slot != 0 && !repeated).then_some(place)
        })
    }
}

impl Table<Vec<u8>> {
    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// Fills an empty slot of the emptier bucket of `place` with `slot`, where the pair has at most `most` copies of it.
    pub(crate) fn put(&mut self, place: &Place, slot: u64, most: u64) -> Put {
        self.layout.specialise(
            #[inline(always)]
            |layout| {
                let (at_home, elsewhere, copies) = self.pair_in(layout, place, slot);
                if copies > most {
                    return Put::Repeated(copies);
                }
                let (home, alternate) = place.buckets();
                let (bucket, mut slots) = if elsewhere.free() > at_home.free() {
                    (alternate, elsewhere)
                } else {
                    (home, at_home)
                };
                if !slots.replace(0, slot) {
                    return Put::Full;
                }
                self.write_in(layout, bucket, slots);
                Put::Done
            },
        )
    }

    /// Empties a slot of `place` that holds `slot`: how many did.
    pub(crate) fn take(&mut self, place: &Place, slot: u64) -> u64 {
        self.layout.specialise(
            #[inline(always)]
            |layout| {
                let (mut at_home, mut elsewhere, copies) = self.pair_in(layout, place, slot);
                let (home, alternate) = place.buckets();
                if at_home.replace(slot, 0) {
                    self.write_in(layout, home, at_home);
                } else if elsewhere.replace(slot, 0) {
                    self.write_in(layout, alternate, elsewhere);
                }
                copies
            },
        )
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if there is none.
    ///
    /// With 0 for `old` this fills an empty slot, with 0 for `new` it empties one.
    pub(crate) fn replace(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        self.layout.specialise(
            #[inline(always)]
            |layout| {
                let mut slots = self.read_in(layout, bucket);
                let found = slots.replace(old, new);
                if found {
                    self.write_in(layout, bucket, slots);
                }
                found
            },
        )
    }

    /// Writes a bucket and leaves the bits around it alone.
    #[inline(always)]
    fn write_in(&mut self, layout: Layout, bucket: u64, slots: Bucket) {
        let (byte, shift) = position(layout, bucket);
        let (width, word) = (layout.bucket_bits(), layout.encode(slots));
        if width <= u64::BITS {
            self.overwrite::<u64>(byte, low_ones(width) << shift, word << shift);
        } else {
            self.overwrite::<u128>(byte, low_ones(width) << shift, word << shift);
        }
    }

    #[inline(always)]
    fn overwrite<W: Word>(&mut self, byte: usize, mask: u128, bits: u128) {
        let around = W::read(&self.bytes, byte) & !W::truncate(mask);
        (around | W::truncate(bits)).write(&mut self.bytes, byte);
    }
}

/// What became of a new copy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It has a slot.
    Done,
    /// Nothing was written: there are more copies than allowed, this many.
    Repeated(u64),
    /// Nothing was written: both buckets are full.
    Full,
}

/// The byte a bucket starts in, and at which of its bits: 0 or 4.
#[inline(always)]
fn position(layout: Layout, bucket: u64) -> (usize, u32) {
    let bit = bucket * u64::from(layout.bucket_bits());
    let halves = if layout.bucket_bits().is_multiple_of(8) { 0 } else { bit % 8 };
    (byte_index(bit / 8), if halves == 0 { 0 } else { 4 })
}

#[inline(always)]
fn low_ones(bits: u32) -> u128 {
    u128::MAX >> (u128::BITS - bits)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the table is in memory, so its offsets fit")]
fn byte_index(byte: u64) -> usize {
    byte as usize
}
