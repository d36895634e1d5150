//! The entry of one key, found once and then read, filled or removed.
//!
//! It keeps the position or the hash of its key, so nothing is searched for twice. A vacant entry
//! moves nothing until it is filled.

use core::fmt;

use super::address::StoredHash;
use super::buckets::{Buckets, Stored};
use super::{NO_MEMORY, ReserveError};

/// The entry of a key, present or not: [`CuckooMap::entry`](crate::CuckooMap::entry) returns it.
///
/// ```
/// let mut visits = koel_map::CuckooMap::new();
/// for name in ["ada", "grace", "ada"] {
///     *visits.entry(name).or_insert(0) += 1;
/// }
/// assert_eq!(visits["ada"], 2);
/// ```
pub enum Entry<'a, K, V, const HASHES: usize = 2, const SLOTS: usize = 4> {
    /// The map has the key.
    Occupied(OccupiedEntry<'a, K, V, HASHES, SLOTS>),
    /// The map does not have the key.
    Vacant(VacantEntry<'a, K, V, HASHES, SLOTS>),
}

/// The entry of a key that the map has.
pub struct OccupiedEntry<'a, K, V, const HASHES: usize = 2, const SLOTS: usize = 4> {
    pub(super) buckets: &'a mut Buckets<K, V, HASHES, SLOTS>,
    pub(super) position: usize,
}

/// A key that the map does not have yet.
pub struct VacantEntry<'a, K, V, const HASHES: usize = 2, const SLOTS: usize = 4> {
    pub(super) buckets: &'a mut Buckets<K, V, HASHES, SLOTS>,
    pub(super) hash: StoredHash,
    pub(super) key: K,
}

impl<'a, K, V, const HASHES: usize, const SLOTS: usize> Entry<'a, K, V, HASHES, SLOTS> {
    /// The value; if there was none, inserts `default` first. Costs as much as an insert.
    pub fn or_insert(self, default: V) -> &'a mut V {
        self.or_insert_with(|| default)
    }

    /// The value; if there was none, inserts the result of `default` first.
    pub fn or_insert_with(self, default: impl FnOnce() -> V) -> &'a mut V {
        self.or_insert_with_key(|_| default())
    }

    /// The value; if there was none, inserts the result of `default` for the key first.
    pub fn or_insert_with_key(self, default: impl FnOnce(&K) -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => {
                let value = default(&entry.key);
                entry.insert(value)
            }
        }
    }

    /// The value; if there was none, inserts the default value first.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value if there is one.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }

    /// The stored key if the map has it, and the given key otherwise.
    pub fn key(&self) -> &K {
        match self {
            Self::Occupied(entry) => entry.key(),
            Self::Vacant(entry) => entry.key(),
        }
    }
}

impl<'a, K, V, const HASHES: usize, const SLOTS: usize> OccupiedEntry<'a, K, V, HASHES, SLOTS> {
    /// The stored key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.buckets.at(self.position).key
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> &V {
        &self.buckets.at(self.position).value
    }

    /// The value, mutable.
    pub fn get_mut(&mut self) -> &mut V {
        &mut self.buckets.at_mut(self.position).value
    }

    /// The value, for as long as the map is borrowed.
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        &mut self.buckets.at_mut(self.position).value
    }

    /// Replaces the value and returns the old one.
    pub fn insert(&mut self, value: V) -> V {
        core::mem::replace(self.get_mut(), value)
    }

    /// Removes the entry and returns its value.
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Removes the entry and returns its key and value.
    pub fn remove_entry(self) -> (K, V) {
        let stored = self.buckets.remove(self.position).expect("the position of an entry");
        (stored.key, stored.value)
    }
}

impl<'a, K, V, const HASHES: usize, const SLOTS: usize> VacantEntry<'a, K, V, HASHES, SLOTS> {
    /// The given key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The given key, by value.
    #[must_use]
    pub fn into_key(self) -> K {
        self.key
    }

    /// Inserts the key with this value. Costs as much as an insert.
    ///
    /// # Panics
    /// Panics if the map has to grow and cannot.
    pub fn insert(self, value: V) -> &'a mut V {
        self.try_insert(value).expect(NO_MEMORY)
    }

    /// As [`insert`](Self::insert), with an error instead of a panic.
    ///
    /// # Errors
    /// Fails if the map has to grow and the memory is not available. The map is unchanged then, and
    /// key and value are dropped.
    pub fn try_insert(self, value: V) -> Result<&'a mut V, ReserveError> {
        let Self { buckets, hash, key } = self;
        let entries = buckets.len + 1;
        let position = buckets.insert(Stored { hash, key, value });
        Ok(&mut buckets.at_mut(position.ok_or(ReserveError { entries })?).value)
    }
}

impl<K: fmt::Debug, V: fmt::Debug, const HASHES: usize, const SLOTS: usize> fmt::Debug
    for Entry<'_, K, V, HASHES, SLOTS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(entry) => entry.fmt(f),
            Self::Vacant(entry) => entry.fmt(f),
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, const HASHES: usize, const SLOTS: usize> fmt::Debug
    for OccupiedEntry<'_, K, V, HASHES, SLOTS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OccupiedEntry").field(self.key()).field(self.get()).finish()
    }
}

impl<K: fmt::Debug, V, const HASHES: usize, const SLOTS: usize> fmt::Debug
    for VacantEntry<'_, K, V, HASHES, SLOTS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VacantEntry").field(self.key()).finish()
    }
}
