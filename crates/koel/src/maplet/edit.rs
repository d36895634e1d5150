//! Changing a maplet: insert, replace, remove, clear, shrink.

use crate::error::FullError;
use crate::state::changing;
use crate::{Key, Maplet};

impl Maplet {
    /// Adds the pair of `key` and `value`; once more if it is there already. O(1); at most 4096
    /// slots are looked at.
    ///
    /// # Errors
    /// [`FullError`], and then nothing has changed. It does not happen before
    /// [`capacity`](Self::capacity) entries are in, as long as keys are distinct; in a maplet that
    /// [grows](crate::Builder::grow_from) not before addresses of 32 bits end, except
    /// [`FullError::Values`] for a key whose only bucket is full of keys like it: one of 120
    /// million.
    ///
    /// # Panics
    /// Where the value has more bits than the maplet's values.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), FullError> {
        self.insert_at(self.route().address(key), value)
    }

    /// [`insert`](Self::insert) at the address of a key.
    #[inline]
    fn insert_at(&mut self, address: u64, value: u64) -> Result<(), FullError> {
        changing!(self.body, writer => writer.insert_pair(address, value))
    }

    /// Makes one pair of `key` and `old` one of `key` and `new`; false, and nothing changed, if
    /// there is none. O(1).
    ///
    /// # Panics
    /// Where `new` has more bits than the maplet's values.
    #[inline]
    pub fn replace<K: Key + ?Sized>(&mut self, key: &K, old: u64, new: u64) -> bool {
        self.replace_at(self.route().address(key), old, new)
    }

    /// [`replace`](Self::replace) at the address of a key.
    #[inline]
    fn replace_at(&mut self, address: u64, old: u64, new: u64) -> bool {
        changing!(self.body, writer => writer.replace(address, (old, new)))
    }

    /// Takes out one pair of `key` and `value`; false, and nothing changed, if there is none. O(1).
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> bool {
        self.remove_at(self.route().address(key), value)
    }

    /// [`remove`](Self::remove) at the address of a key.
    #[inline]
    fn remove_at(&mut self, address: u64, value: u64) -> bool {
        changing!(self.body, writer => writer.remove(address, value))
    }

    /// Forgets every pair. The size stays.
    pub fn clear(&mut self) {
        self.body.clear();
    }

    /// Gives back the memory that the entries do not need, down to the size that the maplet was
    /// built with. Builds the smaller table beside this one, so it takes the memory of both for a
    /// while; where the entries do not fit into that, one for twice as many is tried. O(buckets).
    pub fn shrink_to_fit(&mut self) {
        self.body.shrink_to_fit();
    }
}
