//! Changing a filter: insert, remove, clear.

use crate::error::FullError;
use crate::state::changing;
use crate::{CuckooFilter, Key};

impl CuckooFilter {
    /// Adds a copy of `key`. O(1); at most 4096 slots are looked at.
    ///
    /// # Errors
    /// [`FullError`], and then nothing has changed. It does not happen before
    /// [`capacity`](Self::capacity) distinct keys are in, unless
    /// [`counter_limit`](crate::Builder::counter_limit) was set to less and keys repeat. A
    /// [growable](crate::Builder::growable) filter grows instead, as far as addresses of 32 bits
    /// go: 8 to 16 billion keys, and a quarter of that at error rates near 1e-7, and as long as
    /// fewer than one absent key in ten is reported present, which no filter but a union of many
    /// passes. Where that does not make room for the key, the filter may be larger than before, and
    /// all its answers are the same.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), FullError> {
        self.insert_at(self.route().address(key))
    }

    /// [`insert`](Self::insert) at the address of a key.
    #[inline]
    pub(super) fn insert_at(&mut self, address: u64) -> Result<(), FullError> {
        self.body.insert::<false>(address).map(|_| ())
    }

    /// Adds `key` unless it is there already; true if it was added.
    ///
    /// A false positive counts as "there already". So a filter filled this way should not be
    /// removed from: the key that was not added, and the one it was mistaken for, share one entry.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        self.insert_unique_at(self.route().address(key))
    }

    /// [`insert_unique`](Self::insert_unique) at the address of a key.
    #[inline]
    fn insert_unique_at(&mut self, address: u64) -> Result<bool, FullError> {
        self.body.insert::<true>(address)
    }

    /// Adds every key of `keys`, in order.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room; those before it are in,
    /// [`len`](Self::len) says how many.
    pub fn try_extend<K: Key>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), FullError> {
        keys.into_iter().try_for_each(|key| self.insert(&key))
    }

    /// Takes out one copy of `key`; false, and nothing changed, if no entry answers to it. O(log of
    /// the number of counters).
    ///
    /// True does not prove that the key was there: see the type's note on removing absent keys.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.remove_at(self.route().address(key))
    }

    /// [`remove`](Self::remove) at the address of a key.
    pub(super) fn remove_at(&mut self, address: u64) -> bool {
        changing!(self.body, writer => writer.remove(address, 0))
    }

    /// Forgets every key. The size stays.
    pub fn clear(&mut self) {
        self.body.clear();
    }
}
