//! Adds a pair of a key and a value, which takes a slot, and changes one.
//!
//! In a counting filter the value is the count of a new key. The caller has checked that values are
//! not too wide.

use super::Writer;
use crate::error::FullError;
use crate::image::Kind;
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

    /// Changes one pair of a key and `old` to one with `new`. False if there is none.
    #[inline]
    pub(crate) fn replace(self, address: u64, (old, new): (u64, u64)) -> bool {
        let location = self.table.table().geometry().locate(address);
        self.table.revalue(&location, old, new)
    }

    /// Gives an entry a slot with this value, and keeps the load.
    pub(super) fn insert_value(&mut self, at: LocationOf<T>, value: u64) -> Result<(), FullError> {
        if self.table.put(&at, value, u64::MAX) == Put::Done {
            self.state.entries += 1;
        } else {
            self.find_slot(at, value)?;
        }
        self.keep_load(0);
        Ok(())
    }

    /// Gives an entry a slot in the table as it is. False, and nothing changed, if there is none.
    pub(super) fn put_value(&mut self, at: &LocationOf<T>, value: u64) -> bool {
        if self.table.put(at, value, u64::MAX) == Put::Done {
            self.state.entries += 1;
            return true;
        }
        self.make_room(at, value, Spares::Keep)
    }

    /// Gives an entry whose buckets are full a slot: in the table as it is, or after growth.
    fn find_slot(&mut self, mut at: LocationOf<T>, value: u64) -> Result<(), FullError> {
        let mut is_in = self.make_room(&at, value, Spares::Keep);
        while !is_in {
            self.grow_for(&at)?;
            at = self.table.relocate(&at);
            is_in = self.put_value(&at, value);
        }
        Ok(())
    }

    /// Splits the next chunk of buckets, because `at` has no room. In a counting filter, two
    /// entries may become one instead. Returns why there is no room if neither would help.
    fn grow_for(&mut self, at: &LocationOf<T>) -> Result<(), FullError> {
        let full = self.why_full(at);
        // The values of one key stay together in any table.
        let is_hopeless = matches!(full, FullError::Values { .. });
        let counts = self.state.kind == Kind::Counting;
        let done = !is_hopeless && self.split_for_room()?
            || counts && T::is_alone(at) && self.share(at)
            || counts && self.split_for_room()?
            || counts && self.split_for_lone_key(at);
        if done { Ok(()) } else { Err(full) }
    }
}
