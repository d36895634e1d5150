//! Adding a pair of a key and a value: every pair has a slot.
//!
//! In a counting filter the value is the count of a new key.

use super::Writer;
use crate::error::FullError;
use crate::image::Kind;
use crate::packing::Layout;
use crate::state::counters::WriteCounters;
use crate::table::search::Spares;
use crate::table::{CuckooMut, LocationOf, Put};

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Adds a pair to a maplet.
    #[inline(always)]
    pub(crate) fn insert_pair(mut self, hash: u64, value: u64) -> Result<(), FullError> {
        check_value(self.layout(), value);
        let (at, put) = self.table.put_key(hash, value, u64::MAX);
        if put != Put::Done {
            return self.insert_refused_pair(at, value);
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

    /// Changes one pair of a key and `old` to one with `new`; false if there is none.
    #[inline(always)]
    pub(crate) fn replace(self, hash: u64, (old, new): (u64, u64)) -> bool {
        in_width(self.layout(), (old, new)) && self.table.revalue_key(hash, old, new)
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
pub(super) fn in_width(layout: Layout, (old, new): (u64, u64)) -> bool {
    // One comparison for both.
    let fits = (old | new) <= layout.largest_value();
    if !fits {
        check_value(layout, new);
    }
    fits
}

#[inline(always)]
pub(super) fn check_value(layout: Layout, value: u64) {
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
