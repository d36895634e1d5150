//! Adding a pair of a key and a value: every pair has a slot.
//!
//! In a counting filter the value is the count of a new key.

use super::Writer;
use crate::error::FullError;
use crate::image::Kind;
use crate::packing::Layout;
use crate::state::counters::WriteCounters;
use crate::table::search::Spares;
use crate::table::{Addressing, CuckooMut, LocationOf, Put};

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Adds a pair to a maplet.
    #[inline]
    pub(crate) fn insert_pair(self, address: u64, value: u64) -> Result<(), FullError> {
        let location = self.table.table().geometry().locate(address);
        self.insert_pair_at(location, value)
    }

    /// [`insert_pair`](Self::insert_pair) for the key of a location.
    #[inline(always)]
    pub(super) fn insert_pair_at(
        mut self,
        location: LocationOf<T>,
        value: u64,
    ) -> Result<(), FullError> {
        check_value(self.layout(), value);
        if self.table.put(&location, value, u64::MAX) != Put::Done {
            return self.insert_refused_pair(location, value);
        }
        self.note_new(1);
        Ok(())
    }

    /// Adds a pair whose buckets are full.
    #[inline(never)]
    pub(super) fn insert_refused_pair(
        mut self,
        at: LocationOf<T>,
        value: u64,
    ) -> Result<(), FullError> {
        self.find_slot(at, value)?;
        self.keep_load(0);
        self.state.len += 1;
        Ok(())
    }

    /// Changes one pair of a key and the first value to one with the second. False if there is
    /// none.
    #[inline]
    pub(crate) fn replace(self, address: u64, change: (u64, u64)) -> bool {
        let location = self.table.table().geometry().locate(address);
        self.replace_at(location, change)
    }

    /// [`replace`](Self::replace) for the key of a location.
    #[inline(always)]
    pub(super) fn replace_at(self, location: LocationOf<T>, (old, new): (u64, u64)) -> bool {
        in_width(self.layout(), (old, new)) && self.table.revalue(&location, old, new)
    }

    /// Adds an entry with a value, and keeps the load.
    pub(super) fn insert_value(&mut self, at: LocationOf<T>, value: u64) -> Result<(), FullError> {
        if self.table.put(&at, value, u64::MAX) == Put::Done {
            self.state.entries += 1;
        } else {
            self.find_slot(at, value)?;
        }
        self.keep_load(0);
        Ok(())
    }

    /// Gives an entry a slot in the table as it is; false, and nothing changed, where there is
    /// none.
    pub(super) fn put_value(&mut self, at: &LocationOf<T>, value: u64) -> bool {
        if self.table.put(at, value, u64::MAX) == Put::Done {
            self.state.entries += 1;
            return true;
        }
        self.make_room(at, value, Spares::Keep)
    }

    /// Gives an entry a slot whose buckets are full: in the table as it is, or once it has grown.
    fn find_slot(&mut self, mut at: LocationOf<T>, value: u64) -> Result<(), FullError> {
        let mut is_in = self.make_room(&at, value, Spares::Keep);
        while !is_in {
            self.grow_for(&at)?;
            at = self.table.relocate(&at);
            is_in = self.put_value(&at, value);
        }
        Ok(())
    }

    /// Splits the next chunk of buckets because no room was found at `at`; why there is none where
    /// that would not help. In a counting filter two entries may become one instead.
    fn grow_for(&mut self, at: &LocationOf<T>) -> Result<(), FullError> {
        let full = self.why_full(at);
        // Values of the key itself would be together in any table.
        let is_hopeless = matches!(full, FullError::Values { .. });
        let counts = self.state.kind == Kind::Counting;
        let done = !is_hopeless && self.split_for_room()
            || counts && T::is_alone(at) && self.share(at)
            || counts && self.split_for_room();
        if done { Ok(()) } else { Err(full) }
    }
}

/// Whether values of both widths exist: a pair to be changed.
///
/// # Panics
/// Where the new one has more bits than values have.
#[inline(always)]
fn in_width(layout: Layout, (old, new): (u64, u64)) -> bool {
    // One comparison for both.
    let fits = (old | new) <= layout.largest_value();
    if !fits {
        check_value(layout, new);
    }
    fits
}

#[inline(always)]
fn check_value(layout: Layout, value: u64) {
    if value > layout.largest_value() {
        too_wide(value, layout.value_bits());
    }
}

/// Out of line: to be printed, the values must be in memory, where every value would be written.
#[cold]
#[inline(never)]
fn too_wide(value: u64, bits: u32) -> ! {
    panic!("the value {value} does not fit into {bits} bits");
}
