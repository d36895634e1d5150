//! The map: exact keys with values, each entry in one of a few buckets. Lookups have a worst-case
//! bound.
//!
//! This file has the type and the methods that do not hash, `keyed.rs` those that take a key.
//! `buckets.rs` holds the entries, and `buckets/room.rs` finds room for new ones. `address.rs` maps
//! a hash to buckets, and `hasher.rs` is the default hash. `entry.rs` and `iter.rs` mirror std's.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod buckets;
mod entry;
mod hasher;
mod iter;
mod keyed;
mod traits;

use core::iter::FusedIterator;

use buckets::Buckets;
use thiserror::Error;

pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use hasher::{SipHasher, SipState};
pub use iter::{Drain, IntoIter, Iter, IterMut};

/// What methods without an error say when they panic.
const NO_MEMORY: &str = "memory for the entries of a map";

/// No memory for the entries of a map. The map is unchanged, except that of
/// [`try_extend`](CuckooMap::try_extend), which keeps the entries before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no memory for a map of {entries} entries; remove entries, or use several smaller maps")]
#[non_exhaustive]
pub struct ReserveError {
    /// The number of entries that the map would have had room for.
    pub entries: usize,
}

/// A map from keys to values in which every lookup reads two buckets, whatever the load and the
/// key: a cuckoo hash table.
///
/// The methods are those of std's `HashMap`, except `shrink_to`, `extract_if`, `get_disjoint_mut`
/// and `insert_entry`. A map made for n keys has room for n, without rounding to a power of two. It
/// doubles when an entry finds no room.
///
/// ```
/// use koel_map::CuckooMap;
///
/// let mut ports = CuckooMap::from([("http", 80), ("https", 443)]);
/// ports.insert("ssh", 22);
/// assert_eq!(ports.get("https"), Some(&443));
/// assert_eq!(ports.remove("http"), Some(80));
/// assert_eq!(ports.len(), 2);
/// ```
///
/// # When to use it
/// Rarely: std's `HashMap` (hashbrown) has a higher throughput for inserts, lookups and removals.
/// With the same hash, lookups of absent keys come close.
///
/// This map is for lookups that must have a bound. A lookup reads `HASHES` buckets of tags, then
/// the entry: at 95 % of the slots in use as at 5 %, and after any history of removals. hashbrown
/// reads on until a group of slots has an empty one. That is mostly one or two groups, but single
/// lookups among 100,000 keys in a full table read 10 to 16. The inserts pay for the bound. The
/// slowest lookups in a thousand took about as long in both. `koel-bench -- map` has the figures.
///
/// # Cost
/// * A lookup or removal: the hash, `HASHES` buckets of tags whose cache misses overlap, and each
///   entry whose tag matches. A lookup of an absent key reads an entry with probability 1 in 32
///   (`HASHES * SLOTS / 254`). If entries have overflowed, a removal looks for room for them.
/// * An insert: a lookup, then an empty slot of the emptiest bucket. Near the full load, entries
///   move along the shortest chain that a breadth-first search finds. It gives up after 4096
///   possible moves. Growing costs O(n), and at most two moves per entry over time.
/// * Memory: per slot a byte and an `Option<(hash, K, V)>`, 25 bytes for keys and values of 8. A
///   map made [`with_capacity`](Self::with_capacity) has 1.05 slots per entry, one that grew up to
///   2.1, and both tables while it grows.
///
/// # Overflow
/// Below its [`capacity`](Self::capacity) the map never grows. An entry that finds no room goes to
/// a list that lookups search after the buckets, until a removal makes room for it. Its length is
/// [`overflow_len`](Self::overflow_len), which is 0 in large maps. Of maps with a few hundred slots
/// or fewer that are kept at their capacity, nine in ten have 0. The longest list in thousands of
/// them had 14 entries.
///
/// Growth cannot separate keys with equal 64-bit hashes. With a hasher that returns such, a lookup
/// takes time linear in their number, as in any hash table, and memory stays in proportion to the
/// entries. Someone who does not know the key of the default hash, [`SipState`], cannot choose keys
/// that collide.
///
/// # Out of memory
/// Methods with the names of std panic if there is no memory for the entries, and leave the map
/// unchanged, where std's map would abort. [`try_with_capacity`](Self::try_with_capacity),
/// [`try_reserve`](Self::try_reserve), [`try_insert`](Self::try_insert),
/// [`try_extend`](Self::try_extend) and [`try_clone`](Self::try_clone) return a [`ReserveError`]
/// instead. Only the search for room, with at most 100 KB, and `Clone` of keys and values allocate
/// as std does.
///
/// # Shape
/// A key has `HASHES` buckets, 2 or more, of `SLOTS` slots, together at most 64. The load at which
/// the first insert fails is known for each shape. These are the published thresholds, and
/// `koel-bench -- thresholds` measures them on this type:
///
/// | `HASHES` x `SLOTS` | 2 x 1 | 3 x 1 | 4 x 1 | 2 x 2 | 2 x 4 | 2 x 8 | 4 x 2 |
/// |---|---|---|---|---|---|---|---|
/// | threshold | 0.500 | 0.918 | 0.977 | 0.897 | 0.980 | 0.998 | 0.998 |
///
/// A shape other than 2 x 4 needs its type written out:
/// `CuckooMap::<u64, u64, SipState, 2, 8>::default()`.
///
/// # Panics in `Hash` and `Eq`
/// Hashes are stored, and moving entries calls neither. A panic there leaves the map as it was.
/// Keys whose `Hash` or `Eq` changes while they are in the map may not be found again; nothing
/// worse happens.
///
/// Sources: R. Pagh, F. Rodler, Cuckoo Hashing (ESA 2001); M. Dietzfelbinger, C. Weidling, Balanced
/// Allocation and Dictionaries with Tightly Packed Constant Size Bins (ICALP 2005); N.
/// Fountoulakis, M. Khosla, K. Panagiotou, The Multiple-Orientability Thresholds for Random
/// Hypergraphs (SODA 2011), for the thresholds.
pub struct CuckooMap<K, V, S = SipState, const HASHES: usize = 2, const SLOTS: usize = 4> {
    buckets: Buckets<K, V, HASHES, SLOTS>,
    hasher: S,
}

