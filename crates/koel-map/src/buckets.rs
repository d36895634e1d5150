//! The table of the map: tags, entries, and a list of entries that found no room.
//!
//! ```text
//!     tags      | t t t t | t t t t | ... | t t t t |   a byte per slot, 0: empty
//!     stored    | e e e e | e e e e | ... | e e e e |   Option<{hash, key, value}> per slot
//!                 bucket 0  bucket 1        bucket N-1
//!     overflow  | e e ...
//! ```
//!
//! * An entry is in one of the [`choices`] of its hash, or in the overflow. Its *position* is its
//!   index in `stored`, or the number of slots plus its index in `overflow`.
//! * A lookup reads the tags of all choices, and an entry only where a tag matches. It searches the
//!   overflow only if it found nothing and the overflow is not empty.
//! * An entry goes to the overflow only while the map holds less than its capacity; beyond that,
//!   the table grows. So the map never grows below its capacity, and the number of slots stays
//!   proportional to the entries however hashes collide. A removal that makes room for an
//!   overflowed entry moves it back.
//! * Hashes are stored, so only the comparison in [`Buckets::find`] calls user code: no panic
//!   interrupts a move. The `NonZero` of the hash makes the `Option` free.
//! * Functions that allocate return `None`, and change nothing, if the memory is not available.
//!
//! Source: A. Kirsch, M. Mitzenmacher, U. Wieder, More Robust Hashing: Cuckoo Hashing with a Stash
//! (ESA 2008), for the overflow.

mod room;
mod search;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::mem;

use super::address::{StoredHash, choices, tag};
use search::Search;

/// An entry, with the hash of its key.
#[derive(Clone)]
pub(super) struct Stored<K, V> {
    pub(super) hash: StoredHash,
    pub(super) key: K,
    pub(super) value: V,
}

pub(super) type Slot<K, V> = Option<Stored<K, V>>;

/// Tags and entries. A table without buckets holds no memory.
pub(super) struct Buckets<K, V, const HASHES: usize, const SLOTS: usize> {
    tags: Vec<[u8; SLOTS]>,
    pub(super) stored: Vec<Slot<K, V>>,
    /// Entries that found no room in the buckets. Each is `Some`.
    pub(super) overflow: Vec<Slot<K, V>>,
    pub(super) len: usize,
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
        let (tags, stored, overflow) = (Vec::new(), Vec::new(), Vec::new());
        Self { tags, stored, overflow, len: 0, search: Search::default() }
    }
}

impl<K, V, const HASHES: usize, const SLOTS: usize> Buckets<K, V, HASHES, SLOTS> {
    /// Entries per 1000 slots that the table takes without growing: a little below the load where
    /// inserts into this shape begin to fail.
    const LOAD: usize = match (HASHES, SLOTS) {
        (2, 1) => 400,
        (2, 2) => 850,
        (2, 3) => 920,
        (3, 1) => 880,
        (4, 1) => 940,
        _ => 950,
    };

    /// An empty table of this many buckets, at most 2^32 - 1.
    fn new(buckets: usize) -> Option<Self> {
        let slots = buckets.checked_mul(SLOTS).filter(|_| u32::try_from(buckets).is_ok())?;
        let mut table = Self::default();
        table.stored.try_reserve_exact(slots).ok()?;
        table.tags.try_reserve_exact(buckets).ok()?;
        table.stored.resize_with(slots, || None);
        table.tags.resize(buckets, [0; SLOTS]);
        Some(table)
    }

    /// An empty table that takes this many entries.
    pub(super) fn with_capacity(entries: usize) -> Option<Self> {
        Self::new(Self::buckets_for(entries))
    }

