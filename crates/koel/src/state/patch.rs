//! Changes of whole entries by name, for patches: an entry is taken out with all its copies, or
//! added with so many.

use super::{Body, State};
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::table::{NOT_COUNTED, Place, Taken};

impl Body<Buffer> {
    /// Takes out all copies of an entry.
    pub(crate) fn take_entry(&mut self, name: u64) {
        let addresses = self.table.addresses();
        let Some(at) = addresses.named(name).and_then(|it| addresses.location(it)) else {
            return;
        };
        let mut copies = self.state.side.counters.remove(name).unwrap_or(0);
        while let Some(taken @ (Taken::Last | Taken::Copy)) =
            at.take(&mut self.table, 0, NOT_COUNTED)
        {
            self.note_gone(taken == Taken::Copy, self.table.grows());
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
        let Some(prefix) = self.table.addresses().named(name) else {
            return Ok(false);
        };
        self.add_copies(prefix, copies)?;
        let State { len, .. } = &mut self.state;
        *len = len.checked_add(copies).ok_or(FullError::Overflow)?;
        Ok(true)
    }
}
