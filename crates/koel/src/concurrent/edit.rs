//! Changes of a concurrent filter: insert, remove, and the moves that make room.
//!
//! They follow the rules of a plain filter (`state/`), but another thread may change a bucket after
//! this one has read it. So a search only *makes* room, and the insert then starts again.

use super::{ConcurrentFilter, sync, words};
use crate::Key;
use crate::address::geometry::Location;
use crate::error::FullError;
use crate::table::Put;
use crate::table::search::{End, EvictionPath, Neighbourhood, Spares};

impl ConcurrentFilter {
    /// Adds a copy of `key`. O(1), or O(log n) of n counters: examines up to 8192 slots, and 4096
    /// more before it fails. Starts again if another thread changed a bucket first.
    ///
    /// # Errors
    /// [`FullError`] if there is no room. Then the copy was not added and nothing was lost, though
    /// entries may have moved. [`capacity`](Self::capacity) distinct keys always fit, unless keys
    /// repeat and [`counter_limit`](crate::Builder::counter_limit) is lower, or more than eight
    /// were chosen for one pair of buckets.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<(), FullError> {
        self.add(&self.cells.geometry.locate(self.route().address(key)))
    }

    /// Adds `key` unless it is present. Returns whether it was added. If several threads add one
    /// absent key at once, exactly one of them gets true.
    ///
    /// A false positive counts as present. So do not remove keys from a filter filled this way: a
    /// key that was not added shares the entry of another key.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique<K: Key + ?Sized>(&self, key: &K) -> Result<bool, FullError> {
        let location = self.cells.geometry.locate(self.route().address(key));
        self.add_unique(&location)
    }

    /// Adds the entry of `location` unless it is there. Returns whether it was added.
    fn add_unique(&self, location: &Location) -> Result<bool, FullError> {
        while !self.contains_location(location) {
            let alone = self.shards.of(location.fingerprint).write();
            match self.put(location, 0) {
                Put::Done => return Ok(true),
                Put::Repeated(_) => return Ok(false),
                Put::Full => drop(alone),
            }
            self.make_room(location)?;
        }
        Ok(false)
    }

    /// Removes one copy of `key`. Returns false, and changes nothing, if no entry matches it. O(log
    /// of the number of counters).
    ///
    /// True does not prove that the key was there: see [`CuckooFilter`](crate::CuckooFilter) on
    /// removing absent keys. If several threads remove a key, one gets true for each copy.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.take(&self.cells.geometry.locate(self.route().address(key)))
    }

    /// Removes one copy of the entry of `location`. Subtracts from its counter if there is one: a
    /// counted entry also has a copy in the buckets.
    pub(super) fn take(&self, location: &Location) -> bool {
        let shard = self.shards.of(location.fingerprint);
        loop {
            let counters = shard.read();
            if counters.get(self.name(location)).is_some() {
                drop(counters);
                if self.shards.discount(shard, &mut shard.write(), self.name(location)) {
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

    /// Fills an empty slot if there are at most `most` copies.
    #[inline(always)]
    fn put(&self, location: &Location, most: u64) -> Put {
        let put = self.cells.put(location, most);
        if put == Put::Done {
            self.shards.of(location.fingerprint).arrive();
        }
        put
    }

    /// Adds a copy of the entry of `location` after [`put`](Self::put) has `refused`: it found
    /// copies or no empty slot.
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

    /// Adds a copy if there are others. Returns false, and changes nothing, if they are gone.
    fn add_copy(&self, location: &Location) -> Result<bool, FullError> {
        let shard = self.shards.of(location.fingerprint);
        let mut counters = shard.write();
        let name = self.name(location);
        // No entry of the shard is removed or moved while the lock is held.
        if self.cells.copies(location) == 0 {
            return Ok(false);
        }
        let second = counters.get(name).is_none() && !self.is_crowded();
        if second && self.put(location, 1) == Put::Done {
            return Ok(true);
        }
        if self.len() >= u64::MAX - self.slots() {
            return Err(FullError::Overflow);
        }
        self.shards.count(shard, &mut counters, name).map(|()| true)
    }

    /// Whether as many slots as the capacity are in use. The rest are kept for distinct keys.
    fn is_crowded(&self) -> bool {
        self.slots_in_use() >= self.capacity()
    }

    /// Empties a slot in one of the buckets of `location` if both are full. Another thread may fill
    /// it first.
    fn make_room(&self, location: &Location) -> Result<(), FullError> {
        let segment = location.base / u64::from(self.cells.geometry.segment_buckets());
        let mut search = sync::lock(&self.searches[words::index(segment) % self.searches.len()]);
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
            // Another thread may have removed a spare copy from a bucket that the search had
            // already passed. So it searches again.
            let mut path = |spares| self.cells.path(&mut search, location, spares);
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

    /// Makes the moves of `plan`, the last one first. Stops at the first move that the table no
    /// longer allows. Returns false if a spare copy could not be counted.
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

    /// Moves an entry to its other bucket. Returns false, and changes nothing, if it is gone or the
    /// bucket is full.
    fn move_entry(&self, from: u64, slot: u64, to: u64) -> bool {
        let shard = self.shards.of(slot);
        let _alone = shard.write();
        if !self.cells.holds(from, slot) || !self.cells.replace(to, 0, slot) {
            return false;
        }
        shard.arrive();
        // Still there: no other thread removes or moves it while the lock is held.
        self.cells.replace(from, slot, 0);
        shard.depart();
        true
    }

    /// Counts one of two equal entries and clears its slot. Returns false, and changes nothing, if
    /// there are no longer two.
    fn count_spare(&self, bucket: u64, slot: u64) -> bool {
        let shard = self.shards.of(slot);
        let mut counters = shard.write();
        let location = self.cells.geometry.location_of(bucket, slot);
        let counted = self.cells.copies(&location) > 1
            && self.cells.holds(bucket, slot)
            && self.shards.count(shard, &mut counters, self.name(&location)).is_ok();
        if counted {
            // The insert of the other copy may not have counted its arrival yet, so it is counted
            // here too, before this copy is cleared.
            shard.arrive();
            self.cells.replace(bucket, slot, 0);
            shard.depart();
            shard.depart();
        }
        counted
    }
}
