//! A table in the midst of getting wider slots, where it lies: what growth needs before the first bucket of a filter is split.
//!
//! ```text
//!     before    |0|1|2|3|4|5|               narrow buckets, as the table was built
//!     midst     |0|1|2|3|   |  4  |  5  |   buckets from `below` on are where they will stay, and wide
//!     after     |  0  |  1  |  2  |  3  |  4  |  5  |
//! ```
//!
//! * The last bucket goes first, to its own end of the longer table: it never reaches one that is still narrow. So there is one table at any time, a few buckets are widened with
//!   each insert, and none waits for all of them.
//! * In the midst, buckets are read and written as slots taken apart, in the form that wide ones have: all else sees a wide table. Lookups take two to three times as
//!   long meanwhile.
//! * A narrow bucket keeps the first bits of a longer fingerprint, as many as it has room for. None is shorter: the first entries have just so many bits, and no bucket has been split.

use core::mem;

use super::{Addressing, Stretch, Table, change_in, load_from, table_bytes};
use crate::buffer::Buffer;
use crate::layout::{Bucket, Lanes, Layout, SLOTS};

/// How far the widening of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widening {
    /// The layout that the table was built with.
    narrow: Layout,
    /// Buckets below this one have it still.
    below: u64,
}

impl Widening {
    /// The layout of a bucket that is still narrow.
    #[inline]
    pub(super) fn narrow_at(&self, bucket: u64) -> Option<Layout> {
        (bucket < self.below).then_some(self.narrow)
    }
}

/// The bits that a bucket of this layout fills in a register.
fn mask(layout: Layout) -> u128 {
    u128::MAX >> (u128::BITS - layout.bucket_bits())
}

/// The bit that a bucket starts at in a table of this layout.
fn start(layout: Layout, bucket: u64) -> u64 {
    bucket * u64::from(layout.bucket_bits())
}

impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// The slots of a bucket as a wide one has them.
    #[cold]
    pub(super) fn slots_apart(&self, bucket: u64) -> [u64; SLOTS] {
        let slots = |layout: Layout| {
            let word: u128 = load_from::<_, true>(self.bytes(), start(layout, bucket));
            layout.decode(word & mask(layout)).0
        };
        match self.narrow_at(bucket) {
            None => slots(self.layout),
            Some(narrow) => slots(narrow).map(|slot| self.layout.marked_slot(narrow, slot)),
        }
    }

    /// The layout of a bucket that is still narrow.
    fn narrow_at(&self, bucket: u64) -> Option<Layout> {
        self.geometry.widening().and_then(|widening| widening.narrow_at(bucket))
    }
}

impl<A: Addressing> Table<Buffer, A> {
    /// Writes a bucket whose slots are those of a wide one.
    #[cold]
    pub(super) fn store_apart(&mut self, bucket: u64, slots: [u64; SLOTS]) {
        let (layout, slots) = match self.narrow_at(bucket) {
            None => (self.layout, slots),
            Some(narrow) => (narrow, slots.map(|slot| self.layout.unmarked_slot(narrow, slot))),
        };
        let bit = start(layout, bucket);
        let before: u128 = load_from::<_, true>(self.bytes(), bit);
        let change = (before ^ layout.encode(Bucket(slots))) & mask(layout);
        change_in::<u128, true>(self.bytes.as_mut(), bit, change);
    }
}

impl Table<Buffer, Stretch> {
    /// The table that `built` becomes, whose buckets it takes, all of them narrow as yet. `None`, and nothing changed, where the wide ones cannot be addressed or had.
    pub(crate) fn to_be_widened(built: &mut Table<Buffer>, layout: Layout) -> Option<Self> {
        debug_assert_eq!(layout.value_bits(), 0, "maplets have marks from the start");
        let mut geometry = Stretch::new(built.geometry.clone(), layout.marks()?, 0, 0);
        let bytes = table_bytes(layout, geometry.buckets())?;
        if !geometry.is_sound() || !built.bytes.grow(bytes) {
            return None;
        }
        geometry.set_widening(Some(Widening { narrow: built.layout, below: geometry.buckets() }));
        Some(Self::new(geometry, layout, mem::take(&mut built.bytes)))
    }

