//! Room for an entry whose buckets are full: the one rule for all types.
//!
//! 1. It searches for an eviction path, and puts the entry where the path ends: at an empty slot,
//!    at the second copy of an entry, which is then counted, or in an expiring filter at a dead
//!    entry.
//! 2. If there is none, it makes a step of growth where one is due, and searches again.
//! 3. If that fails too, an expiring filter merges two entries or evicts the oldest. All others
//!    keep the key in their stash (`side.rs`).
//!
//! So one insert does a bounded amount of work, whatever the keys: one step, with a search before
//! and after it. A search looks at 4096 slots, and in some cases at them again: for spare copies,
//! or for dead entries by their groups. Another step may follow when the entry is in
//! ([`keep_load`](Body::keep_load)). A failure changes no answer, and no byte of a table of one
//! size.

use core::array;

use super::{Body, Expiry, State};
use crate::error::FullError;
use crate::image::Kind;
use crate::mem::buffer::Buffer;
use crate::mem::vector::BLOCK;
use crate::packing::SLOTS;
use crate::table::room::bits;
use crate::table::search::{BUDGET, End, EvictionPath, Spares};
use crate::table::{Entry, EntryTest, GrowingLocation, NOT_COUNTED, Place, Prefix, Put, Step};

/// Entries among which the oldest is evicted: those of 40 buckets.
const EVICTION_BUDGET: usize = 160;

impl Body<Buffer> {
    /// Gives an entry whose buckets are full a slot, and counts it.
    pub(super) fn find_slot(
        &mut self,
        mut at: GrowingLocation,
        value: u64,
    ) -> Result<(), FullError> {
        let mut is_in = self.move_in(&at, value);
        if !is_in && self.is_step_due() {
            match self.split_chunk() {
                Step::Done => {
                    at = at.relocated(self.table.addresses());
                    is_in = self.put(&at, value) || self.move_in(&at, value);
                }
                Step::Refused => {}
                Step::NoMemory => return Err(FullError::NoMemory),
            }
        }
        if is_in { Ok(()) } else { self.last_resort(&at, value) }
    }

    /// Gives an entry an empty slot of its buckets, and counts it. False if there is none.
    #[inline]
    pub(super) fn put(&mut self, at: &impl Place, value: u64) -> bool {
        let is_in = if self.expires() {
            self.put_stamped(at, value)
        } else {
            at.put(&mut self.table, value, u64::MAX) == Put::Done
        };
        self.state.entries += u64::from(is_in);
        is_in
    }

    /// Finds an eviction path for an entry with this value and carries it out. Counts the entry.
    /// False, and no answer changed, if there is none.
    ///
    /// A growable filter is not filled to the last slot: it starts to grow while there is room for
    /// the keys that come until its buckets are wide.
    pub(super) fn move_in(&mut self, at: &GrowingLocation, value: u64) -> bool {
        if self.expires() {
            let path = self.path_past_dead(at);
            return path.is_some_and(|path| self.follow(path, at, value));
        }
        let is_filter = self.state.kind() == Kind::Filter;
        if is_filter && !self.table.grows() && self.state.must_grow(self.slots()) {
            return false;
        }
        let spares = if is_filter { self.state.spares_to_take() } else { Spares::Keep };
        self.make_room(at, value, spares, false)
    }

    /// Makes room in another way, or says why there is none. An expiring filter that grows merges
    /// two entries; otherwise it evicts the oldest one near, if it may.
    fn last_resort(&mut self, at: &GrowingLocation, value: u64) -> Result<(), FullError> {
        if !self.expires() {
            return Err(self.state.out_of_slots());
        }
        if self.share(at) && self.put(at, value) {
            return Ok(());
        }
        while let Some(path) = self.path_to_oldest() {
            if self.follow(path, at, value) {
                return Ok(());
            }
        }
        let (live, capacity) = (self.state.len, self.state.profile.capacity);
        Err(FullError::Window { live, capacity })
    }

