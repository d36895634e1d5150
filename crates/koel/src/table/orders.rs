//! Reads the entries of a base segment, and gives the
//! [order](crate::address::geometry::Geometry::order) of each.
//!
//! Both base buckets of an entry are in one segment of the table as it was built. So the entries
//! of a segment are in the buckets that its base buckets have become, whatever the table grows to.

use core::ops::Range;

use crate::mem::vector::BLOCK;
use crate::packing::{SLOTS, with_packing};
use crate::table::Table;

/// Orders of some entries, each with the slot of the entry.
type Orders = [(u64, u64); BLOCK * SLOTS];

impl<B: AsRef<[u8]>> Table<B> {
    /// Calls `visit` with the order and the slot of every entry of a base segment. O(buckets of
    /// the segment).
    #[inline]
    pub(crate) fn each_order(&self, segment: u64, mut visit: impl FnMut(u64, u64)) {
        let size = u64::from(self.base().segment_buckets());
        let mut found = [(0, 0); BLOCK * SLOTS];
        // Each base bucket was split into one for each of these, or one less.
        for split_index in 0..self.buckets().div_ceil(self.base().buckets()) {
            for start in (0..size).step_by(BLOCK) {
                let locals = start..size.min(start + BLOCK as u64);
                let len = self.orders_of(segment, split_index, locals, &mut found);
                found[..len].iter().for_each(|&(order, slot)| visit(order, slot));
            }
        }
    }

    /// Finds the orders of the entries in the buckets with this split index that some base buckets
    /// of a segment have become. Returns how many there are.
    #[inline(never)]
    fn orders_of(
        &self,
        segment: u64,
        split_index: u64,
        locals: Range<u64>,
        found: &mut Orders,
    ) -> usize {
        let (base, fraction_bits) = (self.base(), self.base().fraction_bits());
        let first = segment * u64::from(base.segment_buckets());
        let mut len = 0;
        for local in locals {
            let bucket = match split_index {
                0 => first + local,
                index => index * base.buckets() + base.interleave(segment, local),
            };
            if bucket >= self.buckets() {
                break;
            }
            let slots = with_packing!(&self.packing, packing => self.slots_in(packing, bucket));
            let from = self.grows().then(|| self.addresses.origin(bucket));
            for slot in slots.into_iter().filter(|&slot| slot != 0) {
                let fingerprint = self.layout.fingerprint_of(slot);
                let order = if let Some(from) = &from {
                    self.addresses.order(&self.addresses.prefix_from(from, fingerprint))
                } else {
                    let core = fingerprint >> fraction_bits;
                    let lower = bucket.min(base.reflected(first, bucket, core));
                    base.order(lower, core, fingerprint, fraction_bits)
                };
                found[len] = (order, slot);
                len += 1;
            }
        }
        len
    }
}
