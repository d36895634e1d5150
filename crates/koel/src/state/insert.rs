//! Adding a key to a filter, a copy at a time, and taking one out.
//!
//! A new entry for which there is an empty slot is the usual case, and takes one walk through both
//! buckets. The rest is out of line: copies of keys that are in, and buckets that are full.

use super::{COPIES_IN_BUCKETS, State, Writer};
use crate::error::FullError;
use crate::state::counters::WriteCounters;
use crate::table::search::Spares;
use crate::table::{Addressing, CuckooMut, LocationOf, Put, Taken, grows};

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Adds a copy of a key; where `UNIQUE`, unless an entry matches it. True if it was added.
    #[inline]
    pub(crate) fn insert<const UNIQUE: bool>(self, address: u64) -> Result<bool, FullError> {
        let location = self.table.table().geometry().locate(address);
        self.insert_at::<UNIQUE>(location)
    }

    /// [`insert`](Self::insert) for the key of a location.
    #[inline(always)]
    pub(super) fn insert_at<const UNIQUE: bool>(
        mut self,
        location: LocationOf<T>,
    ) -> Result<bool, FullError> {
        if self.state.len == u64::MAX {
            let is_there = UNIQUE && self.table.table().longest(&location).is_some();
            return if is_there { Ok(false) } else { Err(FullError::Overflow) };
        }
        match self.table.put(&location, 0, 0) {
            Put::Done => {
                self.note_new(1);
                Ok(true)
            }
            Put::Repeated(_) if UNIQUE => Ok(false),
            refused => self.insert_refused(location, refused).map(|()| true),
        }
    }

    /// Counts new entries, which have got their slots, and keeps the load.
    #[inline(always)]
    pub(super) fn note_new(&mut self, entries: u64) {
        self.state.len += entries;
        self.state.entries += entries;
        if grows::<T>() {
            self.keep_load(0);
        }
    }

    /// Adds a copy of a key that has entries already, or whose buckets are full. `len` is not at
    /// its end.
    #[inline(never)]
    pub(super) fn insert_refused(
        mut self,
        mut at: LocationOf<T>,
        mut refused: Put,
    ) -> Result<(), FullError> {
        while refused == Put::Full && !self.find_room(&at)? {
            at = self.table.relocate(&at);
            refused = self.table.put(&at, 0, 0);
            self.state.entries += u64::from(refused == Put::Done);
        }
        if let Put::Repeated(copies) = refused {
            self.add_copy(&at, copies)?;
        } else {
            self.keep_load(0);
        }
        self.state.len += 1;
        Ok(())
    }

    /// Gives a new entry a slot although its buckets are full. False where the table has grown
    /// instead, so that there may be an empty slot.
    fn find_room(&mut self, at: &LocationOf<T>) -> Result<bool, FullError> {
        if self.make_room_for_new(at) {
            return Ok(true);
        }
        if self.split_for_room() {
            return Ok(false);
        }
        if self.table.is_sparse(self.state.entries) && self.share_slot(at) {
            return Ok(true);
        }
        Err(self.state.out_of_slots())
    }

    /// Finds a slot for a new entry whose buckets are full. It may be the slot of a spare copy. A
    /// filter that grows is not filled to the last slot before: it begins to grow while there is
    /// room for the keys that come until its buckets are wide.
    pub(super) fn make_room_for_new(&mut self, at: &LocationOf<T>) -> bool {
        let is_due = self.state.distinct() >= self.state.profile.capacity;
        if !grows::<T>() && self.state.profile.growable && is_due {
            return false;
        }
        let spares = self.state.spares_to_take();
        // Growth may be long in coming to a bucket that is the only one of its keys.
        self.make_room(at, 0, spares) || T::is_alone(at) && self.share_slot(at)
    }

    /// Makes two entries one, and gives a new entry the slot of the other.
    fn share_slot(&mut self, at: &LocationOf<T>) -> bool {
        let is_in = self.share(at) && self.table.put(at, 0, u64::MAX) == Put::Done;
        self.state.entries += u64::from(is_in);
        is_in
    }

    /// Adds a copy beside `copies` that match, in a slot or in a counter. A failure changes
    /// nothing.
    fn add_copy(&mut self, at: &LocationOf<T>, copies: u64) -> Result<(), FullError> {
        let Some(name) = self.table.table().name_of_longest(at) else { return Ok(()) };
        if copies < COPIES_IN_BUCKETS && self.put_second(at, name) {
            self.keep_load(0);
            return Ok(());
        }
        self.state.count_copies(name, 1)
    }

    /// Gives an entry its second slot while there is plenty; false, and nothing changed, where the
    /// copy should be counted instead.
    pub(super) fn put_second(&mut self, at: &LocationOf<T>, name: u64) -> bool {
        let is_crowded = !grows::<T>() && self.state.is_crowded();
        if is_crowded || self.state.counters.get(name) > 0 {
            return false;
        }
        let done = match self.table.put(at, 0, COPIES_IN_BUCKETS - 1) {
            Put::Repeated(_) => false,
            Put::Done => {
                self.state.entries += 1;
                true
            }
            Put::Full => {
                let may_move = !grows::<T>() && !self.state.spares_are_common();
                may_move && self.make_room(at, 0, Spares::Keep)
            }
        };
        self.state.spares += u64::from(done);
        done
    }

    /// Takes out one copy of a key with this value, which is 0 in a filter: a counted copy if there
    /// is one. False if there is none.
    #[inline]
    pub(crate) fn remove(self, address: u64, value: u64) -> bool {
        let location = self.table.table().geometry().locate(address);
        self.remove_at(location, value)
    }

    /// [`remove`](Self::remove) for the key of a location.
    #[inline(always)]
    pub(super) fn remove_at(self, location: LocationOf<T>, value: u64) -> bool {
        let counters = &mut self.state.counters;
        let taken = self.table.take(&location, value, |name| counters.take(name));
        self.note_removed(taken)
    }

    /// Counts what was taken out; false if that is nothing.
    #[inline(always)]
    fn note_removed(mut self, taken: Option<Taken>) -> bool {
        match taken {
            Some(Taken::Nothing) => return false,
            Some(taken) => self.note_gone(C::COUNTS && taken == Taken::Copy),
            // A counted copy.
            None => {}
        }
        let len = self.state.len;
        self.state.len = if grows::<T>() { len.saturating_sub(1) } else { len - 1 };
        true
    }

    /// Counts an entry less, which was a spare copy or not. In a growing table that is as much as
    /// is known: matches of different lengths are not equal.
    #[inline(always)]
    pub(super) fn note_gone(&mut self, spare: bool) {
        let state = &mut *self.state;
        state.entries -= 1;
        state.spares = if grows::<T>() {
            state.spares.saturating_sub(u64::from(spare)).min(state.entries)
        } else {
            state.spares - u64::from(spare)
        };
    }
}

impl<C: WriteCounters> State<C> {
    /// Spare copies are taken at once where they are common, for then empty slots are hard to
    /// reach.
    fn spares_to_take(&self) -> Spares {
        if self.counters.len() >= self.profile.counter_limit {
            Spares::Keep
        } else if self.is_crowded() || self.spares_are_common() {
            Spares::AtOnce
        } else {
            Spares::IfNeeded
        }
    }

    /// Whether the slots up to the capacity are taken. From there on they are for distinct keys
    /// only.
    fn is_crowded(&self) -> bool {
        self.entries >= self.profile.capacity
    }

    /// Whether copies came from repeated keys, rather than from keys that happen to share an entry:
    /// those are 1 in 60 at a rate of 3 %.
    fn spares_are_common(&self) -> bool {
        self.spares.saturating_mul(16) > self.entries
    }
}
