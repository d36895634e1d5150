//! The table of the map: tags, entries, and a list for entries that found no room.
//!
//! ```text
//!     tags    | t t t t | t t t t | ... | t t t t |          a byte a slot, 0: empty
//!     stored  | e e e e | e e e e | ... | e e e e | e e ...  Option<{hash, key, value}> a slot,
//!                                                            then the overflow
//!               bucket 0  bucket 1        bucket N-1
//! ```
//!
//! * An entry is in one of the [`choices`] of its hash, or in the overflow. Its *position* is its
//!   index in `stored`.
//! * A lookup reads the tags of all its choices, and an entry only where a tag matches. The
//!   overflow is looked at when nothing was found and it is not empty.
//! * An entry goes to the overflow only while the map holds less than its capacity; above, the
//!   table grows. So below the capacity it never grows, and however hashes collide, slots and
//!   entries stay in proportion. A removal brings it back where that makes room for it.
//! * Hashes are stored, so nothing here but the comparison in [`Buckets::find`] calls code of the
//!   user: no panic interrupts a move. The `NonZero` of the hash makes the `Option` free: for keys
//!   and values without a niche the hash costs nothing.
//!
//! Source: A. Kirsch, M. Mitzenmacher, U. Wieder, More Robust Hashing: Cuckoo Hashing with a Stash
//! (ESA 2008), for the overflow.

mod room;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::mem;

use super::address::{KeyHash, choices, tag};
use crate::table::search::Search;

/// An entry, with the hash of its key.
#[derive(Clone)]
pub(super) struct Stored<K, V> {
    pub(super) hash: KeyHash,
    pub(super) key: K,
    pub(super) value: V,
}

/// So many entries can overflow before the table has to be moved in memory.
const OVERFLOW_ROOM: usize = 8;

/// Tags and entries. Without a bucket it holds no memory.
#[derive(Clone)]
pub(super) struct Buckets<K, V, const HASHES: usize, const SLOTS: usize> {
    tags: Vec<[u8; SLOTS]>,
    stored: Vec<Option<Stored<K, V>>>,
    len: usize,
    search: Search,
}

impl<K, V, const HASHES: usize, const SLOTS: usize> Default for Buckets<K, V, HASHES, SLOTS> {
    fn default() -> Self {
        const {
            assert!(
                HASHES >= 2 && SLOTS >= 1,
                "a cuckoo map has 2 hash functions and 1 slot or more"
            );
            assert!(HASHES * SLOTS <= 64, "the slots for a key of a cuckoo map are at most 64");
        }
        Self { tags: Vec::new(), stored: Vec::new(), len: 0, search: Search::default() }
    }
}

impl<K, V, const HASHES: usize, const SLOTS: usize> Buckets<K, V, HASHES, SLOTS> {
    /// Entries that the table takes without growing, for each 1000 slots: a little below the load
    /// where this shape's inserts begin to fail.
    const LOAD: usize = match (HASHES, SLOTS) {
        (2, 1) => 400,
        (2, 2) => 850,
        (2, 3) => 920,
        (3, 1) => 880,
        (4, 1) => 940,
        _ => 950,
    };

    /// An empty table.
    fn new(buckets: usize) -> Self {
        let number = u32::try_from(buckets).expect("capacity overflow");
        let slots = buckets.checked_mul(SLOTS).expect("capacity overflow");
        let mut table = Self::default();
        if buckets > 0 {
            (table.stored, table.tags) = (with_room(slots + OVERFLOW_ROOM), with_room(buckets));
            table.stored.resize_with(slots, || None);
            table.tags.resize(buckets, [0; SLOTS]);
            table.search = Search::exact(number);
        }
        table
    }

    /// An empty table that takes so many entries.
    pub(super) fn with_capacity(entries: usize) -> Self {
        Self::new(Self::buckets_for(entries))
    }

