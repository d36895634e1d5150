//! Widening: a table gets wider slots in place, before growth splits its first bucket.
//!
//! ```text
//!     before    |0|1|2|3|4|5|               narrow buckets, as the table was built
//!     meanwhile |0|1|2|3|   |  4  |  5  |   buckets from `below` on are wide, and stay there
//!     after     |  0  |  1  |  2  |  3  |  4  |  5  |
//! ```
//!
//! * The last bucket goes first, to the end of the longer table. So it never reaches a bucket that
//!   is still narrow: one table is enough, each insert widens a few buckets, and none waits for all
//!   of them.
//! * Meanwhile `packing/unpacked.rs` reads and writes buckets of both widths. All other code sees a
//!   wide table.
//! * No fingerprint is shorter than a narrow bucket has room for: the first entries have exactly
//!   that many bits, and no bucket has been split.
//! * A file has all buckets wide, and says how many were narrow. A copy that is read from it makes
//!   them narrow again, so that it changes like the original.

use super::load::buckets_after_steps;
use super::{LinearHashing, Table, table_bytes};
use crate::address::geometry::CORE_BITS;
use crate::mem::buffer::Buffer;
use crate::packing::{AnyPacking, Bucket, Layout, Widening, store};

impl Table<Buffer> {
    /// Makes a table of one size, which has so many entries and no values, one that grows, with all
    /// of its buckets still narrow. [`split`](Self::split) widens them, a few at a time. False, and
    /// nothing changed, if the wide ones cannot be addressed or allocated, with room for the steps
    /// of the insert that needs them. O(1).
    pub(crate) fn begin_to_grow(&mut self, layout: Layout, entries: u64) -> bool {
        debug_assert_eq!(layout.value_bits(), 0, "maplets have marks from the start");
        let Some(marked) = layout.marks() else { return false };
        let mut addresses = LinearHashing::new(self.base().clone(), marked, 0, 0);
        let buckets = addresses.buckets();
        let bytes = table_bytes(layout, buckets).filter(|_| addresses.is_sound());
        let reserved = table_bytes(layout, buckets_after_steps(buckets, buckets));
        if !reserved.is_some_and(|bytes| self.bytes.reserve(bytes))
            || !bytes.is_some_and(|bytes| self.bytes.grow(bytes))
        {
            return false;
        }
        addresses.set_widening(Some(Widening { narrow: self.layout, below: buckets }));
        let weight = LinearHashing::weight_of(self.base().fraction_bits());
        self.match_weight = u128::from(entries) * weight;
        (self.addresses, self.layout) = (addresses, layout);
        self.bucket_bits = u64::from(layout.bucket_bits());
        self.end = buckets * self.bucket_bits;
        self.read_as_wide();
        true
    }

    /// Chooses the packing of the buckets, of which some may be narrow, and the limit.
    fn read_as_wide(&mut self) {
        self.packing = AnyPacking::new(self.layout, self.addresses.widening());
        self.reach = self.packing.reach();
        self.set_limit();
    }

    /// Widens so many buckets, or all that are still narrow. False if none is.
    pub(crate) fn widen(&mut self, buckets: u64) -> bool {
        let (Some(widening), AnyPacking::Unpacked(packing)) =
            (self.addresses.widening(), &mut self.packing)
        else {
            return false;
        };
        let below = packing.widen(self.bytes.as_mut(), buckets);
        let left = (below > 0).then_some(Widening { below, ..widening });
        self.addresses.set_widening(left);
        if left.is_none() {
            self.read_as_wide();
        }
        true
    }