impl<K, V> CuckooMap<K, V> {
    /// An empty map without memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty map that takes `capacity` entries without growing.
    ///
    /// # Panics
    /// Panics if the memory is not available, or if it would need 2^32 buckets or more.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, SipState::default())
    }

    /// An empty map that takes `capacity` entries without growing.
    ///
    /// # Errors
    /// Fails if the memory is not available, or if it would need 2^32 buckets or more.
    pub fn try_with_capacity(capacity: usize) -> Result<Self, ReserveError> {
        Self::try_with_capacity_and_hasher(capacity, SipState::default())
    }
}

impl<K, V, S, const HASHES: usize, const SLOTS: usize> CuckooMap<K, V, S, HASHES, SLOTS> {
    /// An empty map without memory that hashes with `hasher`.
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Self { buckets: Buckets::default(), hasher }
    }

    /// An empty map that takes `capacity` entries without growing and hashes with `hasher`.
    ///
    /// # Panics
    /// As [`with_capacity`](CuckooMap::with_capacity).
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        Self::try_with_capacity_and_hasher(capacity, hasher).expect(NO_MEMORY)
    }

    /// An empty map that takes `capacity` entries without growing and hashes with `hasher`.
    ///
    /// # Errors
    /// As [`try_with_capacity`](CuckooMap::try_with_capacity).
    pub fn try_with_capacity_and_hasher(capacity: usize, hasher: S) -> Result<Self, ReserveError> {
        let buckets = Buckets::with_capacity(capacity);
        Ok(Self { buckets: buckets.ok_or(ReserveError { entries: capacity })?, hasher })
    }

    /// A copy of the map.
    ///
    /// # Errors
    /// Fails if the memory for its entries is not available. `Clone` panics then.
    pub fn try_clone(&self) -> Result<Self, ReserveError>
    where
        K: Clone,
        V: Clone,
        S: Clone,
    {
        let buckets = self.buckets.copy().ok_or(ReserveError { entries: self.len() })?;
        Ok(Self { buckets, hasher: self.hasher.clone() })
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buckets.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries that the map holds at least without growing. Usually a few more fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buckets.capacity()
    }

    /// The number of slots, used or not.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.buckets.slots()
    }

    /// Entries divided by slots; 0 for a map without memory.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots().max(1) as f64
    }

    /// The number of entries outside the buckets. A lookup that finds nothing in its buckets
    /// searches them too.
    #[must_use]
    pub fn overflow_len(&self) -> usize {
        self.buckets.overflow.len()
    }

    /// The entries, in no particular order. O(slots).
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.into_iter()
    }

    /// The entries, with mutable values.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.into_iter()
    }

    /// The keys.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> + FusedIterator + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// The values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + FusedIterator + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// The values, mutable.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> + FusedIterator {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The keys, by value.
    #[must_use]
    pub fn into_keys(self) -> impl ExactSizeIterator<Item = K> + FusedIterator {
        self.into_iter().map(|(key, _)| key)
    }

    /// The values, by value.
    #[must_use]
    pub fn into_values(self) -> impl ExactSizeIterator<Item = V> + FusedIterator {
        self.into_iter().map(|(_, value)| value)
    }

    /// Removes all entries and returns them. Keeps the memory.
    pub fn drain(&mut self) -> Drain<'_, K, V, HASHES, SLOTS> {
        Drain::new(&mut self.buckets)
    }

    /// Keeps the entries for which `keep` returns true. If `keep` panics, the map keeps all entries
    /// that were not removed before.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        // Backwards, because the last entry of the overflow takes the position of a removed one.
        // No entry moves back to a bucket meanwhile: `keep` would see it twice.
        for position in (0..self.buckets.positions()).rev() {
            let stored = self.buckets.slot_mut(position).as_mut();
            if stored.is_some_and(|stored| !keep(&stored.key, &mut stored.value)) {
                self.buckets.take(position);
            }
        }
        self.buckets.settle();
    }

    /// Removes all entries. Keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.clear();
    }
}
