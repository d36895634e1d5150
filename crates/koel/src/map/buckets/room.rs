//! Where a new entry of the map goes: an empty slot, one that moves make empty, the overflow, or a
//! larger table. And the way back from the overflow.
//!
//! The moves are those of `placement.rs`, planned before anything is written. Nothing here calls
//! code of the user: where to an entry may move follows from its stored hash. So an insert is done
//! or was never begun.
//!
//! Cost of an insert: O(1) on average; about 4096 possible moves looked at, at most; O(slots) when
//! the table doubles, which comes to at most two moves an entry over time.

use core::mem;

use super::{Buckets, Stored, equal_to};
use crate::map::address::{KeyHash, choices, tag};
use crate::table::search::{End, EvictionPath, Frontier, LOOKAHEAD};

/// Slots of the smallest table.
const FEWEST_SLOTS: usize = 8;

impl<K, V, const HASHES: usize, const SLOTS: usize> Buckets<K, V, HASHES, SLOTS> {
    /// Adds an entry whose key is not there, and says where.
    pub(in crate::map) fn insert(&mut self, stored: Stored<K, V>) -> usize {
        let position = match self.make_room(stored.hash) {
            Some(position) => {
                self.tags.as_flattened_mut()[position] = tag(stored.hash);
                self.stored[position] = Some(stored);
                position
            }
            None if self.len < self.capacity() => {
                self.stored.push(Some(stored));
                self.stored.len() - 1
            }
            None => {
                self.rebuild(self.grown());
                return self.insert(stored);
            }
        };
        self.len += 1;
        position
    }

    /// Takes out the entry at a position, which may make room for what overflowed.
    pub(in crate::map) fn remove(&mut self, position: usize) -> Option<Stored<K, V>> {
        let removed = self.take(position);
        self.settle();
        removed
    }

    /// Brings entries of the overflow back into buckets, the last one first, up to one for which
    /// there is no room.
    pub(in crate::map) fn settle(&mut self) {
        while self.overflow() > 0
            && let Some(Some(last)) = self.stored.last()
            && let hash = last.hash
            && let Some(room) = self.make_room(hash)
        {
            self.tags.as_flattened_mut()[room] = tag(hash);
            self.stored[room] = self.stored.pop().flatten();
        }
    }

    /// An empty slot for an entry with this hash, after moving others where all its buckets are
    /// full; `None`, and nothing moved, where no way was found.
    fn make_room(&mut self, hash: KeyHash) -> Option<usize> {
        if self.tags.is_empty() {
            return None;
        }
        let buckets = self.choices(hash);
        let free = |&bucket: &u32| equal_to(0, self.tags[bucket as usize]).count_ones();
        let emptiest = buckets.into_iter().rev().max_by_key(free)?;
        let room = self.empty_slot(emptiest as usize);
        if room.is_some() {
            return room;
        }
        let (tags, stored) = (&self.tags, &self.stored);
        // An entry is called by the number of its slot; it may move to all its other buckets.
        let expand = |from: u64, frontier: &mut Frontier| {
            let entries = stored[index(from) * SLOTS..][..SLOTS].iter().flatten();
            for (slot, entry) in (0..).zip(entries) {
                let targets = choices::<HASHES>(entry.hash, super::number(tags.len()));
                let others = targets.map(u64::from).into_iter().filter(|&target| target != from);
                others.for_each(|other| frontier.push(slot, other));
            }
        };
        let has_room = |bucket: u64| tags[index(bucket)].contains(&0);
        let roots = buckets.map(u64::from);
        let plan = self.search.shortest::<LOOKAHEAD>(roots, expand, has_room, |_, _| false)?;
        let room = self.carry_out(&plan);
        self.search.recycle(plan);
        room
    }

    fn empty_slot(&self, bucket: usize) -> Option<usize> {
        let slot = self.tags[bucket].iter().position(|&tag| tag == 0)?;
        Some(bucket * SLOTS + slot)
    }

    /// Makes the moves, last one first; the position that is empty then.
    fn carry_out(&mut self, plan: &EvictionPath) -> Option<usize> {
        // `Spare` ends no plan of a map: none of its ways is one.
        let End::Empty(room) = plan.end else { return None };
        let mut empty = self.empty_slot(index(room))?;
        for &(bucket, slot) in plan.moves.iter().rev() {
            let leaving = index(bucket) * SLOTS + index(slot);
            self.stored.swap(empty, leaving);
            self.tags.as_flattened_mut().swap(empty, leaving);
            empty = leaving;
        }
        Some(empty)
    }

    /// Makes the capacity at least `entries`.
    pub(in crate::map) fn reserve(&mut self, entries: usize) {
        if entries > self.capacity() {
            self.rebuild(Self::buckets_for(entries).max(self.grown()));
        }
    }

    /// Gives back the memory of slots that are not needed for the entries there are.
    pub(in crate::map) fn shrink(&mut self) {
        let buckets = Self::buckets_for(self.len);
        if buckets < self.tags.len() {
            self.rebuild(buckets);
        }
    }

    /// Buckets of the next larger table: twice as many, and enough for one entry more.
    fn grown(&self) -> usize {
        let twice = self.tags.len() * 2;
        twice.max(Self::buckets_for(self.len + 1)).max(FEWEST_SLOTS.div_ceil(SLOTS))
    }

    /// Places all entries anew, by their stored hashes. They are no more than the new capacity, so
    /// those that find no room overflow.
    fn rebuild(&mut self, buckets: usize) {
        let mut rebuilt = Self::new(buckets);
        for stored in mem::take(&mut self.stored).into_iter().flatten() {
            rebuilt.insert(stored);
        }
        *self = rebuilt;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a plan names buckets and slots of a table in memory"
)]
fn index(number: u64) -> usize {
    number as usize
}