    /// A copy of the table and its entries.
    pub(super) fn copy(&self) -> Option<Self>
    where
        K: Clone,
        V: Clone,
    {
        let mut copy = Self::new(self.tags.len())?;
        copy.overflow.try_reserve_exact(self.overflow.len()).ok()?;
        copy.tags.copy_from_slice(&self.tags);
        copy.stored.clone_from_slice(&self.stored);
        copy.overflow.extend_from_slice(&self.overflow);
        copy.len = self.len;
        Some(copy)
    }

    /// The fewest buckets whose capacity is at least `entries`. Exceeds the most that a table can
    /// have if no table is large enough.
    fn buckets_for(entries: usize) -> usize {
        let buckets = (entries as u128 * 1000).div_ceil((Self::LOAD * SLOTS) as u128);
        usize::try_from(buckets).unwrap_or(usize::MAX)
    }

    pub(super) fn slots(&self) -> usize {
        self.stored.len()
    }

    /// All positions are below this.
    pub(super) fn positions(&self) -> usize {
        self.slots() + self.overflow.len()
    }

    pub(super) fn capacity(&self) -> usize {
        let slots = self.slots();
        slots / 1000 * Self::LOAD + slots % 1000 * Self::LOAD / 1000
    }

    pub(super) fn slot_mut(&mut self, position: usize) -> &mut Slot<K, V> {
        let slots = self.slots();
        match self.stored.get_mut(position) {
            Some(slot) => slot,
            None => &mut self.overflow[position - slots],
        }
    }

    /// The entry at a position that [`find`](Self::find) or [`insert`](Self::insert) returned.
    pub(super) fn at(&self, position: usize) -> &Stored<K, V> {
        let slot = self.stored.get(position);
        let slot = slot.unwrap_or_else(|| &self.overflow[position - self.slots()]);
        slot.as_ref().expect("the position of an entry")
    }

    pub(super) fn at_mut(&mut self, position: usize) -> &mut Stored<K, V> {
        self.slot_mut(position).as_mut().expect("the position of an entry")
    }

    /// The position of the entry with this hash whose key `is_key` accepts.
    ///
    /// Loads the tags of all choices before it compares any, so that the cache misses overlap, and
    /// compares them together, because a branch on the bucket would be unpredictable.
    #[inline]
    pub(super) fn find(
        &self,
        hash: StoredHash,
        mut is_key: impl FnMut(&K) -> bool,
    ) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let (buckets, tag) = (self.choices(hash), tag(hash));
        let bits = buckets.map(|bucket| equal_to(tag, self.tags[bucket as usize]));
        let mut left = bits.into_iter().rev().fold(0, |all, bits| (all << SLOTS) | bits);
        let mut holds = |slot: &Slot<K, V>| {
            slot.as_ref().is_some_and(|stored| stored.hash == hash && is_key(&stored.key))
        };
        while left != 0 {
            let (choice, slot) = (lowest(left) / SLOTS, lowest(left) % SLOTS);
            let position = buckets[choice] as usize * SLOTS + slot;
            if holds(&self.stored[position]) {
                return Some(position);
            }
            left &= left - 1;
        }
        Some(self.slots() + self.overflow.iter().position(holds)?)
    }

    #[inline]
    fn choices(&self, hash: StoredHash) -> [u32; HASHES] {
        choices(hash, number(self.tags.len()))
    }

    /// Takes out the entry at a position. The overflow stays where it is.
    pub(super) fn take(&mut self, position: usize) -> Slot<K, V> {
        let removed = match self.tags.as_flattened_mut().get_mut(position) {
            Some(tag) => {
                *tag = 0;
                self.stored[position].take()
            }
            None => self.overflow.swap_remove(position - self.slots()),
        };
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// Drops all entries and keeps the memory. If dropping one panics, the table is left empty and
    /// without memory.
    pub(super) fn clear(&mut self) {
        let mut table = mem::take(self);
        table.len = 0;
        table.overflow.clear();
        table.stored.fill_with(|| None);
        table.tags.fill([0; SLOTS]);
        *self = table;
    }
}

/// A mask with a bit set for each slot whose tag is `tag`.
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
