//! Buckets of a table that is being widened: the first ones are narrow still, the others wide.
//!
//! Each is decoded and read as four slots of 64 bits of the wide layout, and encoded again when it
//! is written. A narrow bucket stores the first bits of a longer fingerprint, as many as it has
//! room for. Lookups take two to three times as long meanwhile.

use super::{Bucket, Layout, Matching, Packing, SLOTS, Slots64, load, store};
use crate::address::geometry::Locations;

/// How far the widening of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widening {
    /// The layout that the table was built with.
    pub(crate) narrow: Layout,
    /// Buckets below this one have it still.
    pub(crate) below: u64,
}

impl Widening {
    /// The layout of a bucket that is still narrow.
    #[inline]
    pub(crate) fn narrow_at(&self, bucket: u64) -> Option<Layout> {
        (bucket < self.below).then_some(self.narrow)
    }
}

/// Narrow and wide buckets, read as wide slots of 64 bits. A bucket *starts* at its number.
#[derive(Clone, Copy)]
pub(crate) struct Unpacked {
    wide: Layout,
    widening: Widening,
    slots64: Slots64,
}

impl Unpacked {
    pub(super) fn new(wide: Layout, widening: Widening) -> Self {
        Self { wide, widening, slots64: Slots64::new(wide) }
    }

    /// Widens the last `buckets` of those that are narrow. Returns how many are left.
    pub(crate) fn widen(&mut self, bytes: &mut [u8], buckets: u64) -> u64 {
        let left = self.widening.below.saturating_sub(buckets);
        for bucket in (left..self.widening.below).rev() {
            let slots = self.slots(bytes, bucket);
            self.widening.below = bucket;
            self.write(bytes, bucket, slots);
        }
        left
    }
}

impl Packing for Unpacked {
    #[inline]
    fn start(bucket: u64, _bucket_bits: u64) -> u64 {
        bucket
    }

    #[inline]
    fn starts(locations: &Locations, i: usize) -> [u64; 2] {
        locations.buckets(i).into()
    }

    #[cold]
    fn slots(&self, bytes: &[u8], bucket: u64) -> [u64; SLOTS] {
        let slots = |layout: Layout| {
            let bits = layout.bucket_bits();
            layout.decode(load(bytes, bucket * u64::from(bits), bits)).0
        };
        match self.widening.narrow_at(bucket) {
            None => slots(self.wide),
            Some(narrow) => slots(narrow).map(|slot| self.wide.marked_slot(narrow, slot)),
        }
    }

    #[cold]
    fn write(&self, bytes: &mut [u8], bucket: u64, slots: [u64; SLOTS]) {
        let (layout, slots) = match self.widening.narrow_at(bucket) {
            None => (self.wide, slots),
            Some(narrow) => (narrow, slots.map(|slot| self.wide.unmarked_slot(narrow, slot))),
        };
        let bits = layout.bucket_bits();
        store(bytes, bucket * u64::from(bits), bits, layout.encode(Bucket(slots)));
    }

    #[inline]
    fn has_room(&self, bytes: &[u8], bucket: u64) -> bool {
        self.slots(bytes, bucket).contains(&0)
    }

    #[inline]
    fn matches<M: Matching>(&self, bytes: &[u8], buckets: [u64; 2], keys: [u64; 2]) -> bool {
        let any = |i: usize| self.slots64.any::<M>(self.slots(bytes, buckets[i]), keys[i]);
        any(0) | any(1)
    }

    #[inline]
    fn matching<M: Matching>(&self, bytes: &[u8], bucket: u64, key: u64) -> u32 {
        self.slots64.bits::<M>(self.slots(bytes, bucket), key)
    }
}
