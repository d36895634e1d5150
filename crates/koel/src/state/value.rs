//! Adds a pair of a key and a value, which takes a slot, and changes one.
//!
//! In a counting filter the value is the count of a new key. The caller has checked that values are
//! not too wide.

use super::Writer;
use crate::error::FullError;
use crate::state::counters::WriteCounters;
use crate::state::full::Crowded;
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
        if self.table.put(&location, value, u64::MAX) != Put::Done {
            return self.insert_refused_pair(location, value);
        }
        self.note_new(&location, value)
    }

    /// Adds a pair whose buckets are full.
    #[inline(never)]
    pub(super) fn insert_refused_pair(
        mut self,
        at: LocationOf<T>,
        value: u64,
    ) -> Result<(), FullError> {
        self.place_refused(at, value)?;
        self.state.len += 1;
        Ok(())
    }

    /// Changes one pair of a key and `old` to one with `new`. False if there is none.
    #[inline]
    pub(crate) fn replace(self, address: u64, (old, new): (u64, u64)) -> bool {
        let location = self.table.table().geometry().locate(address);
        self.table.revalue(&location, old, new)
    }

    /// Gives an entry a slot with this value, and keeps the load.
    pub(super) fn insert_value(&mut self, at: LocationOf<T>, value: u64) -> Result<(), FullError> {
        if !self.put(&at, value) {
            return self.place_refused(at, value);
        }
        if self.table.table().is_overfull(self.state.entries) {
            return self.step_or_undo(&at, value);
        }
        Ok(())
    }

    /// Gives an entry a slot in the table as it is. False, and nothing changed, if there is none.
    pub(super) fn put_value(&mut self, at: &LocationOf<T>, value: u64) -> bool {
        self.put(at, value) || self.make_room(at, value, Spares::Keep)
    }
}
