//! A maplet in the table that it was built with, where fingerprints are equal or not.
//!
//! Fingerprint and value make a slot; from there on it is a number that `table.rs` puts, exchanges and takes out. The invariant: `len` is the number of slots in use.

use super::pairs::Pairs;
use crate::buffer::Buffer;
use crate::error::Full;
use crate::geometry::Place;
use crate::layout::Layout;
use crate::placement::{End, Spares, Ways};
use crate::table::{At, Put, Table, Taken};

impl Pairs {
    /// Adds an entry.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        mut at: At<'_>,
        (fingerprint, value): (u64, u64),
        place: impl FnOnce() -> Place,
    ) -> Result<(), Full> {
        let layout = at.layout();
        check_value(layout, value);
        let slot = layout.slot(fingerprint, value);
        let done = at.put(slot, u64::MAX) == Put::Done;
        self.count_in(done);
        if done { Ok(()) } else { self.make_room(at.into_table(), &place(), slot) }
    }

    /// Finds room for an entry whose buckets are full.
    #[inline(never)]
    fn make_room(
        &mut self,
        table: &mut Table<Buffer>,
        place: &Place,
        slot: u64,
    ) -> Result<(), Full> {
        let Some(plan) = table.way_to_room(&mut self.search, place, Spares::Keep) else {
            let open = |bucket, ways: &mut Ways| ways.add(table.neighbours(place.base, bucket));
            return Err(self.full(place.buckets(), open));
        };
        if let (End::Empty(room), Some(&(_, last))) = (plan.end, plan.moves.last()) {
            table.replace(room, 0, last);
            table.shift(&plan.moves, slot);
            self.count_in(true);
        }
        self.search.recycle(plan);
        Ok(())
    }

    /// Takes out one pair of a fingerprint and a value; false if there is none.
    #[inline(always)]
    pub(super) fn remove(&mut self, mut at: At<'_>, (fingerprint, value): (u64, u64)) -> bool {
        let layout = at.layout();
        let removed = value <= layout.largest_value()
            && at.take(layout.slot(fingerprint, value)) != Taken::Nothing;
        self.count_out(removed);
        removed
    }
}

/// Makes one pair of a fingerprint and the value `old` one with `new`; false if there is none.
#[inline(always)]
pub(super) fn exchange(mut at: At<'_>, fingerprint: u64, (old, new): (u64, u64)) -> bool {
    let layout = at.layout();
    // One comparison for both.
    if (old | new) > layout.largest_value() {
        check_value(layout, new);
        return false;
    }
    let [old, new] = [layout.slot(fingerprint, old), layout.slot(fingerprint, new)];
    at.exchange(old, new) != Taken::Nothing
}

#[inline(always)]
pub(super) fn check_value(layout: Layout, value: u64) {
    if value > layout.largest_value() {
        too_wide(value, layout.value_bits());
    }
}

/// Away from where values are checked: to be printed they must be in memory, which would be written for every one.
#[cold]
#[inline(never)]
fn too_wide(value: u64, bits: u32) -> ! {
    panic!("the value {value} does not fit into {bits} bits");
}
