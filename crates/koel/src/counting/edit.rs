//! Changing a counting filter: insert, add, remove, clear, shrink.

use super::CountingFilter;
use crate::Key;
use crate::error::FullError;
use crate::state::changing;
use crate::table::blocks::{Hashed, Hashes};

impl CountingFilter {
    /// Counts `key` once more: its count now. O(1) for a key that is in; at most 4096 slots are
    /// looked at for a new one.
    ///
    /// # Errors
    /// [`FullError`], and then nothing has changed. It does not happen before
    /// [`capacity`](Self::capacity) distinct keys are in; in a filter that
    /// [grows](crate::Builder::grow_from) not before addresses of 32 bits end.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<u64, FullError> {
        self.add(key, 1)
    }

    /// Counts `key` so many `times` more: its count now. O(1), whatever the number; 0 times changes
    /// nothing.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and [`FullError::Overflow`] where all counts would pass 2^64 -
    /// 1 together.
    #[inline]
    pub fn add<K: Key + ?Sized>(&mut self, key: &K, times: u64) -> Result<u64, FullError> {
        self.add_at(self.route().address(key), times)
    }

    /// [`add`](Self::add) at the address of a key.
    fn add_at(&mut self, address: u64, times: u64) -> Result<u64, FullError> {
        changing!(self.body, writer => writer.add(address, times))
    }

    /// [`insert`](Self::insert) for each of `keys`, in order; about twice as fast in a filter that
    /// no cache holds.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room; those before it are counted,
    /// [`len`](Self::len) says how many.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), FullError> {
        let route = *self.route();
        self.insert_each(Hashed(route, keys))
    }

    /// Counts `key` once less; false, and nothing changed, if its count is 0. O(1), or O(log of the
    /// number of counters).
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.remove_at(self.route().address(key))
    }

    /// [`remove`](Self::remove) at the address of a key.
    fn remove_at(&mut self, address: u64) -> bool {
        changing!(self.body, writer => writer.subtract(address))
    }

    /// Gives back the memory that the entries do not need, down to the size that the filter was
    /// built with. Builds the smaller table beside this one, so it takes the memory of both for a
    /// while; where the entries do not fit into that, one for twice as many is tried. O(buckets).
    pub fn shrink_to_fit(&mut self) {
        self.body.shrink_to_fit();
    }

    /// Forgets every key. The size stays.
    pub fn clear(&mut self) {
        self.body.clear();
    }

    fn insert_each(&mut self, hashes: impl Hashes) -> Result<(), FullError> {
        changing!(self.body, writer => {
            writer.one_by_one(hashes, 0, |writer, _, hash| writer.add(hash, 1).map(|_| ()))
        })
    }
}
