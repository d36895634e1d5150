//! The traits that every collection has: comparing, printing, indexing, cloning, collecting and
//! extending.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ops::Index;

use super::{CuckooMap, NO_MEMORY};

impl<K, V, S: Default, const HASHES: usize, const SLOTS: usize> Default
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    /// An empty map without memory.
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// Panics if the memory is not available; [`CuckooMap::try_clone`] returns an error.
impl<K: Clone, V: Clone, S: Clone, const HASHES: usize, const SLOTS: usize> Clone
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    fn clone(&self) -> Self {
        self.try_clone().expect(NO_MEMORY)
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S, const HASHES: usize, const SLOTS: usize> fmt::Debug
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Maps are equal if they have the same keys with equal values.
impl<K: Eq + Hash, V: PartialEq, S: BuildHasher, const HASHES: usize, const SLOTS: usize> PartialEq
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    fn eq(&self, other: &Self) -> bool {
        let has = |(key, value): (&K, &V)| other.get(key).is_some_and(|found| found == value);
        self.len() == other.len() && self.iter().all(has)
    }
}

impl<K: Eq + Hash, V: Eq, S: BuildHasher, const HASHES: usize, const SLOTS: usize> Eq
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
}

/// The value of a key that the map has.
///
/// # Panics
/// Panics if the map does not have the key; [`get`](CuckooMap::get) returns an `Option`.
impl<
    K: Eq + Hash + Borrow<Q>,
    V,
    S: BuildHasher,
    Q: Eq + Hash + ?Sized,
    const HASHES: usize,
    const SLOTS: usize,
> Index<&Q> for CuckooMap<K, V, S, HASHES, SLOTS>
{
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("no entry for this key; `get` returns an Option")
    }
}

/// Panics if the memory is not available; [`CuckooMap::try_extend`] returns an error.
impl<K: Eq + Hash, V, S: BuildHasher, const HASHES: usize, const SLOTS: usize> Extend<(K, V)>
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.try_extend(entries).expect(NO_MEMORY);
    }
}

/// Copies the entries.
impl<'a, K: Eq + Hash + Copy, V: Copy, S: BuildHasher, const HASHES: usize, const SLOTS: usize>
    Extend<(&'a K, &'a V)> for CuckooMap<K, V, S, HASHES, SLOTS>
{
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, entries: I) {
        self.extend(entries.into_iter().map(|(&key, &value)| (key, value)));
    }
}

impl<K: Eq + Hash, V, S: BuildHasher + Default, const HASHES: usize, const SLOTS: usize>
    FromIterator<(K, V)> for CuckooMap<K, V, S, HASHES, SLOTS>
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Eq + Hash, V, const ENTRIES: usize> From<[(K, V); ENTRIES]> for CuckooMap<K, V> {
    fn from(entries: [(K, V); ENTRIES]) -> Self {
        Self::from_iter(entries)
    }
}
