//! A maplet in the table that it was built with, where fingerprints are equal or not.
//!
//! Fingerprint and value make a slot; from there on it is a number that `table.rs` puts, exchanges and takes out. The invariant: `len` is the number of slots in use.

use super::pairs::Pairs;
use crate::buffer::Buffer;
use crate::error::Full;
use crate::geometry::Place;
use crate::layout::Layout;
use crate::placement::{End, Spares, Ways};
use crate::table::{Put, Table, Taken};

impl Pairs {
    /// Adds an entry at `place`.
    #[inline(always)]
    pub(super) fn insert_place(
        &mut self,
        table: &mut Table<Buffer>,
        place: &Place,
        value: u64,
    ) -> Result<(), Full> {
        let slot = slot(table.layout(), place.fingerprint, value);
        let bits = table.bits(place);
        if self.put(table, bits, slot) { Ok(()) } else { self.make_room(table, place, slot) }
    }

    /// The usual case of an insert: an empty slot in one of the buckets.
    #[inline(always)]
    pub(super) fn put(&mut self, table: &mut Table<Buffer>, bits: [u64; 2], slot: u64) -> bool {
        let done = table.put(bits, slot, u64::MAX) == Put::Done;
        self.count_in(done);
        done
    }

    /// Finds room for an entry whose buckets are full.
    #[inline(never)]
    pub(super) fn make_room(
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

    /// Takes out one pair of a fingerprint and `value`, from the buckets at `bits`; false if there is none.
    #[inline(always)]
    pub(super) fn remove(
        &mut self,
        table: &mut Table<Buffer>,
        entry: ([u64; 2], u64),
        value: u64,
    ) -> bool {
        let removed = exchange(table, entry, value, 0);
        self.count_out(removed);
        removed
    }
}

/// Writes the slot `new` over one of this fingerprint and the value `old`, in the buckets at `bits`.
#[inline(always)]
pub(super) fn exchange(
    table: &mut Table<Buffer>,
    (bits, fingerprint): ([u64; 2], u64),
    old: u64,
    new: u64,
) -> bool {
    if old >> table.layout().value_bits() != 0 {
        return false;
    }
    let old = table.layout().slot(fingerprint, old);
    table.exchange(bits, old, new) != Taken::Nothing
}

/// The slot of a value to be written.
#[inline(always)]
pub(super) fn slot(layout: Layout, fingerprint: u64, value: u64) -> u64 {
    check_value(layout, value);
    layout.slot(fingerprint, value)
}

#[inline(always)]
pub(super) fn check_value(layout: Layout, value: u64) {
    let bits = layout.value_bits();
    if value >> bits != 0 {
        too_wide(value, bits);
    }
}

/// Away from where values are checked: to be printed they must be in memory, which would be written for every one.
#[cold]
#[inline(never)]
fn too_wide(value: u64, bits: u32) -> ! {
    panic!("the value {value} does not fit into {bits} bits");
}
