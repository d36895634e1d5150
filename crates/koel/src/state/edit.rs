//! Changes of filters and counting filters, of single keys and of many: exact answers first, then
//! the table, and the stash for a key that finds no slot there.
//!
//! Mostly the key is new and has an empty slot: then an insert reads both buckets once. The other
//! cases are out of line: copies of keys that are in, full buckets, and keys with exact answers.
//! Keys without one, which are nearly all, go through the table in runs (`many.rs`). So exact
//! answers cost batches one look at their bitmap for each key.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::ops::{ControlFlow, Range};

use super::{Body, COPIES_IN_BUCKETS, State};
use crate::error::FullError;
use crate::image::Kind;
use crate::mem::buffer::Buffer;
use crate::mem::vector::BLOCK;
use crate::side::{MOST_ANSWERS, Pair};
use crate::table::blocks::{Hashes, Until, address_of, each_address};
use crate::table::search::Spares;
use crate::table::{GrowingLocation, Place, Put, Taken, at_place};

/// An insert adds a copy of a key.
pub(crate) const COPIES: bool = false;
/// An insert adds a key only if no entry matches it.
pub(crate) const UNIQUE: bool = true;

/// Where there are exact answers, a batch looks for them among so many keys at a time.
const RUN: usize = 64 * BLOCK;

impl Body<Buffer> {
    /// Adds a copy of a key; if `UNIQUE`, only if it is not in. Returns whether it was added. A
    /// growable filter that is full grows.
    #[inline(always)]
    pub(crate) fn insert<const UNIQUE: bool>(&mut self, address: u64) -> Result<bool, FullError> {
        if self.state.side.has_answers() {
            return self.insert_settled::<UNIQUE>(address);
        }
        match self.insert_in_table::<UNIQUE>(address) {
            Ok(added) => Ok(added),
            Err(full) => self.insert_full((address, 0), full).map(|()| true),
        }
    }

    /// [`insert`](Self::insert) where there are exact answers.
    #[cold]
    #[inline(never)]
    fn insert_settled<const UNIQUE: bool>(&mut self, address: u64) -> Result<bool, FullError> {
        let added = match self.state.side.answer(address) {
            None => self.insert_in_table::<UNIQUE>(address),
            Some(0) => self.insert_in_table::<COPIES>(address),
            Some(_) if UNIQUE => return Ok(false),
            Some(_) => return self.stash((address, 0), 1).map(|()| true),
        };
        let added = match added {
            Ok(added) => added,
            Err(full) => self.insert_full((address, 0), full).map(|()| true)?,
        };
        self.state.side.corrections.remove(address);
        Ok(added)
    }

