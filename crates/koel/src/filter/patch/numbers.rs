//! The numbers that stand for entries in a patch: their orders, without what all of them end with.
//!
//! [Orders](crate::address::geometry::Geometry::order) end with a one and zeros. In filters of one
//! size all ends are equal, and left out. If a filter has grown, entries differ in length: then
//! only the zeros that all of them end with are left out. So the gaps between numbers are small.

use crate::state::Body;
use crate::state::runs::{Cut, Run};

/// How orders are shortened to numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The bits that are left out.
    bits: u32,
    /// What they were.
    end: u64,
}

impl Numbers {
    /// For a patch of a filter to one that has grown to so many buckets, or to one of the same size
    /// if there are 0. `None` if no filter grows to so many.
    pub(super) fn of<B: AsRef<[u8]>>(old: &Body<B>, buckets: u64) -> Option<Self> {
        if buckets == 0 {
            let zeros = old.table.base().end_of_names();
            return Some(Self { bits: zeros + 1, end: 1 << zeros });
        }
        let (ours, theirs) = (old.table.addresses(), old.addresses_grown_to(buckets)?);
        Some(Self { bits: ours.end_of_orders().min(theirs.end_of_orders()), end: 0 })
    }

    /// The numbers of the entries of a run, with their copies.
    pub(super) fn of_run(self, run: &Run) -> impl Iterator<Item = (u64, u64)> {
        run.entries().map(move |(order, copies)| (self.number(order), copies))
    }

    fn number(self, order: u64) -> u64 {
        order.checked_shr(self.bits).unwrap_or(0)
    }

    /// The order with this number. `None` if it has too many bits.
    pub(super) fn order(self, number: u64) -> Option<u64> {
        (number.leading_zeros() >= self.bits).then(|| number << self.bits | self.end)
    }

    /// The largest number of a cut; of the last one, the largest of all.
    pub(super) fn last(self, cut: &Cut) -> u64 {
        if cut.is_last { u64::MAX } else { self.number(cut.orders.end - 1) }
    }
}
