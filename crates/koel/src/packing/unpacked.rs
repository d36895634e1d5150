//! Buckets of a table that is being widened: the first ones are still narrow, the others wide.
//!
//! A bucket is decoded into four slots of 64 bits of the wide layout, and encoded again when it is
//! written. A narrow bucket stores as many of the first bits of a longer fingerprint as it has room
//! for. Lookups take two to three times as long meanwhile.

use super::bits::{load, store};
use super::coding::Plain;
use super::lanes::{Lanes, Opened};
use super::layout::{Bucket, Layout};
use super::{Packing, SLOTS};

/// How far the widening of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widening {
    /// The layout that the table was built with.
    pub(crate) narrow: Layout,
    /// Buckets below this one still have it.
    pub(crate) below: u64,
}

impl Widening {
    /// The layout of a bucket that is still narrow.
    #[inline]
    pub(crate) fn narrow_at(&self, bucket: u64) -> Option<Layout> {
        (bucket < self.below).then_some(self.narrow)
    }
}

/// Narrow and wide buckets, unpacked into wide slots of 64 bits. Callers name a bucket by the bit
/// at which it would start if all were wide.
#[derive(Clone, Copy)]
pub(crate) struct Unpacked {
    wide: Layout,
    widening: Widening,
    /// The masks of one unpacked slot.
    lanes: Lanes,
}

impl Unpacked {
    pub(super) fn new(wide: Layout, widening: Widening) -> Self {
        Self { wide, widening, lanes: Lanes::new::<Plain>(wide, 1) }
    }

    fn bucket_at(&self, start: u64) -> u64 {
        start / u64::from(self.wide.bucket_bits())
    }

    /// Widens the last `buckets` of the narrow ones. Returns how many are left.
    pub(crate) fn widen(&mut self, bytes: &mut [u8], buckets: u64) -> u64 {
        let left = self.widening.below.saturating_sub(buckets);
        for bucket in (left..self.widening.below).rev() {
            let start = bucket * u64::from(self.wide.bucket_bits());
            let slots = self.slots(bytes, start);
            self.widening.below = bucket;
            self.write(bytes, start, slots);
        }
        left
    }
}

impl Packing for Unpacked {
    type Coding = Plain;
    type Registers = [Opened<u64>; SLOTS];

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    #[cold]
    fn registers(&self, bytes: &[u8], start: u64) -> [Opened<u64>; SLOTS] {
        let bucket = self.bucket_at(start);
        let slots = |layout: Layout| {
            let bits = layout.bucket_bits();
            layout.decode(load(bytes, bucket * u64::from(bits), bits)).0
        };
        let slots = match self.widening.narrow_at(bucket) {
            None => slots(self.wide),
            Some(narrow) => slots(narrow).map(|slot| self.wide.marked_slot(narrow, slot)),
        };
        slots.map(|slot| (slot, 0))
    }

    #[cold]
    fn write(&self, bytes: &mut [u8], start: u64, slots: [u64; SLOTS]) {
        let bucket = self.bucket_at(start);
        let (layout, slots) = match self.widening.narrow_at(bucket) {
            None => (self.wide, slots),
            Some(narrow) => (narrow, slots.map(|slot| self.wide.unmarked_slot(narrow, slot))),
        };
        let bits = layout.bucket_bits();
        store(bytes, bucket * u64::from(bits), bits, layout.encode(Bucket(slots)));
    }
}
