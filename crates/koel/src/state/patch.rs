//! Changes of whole entries, for patches: an entry is taken out with all its copies, or added with
//! so many. The caller sets the number of keys. An entry is named by its
//! [order](crate::address::geometry::Geometry::order).

use super::Body;
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::table::search::Spares;
use crate::table::{GrowingLocation, NOT_COUNTED, Place, Taken};

impl Body<Buffer> {
    /// Takes out all copies of an entry, in a table of one size.
    pub(crate) fn take_entry(&mut self, order: u64) {
        let addresses = self.table.addresses();
        let Some(prefix) = addresses.try_ordered(order) else { return };
        let (at, name) = (addresses.fixed_location(&prefix), addresses.name(&prefix));
        self.state.side.counters.remove(name);
        while let Some(taken @ (Taken::Last | Taken::Copy)) =
            at.take(&mut self.table, 0, NOT_COUNTED)
        {
            self.note_gone(taken == Taken::Copy, self.table.grows());
        }
    }

    /// Adds an entry that is not in, with so many copies, to a table of one size. False, and
    /// nothing changed, if no entry has this order.
    ///
    /// # Errors
    /// [`FullError`] if there is no room, or no counter. The filter must be dropped then.
    pub(crate) fn put_entry(&mut self, order: u64, copies: u64) -> Result<bool, FullError> {
        let addresses = self.table.addresses();
        let Some(prefix) = addresses.try_ordered(order) else { return Ok(false) };
        let (fixed, name) = (addresses.fixed_location(&prefix), addresses.name(&prefix));
        let has_slot = copies > 0 && self.put(&fixed, 0);
        if copies == u64::from(has_slot) {
            return Ok(true);
        }
        let at = fixed.general(self.table.addresses());
        if !has_slot && !self.move_in(&at, 0) {
            return Err(self.state.out_of_slots());
        }
        let has_second = copies > 1 && self.put_second(&at, name);
        match copies - 1 - u64::from(has_second) {
            0 => Ok(true),
            beyond => self.state.count_copies(name, beyond).map(|()| true),
        }
    }

    /// Adds an entry that is not in to a growing table, and no entry loses a bit for it. Otherwise
    /// as [`put_entry`](Self::put_entry).
    pub(crate) fn put_whole(&mut self, order: u64) -> Result<bool, FullError> {
        let Some((at, _)) = self.whole(order) else { return Ok(false) };
        if self.put(&at, 0) || self.make_room(&at, 0, Spares::Keep, true) {
            Ok(true)
        } else {
            Err(self.state.out_of_slots())
        }
    }

    /// Adds so many copies of an entry that is in a growing table. One gets a slot if there is one.
    ///
    /// # Errors
    /// [`FullError`] if there is no counter. The filter must be dropped then.
    pub(crate) fn add_to_whole(&mut self, order: u64, copies: u64) -> Result<(), FullError> {
        let Some((at, name)) = self.whole(order).filter(|_| copies > 0) else { return Ok(()) };
        let has_slot = self.put(&at, 0);
        self.state.spares += u64::from(has_slot);
        match copies - u64::from(has_slot) {
            0 => Ok(()),
            beyond => self.state.count_copies(name, beyond),
        }
    }

    /// Where an entry with this order may be and keep all its bits, and its name.
    fn whole(&self, order: u64) -> Option<(GrowingLocation, u64)> {
        let addresses = self.table.addresses();
        let prefix = addresses.try_ordered(order)?;
        Some((addresses.whole_location(prefix)?, addresses.name(&prefix)))
    }
}
