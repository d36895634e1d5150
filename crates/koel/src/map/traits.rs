//! What a map can do as every collection can: compare, print, index, be made from entries and take
//! in more.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ops::Index;

use super::CuckooMap;
use super::buckets::Buckets;

impl<K, V, S: Default, const HASHES: usize, const SLOTS: usize> Default
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    /// An empty map without memory.
    fn default() -> Self {
        Self { buckets: Buckets::default(), hasher: S::default() }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S, const HASHES: usize, const SLOTS: usize> fmt::Debug
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The same keys with equal values, in whatever order.
impl<K, V, S, const HASHES: usize, const SLOTS: usize> PartialEq
    for CuckooMap<K, V, S, HASHES, SLOTS>
where
    K: Eq + Hash,
    V: PartialEq,
    S: BuildHasher,
{
    fn eq(&self, other: &Self) -> bool {
        let has = |(key, value): (&K, &V)| other.get(key).is_some_and(|held| held == value);
        self.len() == other.len() && self.iter().all(has)
    }
}

impl<K, V, S, const HASHES: usize, const SLOTS: usize> Eq for CuckooMap<K, V, S, HASHES, SLOTS>
where
    K: Eq + Hash,
    V: Eq,
    S: BuildHasher,
{
}

/// The value of a key that is there.
///
/// # Panics
/// Where it is not; [`get`](CuckooMap::get) does not.
impl<K, V, S, Q, const HASHES: usize, const SLOTS: usize> Index<&Q>
    for CuckooMap<K, V, S, HASHES, SLOTS>
where
    K: Eq + Hash + Borrow<Q>,
    Q: Eq + Hash + ?Sized,
    S: BuildHasher,
{
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("no entry for this key; `get` returns an Option")
    }
}

/// Room for all is made beforehand where the map is empty, and for half of them where it is not,
/// for they may be there already.
impl<K, V, S, const HASHES: usize, const SLOTS: usize> Extend<(K, V)>
    for CuckooMap<K, V, S, HASHES, SLOTS>
where
    K: Eq + Hash,
    S: BuildHasher,
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let entries = entries.into_iter();
        let least = entries.size_hint().0;
        self.reserve(if self.is_empty() { least } else { least.div_ceil(2) });
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

/// Copies of the entries, as by value.
impl<'a, K, V, S, const HASHES: usize, const SLOTS: usize> Extend<(&'a K, &'a V)>
    for CuckooMap<K, V, S, HASHES, SLOTS>
where
    K: Eq + Hash + Copy,
    V: Copy,
    S: BuildHasher,
{
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, entries: I) {
        self.extend(entries.into_iter().map(|(&key, &value)| (key, value)));
    }
}

impl<K, V, S, const HASHES: usize, const SLOTS: usize> FromIterator<(K, V)>
    for CuckooMap<K, V, S, HASHES, SLOTS>
where
    K: Eq + Hash,
    S: BuildHasher + Default,
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
