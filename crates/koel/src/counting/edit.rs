//! Changing a counting filter: insert, add and remove, single keys and many.

use super::CountingFilter;
use crate::Key;
use crate::error::FullError;

impl CountingFilter {
    /// Raises the count of `key` by 1 and returns it. O(1) for a key that is in, or O(log
    /// [`distinct_counters`](Self::distinct_counters)) if it has a counter. For a new key it reads
    /// at most 8192 slots, and in a filter that grows and has counters 16384.
    ///
    /// # Errors
    /// [`FullError`], and then no byte has changed. Up to [`capacity`](Self::capacity) distinct
    /// keys it never happens. If the filter is [growable](Self::is_growable), it happens only where
    /// 32-bit bucket numbers or the memory end.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<u64, FullError> {
        self.add(key, 1)
    }

    /// Raises the count of `key` by `times` and returns it, at the cost of one
    /// [`insert`](Self::insert). 0 changes nothing.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and [`FullError::Overflow`] if the sum of all counts would pass
    /// 2^64 - 1.
    #[inline]
    pub fn add<K: Key + ?Sized>(&mut self, key: &K, times: u64) -> Result<u64, FullError> {
        let address = self.body.address(key);
        self.body.add(address, times)
    }

    /// Lowers the count of `key` by 1. Returns false, and changes nothing, if it is 0. O(log
    /// [`distinct_counters`](Self::distinct_counters)), and O(1) for a key without a counter.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        let address = self.body.address(key);
        self.body.subtract(address)
    }

    /// [`insert`](Self::insert) for each of `keys`, in order.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room. Those before it are counted:
    /// [`len`](Self::len) says how many.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), FullError> {
        self.body.add_each(self.body.hashed(keys))
    }

    /// [`remove`](Self::remove) for each of `keys`, in order. Writes to `removed[i]` whether the
    /// count of `keys[i]` was lowered.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        self.body.subtract_each(self.body.hashed(keys), removed);
    }
}