    /// Moves entries so that the one of `location`, whose buckets are full, gets a slot. Counts it.
    /// False, and nothing changed, if there is no way. If it `keeps_bits`, no entry loses any.
    pub(super) fn make_room(
        &mut self,
        location: &GrowingLocation,
        value: u64,
        spares: Spares,
        keeps_bits: bool,
    ) -> bool {
        let (table, state) = (&mut self.table, &mut self.state);
        let layout = table.layout();
        let (kind, counters) = (state.kind(), &state.side.counters);
        // An entry with a counter keeps its bits, for the counter goes by its name.
        let is_pinned = |slot: u64, name: u64| match kind {
            _ if keeps_bits => true,
            Kind::Counting => layout.value_of(slot) == layout.largest_value(),
            _ => counters.get(name).is_some(),
        };
        let pinned = (keeps_bits || counters.len() > 0).then_some(&is_pinned as &EntryTest<'_>);
        let path = table.path_to_room(&mut state.search, location, spares, pinned);
        path.is_some_and(|path| self.follow(path, location, value))
    }

    /// The path to an empty slot, or to that of a dead entry. Stamps alone show nearly all of
    /// these: all in groups that are not due to be swept. In others, a dead entry may look live,
    /// but no live one dead. Looking at the sweeps of groups makes a search a seventh dearer.
    fn path_past_dead(&mut self, at: &GrowingLocation) -> Option<EvictionPath> {
        let (table, layout) = (&self.table, self.layout());
        let State { search, expiry, profile, len, entries, .. } = &mut self.state;
        let Expiry { clock, sweeps, .. } = expiry.as_ref()?;
        let room_for = profile.capacity.saturating_add(profile.capacity / clock.steps);
        let is_over = !table.grows() && clock.evicts && *len >= room_for;
        let budget = if is_over { EVICTION_BUDGET } else { BUDGET };
        let by_stamp = |_: &_, slots: &[_; SLOTS]| {
            let is_dead = clock.dead_in(clock.due());
            bits(slots, |slots| has_room(slots, |slot| is_dead(layout.value_of(slot))))
        };
        let by_group = |buckets: &[u64; SLOTS], slots: &[[u64; SLOTS]; SLOTS]| {
            let buckets: [_; SLOTS] = array::from_fn(|i| (buckets[i], slots[i]));
            bits(&buckets, |(bucket, slots)| {
                let is_dead = clock.dead_in(sweeps.swept(*bucket));
                has_room(slots, |slot| is_dead(layout.value_of(slot)))
            })
        };
        let path = table.path_to_dead(search, at, &by_stamp, budget);
        if path.is_some() || entries == len {
            return path;
        }
        table.path_to_dead(search, at, &by_group, budget)
    }

    /// After a search that found no room: the path to the oldest entry, if old ones are evicted.
    fn path_to_oldest(&mut self) -> Option<EvictionPath> {
        let layout = self.layout();
        let State { search, expiry, .. } = &mut self.state;
        let Expiry { clock, sweeps, .. } = expiry.as_ref()?;
        let age = |bucket, slot| clock.age(sweeps.swept(bucket), layout.value_of(slot));
        if clock.evicts { search.path_to_greatest(EVICTION_BUDGET, age) } else { None }
    }

    /// Moves entries along a path, puts one with this value where it begins, and counts it. If a
    /// group of the path was due to be swept, entries of the path may be gone: then the entry may
    /// have an empty slot instead. False, and nothing moved, if it has no slot.
    fn follow(&mut self, path: EvictionPath, at: &GrowingLocation, value: u64) -> bool {
        if self.expires() && self.prepare_groups(&path) {
            self.state.search.recycle(path);
            return self.put(at, value) || self.move_in(at, value);
        }
        let is_free = self.empty_end(&path);
        if is_free {
            self.table.carry_out(&path, at, value);
        }
        self.state.search.recycle(path);
        is_free
    }

    /// Prepares the groups of a path. True if one was swept: then entries of the path may be gone.
    #[inline]
    fn prepare_groups(&mut self, path: &EvictionPath) -> bool {
        let room = if let End::Empty(room) = path.end { Some(room) } else { None };
        let is_due = room.is_some_and(|room| self.is_due(room))
            || path.moves.iter().any(|&(bucket, _)| self.is_due(bucket));
        if is_due {
            for bucket in path.moves.iter().map(|&(bucket, _)| bucket).chain(room) {
                self.prepare_group(bucket);
            }
        }
        is_due
    }

    /// Takes out what is at the end of a path: dead entries, a copy, which is counted, or the entry
    /// that is evicted. Counts the entry that comes. False, and nothing changed, if a copy cannot
    /// be counted.
    fn empty_end(&mut self, path: &EvictionPath) -> bool {
        let expires = self.expires();
        match (path.end, path.moves.last()) {
            (End::Empty(room), _) => {
                if expires {
                    self.drop_dead(room);
                }
                self.state.entries += 1;
                true
            }
            (End::Spare, Some(&(bucket, slot))) if expires => {
                let (entry, stamp) = (self.table.entry(bucket, slot), self.layout().value_of(slot));
                let age = self.age_of(entry.bucket, entry.slot);
                self.state.expiry().clock.note_evicted(age);
                *self.state.expiry().count(stamp) -= 1;
                self.state.len -= 1;
                self.table.forget(bucket, slot);
                true
            }
            (End::Spare, Some(&(bucket, slot))) => {
                let (table, state) = (&mut self.table, &mut self.state);
                let name = table.name(&table.entry(bucket, slot));
                let is_counted = state.count_copies(name, 1).is_ok();
                state.spares -= u64::from(is_counted);
                is_counted
            }
            (End::Spare, None) => false,
        }
    }

    /// The entries for which the table must have room: in an expiring filter without dead ones,
    /// whose slots are room.
    fn load(&self) -> u64 {
        if self.expires() { self.state.len } else { self.state.entries }
    }

    /// Whether one more entry makes a step of growth due.
    fn is_step_due(&self) -> bool {
        self.table.is_overfull(self.load() + 1)
    }

    /// Makes a step of growth for an entry that has come, or for each of so many that are
    /// `coming`, while the table is too full for them. A table that was just widened is fuller than
    /// designed, and gets there in small steps. For an entry that has come, there is memory:
    /// [`place_refused`](Self::place_refused), or [`step_or_undo`](Self::step_or_undo) instead.
    pub(super) fn keep_load(&mut self, coming: u64) {
        let is_overfull = |body: &Self| body.table.is_overfull(body.load() + coming);
        for _ in 0..coming.max(1) {
            if !is_overfull(self) || self.split_chunk() != Step::Done {
                return;
            }
        }
    }

    /// Gets memory for the steps of growth of one more entry, before anything is changed. Without,
    /// an insert would be in here, and the step made only on a machine that has memory.
    pub(super) fn reserve_steps(&mut self) -> Result<(), FullError> {
        if !self.table.grows() || !self.is_step_due() {
            return Ok(());
        }
        let buckets = self.table.reserve_steps();
        let has_memory = |buckets| match self.state.time_mut() {
            Some(expiry) => expiry.sweeps.reserve(buckets),
            None => true,
        };
        if buckets.is_some_and(has_memory) { Ok(()) } else { Err(FullError::NoMemory) }
    }

    /// Gives an entry whose buckets are full a slot, and keeps the load.
    pub(super) fn place_refused(
        &mut self,
        at: GrowingLocation,
        value: u64,
    ) -> Result<(), FullError> {
        self.reserve_steps()?;
        self.find_slot(at, value)?;
        self.keep_load(0);
        Ok(())
    }

    /// Makes the step of growth that an entry makes due, which was put in an empty slot and counted
    /// in `entries`. Takes it out again where there is no memory for the step.
    #[cold]
    #[inline(never)]
    pub(super) fn step_or_undo(
        &mut self,
        at: &GrowingLocation,
        value: u64,
    ) -> Result<(), FullError> {
        if self.split_chunk() != Step::NoMemory {
            return Ok(());
        }
        at.take(&mut self.table, value, NOT_COUNTED);
        self.state.entries -= 1;
        Err(FullError::NoMemory)
    }

    /// Makes room ahead for as many of the coming keys as are a quarter of the entries. Returns how
    /// many keys that is. Searches in a table that is less full are shorter.
    pub(super) fn make_way(&mut self, keys: usize) -> usize {
        let quarter = usize::try_from(self.state.entries / 4).unwrap_or(usize::MAX);
        let coming = keys.min(quarter.max(BLOCK));
        self.keep_load(coming as u64);
        coming
    }

    /// Splits the next chunk of buckets, without their dead entries. A void entry is in both halves
    /// from then on, each with the whole counter.
    #[inline(never)]
    pub(super) fn split_chunk(&mut self) -> Step {
        let (before, expires) = (self.table.buckets(), self.expires());
        if expires && !self.prepare_split() {
            return Step::NoMemory;
        }
        let (State { side, expiry, .. }, mut twins) = (&mut self.state, 0);
        let done = self.table.split(&mut |value, void, halves| {
            twins += 1;
            let count = side.counters.remove(void).unwrap_or(0);
            halves.into_iter().for_each(|half| side.counters.add_all(half, count));
            expiry.iter_mut().for_each(|expiry| *expiry.count(value) += 1);
        });
        self.state.entries += twins;
        if expires {
            self.state.len += twins;
            let (after, step) = (self.table.buckets(), self.state.clock().step);
            self.state.expiry().sweeps.extend(before, after, step);
        }
        done
    }

    /// Takes the dead entries out of the buckets that are split next, and gets memory for the
    /// groups of the new ones. False if there is none.
    fn prepare_split(&mut self) -> bool {
        let (before, mut others) = (self.table.buckets(), 0);
        while let Some(bucket) = self.table.nth_to_split(others) {
            self.prepare_group(bucket);
            self.drop_dead(bucket);
            others += 1;
        }
        // The first new bucket may be in the group of the last old one.
        self.prepare_group(before - 1);
        self.state.expiry().sweeps.reserve(before + others)
    }

    /// Merges two entries of one core, in a bucket of a location, into their common prefix, with
    /// the younger stamp or the sum of their counts. So no key of either is forgotten. False, and
    /// nothing changed, if there are no two, or in a table of one size.
    pub(super) fn share(&mut self, at: &GrowingLocation) -> bool {
        let may_count = self.state.side.counters.len() < self.state.profile.counter_limit;
        if !self.table.grows() || !self.expires() && !may_count {
            return false;
        }
        // A narrow slot has no room for the mark of a short fingerprint.
        self.table.finish_widening();
        let Some((kept, gone, length)) = self.table.most_alike(at) else { return false };
        if self.expires() {
            let age = self.age_of(kept.bucket, kept.slot).min(self.age_of(gone.bucket, gone.slot));
            self.take_out(&gone);
            let (old, stamp) =
                (self.layout().value_of(kept.slot), self.state.clock().stamp_of(age));
            *self.state.expiry().count(old) -= 1;
            *self.state.expiry().count(stamp) += 1;
            self.table.shorten(&kept, length, stamp);
            return true;
        }
        let mut sum = 0_u64;
        for entry in [kept, gone] {
            let name = self.table.name(&entry);
            let counted = self.state.side.counters.remove(name).unwrap_or(0);
            sum = sum.saturating_add(self.in_slot(&entry)).saturating_add(counted);
        }
        self.table.overwrite(&gone, 0);
        let (in_slot, value) = match self.state.kind() {
            Kind::Filter => (1, 0),
            _ => [sum.min(self.layout().largest_value()); 2].into(),
        };
        self.table.shorten(&kept, length, value);
        let shared = Entry { prefix: Prefix { length, ..kept.prefix }, ..kept };
        let name = self.table.name(&shared);
        self.state.side.counters.add_all(name, sum - in_slot);
        self.note_gone(false, true);
        true
    }
}

/// Whether one of the slots of a bucket is empty or has a dead entry. No branch on the data.
fn has_room(slots: &[u64; SLOTS], is_dead: impl Fn(u64) -> bool) -> bool {
    slots.iter().fold(false, |any, &slot| any | (slot == 0) | is_dead(slot))
}

#[cfg(test)]
mod tests;
