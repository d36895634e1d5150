//! The methods of the map that take a key: lookup, insert, remove. Each hashes the key and leaves
//! the rest to `buckets.rs`.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use super::address::{StoredHash, mix};
use super::entry::{Entry, OccupiedEntry, VacantEntry};
use super::{CuckooMap, NO_MEMORY, ReserveError};

impl<K: Eq + Hash, V, S: BuildHasher, const HASHES: usize, const SLOTS: usize>
    CuckooMap<K, V, S, HASHES, SLOTS>
{
    /// The value of `key`.
    #[inline]
    #[must_use]
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// The stored key that equals `key`, and its value.
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let stored = self.buckets.at(self.find(key)?);
        Some((&stored.key, &stored.value))
    }

    /// The value of `key`, mutable.
    #[inline]
    #[must_use]
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let position = self.find(key)?;
        Some(&mut self.buckets.at_mut(position).value)
    }

    /// Whether the map has `key`.
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some()
    }

    /// Sets the value of `key` and returns the old one. If the map has `key`, the stored key stays,
    /// as in std. O(1) on average; O(n) when the map grows.
    ///
    /// # Panics
    /// Panics if the map has to grow and cannot: see [`with_capacity`](CuckooMap::with_capacity).
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.try_insert(key, value).expect(NO_MEMORY)
    }

    /// As [`insert`](Self::insert), with an error instead of a panic. Unlike the unstable method of
    /// std, it replaces the value of a key that the map has.
    ///
    /// ```
    /// let mut map = koel_map::CuckooMap::new();
    /// assert_eq!(map.try_insert("ada", 1815)?, None);
    /// assert_eq!(map.try_insert("ada", 1816)?, Some(1815));
    /// # Ok::<(), koel_map::ReserveError>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the map has to grow and the memory is not available. The map is unchanged then, and
    /// key and value are dropped.
    #[inline]
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, ReserveError> {
        match self.entry(key) {
            Entry::Occupied(mut entry) => Ok(Some(entry.insert(value))),
            Entry::Vacant(entry) => entry.try_insert(value).map(|_| None),
        }
    }

    /// Inserts all entries, as `Extend` does, with an error instead of a panic.
    ///
    /// Reserves room for all of them if the map is empty. Otherwise it reserves room for half of
    /// them, because the map may have some of the keys.
    ///
    /// # Errors
    /// Fails if the map has to grow and the memory is not available. The entries before the one
    /// that failed are in the map then.
    pub fn try_extend(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), ReserveError> {
        let mut entries = entries.into_iter();
        let least = entries.size_hint().0;
        self.try_reserve(if self.is_empty() { least } else { least.div_ceil(2) })?;
        entries.try_for_each(|(key, value)| self.try_insert(key, value).map(|_| ()))
    }

    /// Removes `key` and returns its value.
    #[inline]
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes `key` and returns the stored key and its value.
    #[inline]
    pub fn remove_entry<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        let position = self.find(key)?;
        self.buckets.remove(position).map(|stored| (stored.key, stored.value))
    }

    /// The entry of `key`, for reading, filling or removing it.
    #[inline]
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V, HASHES, SLOTS> {
        let (hash, buckets) = (self.hash(&key), &mut self.buckets);
        match buckets.find(hash, |stored| *stored == key) {
            Some(position) => Entry::Occupied(OccupiedEntry { buckets, position }),
            None => Entry::Vacant(VacantEntry { buckets, hash, key }),
        }
    }

    /// Makes room for `additional` more entries.
    ///
    /// # Panics
    /// As [`with_capacity`](CuckooMap::with_capacity).
    pub fn reserve(&mut self, additional: usize) {
        self.try_reserve(additional).expect(NO_MEMORY);
    }

    /// Makes room for `additional` more entries.
    ///
    /// # Errors
    /// As [`try_with_capacity`](CuckooMap::try_with_capacity). The map is unchanged then.
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), ReserveError> {
        let entries = self.len().saturating_add(additional);
        self.buckets.reserve(entries).ok_or(ReserveError { entries })
    }

    /// Releases the memory of slots that the entries do not need. O(n).
    pub fn shrink_to_fit(&mut self) {
        self.buckets.shrink();
    }

    #[inline]
    fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        // As in std, an empty map hashes nothing.
        if self.is_empty() {
            return None;
        }
        self.buckets.find(self.hash(key), |stored| stored.borrow() == key)
    }

    #[inline]
    fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> StoredHash {
        mix(self.hasher.hash_one(key))
    }
}
