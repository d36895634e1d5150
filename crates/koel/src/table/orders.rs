//! Reads the entries of a base segment, and gives the
//! [order](crate::address::geometry::Geometry::order) of each.
//!
//! Both base buckets of an entry are in one segment of the table as it was built. So the entries
//! of a segment are in the buckets that its base buckets have become, whatever the table grows to.

use core::ops::Range;

use super::Table;
use crate::packing::{Packing, SLOTS, with_packing};

impl<B: AsRef<[u8]>> Table<B> {
    /// Calls `visit` with the order and the slot of every entry of a base segment. O(buckets of
    /// the segment).
    #[inline]
    pub(crate) fn each_order(&self, segment: u64, visit: &mut impl FnMut(u64, u64)) {
        let size = u64::from(self.base().segment_buckets());
        let base = segment * size..(segment + 1) * size;
        with_packing!(&self.packing, packing => if self.grows() {
            let each = &mut |bucket| self.visit_grown(packing, bucket, visit);
            base.for_each(&mut *each);
            self.split_off(segment).for_each(each);
        } else {
            self.visit_fixed(packing, base, visit);
        });
    }

    /// The buckets that base buckets of a segment were split into, besides themselves.
    fn split_off(&self, segment: u64) -> impl Iterator<Item = u64> {
        let (base, end) = (self.base(), self.buckets());
        let size = u64::from(base.segment_buckets());
        let starts = (base.buckets()..end).step_by(usize::try_from(base.buckets()).unwrap_or(1));
        starts
            .flat_map(move |start| (0..size).map(move |it| start + base.interleave(segment, it)))
            .take_while(move |&bucket| bucket < end)
    }

    #[inline]
    fn visit_grown<P: Packing>(&self, packing: &P, bucket: u64, visit: &mut impl FnMut(u64, u64)) {
        let from = self.addresses.origin(bucket);
        for slot in self.slots_in(packing, bucket) {
            if slot != 0 {
                let fingerprint = self.layout.fingerprint_of(slot);
                visit(self.addresses.order(&self.addresses.prefix_from(&from, fingerprint)), slot);
            }
        }
    }

    #[inline]
    fn visit_fixed<P: Packing>(
        &self,
        packing: &P,
        buckets: Range<u64>,
        visit: &mut impl FnMut(u64, u64),
    ) {
        let (geometry, layout) = (self.base(), self.layout);
        let (first, bits) = (buckets.start, geometry.fraction_bits());
        for bucket in buckets {
            let slots: [u64; SLOTS] = self.slots_in(packing, bucket);
            for slot in slots {
                if slot != 0 {
                    let fingerprint = layout.fingerprint_of(slot);
                    let core = fingerprint >> bits;
                    let base = bucket.min(geometry.reflected(first, bucket, core));
                    visit(geometry.order(base, core, fingerprint, bits), slot);
                }
            }
        }
    }
}
