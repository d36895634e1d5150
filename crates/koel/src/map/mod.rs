//! The map: exact keys with values, each in one of a few buckets, so that a lookup has a bound and
//! not only a mean.
//!
//! This file has the type and what it does without hashing, `keyed.rs` what it does with a key.
//! `buckets.rs` holds the entries, `buckets/room.rs` finds room for new ones with the crate's one
//! search, `address.rs` says where a hash may lie, `entry.rs` and `iter.rs` are what std's map has
//! under these names, `hasher.rs` is the default hash. No part of it is `unsafe`.

mod address;
mod buckets;
mod entry;
mod hasher;
mod iter;
mod keyed;
mod traits;

use core::iter::FusedIterator;

use buckets::Buckets;

pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use hasher::{SipHasher, SipState};
pub use iter::{Drain, IntoIter, Iter, IterMut};

/// A map from keys to values in which every lookup reads two buckets, at any load, however unlucky
/// the key: a cuckoo hash table.
///
/// The methods are those of std's `HashMap`, but for `try_reserve`, `shrink_to`, `extract_if`,
/// `get_disjoint_mut` and `insert_entry`. A map made for n keys has room for n, without rounding to
/// a power of two; it doubles when an entry finds no room.
///
/// ```
/// use koel::CuckooMap;
///
/// let mut ports = CuckooMap::from([("http", 80), ("https", 443)]);
/// ports.insert("ssh", 22);
/// assert_eq!(ports.get("https"), Some(&443));
/// assert_eq!(ports.remove("http"), Some(80));
/// assert_eq!(ports.len(), 2);
/// ```
///
/// # When to use it
/// Seldom: std's `HashMap` (hashbrown) inserts, finds and removes more keys a second; with the same
/// hash, lookups of absent keys come near. It reads on until a group of slots has an empty one:
/// mostly one or two groups, but no number of them is enough for every key; at its fullest, single
/// lookups among 100,000 keys read 10 to 16. This map is for lookups that must have a bound: always
/// `HASHES` buckets of tags, then the entry, at 95 % of the slots in use as at 5 %, and after any
/// history of removals. The inserts pay for it. In nanoseconds the slowest lookups in a thousand
/// took about as long in both. `koel-bench -- map` has the figures.
///
/// # Cost
/// * A lookup or removal: the hash, `HASHES` buckets of tags, all asked of memory at once, and each
///   entry whose tag matches: that of the key, and for an absent key one in 32 times another one
///   (`HASHES * SLOTS / 254`). Where entries have overflowed, a removal looks for room for them.
/// * An insert: a lookup, then an empty slot of the emptiest bucket. Near the full load entries
///   make way along the shortest chain that a breadth-first search finds; it gives up after about
///   4096 possible moves. Growing costs O(n), and at most two moves an entry over time.
/// * Memory: a byte and an `Option<(hash, K, V)>` a slot: 25 bytes for keys and values of 8. 1.05
///   slots an entry in a map made [`with_capacity`](Self::with_capacity), up to 2.1 in one that
///   grew, and both tables while it grows.
///
/// # Overflow
/// Below its [`capacity`](Self::capacity) the map never grows. Where an entry finds no room all the
/// same, it goes to a list that is searched after the buckets, until a removal makes room for it.
/// Its length is [`overflow_len`](Self::overflow_len): 0 in large maps. Of maps of a few hundred
/// slots and less that are kept at their capacity nine in ten have 0; the longest that was seen in
/// thousands of them was 14. Growth could not separate keys with one and the same 64-bit hash: with
/// a hasher that gives such, a lookup takes time linear in their number, as in any hash table, and
/// memory stays in proportion to the entries. Who does not know the key of the default hash,
/// [`SipState`], cannot choose keys that collide.
///
/// # Shape
/// `HASHES` buckets a key, 2 or more, of `SLOTS` slots, together at most 64. The load at which the
/// first insert fails is known for each shape; these are the published thresholds, and
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
/// Keys whose `Hash` and `Eq` change while they are in the map may not be found again; nothing
/// worse.
///
/// Sources: R. Pagh, F. Rodler, Cuckoo Hashing (ESA 2001); M. Dietzfelbinger, C. Weidling, Balanced
/// Allocation and Dictionaries with Tightly Packed Constant Size Bins (ICALP 2005); N.
/// Fountoulakis, M. Khosla, K. Panagiotou, The Multiple-Orientability Thresholds for Random
/// Hypergraphs (SODA 2011), for the thresholds.
#[derive(Clone)]
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
    /// Where the memory cannot be had, or more than 2^32 buckets would be needed.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, SipState::default())
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
        Self { buckets: Buckets::with_capacity(capacity), hasher }
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries that the map takes without growing, at least; mostly it takes a few more.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buckets.capacity()
    }

    /// Slots, used or not.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.buckets.slots()
    }

    /// Entries by slots; 0 of a map without memory.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots().max(1) as f64
    }

    /// Entries that are in no bucket: a lookup that finds nothing in its buckets looks at these
    /// too.
    #[must_use]
    pub fn overflow_len(&self) -> usize {
        self.buckets.overflow()
    }

    /// The entries, in no particular order. O(slots).
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.into_iter()
    }

    /// The entries, their values to be changed.
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

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> + FusedIterator {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The keys, and the end of the map.
    #[must_use]
    pub fn into_keys(self) -> impl ExactSizeIterator<Item = K> + FusedIterator {
        self.into_iter().map(|(key, _)| key)
    }

    /// The values, and the end of the map.
    #[must_use]
    pub fn into_values(self) -> impl ExactSizeIterator<Item = V> + FusedIterator {
        self.into_iter().map(|(_, value)| value)
    }

    /// Empties the map and gives its entries. The memory is kept.
    pub fn drain(&mut self) -> Drain<'_, K, V, HASHES, SLOTS> {
        Drain::new(&mut self.buckets)
    }

    /// Keeps the entries for which `keep` is true. Should it panic, the map has the entries that
    /// were not taken out by then.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        // Backwards, because an overflowing entry that goes is replaced by the last one; and none
        // comes back meanwhile, or it would be asked for twice.
        for position in (0..self.buckets.stored().len()).rev() {
            let stored = self.buckets.stored_mut()[position].as_mut();
            if stored.is_some_and(|stored| !keep(&stored.key, &mut stored.value)) {
                self.buckets.take(position);
            }
        }
        self.buckets.settle();
    }

    /// Takes out all entries. The memory is kept.
    pub fn clear(&mut self) {
        self.buckets.clear();
    }
}