    /// Adds a pair for which the table has no room, or a key, whose value is 0: to a table that
    /// grows from now on, or to the stash.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_full(&mut self, pair: Pair, full: FullError) -> Result<(), FullError> {
        if !matches!(full, FullError::Slots { .. }) {
            return Err(full);
        }
        if self.grows_instead(full) && self.state.must_grow(self.slots()) {
            self.start_to_grow()?;
            match self.insert_in_table::<COPIES>(pair.0) {
                Err(FullError::Slots { .. }) => {}
                added => return added.map(|_| ()),
            }
        }
        self.stash(pair, 1)
    }

    /// Adds copies of a pair to the stash.
    ///
    /// # Errors
    /// [`FullError::Slots`] if the table is full: it has as many keys as it was built for, or
    /// cannot grow any more.
    pub(super) fn stash(&mut self, pair: Pair, copies: u64) -> Result<(), FullError> {
        let state = &self.state;
        let stashed = state.side.stash.len();
        let has_room = if self.table.grows() {
            self.table.may_gain_entries(state.entries)
        } else {
            let extra = state.side.counters.len().saturating_add(stashed);
            state.wanted_slots() < state.profile.capacity && extra < state.profile.counter_limit
        };
        let is_in = state.side.stash.get(pair).is_some();
        if !(is_in || has_room && stashed < MOST_ANSWERS) {
            return Err(state.out_of_slots());
        }
        // At least the copies of the stash, of which none overflows then.
        self.state.len = state.len.checked_add(copies).ok_or(FullError::Overflow)?;
        self.state.side.stash_copies(pair, copies);
        Ok(())
    }

    /// Notes that a key is absent, so that no entry is taken for it. False, and nothing changed, if
    /// it is not reported or is in the stash.
    ///
    /// # Errors
    /// [`FullError::Corrections`] if there are as many as slots.
    pub(crate) fn refute(&mut self, address: u64) -> Result<bool, FullError> {
        let is_wrong = self.is_taken_for_another(address);
        if is_wrong {
            self.correct_each(&[address])?;
        }
        Ok(is_wrong)
    }

    /// The different keys that entries match, without an exact answer.
    ///
    /// # Errors
    /// [`FullError::NoMemory`] if there is no memory for them.
    pub(crate) fn reported(&self, hashes: impl Hashes) -> Result<Vec<u64>, FullError> {
        let mut wrong = Vec::new();
        let listed = each_address(hashes, 0..hashes.len(), |_, address| {
            if self.is_taken_for_another(address) {
                if wrong.try_reserve(1).is_err() {
                    return ControlFlow::Break(FullError::NoMemory);
                }
                wrong.push(address);
            }
            ControlFlow::Continue(())
        });
        if let ControlFlow::Break(full) = listed {
            return Err(full);
        }
        wrong.sort_unstable();
        wrong.dedup();
        Ok(wrong)
    }

    /// The most corrections, however they come: as many as slots.
    pub(crate) fn most_corrections(&self) -> u64 {
        self.slots().min(MOST_ANSWERS)
    }

    /// Whether an entry matches a key without an exact answer.
    fn is_taken_for_another(&self, address: u64) -> bool {
        self.state.side.answer(address).is_none() && self.table.contains(address)
    }

    /// Makes corrections for different keys without an exact answer, all or none.
    ///
    /// # Errors
    /// [`FullError::Corrections`] if there would be more than slots.
    pub(crate) fn correct_each(&mut self, addresses: &[u64]) -> Result<(), FullError> {
        let limit = self.most_corrections();
        if addresses.len() as u64 > limit.saturating_sub(self.state.side.corrections.len()) {
            return Err(FullError::Corrections { limit });
        }
        for &address in addresses {
            self.state.side.correct(address);
        }
        Ok(())
    }

    /// Removes one copy of a key. False, and nothing changed, if it is not in.
    #[inline(always)]
    pub(crate) fn remove(&mut self, address: u64) -> bool {
        if self.state.side.has_answers()
            && let Some(removed) = self.take_settled(address)
        {
            return removed;
        }
        self.remove_from_table(address, 0)
    }

    /// Removes one copy of a key that has an exact answer. `None` if it has none.
    #[cold]
    #[inline(never)]
    fn take_settled(&mut self, address: u64) -> Option<bool> {
        self.state.side.answer(address)?;
        Some(self.take_stashed((address, 0)))
    }

    /// Removes one copy of a pair from the stash. False if there is none.
    pub(super) fn take_stashed(&mut self, pair: Pair) -> bool {
        let removed = self.state.side.stash.take(pair);
        if removed {
            self.note_one_less(self.table.grows());
        }
        removed
    }

    /// Adds the keys in order; if `UNIQUE`, only those that are not in, and notes in `added` which
    /// were added.
    pub(crate) fn insert_each<const UNIQUE: bool>(
        &mut self,
        hashes: impl Hashes,
        added: &mut [bool],
    ) -> Result<(), FullError> {
        let is_plain = UNIQUE && !self.state.side.has_answers();
        let mut done = if is_plain { self.insert_by_segment(hashes, added) } else { 0 };
        while done < hashes.len() {
            let end = self.end_of_run(hashes, done);
            let is_new = if end == done {
                self.insert_settled::<UNIQUE>(address_of(hashes, done))?
            } else {
                match self.insert_run::<UNIQUE>(Until(hashes, end), &mut done, added) {
                    Ok(()) => continue,
                    Err(full) => {
                        self.insert_full((address_of(hashes, done), 0), full).map(|()| true)?
                    }
                }
            };
            if UNIQUE && is_new {
                added[done] = true;
            }
            done += 1;
        }
        Ok(())
    }

    /// Adds keys without exact answers, from number `done` on, which it raises.
    fn insert_run<const UNIQUE: bool>(
        &mut self,
        hashes: impl Hashes,
        done: &mut usize,
        added: &mut [bool],
    ) -> Result<(), FullError> {
        let (first, before) = (*done, self.state.len);
        let note = |keys: Range<usize>, are_new| {
            if UNIQUE {
                *done = keys.end;
                // Keys after one that found no room in its segment may be in already.
                if are_new {
                    added[keys].fill(true);
                }
            }
        };
        let inserted = self.insert_each_in_table::<UNIQUE>(hashes, first, note);
        if !UNIQUE {
            *done = first + usize::try_from(self.state.len - before).expect("one for each key");
        }
        inserted
    }

    /// Removes one copy of each key, and writes to `removed` whether it was in.
    pub(crate) fn remove_each(&mut self, hashes: impl Hashes, removed: &mut [bool]) {
        self.take_each(hashes, removed, Self::remove, |body, keys, first, removed| {
            body.remove_each_from_table(keys, first, removed);
        });
    }

    /// Takes each key with `one`, or in runs without exact answers with `run`, which gets the
    /// number of the first key of the run. Writes to `removed` whether each was in.
    fn take_each<H: Hashes>(
        &mut self,
        hashes: H,
        removed: &mut [bool],
        one: impl Fn(&mut Self, u64) -> bool,
        run: impl Fn(&mut Self, Until<H>, usize, &mut [bool]),
    ) {
        let mut done = 0;
        while done < hashes.len() {
            let end = self.end_of_run(hashes, done);
            if end == done {
                removed[done] = one(self, address_of(hashes, done));
                done += 1;
            } else {
                run(self, Until(hashes, end), done, removed);
                done = end;
            }
        }
    }

    /// Adds to the count of a key in a counting filter, and returns the count.
    pub(crate) fn add(&mut self, address: u64, times: u64) -> Result<u64, FullError> {
        if !self.state.side.has_answers() || self.state.side.answer(address).is_none() {
            match self.add_in_table(address, times) {
                Err(FullError::Slots { .. }) => {}
                count => return count,
            }
        }
        self.stash((address, 0), times)?;
        Ok(self.count(address))
    }

    /// Lowers the count of a key in a counting filter by 1. False if it is 0.
    pub(crate) fn subtract(&mut self, address: u64) -> bool {
        if self.state.side.has_answers()
            && let Some(subtracted) = self.take_settled(address)
        {
            return subtracted;
        }
        self.subtract_in_table(address)
    }

    /// Adds one to the count of each key, in order.
    pub(crate) fn add_each(&mut self, hashes: impl Hashes) -> Result<(), FullError> {
        let mut done = 0;
        while done < hashes.len() {
            let (keys, first) = (Until(hashes, self.end_of_run(hashes, done)), done);
            let run = self.one_by_one(keys, first, |body, key, address| {
                done = key;
                body.add_in_table(address, 1).map(|_| done += 1)
            });
            if run.is_err() || done == first {
                self.add(address_of(hashes, done), 1)?;
                done += 1;
            }
        }
        Ok(())
    }

    /// Lowers the count of each key by 1, and writes to `removed` whether it was above 0.
    pub(crate) fn subtract_each(&mut self, hashes: impl Hashes, removed: &mut [bool]) {
        self.take_each(hashes, removed, Self::subtract, |body, keys, first, removed| {
            let Ok(()) = body.one_by_one(keys, first, |body, key, address| {
                removed[key] = body.subtract_in_table(address);
                Ok::<(), Infallible>(())
            });
        });
    }

    /// The end of the keys from number `first` on that can be changed together: the next key that
    /// may have an exact answer. It is `first` if that key may have one.
    fn end_of_run(&self, hashes: impl Hashes, first: usize) -> usize {
        let side = &self.state.side;
        if !side.has_answers() {
            return hashes.len();
        }
        let end = hashes.len().min(first + RUN);
        let found = each_address(hashes, first..end, |key, address| {
            if side.may_answer(address) {
                ControlFlow::Break(key)
            } else {
                ControlFlow::Continue(())
            }
        });
        found.break_value().unwrap_or(end)
    }
}

/// Changes of the table and its counters.
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
                may_move && self.make_room(at, 0, Spares::Keep, false)
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
        let is_counted = (counters.len() > 0).then_some(|name| counters.take(name));
        match at.take(&mut self.table, value, is_counted) {
            Some(Taken::Absent) => return false,
            Some(taken) => {
                let is_spare = taken == Taken::Copy && self.state.kind() == Kind::Filter;
                self.note_gone(is_spare, P::GROWS);
            }
            // A counted copy.
            None => {}
        }
        self.note_one_less(P::GROWS);
        true
    }

    /// Lowers the number of keys, and empties the table after its last one: when no more are left
    /// than the stash has. Only growth leaves entries that belong to no key, and only then may more
    /// be removed than are in.
    #[inline(always)]
    pub(super) fn note_one_less(&mut self, grows: bool) {
        if !grows {
            self.state.len -= 1;
            return;
        }
        let stashed = u64::try_from(self.state.side.stash.sum()).unwrap_or(u64::MAX);
        self.state.len = self.state.len.saturating_sub(1).max(stashed);
        if self.state.len == stashed && self.state.entries > 0 {
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
