//! Reads the entries of a base segment, and gives the
//! [order](crate::address::geometry::Geometry::order) of each.
//!
//! Both base buckets of an entry are in one segment of the table as it was built. So the entries
//! of a segment are in the buckets that its base buckets have become, whatever the table grows to.
//!
//! Buckets are read a block at a time: first their slots, then the order of every slot in a loop
//! that is vector code in a table of one size (mem/vector.rs), then those in use close up.

use core::ops::Range;

use crate::address::geometry::Geometry;
use crate::mem::vector::{BLOCK, InstructionSet};
use crate::packing::{SLOTS, with_packing};
use crate::table::{LinearHashing, Table};

/// A number for each slot of a block of buckets.
type Each = [[u64; SLOTS]; BLOCK];

impl<B: AsRef<[u8]>> Table<B> {
    /// Calls `visit` with the orders and the slots of some entries of a base segment, until it has
    /// had all that are not below `least`, an order of the segment. O(buckets of the segment).
    #[inline]
    pub(crate) fn each_order(
        &self,
        segment: u64,
        least: u64,
        mut visit: impl FnMut(&[u64], &[u64]),
    ) {
        let size = u64::from(self.base().segment_buckets());
        // The base bucket of an entry is never below that of its order.
        let least = self.base().base_of(least).saturating_sub(segment * size);
        let mut found = [[[0; SLOTS]; BLOCK]; 2];
        // Each base bucket was split into one for each of these, or one less.
        for split_index in 0..self.buckets().div_ceil(self.base().buckets()) {
            for start in (least..size).step_by(BLOCK) {
                let locals = start..size.min(start + BLOCK as u64);
                let len = self.orders_of(segment, split_index, locals, &mut found);
                let [orders, slots] = &found;
                visit(&orders.as_flattened()[..len], &slots.as_flattened()[..len]);
            }
        }
    }

    /// Finds the orders and the slots of the entries in the buckets with this split index that some
    /// base buckets of a segment have become. Returns how many there are.
    #[inline(never)]
    fn orders_of(
        &self,
        segment: u64,
        split_index: u64,
        locals: Range<u64>,
        [orders, slots]: &mut [Each; 2],
    ) -> usize {
        let base = self.base();
        let first = segment * u64::from(base.segment_buckets());
        let bucket_of = |local| match split_index {
            0 => first + local,
            index => index * base.buckets() + base.interleave(segment, local),
        };
        let buckets = locals.clone().map(bucket_of).take_while(|&bucket| bucket < self.buckets());
        let count = buckets.clone().count();
        with_packing!(&self.packing, packing => {
            for (slots, bucket) in slots.iter_mut().zip(buckets.clone()) {
                *slots = self.slots_in(packing, bucket);
            }
        });
        InstructionSet::best().run(
            #[inline(always)]
            || {
                let fingerprints = slots.map(|it| it.map(|slot| self.layout.fingerprint_of(slot)));
                if self.grows() {
                    let buckets = (segment, split_index, locals);
                    grown_orders(&self.addresses, buckets, &fingerprints, orders);
                } else {
                    fixed_orders(base, (first, first + locals.start), &fingerprints, orders);
                }
            },
        );
        close_up([orders.as_flattened_mut(), slots.as_flattened_mut()], count * SLOTS)
    }
}

/// The orders in a table of one size: of fingerprints of buckets in a row, in a segment that starts
/// at `first`.
#[inline(always)]
fn fixed_orders(
    base: &Geometry,
    (first, bucket): (u64, u64),
    fingerprints: &Each,
    orders: &mut Each,
) {
    let bits = base.fraction_bits();
    for ((orders, fingerprints), bucket) in orders.iter_mut().zip(fingerprints).zip(bucket..) {
        for (order, &fingerprint) in orders.iter_mut().zip(fingerprints) {
            let core = fingerprint >> bits;
            let lower = bucket.min(base.reflected(first, bucket, core));
            *order = base.order(lower, core, 1 << bits | fingerprint & !(u64::MAX << bits));
        }
    }
}

/// The orders in a growing table: of fingerprints of the buckets that some base buckets of a
/// segment have become for a split index.
#[inline(always)]
fn grown_orders(
    addresses: &LinearHashing,
    (segment, split_index, locals): (u64, u64, Range<u64>),
    fingerprints: &Each,
    orders: &mut Each,
) {
    for ((orders, fingerprints), local) in orders.iter_mut().zip(fingerprints).zip(locals) {
        let from = addresses.origin_at(segment, local, split_index);
        for (order, &fingerprint) in orders.iter_mut().zip(fingerprints) {
            *order = addresses.order_from(&from, fingerprint);
        }
    }
}

/// Moves the orders and slots of entries to the start, from so many. Returns how many there are. No
/// branch on the data.
fn close_up([orders, slots]: [&mut [u64]; 2], count: usize) -> usize {
    let mut len = 0;
    for from in 0..count {
        let (order, slot) = (orders[from], slots[from]);
        (orders[len], slots[len]) = (order, slot);
        len += usize::from(slot != 0);
    }
    len
}
