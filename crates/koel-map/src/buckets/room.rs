//! Finds room for a new entry of the map: an empty slot, a slot emptied by moves, the overflow, or
//! a larger table. Also moves overflowed entries back.
//!
//! `search` plans the moves before anything is written. Nothing here calls user code: the stored
//! hash determines where an entry may move. So an insert completes or changes nothing.
//!
//! Cost of an insert: O(1) on average, and at most 4096 possible moves examined. When the table
//! doubles, O(slots), which amounts to at most two moves per entry over time.

use alloc::vec::Vec;
use core::mem;

use super::{Buckets, Slot, Stored, equal_to};
use crate::address::{StoredHash, choices, tag};

/// Slots of the smallest table.
const FEWEST_SLOTS: usize = 8;

impl<K, V, const HASHES: usize, const SLOTS: usize> Buckets<K, V, HASHES, SLOTS> {
    /// Adds an entry whose key is absent, and returns its position.
    pub(crate) fn insert(&mut self, stored: Stored<K, V>) -> Option<usize> {
        let position = match self.make_room(stored.hash) {
            Some(position) => {
                self.fill(position, stored.hash, Some(stored));
                position
            }
            None if self.len < self.capacity() => {
                self.overflow.try_reserve(1).ok()?;
                self.overflow.push(Some(stored));
                self.positions() - 1
            }
            None => {
                self.rebuild(self.grown())?;
                return self.insert(stored);
            }
        };
        self.len += 1;
        Some(position)
    }

    /// Takes out the entry at a position, which may make room for an entry of the overflow.
    pub(crate) fn remove(&mut self, position: usize) -> Slot<K, V> {
        let removed = self.take(position);
        self.settle();
        removed
    }

    /// Brings entries of the overflow back into buckets, the last one first, until one finds no
    /// room.
    pub(crate) fn settle(&mut self) {
        while let Some(Some(last)) = self.overflow.last()
            && let hash = last.hash
            && let Some(position) = self.make_room(hash)
        {
            let last = self.overflow.pop().flatten();
            self.fill(position, hash, last);
        }
    }

    fn fill(&mut self, position: usize, hash: StoredHash, slot: Slot<K, V>) {
        self.tags.as_flattened_mut()[position] = tag(hash);
        self.stored[position] = slot;
    }

    /// Returns an empty slot for an entry with this hash, and moves other entries if all its
    /// buckets are full. If no chain of moves is found, returns `None` and moves nothing.
    fn make_room(&mut self, hash: StoredHash) -> Option<usize> {
        if self.tags.is_empty() {
            return None;
        }
        let buckets = self.choices(hash);
        let free = |&bucket: &u32| equal_to(0, self.tags[bucket as usize]).count_ones();
        let emptiest = buckets.into_iter().rev().max_by_key(free)?;
        let room = empty_slot(&self.tags, emptiest);
        if room.is_some() {
            return room;
        }
        let (tags, stored) = (&mut self.tags, &mut self.stored);
        let number = super::number(tags.len());
        // An entry may move to any of its other buckets.
        let targets = |from: u32| {
            let slots = from as usize * SLOTS..(from as usize + 1) * SLOTS;
            let entries = slots.filter_map(|slot| Some((slot, stored[slot].as_ref()?.hash)));
            entries.flat_map(move |(slot, hash)| {
                let others = choices::<HASHES>(hash, number).into_iter();
                others.filter(move |&to| to != from).map(move |to| (slot, to))
            })
        };
        let has_room = |bucket: u32| tags[bucket as usize].contains(&0);
        let room = self.search.path(buckets, targets, has_room)?;
        let mut empty = empty_slot(tags, room)?;
        for leaving in self.search.moving() {
            stored.swap(empty, leaving);
            tags.as_flattened_mut().swap(empty, leaving);
            empty = leaving;
        }
        Some(empty)
    }

    /// Makes the capacity at least `entries`.
    pub(crate) fn reserve(&mut self, entries: usize) -> Option<()> {
        if entries > self.capacity() {
            self.rebuild(Self::buckets_for(entries).max(self.grown()))?;
        }
        Some(())
    }

    /// Releases the memory of slots that the entries do not need.
    pub(crate) fn shrink(&mut self) {
        let buckets = Self::buckets_for(self.len);
        if buckets < self.tags.len() {
            // Without memory for a smaller table, the table stays as it is.
            self.rebuild(buckets);
        }
    }

    /// Buckets of the next larger table: twice as many, and enough for one more entry.
    fn grown(&self) -> usize {
        let twice = self.tags.len().saturating_mul(2);
        twice.max(Self::buckets_for(self.len + 1)).max(FEWEST_SLOTS.div_ceil(SLOTS))
    }

    /// Moves all entries into a new table, by their stored hashes.
    ///
    /// They are no more than its capacity, so entries that find no room overflow. The overflow
    /// keeps its old memory if no other is available: after the first move nothing can fail.
    fn rebuild(&mut self, buckets: usize) -> Option<()> {
        let mut rebuilt = Self::new(buckets)?;
        rebuilt.len = self.len;
        self.stored.try_reserve_exact(self.overflow.len()).ok()?;
        let (mut left, mut overflow) = (mem::take(&mut self.stored), mem::take(&mut self.overflow));
        for slot in left.iter_mut().chain(&mut overflow) {
            if let Some(hash) = slot.as_ref().map(|stored| stored.hash)
                && let Some(position) = rebuilt.make_room(hash)
            {
                rebuilt.fill(position, hash, slot.take());
            }
        }
        left.retain(Option::is_some);
        left.extend(overflow.into_iter().filter(Option::is_some));
        let mut room = Vec::new();
        if room.try_reserve_exact(left.len()).is_ok() {
            room.append(&mut left);
            left = room;
        }
        rebuilt.overflow = left;
        *self = rebuilt;
        Some(())
    }
}

/// The position of an empty slot of a bucket.
fn empty_slot<const SLOTS: usize>(tags: &[[u8; SLOTS]], bucket: u32) -> Option<usize> {
    let slot = tags[bucket as usize].iter().position(|&tag| tag == 0)?;
    Some(bucket as usize * SLOTS + slot)
}
