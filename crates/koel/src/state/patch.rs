//! Changes of whole entries by name, for patches: an entry is taken out with all its copies, or
//! added with so many.

use super::{State, Writer};
use crate::error::FullError;
use crate::state::counters::WriteCounters;
use crate::table::{Addressing, CuckooMut, Taken};

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Takes out all copies of an entry.
    pub(crate) fn take_entry(&mut self, name: u64) {
        let geometry = self.table.table().geometry();
        let Some(at) = geometry.named(name).and_then(|prefix| geometry.location(prefix)) else {
            return;
        };
        let mut copies = self.state.counters.remove(name);
        while let Some(taken @ (Taken::Last | Taken::Copy)) = self.table.take(&at, 0, |_| false) {
            self.note_gone(taken == Taken::Copy);
            copies = copies.saturating_add(1);
        }
        self.state.len = self.state.len.saturating_sub(copies);
    }

    /// Adds an entry that is not in, with so many copies. False, and nothing changed, if no entry
    /// has this name.
    ///
    /// # Errors
    /// [`FullError`] if there is no room, or no counter. The filter must be dropped then.
    pub(crate) fn put_entry(&mut self, name: u64, copies: u64) -> Result<bool, FullError> {
        let Some(prefix) = self.table.table().geometry().named(name).filter(|it| it.core > 0)
        else {
            return Ok(false);
        };
        self.add_copies(prefix, copies)?;
        let State { len, .. } = self.state;
        *len = len.checked_add(copies).ok_or(FullError::Overflow)?;
        Ok(true)
    }
}