    /// Widens so many buckets, or all that are left. False where none is.
    pub(crate) fn widen(&mut self, buckets: u64) -> bool {
        let Some(Widening { narrow, below }) = self.geometry.widening().copied() else {
            return false;
        };
        let rest = below.saturating_sub(buckets);
        for bucket in (rest..below).rev() {
            let slots = self.slots_apart(bucket);
            self.geometry.set_widening(Some(Widening { narrow, below: bucket }));
            self.store_apart(bucket, slots);
        }
        if rest == 0 {
            self.geometry.set_widening(None);
            self.lanes = Lanes::new(self.layout);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{CORES, Geometry};
    use crate::layout::Codec;
    use crate::sizing::marked_layout;
    use alloc::vec::Vec;
    use testkit::keys::splitmix64 as hash;

    fn narrow_table(codec: Codec, bits: u32, (segment_bits, segment): (u32, u32)) -> Table<Buffer> {
        let geometry = Geometry::new(segment_bits, segment, bits);
        let layout = Layout::new(codec, bits, 0).unwrap();
        let bytes = table_bytes(layout, geometry.buckets()).unwrap();
        Table::new(geometry, layout, Buffer::zeroed(bytes, true).unwrap())
    }

    /// Four slots of a layout without marks, some of them empty.
    fn slots(layout: Layout, random: u64) -> [u64; SLOTS] {
        core::array::from_fn(|i| {
            let random = hash(random << 8 | i as u64);
            let core = random % (CORES + 1);
            let fraction = random >> (64 - layout.fraction_bits());
            if core == 0 { 0 } else { core << layout.fraction_bits() | fraction }
        })
    }

    fn sorted(mut slots: [u64; SLOTS]) -> [u64; SLOTS] {
        slots.sort_unstable();
        slots
    }

    #[test]
    fn at_every_step_buckets_are_read_as_wide_ones_and_can_be_written() {
        let shapes = [
            (Codec::Plain, 8),
            (Codec::Plain, 12),
            (Codec::Plain, 24),
            (Codec::SemiSorted, 9),
            (Codec::SemiSorted, 13),
            (Codec::SemiSorted, 26),
        ];
        for ((codec, bits), size) in
            shapes.into_iter().flat_map(|shape| [(0, 1), (0, 3), (2, 11)].map(|size| (shape, size)))
        {
            let mut built = narrow_table(codec, bits, size);
            let (narrow, buckets) = (built.layout(), built.geometry().buckets());
            let layout = marked_layout(narrow).unwrap();
            for bucket in 0..buckets {
                for slot in slots(narrow, bucket).into_iter().filter(|&slot| slot != 0) {
                    assert!(built.replace(bucket, 0, slot));
                }
            }
            let wide =
                |bucket: u64| slots(narrow, bucket).map(|slot| layout.marked_slot(narrow, slot));
            let mut expected: Vec<_> = (0..buckets).map(|bucket| sorted(wide(bucket))).collect();
            let mut table = Table::to_be_widened(&mut built, layout).unwrap();
            for step in 0..=buckets {
                let read = |bucket| sorted(table.read(bucket).0);
                assert_eq!((0..buckets).map(read).collect::<Vec<_>>(), expected, "{layout} {step}");
                // Another entry comes, with all the bits that there may be; a narrow bucket has no room for all.
                let bucket = hash(step) % buckets;
                let old = table.read(bucket).0[usize::try_from(step % 4).unwrap()];
                let longest = layout.marks().unwrap().longest(1 + hash(step) % CORES, hash(!step));
                assert!(table.replace(bucket, old, longest));
                let kept = match table.narrow_at(bucket) {
                    Some(narrow) => {
                        layout.marked_slot(narrow, layout.unmarked_slot(narrow, longest))
                    }
                    None => longest,
                };
                let slots = &mut expected[usize::try_from(bucket).unwrap()];
                *slots.iter_mut().find(|slot| **slot == old).unwrap() = kept;
                slots.sort_unstable();
                assert_eq!(table.widen(1), step < buckets);
            }
            assert!(table.geometry().widening().is_none() && table.is_padded_with_zeros());
        }
    }

    #[test]
    fn what_there_is_no_memory_for_leaves_the_table_as_it_was() {
        let mut built = narrow_table(Codec::Plain, 12, (0, 5));
        assert!(built.replace(3, 0, 0x123));
        let (narrow, layout) = (built.layout(), marked_layout(built.layout()).unwrap());
        assert!(Table::to_be_widened(&mut built, narrow).is_none());
        assert_eq!(built.read(3).copies(0x123), 1);
        assert!(Table::to_be_widened(&mut built, layout).is_some());
        assert!(built.bytes().is_empty());
    }
}
