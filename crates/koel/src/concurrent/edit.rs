//! Changing a concurrent filter: insert, remove, and the moves that make room.
//!
//! The walk is that of `filter/edit.rs`, with one difference: nothing stays as it was seen. So a
//! search only *makes* room, and the insert then tries again from the start, like one that never
//! needed it.

use super::{ConcurrentFilter, packed, sync};
use crate::Key;
use crate::address::geometry::Location;
use crate::error::FullError;
use crate::state::counters::ReadCounters;
use crate::table::Put;
use crate::table::search::{End, EvictionPath, Spares};

impl ConcurrentFilter {
    /// Adds a copy of `key`. O(1); at most 4096 slots are looked at, and again where another thread
    /// was faster.
    ///
    /// # Errors
    /// [`FullError`], and then the copy was not added and nothing was lost, though entries may have
    /// moved. It does not happen before [`capacity`](Self::capacity) distinct keys are in, unless
    /// [`counter_limit`](crate::Builder::counter_limit) was set to less and keys repeat.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<(), FullError> {
        self.add(&self.cells.geometry.locate(self.route().address(key)))
    }

    /// Adds `key` unless it is there already; true if it was added. Of several threads that do this
    /// with one absent key at once, one is told true.
    ///
    /// A false positive counts as "there already". So a filter filled this way should not be
    /// removed from: the key that was not added, and the one it was mistaken for, share one entry.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique<K: Key + ?Sized>(&self, key: &K) -> Result<bool, FullError> {
        self.insert_unique_at(self.route().address(key))
    }

    /// [`insert_unique`](Self::insert_unique) at the address of a key.
    fn insert_unique_at(&self, address: u64) -> Result<bool, FullError> {
        let location = self.cells.geometry.locate(address);
        while !self.contains_location(&location) {
            let alone = self.shards.of(location.fingerprint).write();
            match self.put(&location, 0) {
                Put::Done => return Ok(true),
                Put::Repeated(_) => return Ok(false),
                Put::Full => drop(alone),
            }
            self.make_room(&location)?;
        }
        Ok(false)
    }

    /// Takes out one copy of `key`; false, and nothing changed, if no entry answers to it. O(log of
    /// the number of counters).
    ///
    /// True does not prove that the key was there: see [`CuckooFilter`](crate::CuckooFilter) on
    /// removing absent keys. Of several threads that remove a key, so many are told true as there
    /// were copies.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.take(&self.cells.geometry.locate(self.route().address(key)))
    }

    /// Takes out one copy of the entry of `location`: a counted one if there is one, for then there
    /// is a copy in the buckets too.
    pub(super) fn take(&self, location: &Location) -> bool {
        let shard = self.shards.of(location.fingerprint);
        loop {
            let counters = shard.read();
            if counters.get(self.identity(location)) > 0 {
                drop(counters);
                if self.shards.discount(&shard, &mut shard.write(), self.identity(location)) {
                    return true;
                }
                continue;
            }
            let before = shard.arrivals();
            if self.cells.take(location) {
                shard.depart();
                return true;
            }
            if shard.is_still(before) {
                return false;
            }
        }
    }

    /// Adds a copy of the entry of `location`.
    #[inline]
    pub(super) fn add(&self, location: &Location) -> Result<(), FullError> {
        match self.put(location, 0) {
            Put::Done => Ok(()),
            refused => self.add_refused(location, refused),
        }
    }

    /// Fills an empty slot, where there are at most `most` copies.
    #[inline(always)]
    fn put(&self, location: &Location, most: u64) -> Put {
        let put = self.cells.put(location, most);
        if put == Put::Done {
            self.shards.of(location.fingerprint).arrive();
        }
        put
    }

    /// Adds a copy of the entry of `location`, for which [`put`](Self::put) did not find an empty
    /// slot or found copies.
    #[inline(never)]
    fn add_refused(&self, location: &Location, mut refused: Put) -> Result<(), FullError> {
        loop {
            match refused {
                Put::Done => return Ok(()),
                Put::Full => self.make_room(location)?,
                Put::Repeated(_) if self.add_copy(location)? => return Ok(()),
                Put::Repeated(_) => {}
            }
            refused = self.put(location, 0);
        }
    }

    /// Adds a copy to those that are there; false, and nothing changed, if there are none any more.
    fn add_copy(&self, location: &Location) -> Result<bool, FullError> {
        let shard = self.shards.of(location.fingerprint);
        let mut counters = shard.write();
        let identity = self.identity(location);
        // Neither taken out nor moved while the lock is held.
        if self.cells.copies(location) == 0 {
            return Ok(false);
        }
        let second = counters.get(identity) == 0 && !self.is_crowded();
        if second && self.put(location, 1) == Put::Done {
            return Ok(true);
        }
        if self.len() >= u64::MAX - self.slots() {
            return Err(FullError::Overflow);
        }
        self.shards.count(&shard, &mut counters, identity).map(|()| true)
    }

    /// Whether the slots up to the capacity are taken. From there on they are for distinct keys
    /// only.
    fn is_crowded(&self) -> bool {
        self.slots_in_use() >= self.capacity()
    }

    /// Empties a slot of a bucket of `location`, where both are full. Another thread may fill it
    /// first.
    fn make_room(&self, location: &Location) -> Result<(), FullError> {
        let segment = location.base / u64::from(self.cells.geometry.segment_buckets());
        let mut search = sync::lock(&self.searches[packed::index(segment) % self.searches.len()]);
        let mut may_count = true;
        let (home, alternate) = location.buckets();
        while ![home, alternate].iter().any(|&bucket| self.cells.has_room(bucket)) {
            let spares = if !may_count || !self.shards.has_counter_left() {
                Spares::Keep
            } else if self.is_crowded() {
                Spares::AtOnce
            } else {
                Spares::IfNeeded
            };
            // A copy that is taken out meanwhile is no spare any more, and left a slot that the
            // search may have passed before: it looks again.
            let mut path =
                |spares| search.path(&self.cells, location.base, location.buckets(), spares);
            let plan = path(spares).or_else(|| path(Spares::Keep));
            let Some(plan) = plan else {
                let (in_use, capacity) = (self.slots_in_use(), self.capacity());
                return Err(FullError::Slots { in_use, capacity });
            };
            may_count = self.carry_out(&plan);
            search.recycle(plan);
        }
        Ok(())
    }

    /// Makes the moves of `plan`, last one first, up to the first that the table does not allow any
    /// more; false if that is the handing over of a spare copy to the counters.
    fn carry_out(&self, plan: &EvictionPath) -> bool {
        let mut moves = plan.moves.iter().rev();
        let mut room = match plan.end {
            End::Empty(bucket) => bucket,
            End::Spare => match moves.next() {
                Some(&(bucket, spare)) if self.count_spare(bucket, spare) => bucket,
                _ => return false,
            },
        };
        for &(bucket, slot) in moves {
            if !self.move_entry(bucket, slot, room) {
                break;
            }
            room = bucket;
        }
        true
    }

    /// Moves an entry to its other bucket; false, and nothing changed, if it is gone or there is no
    /// room.
    fn move_entry(&self, from: u64, slot: u64, to: u64) -> bool {
        let shard = self.shards.of(slot);
        let _alone = shard.write();
        if !self.cells.holds(from, slot) || !self.cells.replace(to, 0, slot) {
            return false;
        }
        shard.arrive();
        // Still there: nobody takes it out or moves it meanwhile.
        self.cells.replace(from, slot, 0);
        shard.depart();
        true
    }

    /// Hands one of two equal entries to the counters; false, and nothing changed, if there are no
    /// two any more.
    fn count_spare(&self, bucket: u64, slot: u64) -> bool {
        let shard = self.shards.of(slot);
        let mut counters = shard.write();
        let location = self.cells.geometry.location_of(bucket, slot);
        let counted = self.cells.copies(&location) > 1
            && self.cells.holds(bucket, slot)
            && self.shards.count(&shard, &mut counters, self.identity(&location)).is_ok();
        if counted {
            // On behalf of the other copy, whose insert may not have got so far: this one leaves
            // because that one came.
            shard.arrive();
            self.cells.replace(bucket, slot, 0);
            shard.depart();
            shard.depart();
        }
        counted
    }
}
