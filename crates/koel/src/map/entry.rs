//! One key's place in a map, found once and then read, filled or emptied.
//!
//! An entry knows its place or its hash, so nothing is looked for twice; a vacant one moves nothing
//! until it is filled.

use core::fmt;

use super::address::KeyHash;
use super::buckets::{Buckets, Stored};

/// What a map has for a key: [`CuckooMap::entry`](crate::CuckooMap::entry) gives it.
///
/// ```
/// let mut visits = koel::CuckooMap::new();
/// for name in ["ada", "grace", "ada"] {
///     *visits.entry(name).or_insert(0) += 1;
/// }
/// assert_eq!(visits["ada"], 2);
/// ```
pub enum Entry<'a, K, V, const HASHES: usize = 2, const SLOTS: usize = 4> {
    /// The key is there.
    Occupied(OccupiedEntry<'a, K, V, HASHES, SLOTS>),
    /// The key is not there.
    Vacant(VacantEntry<'a, K, V, HASHES, SLOTS>),
}

/// The place of a key that is there.
pub struct OccupiedEntry<'a, K, V, const HASHES: usize = 2, const SLOTS: usize = 4> {
    pub(super) buckets: &'a mut Buckets<K, V, HASHES, SLOTS>,
    pub(super) position: usize,
}

/// A key that is not there yet.
pub struct VacantEntry<'a, K, V, const HASHES: usize = 2, const SLOTS: usize = 4> {
    pub(super) buckets: &'a mut Buckets<K, V, HASHES, SLOTS>,
    pub(super) hash: KeyHash,
    pub(super) key: K,
}

impl<'a, K, V, const HASHES: usize, const SLOTS: usize> Entry<'a, K, V, HASHES, SLOTS> {
    /// The value, after putting in `default` where there was none. Costs what an insert costs.
    pub fn or_insert(self, default: V) -> &'a mut V {
        self.or_insert_with(|| default)
    }

    /// The value, after putting in what `default` makes where there was none.
    pub fn or_insert_with(self, default: impl FnOnce() -> V) -> &'a mut V {
        self.or_insert_with_key(|_| default())
    }

    /// The value, after putting in what `default` makes of the key where there was none.
    pub fn or_insert_with_key(self, default: impl FnOnce(&K) -> V) -> &'a mut V {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => {
                let value = default(&entry.key);
                entry.insert(value)
            }
        }
    }

    /// The value, after putting in the default one where there was none.
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

    /// The key: the one in the map where it is there, the one asked for where it is not.
    pub fn key(&self) -> &K {
        match self {
            Self::Occupied(entry) => entry.key(),
            Self::Vacant(entry) => entry.key(),
        }
    }
}

impl<'a, K, V, const HASHES: usize, const SLOTS: usize> OccupiedEntry<'a, K, V, HASHES, SLOTS> {
    /// The key in the map.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.buckets.at(self.position).key
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> &V {
        &self.buckets.at(self.position).value
    }

    /// The value, to be changed.
    pub fn get_mut(&mut self) -> &mut V {
        &mut self.buckets.at_mut(self.position).value
    }

    /// The value, for as long as the map is borrowed.
    #[must_use]
    pub fn into_mut(self) -> &'a mut V {
        &mut self.buckets.at_mut(self.position).value
    }

    /// Puts another value in the place of the one there, which it returns.
    pub fn insert(&mut self, value: V) -> V {
        core::mem::replace(self.get_mut(), value)
    }

    /// Takes out the entry and returns its value.
    pub fn remove(self) -> V {
        self.remove_entry().1
    }

    /// Takes out the entry.
    pub fn remove_entry(self) -> (K, V) {
        let stored = self.buckets.remove(self.position).expect("the position of an entry");
        (stored.key, stored.value)
    }
}

impl<'a, K, V, const HASHES: usize, const SLOTS: usize> VacantEntry<'a, K, V, HASHES, SLOTS> {
    /// The key that was asked for.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The key that was asked for, given back.
    #[must_use]
    pub fn into_key(self) -> K {
        self.key
    }

    /// Puts in the key with this value. Costs what an insert costs.
    pub fn insert(self, value: V) -> &'a mut V {
        let position = self.buckets.insert(Stored { hash: self.hash, key: self.key, value });
        &mut self.buckets.at_mut(position).value
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
