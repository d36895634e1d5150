//! The cuckoo table: buckets in a row of bytes, each entry in one of its two buckets.
//!
//! ```text
//!     | bucket 0 | bucket 1 | ... | bucket N-1 | zeros up to a multiple of 8 bytes | 16 bytes of zeros |
//! ```
//!
//! The zeros at the end let every bucket be read as a whole register. A lookup loads both buckets before it looks at either, so
//! that the two cache misses overlap. All methods speak of single entries in single buckets; who may move where is `placement.rs`.

use alloc::vec::Vec;

use crate::geometry::{Geometry, Place};
use crate::layout::{Bucket, Layout, Word};

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
    #[inline]
    pub(crate) fn contains(&self, place: &Place) -> bool {
        if self.layout.bucket_bits() <= u64::BITS {
            self.either_has::<u64>(place)
        } else {
            self.either_has::<u128>(place)
        }
    }

    #[inline]
    fn either_has<W: Word>(&self, place: &Place) -> bool {
        let (home, alternate) = place.buckets();
        let (home, alternate) = (self.load::<W>(home), self.load::<W>(alternate));
        self.layout.has(home, place.fingerprint) | self.layout.has(alternate, place.fingerprint)
    }

    /// Both buckets of `place`, decoded; the second is `None` when they are the same one.
    #[inline]
    pub(crate) fn pair(&self, place: &Place) -> (Bucket, Option<Bucket>) {
        let (home, alternate) = place.buckets();
        (self.read(home), (home != alternate).then(|| self.read(alternate)))
    }

    /// How many entries of the pair of buckets equal `slot`.
    pub(crate) fn copies(&self, place: &Place, slot: u64) -> u64 {
        let (home, alternate) = self.pair(place);
        home.copies(slot) + alternate.map_or(0, |bucket| bucket.copies(slot))
    }

    /// The decoded bucket.
    #[inline]
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        self.layout.decode(self.word(bucket))
    }

    /// The bucket as it is stored.
    #[inline]
    pub(crate) fn word(&self, bucket: u64) -> u128 {
        let width = self.layout.bucket_bits();
        let word = if width <= u64::BITS {
            u128::from(self.load::<u64>(bucket))
        } else {
            self.load::<u128>(bucket)
        };
        word & low_ones(width)
    }

    /// A register that starts with the bucket; bits of the next one may follow.
    #[inline]
    fn load<W: Word>(&self, bucket: u64) -> W {
        let (byte, shift) = self.position(bucket);
        W::read(self.bytes.as_ref(), byte).shifted(shift)
    }

    /// The byte a bucket starts in, and at which of its bits: 0 or 4.
    #[inline]
    fn position(&self, bucket: u64) -> (usize, u32) {
        let bit = bucket * u64::from(self.layout.bucket_bits());
        (byte_index(bit / 8), if bit.is_multiple_of(8) { 0 } else { 4 })
    }

    /// The same table in memory of its own.
    pub(crate) fn to_owned_table(&self) -> Table<Vec<u8>> {
        Table { geometry: self.geometry.clone(), layout: self.layout, bytes: self.bytes().to_vec() }
    }

    /// Whether all bits behind the last bucket are zero.
    pub(crate) fn is_padded_with_zeros(&self) -> bool {
        let (byte, shift) = self.position(self.geometry.buckets());
        self.bytes()[byte] >> shift == 0 && self.bytes()[byte + 1..].iter().all(|&byte| byte == 0)
    }

    /// All buckets in order, decoded.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> {
        (0..self.geometry.buckets()).map(|bucket| self.read(bucket))
    }

    /// Entries in all buckets. O(buckets).
    pub(crate) fn entries(&self) -> u64 {
        self.iter().map(|bucket| 4 - bucket.free()).sum()
    }
}

impl Table<Vec<u8>> {
    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// Fills an empty slot of the emptier bucket of `place`; false, and nothing written, if both are full.
    #[inline]
    pub(crate) fn put(&mut self, place: &Place, slot: u64) -> bool {
        let (home, alternate) = place.buckets();
        let (at_home, elsewhere) = self.pair(place);
        let elsewhere = elsewhere.map_or(0, |bucket| bucket.free());
        let emptier = if elsewhere > at_home.free() { alternate } else { home };
        self.replace(emptier, 0, slot)
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if there is none.
    ///
    /// With 0 for `old` this fills an empty slot, with 0 for `new` it empties one.
    #[inline]
    pub(crate) fn replace(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        let mut slots = self.read(bucket);
        let found = slots.replace(old, new);
        if found {
            self.write(bucket, slots);
        }
        found
    }

    #[inline]
    fn write(&mut self, bucket: u64, slots: Bucket) {
        let width = self.layout.bucket_bits();
        let word = self.layout.encode(slots);
        let (byte, shift) = self.position(bucket);
        let window: &mut [u8; 16] =
            (&mut self.bytes[byte..byte + 16]).try_into().expect("a range of 16 bytes");
        let around = u128::from_le_bytes(*window) & !(low_ones(width) << shift);
        *window = (around | (word << shift)).to_le_bytes();
    }
}

#[inline]
fn low_ones(bits: u32) -> u128 {
    u128::MAX >> (u128::BITS - bits)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the table is in memory, so its offsets fit")]
fn byte_index(byte: u64) -> usize {
    byte as usize
}
