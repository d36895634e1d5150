//! Adds one copy of a key to a filter, or removes one.
//!
//! Mostly the key is new and has an empty slot: then an insert reads both buckets once. The other
//! cases are out of line: copies of keys that are in, and full buckets.

use super::{Body, COPIES_IN_BUCKETS, State};
use crate::error::FullError;
use crate::image::Kind;
use crate::mem::buffer::Buffer;
use crate::table::search::Spares;
use crate::table::{GrowingLocation, Place, Put, Taken, at_place};

/// An insert adds a copy of a key.
pub(crate) const COPIES: bool = false;
/// An insert adds a key only if no entry matches it.
pub(crate) const UNIQUE: bool = true;

/// Changes of the table and its counters; `edit.rs` has what comes before and after.
impl Body<Buffer> {
    /// Adds a copy of a key; where `UNIQUE`, unless an entry matches it. True if it was added.
    #[inline]
    pub(super) fn insert_in_table<const UNIQUE: bool>(
        &mut self,
        address: u64,
    ) -> Result<bool, FullError> {
        at_place!(self.table, P => {
            let at = P::locate(self.table.addresses(), address);
            self.insert_at::<UNIQUE>(at)
        })
    }

    /// [`insert_in_table`](Self::insert_in_table) for the key of a place.
    #[inline(always)]
    pub(super) fn insert_at<const UNIQUE: bool>(
        &mut self,
        at: impl Place,
    ) -> Result<bool, FullError> {
        if self.state.len == u64::MAX {
            let is_there = UNIQUE && self.table.longest(&at).is_some();
            return if is_there { Ok(false) } else { Err(FullError::Overflow) };
        }
        match at.put(&mut self.table, 0, 0) {
            Put::Done => self.note_new(&at, 0).map(|()| true),
            Put::Repeated(_) if UNIQUE => Ok(false),
            refused => self.insert_refused(at, refused).map(|()| true),
        }
    }

    /// Updates the totals for a new entry that was put in an empty slot, and keeps the load. A
    /// failure takes the entry out again.
    #[inline(always)]
    pub(super) fn note_new<P: Place>(&mut self, at: &P, value: u64) -> Result<(), FullError> {
        self.state.entries += 1;
        if P::GROWS && self.table.is_overfull(self.state.entries) {
            self.step_or_undo(&at.general(self.table.addresses()), value)?;
        }
        self.state.len += 1;
        Ok(())
    }

    /// Adds a copy of a key that has entries already, or whose buckets are full. The caller has
    /// checked that `len` can rise.
    #[inline(never)]
    fn insert_refused(&mut self, at: impl Place, refused: Put) -> Result<(), FullError> {
        let at = at.general(self.table.addresses());
        if let Put::Repeated(copies) = refused {
            self.reserve_steps()?;
            self.add_copy(&at, copies)?;
        } else {
            self.place_refused(at, 0)?;
        }
        self.state.len += 1;
        Ok(())
    }

    /// Adds a copy to `copies` that match, in a slot or in a counter. A failure changes nothing.
    fn add_copy(&mut self, at: &GrowingLocation, copies: u64) -> Result<(), FullError> {
        let Some(name) = self.table.name_of_longest(at) else { return Ok(()) };
        if copies < COPIES_IN_BUCKETS && self.put_second(at, name) {
            self.keep_load(0);
            return Ok(());
        }
        self.state.count_copies(name, 1)
    }

    /// Gives the second copy of an entry a slot while there are many. False, and nothing changed,
    /// if a counter should count it.
    pub(super) fn put_second(&mut self, at: &GrowingLocation, name: u64) -> bool {
        let is_crowded = !self.table.grows() && self.state.is_crowded();
        if is_crowded || self.state.side.counters.get(name).is_some() {
            return false;
        }
        let done = match at.put(&mut self.table, 0, COPIES_IN_BUCKETS - 1) {
            Put::Repeated(_) => false,
            Put::Done => {
                self.state.entries += 1;
                true
            }
            Put::Full => {
                // A short entry is most likely another key's, as growth shortens entries. Counted
                // there, the key would keep that entry in when the other one is removed.
                let may_move = if self.table.grows() {
                    self.is_old_match(at)
                } else {
                    !self.state.spares_are_common()
                };
                may_move && self.make_room(at, 0, Spares::Keep)
            }
        };
        self.state.spares += u64::from(done);
        done
    }

    /// Whether the longest entry that matches has fewer bits than a new one would have.
    fn is_old_match(&self, at: &GrowingLocation) -> bool {
        let whole = self.table.addresses().common_length();
        self.table.longest(at).is_some_and(|entry| entry.prefix.length < whole)
    }

    /// Takes out one copy of a key with this value, which is 0 in a filter: a counted copy if there
    /// is one. False if there is none.
    #[inline]
    pub(crate) fn remove_from_table(&mut self, address: u64, value: u64) -> bool {
        at_place!(self.table, P => {
            let at = P::locate(self.table.addresses(), address);
            self.remove_at(at, value)
        })
    }

    /// [`remove_from_table`](Self::remove_from_table) for the key of a place.
    #[inline(always)]
    pub(super) fn remove_at<P: Place>(&mut self, at: P, value: u64) -> bool {
        let counters = &mut self.state.side.counters;
        match at.take(&mut self.table, value, |name| counters.take(name)) {
            Some(Taken::Absent) => return false,
            Some(taken) => {
                let is_spare = taken == Taken::Copy && self.state.kind == Kind::Filter;
                self.note_gone(is_spare, P::GROWS);
            }
            // A counted copy.
            None => {}
        }
        self.note_one_less(P::GROWS);
        true
    }

    /// Lowers the number of keys, and empties the table after the last one. Only growth leaves
    /// entries that belong to no key.
    #[inline(always)]
    pub(super) fn note_one_less(&mut self, grows: bool) {
        if !grows {
            self.state.len -= 1;
            return;
        }
        self.state.len = self.state.len.saturating_sub(1);
        if self.state.len == 0 && self.state.entries > 0 {
            self.clear_leftovers();
        }
    }

    /// Takes out the entries and counters that belong to no key. O(buckets), and at most once for
    /// each time that growth has left some.
    #[cold]
    #[inline(never)]
    fn clear_leftovers(&mut self) {
        self.table.clear();
        self.state.clear_table();
    }

    /// Updates the totals for an entry that is gone, a `spare` copy or not. In a growing table
    /// `spare` is a guess: matches of different lengths are not equal.
    #[inline(always)]
    pub(super) fn note_gone(&mut self, spare: bool, grows: bool) {
        let state = &mut self.state;
        state.entries -= 1;
        state.spares = if grows {
            state.spares.saturating_sub(u64::from(spare)).min(state.entries)
        } else {
            state.spares - u64::from(spare)
        };
    }
}

impl State<Buffer> {
    /// When a search may take the slot of a spare copy. At once if they are common, since empty
    /// slots are then hard to reach.
    pub(super) fn spares_to_take(&self) -> Spares {
        if self.side.counters.len() >= self.profile.counter_limit {
            Spares::Keep
        } else if self.is_crowded() || self.spares_are_common() {
            Spares::AtOnce
        } else {
            Spares::IfNeeded
        }
    }

    /// Whether entries fill the capacity. The slots beyond are for distinct keys only.
    fn is_crowded(&self) -> bool {
        self.entries >= self.profile.capacity
    }

    /// Whether spare copies come from repeated keys. Keys that share an entry by chance make fewer:
    /// 1 in 60 at a rate of 3 %.
    fn spares_are_common(&self) -> bool {
        self.spares.saturating_mul(16) > self.entries
    }
}
