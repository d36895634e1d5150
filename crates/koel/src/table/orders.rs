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
use crate::table::Table;

/// A number for each slot of a block of buckets.
type Each = [[u64; SLOTS]; BLOCK];

impl<B: AsRef<[u8]>> Table<B> {
    /// Calls `visit` with the orders and the slots of some entries, until it has had all entries of
    /// a base segment. O(buckets of the segment).
    #[inline]
    pub(crate) fn each_order(&self, segment: u64, mut visit: impl FnMut(&[u64], &[u64])) {
        let size = u64::from(self.base().segment_buckets());
        let mut found = [[[0; SLOTS]; BLOCK]; 2];
        // Each base bucket was split into one for each of these, or one less.
        for split_index in 0..self.buckets().div_ceil(self.base().buckets()) {
            for start in (0..size).step_by(BLOCK) {
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
        if self.grows() {
            for ((orders, slots), bucket) in orders.iter_mut().zip(&*slots).zip(buckets) {
                let from = self.addresses.origin(bucket);
                for (order, &slot) in orders.iter_mut().zip(slots) {
                    let fingerprint = self.layout.fingerprint_of(slot);
                    *order = self.addresses.order(&self.addresses.prefix_from(&from, fingerprint));
                }
            }
        } else {
            let fingerprint_of = |slot| self.layout.fingerprint_of(slot);
            InstructionSet::best().run(
                #[inline(always)]
                || fixed_orders(base, (first, first + locals.start), fingerprint_of, slots, orders),
            );
        }
        close_up([orders.as_flattened_mut(), slots.as_flattened_mut()], count * SLOTS)
    }
}

/// The orders in a table of one size: of slots of buckets in a row, in a segment that starts at
/// `first`.
#[inline(always)]
fn fixed_orders(
    base: &Geometry,
    (first, bucket): (u64, u64),
    fingerprint_of: impl Fn(u64) -> u64,
    slots: &Each,
    orders: &mut Each,
) {
    let bits = base.fraction_bits();
    for ((orders, slots), bucket) in orders.iter_mut().zip(slots).zip(bucket..) {
        for (order, &slot) in orders.iter_mut().zip(slots) {
            let fingerprint = fingerprint_of(slot);
            let core = fingerprint >> bits;
            let lower = bucket.min(base.reflected(first, bucket, core));
            *order = base.order(lower, core, fingerprint, bits);
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
