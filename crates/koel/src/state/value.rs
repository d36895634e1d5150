//! Adds a pair of a key and a value, which takes a slot, and changes one.
//!
//! In a counting filter the value is the count of a new key. The caller has checked that values are
//! not too wide.

use super::Body;
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::side::Pair;
use crate::table::search::Spares;
use crate::table::{GrowingLocation, Place, Put, at_place};

impl Body<Buffer> {
    /// Adds a pair to a maplet: to its stash where the table has no room.
    #[inline]
    pub(crate) fn insert_pair(&mut self, address: u64, value: u64) -> Result<(), FullError> {
        at_place!(self.table, P => {
            let at = P::locate(self.table.addresses(), address);
            self.insert_pair_at(at, (address, value))
        })
    }

    /// [`insert_pair`](Self::insert_pair) for the key of a place. Where the stash has a pair of the
    /// key, another search would be in vain.
    #[inline(always)]
    pub(super) fn insert_pair_at(&mut self, at: impl Place, pair: Pair) -> Result<(), FullError> {
        if self.state.len == u64::MAX {
            return Err(FullError::Overflow);
        }
        if self.state.side.stash.len() > 0 && self.state.side.stashed(pair.0) > 0 {
            return self.stash(pair, 1);
        }
        if at.put(&mut self.table, pair.1, u64::MAX) == Put::Done {
            return self.note_new(&at, pair.1);
        }
        self.insert_refused_pair(at, pair)
    }

    /// Removes a pair of a maplet. False if there is none.
    #[inline]
    pub(crate) fn remove_pair(&mut self, address: u64, value: u64) -> bool {
        let has_stash = self.state.side.stash.len() > 0;
        has_stash && self.take_stashed((address, value)) || self.remove_from_table(address, value)
    }

    /// Adds a pair whose buckets are full.
    #[inline(never)]
    fn insert_refused_pair(&mut self, at: impl Place, pair: Pair) -> Result<(), FullError> {
        match self.place_refused(at.general(self.table.addresses()), pair.1) {
            Ok(()) => self.state.len += 1,
            Err(full) => self.insert_full(pair, full)?,
        }
        Ok(())
    }

    /// Changes one pair of a key and `old` to one with `new`. False if there is none.
    #[inline]
    pub(crate) fn replace(&mut self, address: u64, change: (u64, u64)) -> bool {
        at_place!(self.table, P => {
            let at = P::locate(self.table.addresses(), address);
            self.replace_at(&at, address, change)
        })
    }

    /// [`replace`](Self::replace) for the key of a place.
    #[inline(always)]
    pub(super) fn replace_at(
        &mut self,
        at: &impl Place,
        address: u64,
        (old, new): (u64, u64),
    ) -> bool {
        let stash = &mut self.state.side.stash;
        if stash.len() > 0 && stash.take((address, old)) {
            stash.add_all((address, new), 1);
            return true;
        }
        at.revalue(&mut self.table, old, new)
    }

    /// Gives an entry a slot with this value, and keeps the load.
    pub(super) fn insert_value(&mut self, at: impl Place, value: u64) -> Result<(), FullError> {
        let is_in = at.put(&mut self.table, value, u64::MAX) == Put::Done;
        let at = at.general(self.table.addresses());
        if !is_in {
            return self.place_refused(at, value);
        }
        self.state.entries += 1;
        if self.table.is_overfull(self.state.entries) {
            return self.step_or_undo(&at, value);
        }
        Ok(())
    }

    /// Gives an entry a slot in the table as it is. False, and nothing changed, if there is none.
    pub(super) fn put_value(&mut self, at: &GrowingLocation, value: u64) -> bool {
        self.put(at, value) || self.make_room(at, value, Spares::Keep, false)
    }
}
