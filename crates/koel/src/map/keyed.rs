//! What a map does with a key: find it, put it in, take it out. Each begins with the hash, and ends
//! in `buckets.rs`.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use super::CuckooMap;
use super::address::{KeyHash, mix};
use super::entry::{Entry, OccupiedEntry, VacantEntry};

impl<K, V, S, const HASHES: usize, const SLOTS: usize> CuckooMap<K, V, S, HASHES, SLOTS>
where
    K: Eq + Hash,
    S: BuildHasher,
{
    /// The value of `key`.
    #[inline]
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The key as it is in the map, and its value.
    #[inline]
    #[must_use]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let stored = self.buckets.at(self.find(key)?);
        Some((&stored.key, &stored.value))
    }

    /// The value of `key`, to be changed.
    #[inline]
    #[must_use]
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let position = self.find(key)?;
        Some(&mut self.buckets.at_mut(position).value)
    }

    /// Whether `key` is there.
    #[inline]
    #[must_use]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.find(key).is_some()
    }

    /// Gives `key` this value and returns the one it had. A key that is there already stays, as in
    /// std. O(1) on average; O(n) when the map grows.
    ///
    /// # Panics
    /// Where the map would have to grow and cannot: see
    /// [`with_capacity`](CuckooMap::with_capacity).
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.entry(key) {
            Entry::Occupied(mut entry) => Some(entry.insert(value)),
            Entry::Vacant(entry) => {
                entry.insert(value);
                None
            }
        }
    }

    /// Takes out `key` and returns its value.
    #[inline]
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Takes out `key` and returns it with its value.
    #[inline]
    pub fn remove_entry<Q>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let position = self.find(key)?;
        self.buckets.remove(position).map(|stored| (stored.key, stored.value))
    }

    /// The place of `key`, to be read, filled or emptied.
    #[inline]
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V, HASHES, SLOTS> {
        let (hash, buckets) = (self.hash(&key), &mut self.buckets);
        match buckets.find(hash, |held| *held == key) {
            Some(position) => Entry::Occupied(OccupiedEntry { buckets, position }),
            None => Entry::Vacant(VacantEntry { buckets, hash, key }),
        }
    }

    /// Makes room for `additional` entries more.
    ///
    /// # Panics
    /// As [`with_capacity`](CuckooMap::with_capacity).
    pub fn reserve(&mut self, additional: usize) {
        self.buckets.reserve(self.len().checked_add(additional).expect("capacity overflow"));
    }

    /// Gives back the memory of slots that are not needed. O(n).
    pub fn shrink_to_fit(&mut self) {
        self.buckets.shrink();
    }

    #[inline]
    fn find<Q>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        // As in std, an empty map hashes nothing.
        if self.is_empty() {
            return None;
        }
        self.buckets.find(self.hash(key), |held| held.borrow() == key)
    }

    #[inline]
    fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> KeyHash {
        mix(self.hasher.hash_one(key))
    }
}
