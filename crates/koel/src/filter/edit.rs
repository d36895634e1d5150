//! Changing a filter: inserts and removals, of single keys and of many.

use crate::error::FullError;
use crate::state::changing;
use crate::{CuckooFilter, Key};

impl CuckooFilter {
    /// Adds a copy of `key`. O(1): reads at most 4096 slots.
    ///
    /// # Errors
    /// [`FullError`], and then no answer has changed. Up to [`capacity`](Self::capacity) distinct
    /// keys an insert never fails, unless [`counter_limit`](Self::counter_limit) is lower and keys
    /// repeat.
    ///
    /// A [growable](Self::is_growable) filter grows instead. It fails only
    /// * beyond 8 to 16 billion keys, where 32-bit bucket numbers end, and a quarter of that at
    ///   rates near 1e-7;
    /// * where one absent key in ten is reported present, which only a union of many filters
    ///   reaches;
    /// * where the system has no memory for more buckets.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), FullError> {
        self.body.insert::<false>(self.body.address(key)).map(|_| ())
    }

    /// Adds `key` unless [`contains`](Self::contains) is true for it. Returns whether it was added.
    ///
    /// A false positive is not added either. Such a key shares the entry of another key, so do not
    /// remove keys from a filter filled this way.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        self.body.insert::<true>(self.body.address(key))
    }

    /// Removes one copy of `key`. Returns false, and changes nothing, if no entry matches it. O(log
    /// [`distinct_counters`](Self::distinct_counters)).
    ///
    /// True does not prove that the key was in: see *Limits* of the type.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        let address = self.body.address(key);
        changing!(self.body, writer => writer.remove(address, 0))
    }

    /// [`insert`](Self::insert) for each of `keys`, in order.
    ///
    /// The bytes are those of single inserts, with one exception: for 4096 keys and more, a filter
    /// that [has grown](Self::has_grown) makes room ahead, for a quarter of its entries at a time.
    /// That takes a third to a half of the time off. If most of the keys are copies, the filter may
    /// end up a quarter larger than it needs to be.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room. Those before it are in:
    /// [`len`](Self::len) says how many.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), FullError> {
        self.body.insert_each::<false>(self.body.hashed(keys), &mut [])
    }

    /// [`insert_unique`](Self::insert_unique) for each of `keys`, in order. Writes to `added[i]`
    /// whether `keys[i]` was added.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room. Those before it are in. Of many keys for
    /// a large filter, some of those after it may be in as well; `added` is true for them.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn insert_unique_many<K: Key>(
        &mut self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), FullError> {
        assert_eq!(keys.len(), added.len(), "one answer for each key");
        added.fill(false);
        self.body.insert_each::<true>(self.body.hashed(keys), added)
    }

    /// [`remove`](Self::remove) for each of `keys`, in order. Writes to `removed[i]` whether a copy
    /// of `keys[i]` was removed.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        let hashes = self.body.hashed(keys);
        changing!(self.body, writer => writer.remove_each(hashes, removed));
    }
}