    /// The fewest buckets whose capacity is at least `entries`.
    fn buckets_for(entries: usize) -> usize {
        let buckets = (entries as u128 * 1000).div_ceil((Self::LOAD * SLOTS) as u128);
        usize::try_from(buckets).expect("capacity overflow")
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn slots(&self) -> usize {
        self.tags.len() * SLOTS
    }

    pub(super) fn overflow(&self) -> usize {
        self.stored.len() - self.slots()
    }

    pub(super) fn capacity(&self) -> usize {
        let slots = self.slots();
        slots / 1000 * Self::LOAD + slots % 1000 * Self::LOAD / 1000
    }

    /// All positions, empty ones included.
    pub(super) fn stored(&self) -> &[Option<Stored<K, V>>] {
        &self.stored
    }

    pub(super) fn stored_mut(&mut self) -> &mut [Option<Stored<K, V>>] {
        &mut self.stored
    }

    pub(super) fn into_stored(self) -> Vec<Option<Stored<K, V>>> {
        self.stored
    }

    /// The entry at a position that [`find`](Self::find) or [`insert`](Self::insert) gave.
    pub(super) fn at(&self, position: usize) -> &Stored<K, V> {
        self.stored[position].as_ref().expect("the position of an entry")
    }

    pub(super) fn at_mut(&mut self, position: usize) -> &mut Stored<K, V> {
        self.stored[position].as_mut().expect("the position of an entry")
    }

    /// Where the entry is that has this hash and of whose key `is_key` holds. The tags of all
    /// choices are loaded before any is looked at, so that the cache misses overlap, and then
    /// looked at as one, because which bucket it will be cannot be predicted.
    #[inline]
    pub(super) fn find(&self, hash: KeyHash, mut is_key: impl FnMut(&K) -> bool) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let (buckets, tag) = (self.choices(hash), tag(hash));
        let bits = buckets.map(|bucket| equal_to(tag, self.tags[bucket as usize]));
        let mut left = bits.into_iter().rev().fold(0, |all, bits| (all << SLOTS) | bits);
        while left != 0 {
            let (choice, slot) = (lowest(left) / SLOTS, lowest(left) % SLOTS);
            let position = buckets[choice] as usize * SLOTS + slot;
            if self.holds(position, hash, &mut is_key) {
                return Some(position);
            }
            left &= left - 1;
        }
        (self.slots()..self.stored.len()).find(|&at| self.holds(at, hash, &mut is_key))
    }

    #[inline]
    fn holds(&self, position: usize, hash: KeyHash, is_key: impl FnOnce(&K) -> bool) -> bool {
        let stored = self.stored[position].as_ref();
        stored.is_some_and(|stored| stored.hash == hash && is_key(&stored.key))
    }

    #[inline]
    fn choices(&self, hash: KeyHash) -> [u32; HASHES] {
        choices(hash, number(self.tags.len()))
    }

    /// Takes out the entry at a position. What overflowed stays where it is.
    pub(super) fn take(&mut self, position: usize) -> Option<Stored<K, V>> {
        let removed = match self.tags.as_flattened_mut().get_mut(position) {
            Some(tag) => {
                *tag = 0;
                self.stored[position].take()
            }
            None => self.stored.swap_remove(position),
        };
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// Drops all entries and keeps the memory. Should dropping one panic, the table is left empty
    /// and without memory.
    pub(super) fn clear(&mut self) {
        let mut table = mem::take(self);
        let slots = table.slots();
        table.len = 0;
        table.stored.clear();
        table.stored.resize_with(slots, || None);
        table.tags.fill([0; SLOTS]);
        *self = table;
    }
}

/// Room for so many. Where the memory cannot be had this is a panic, which leaves a map as it was;
/// `Vec::with_capacity` would end the process.
fn with_room<T>(count: usize) -> Vec<T> {
    let mut room = Vec::new();
    room.try_reserve_exact(count).expect("memory for a map");
    room
}

/// A bit for each slot whose tag is this one.
#[inline]
fn equal_to<const SLOTS: usize>(tag: u8, tags: [u8; SLOTS]) -> u64 {
    tags.iter().enumerate().fold(0, |bits, (slot, &held)| bits | u64::from(held == tag) << slot)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "`new` makes no more buckets")]
fn number(bucket: usize) -> u32 {
    bucket as u32
}

/// The number of the lowest bit that is set.
#[inline]
fn lowest(bits: u64) -> usize {
    bits.trailing_zeros() as usize
}