    /// The table with the buckets narrow that were where these bytes were written. O(buckets).
    pub(crate) fn restored(mut self) -> Self {
        let below = self.addresses.narrow_buckets();
        let Some(narrow) = self.narrow_layout().filter(|_| below > 0 && !self.is_midway()) else {
            return self;
        };
        let bits = narrow.bucket_bits();
        // A narrow bucket ends before the next wide one begins.
        for bucket in 0..below {
            let slots = self.read(bucket).0.map(|slot| self.layout.unmarked_slot(narrow, slot));
            let word = narrow.encode(Bucket(slots));
            store(self.bytes.as_mut(), bucket * u64::from(bits), bits, word);
        }
        let widening = Some(Widening { narrow, below });
        self.addresses.set_widening(widening);
        self.read_as_wide();
        self
    }
}

impl<B: AsRef<[u8]>> Table<B> {
    /// The layout that the table was built with, if it was built without marks.
    fn narrow_layout(&self) -> Option<Layout> {
        let bits = self.addresses.base().fraction_bits() + CORE_BITS;
        Layout::new(self.layout.codec(), bits, self.layout.value_bits())
    }

    /// Whether the entries of all buckets that were narrow have as many bits as there is room for.
    pub(crate) fn fits_narrow_buckets(&self) -> bool {
        let Some(narrow) = self.narrow_layout() else { return true };
        let again = |slot| self.layout.marked_slot(narrow, self.layout.unmarked_slot(narrow, slot));
        let mut buckets = 0..self.addresses.narrow_buckets();
        buckets.all(|bucket| self.read(bucket).entries().all(|slot| again(slot) == slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::geometry::{CORES, Geometry};
    use crate::image::sizing::marked_layout;
    use crate::packing::{Codec, SLOTS};
    use alloc::vec::Vec;
    use testkit::keys::splitmix64 as hash;

    fn narrow_table(codec: Codec, bits: u32, (segment_bits, segment): (u32, u32)) -> Table<Buffer> {
        let geometry = Geometry::new(segment_bits, segment, bits);
        let layout = Layout::new(codec, bits, 0).unwrap();
        let bytes = table_bytes(layout, geometry.buckets()).unwrap();
        Table::fixed(geometry, layout, Buffer::zeroed(bytes, true).unwrap())
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
    fn at_every_step_buckets_are_read_as_wide_and_can_be_written() {
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
            let (narrow, buckets) = (built.layout(), built.addresses().buckets());
            let layout = marked_layout(narrow).unwrap();
            for bucket in 0..buckets {
                for slot in slots(narrow, bucket).into_iter().filter(|&slot| slot != 0) {
                    assert!(built.replace(bucket, 0, slot));
                }
            }
            let wide =
                |bucket: u64| slots(narrow, bucket).map(|slot| layout.marked_slot(narrow, slot));
            let mut expected: Vec<_> = (0..buckets).map(|bucket| sorted(wide(bucket))).collect();
            assert!(built.begin_to_grow(layout, 0));
            let mut table = built;
            for step in 0..=buckets {
                let read = |bucket| sorted(table.read(bucket).0);
                assert_eq!((0..buckets).map(read).collect::<Vec<_>>(), expected, "{layout} {step}");
                // Writes an entry with as many bits as possible. A narrow bucket stores only some
                // of them.
                let bucket = hash(step) % buckets;
                let old = table.read(bucket).0[usize::try_from(step % 4).unwrap()];
                let longest = layout.marks().unwrap().longest(1 + hash(step) % CORES, hash(!step));
                assert!(table.replace(bucket, old, longest));
                let kept = match table.addresses().widening().and_then(|it| it.narrow_at(bucket)) {
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
            assert!(table.addresses().widening().is_none() && table.is_padded_with_zeros());
        }
    }

    #[test]
    fn a_failed_allocation_leaves_the_table_unchanged() {
        let mut built = narrow_table(Codec::Plain, 12, (0, 5));
        assert!(built.replace(3, 0, 0x123));
        let (narrow, layout) = (built.layout(), marked_layout(built.layout()).unwrap());
        let before = built.clone();
        assert!(!built.begin_to_grow(narrow, 1));
        assert!(built == before && built.read(3).copies(0x123) == 1);
        assert!(built.begin_to_grow(layout, 1));
    }
}
