//! The index: it maps the hash of a key to the locations that may be its record.
//!
//! It is in memory, in shards with a lock each. A shard is a `koel::Maplet` with slots of 64 bits:
//! 26 of the hash, 38 of location. It grows with the keys, a small chunk at a time and without
//! reading the log, at a load near 0.9.
//!
//! The index has no false negatives. The caller reads the record at each location and compares the
//! key. A location names one record, so `(hash, location)` is in the index at most once, and
//! [`contains`](Index::contains) tells without I/O whether the record at a location is live.
//!
//! * A lookup reads two buckets. For an absent key it returns a location once in 4 million times in
//!   a store that has not grown, and once in 250,000 times after 24 doublings.
//! * An insert fails only without memory. Keys for which the maplet has no slot go to its stash:
//!   more keys than slots in one pair of buckets, which only an adversary finds, or both their
//!   buckets are the same, which is rare.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use koel::{KeyHash, Maplet};
use smallvec::SmallVec;

use crate::Error;

/// Bits of a location.
pub(super) const LOCATION_BITS: u32 = 38;
/// Stands for no location.
pub(super) const NO_LOCATION: u64 = u64::MAX;
/// The false-positive rate of a shard, up to [`SHARD_KEYS`] keys in each.
const RATE: f64 = 0.000_01;
/// A shard with a lower load is shrunk if possible. A growing shard has twice this load.
const MIN_LOAD: f64 = 0.45;
/// Keys up to which a shard keeps [`RATE`]: 4 billion in all shards. Beyond that the rate rises by
/// about a sixteenth with each doubling.
const SHARD_KEYS: u64 = 1 << 28;
/// Approximate bytes of memory for a key.
const KEY_BYTES: u64 = 9;

const SHARD_BITS: u32 = 4;
/// The number of shards. More made lookups of absent keys slower
/// (docs/decisions/0009-log-store.md).
pub(super) const SHARDS: usize = 1 << SHARD_BITS;

/// Locations by hash.
#[derive(Debug)]
pub(super) struct Index {
    shards: Box<[LockedShard]>,
    /// The number of slots of each shard when it was made, which is its minimum.
    min_slots: u64,
}

/// A shard behind its lock, in cache lines of its own: the entries whose hashes start with the same
/// bits.
#[derive(Debug)]
#[repr(align(128))]
struct LockedShard {
    shard: RwLock<Maplet>,
    reads: AtomicU64,
}

/// The locations that may be those of a key, usually one.
pub(super) type Candidates = smallvec::IntoIter<[u64; 8]>;

impl Index {
    /// Returns an empty index with room for this many keys.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn new(keys: u64) -> Result<Self, Error> {
        let each = (keys >> SHARD_BITS) + (keys >> (SHARD_BITS + 5));
        let bytes = keys.saturating_mul(KEY_BYTES);
        let shard = |_| {
            let shard = RwLock::new(empty_maplet(each).ok_or(Error::OutOfMemory { bytes })?);
            Ok(LockedShard { shard, reads: AtomicU64::new(0) })
        };
        let shards: Box<[LockedShard]> = (0..SHARDS).map(shard).collect::<Result<_, Error>>()?;
        let min_slots = shards[0].read().slots();
        Ok(Self { shards, min_slots })
    }

    /// Returns every location that may be that of a key with this hash. Returns `None` if there is
    /// none, so that the caller of nearly every absent key does nothing else.
    #[inline(always)]
    pub(super) fn candidates(&self, hash: u64) -> Option<Candidates> {
        let shard = self.read(hash);
        let found = shard.get(&shard_hash(hash));
        (found.len() > 0).then(|| SmallVec::from_iter(found).into_iter())
    }

    /// Returns whether the record at `location`, of a key with this hash, is live.
    pub(super) fn contains(&self, hash: u64, location: u64) -> bool {
        self.candidates(hash).into_iter().flatten().any(|candidate| candidate == location)
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn insert(&self, hash: u64, location: u64) -> Result<(), Error> {
        let mut shard = self.write(hash);
        let bytes = shard.size_in_bytes() as u64;
        let inserted = shard.insert(&shard_hash(hash), location);
        inserted.map_err(|_| Error::OutOfMemory { bytes })
    }

    /// Replaces the location `old` of a key with `new`; either may be missing.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], if there is no `old`.
    pub(super) fn update(
        &self,
        hash: u64,
        old: Option<u64>,
        new: Option<u64>,
    ) -> Result<(), Error> {
        match (old, new) {
            (None, Some(new)) => return self.insert(hash, new),
            (Some(old), Some(new)) => drop(self.replace(hash, old, new)),
            (Some(old), None) => drop(self.remove(hash, old)),
            (None, None) => {}
        }
        Ok(())
    }

    /// Adds many entries of one shard, with different hashes. Skips those whose hash may be in the
    /// index already, and returns their numbers. An entry with [`NO_LOCATION`] is only looked up.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn insert_new(
        &self,
        (hashes, locations): (&[u64], &[u64]),
    ) -> Result<Vec<usize>, Error> {
        let Some(&first) = hashes.first() else { return Ok(Vec::new()) };
        let shard_hashes: Vec<KeyHash> = hashes.iter().map(|&hash| shard_hash(hash)).collect();
        let mut shard = self.write(first);
        let mut known = vec![true; hashes.len()];
        shard.contains_many(&shard_hashes, &mut known);
        let is_new = |i: &usize| locations[*i] != NO_LOCATION && !known[*i];
        let new: Vec<usize> = (0..hashes.len()).filter(is_new).collect();
        let new_hashes: Vec<KeyHash> = new.iter().map(|&i| shard_hashes[i]).collect();
        let new_locations: Vec<u64> = new.iter().map(|&i| locations[i]).collect();
        let bytes = shard.size_in_bytes() as u64;
        let inserted = shard.insert_many(&new_hashes, &new_locations);
        inserted.map_err(|_| Error::OutOfMemory { bytes })?;
        Ok((0..hashes.len()).filter(|&i| known[i]).collect())
    }

    /// Gives an entry another location. Returns false if there is no such entry.
    pub(super) fn replace(&self, hash: u64, old: u64, new: u64) -> bool {
        let mut shard = self.write(hash);
        shard.replace(&shard_hash(hash), old, new) == Ok(true)
    }

    /// Removes an entry. Returns false if there is no such entry.
    pub(super) fn remove(&self, hash: u64, location: u64) -> bool {
        let mut shard = self.write(hash);
        shard.remove(&shard_hash(hash), location)
    }

    /// Frees memory of a shard with few entries, down to the size with which it was made. Lookups
    /// go on meanwhile; the caller makes sure that the index does not change. Does nothing if there
    /// is no memory for the smaller shard.
    pub(super) fn shrink(&self, shard: usize) {
        let locked = &self.shards[shard];
        let copy = {
            let shard = locked.read();
            if shard.slots() == self.min_slots || shard.load_factor() >= MIN_LOAD {
                return;
            }
            shard.try_clone()
        };
        if let Ok(mut smaller) = copy {
            smaller.shrink_to_fit();
            *locked.write() = smaller;
        }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> u64 {
        self.sum(Maplet::len)
    }

    /// Returns the bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.sum(|shard| shard.size_in_bytes() as u64)
    }

    /// Counts a record that was read to compare its key.
    #[inline]
    pub(super) fn count_read(&self, hash: u64) {
        self.shards[shard_of(hash)].reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often [`count_read`](Self::count_read) was called. Lookups are not counted: that
    /// would make one of an absent key 10 % slower.
    pub(super) fn reads(&self) -> u64 {
        self.shards.iter().map(|shard| shard.reads.load(Ordering::Relaxed)).sum()
    }

    fn sum(&self, of: impl Fn(&Maplet) -> u64) -> u64 {
        self.shards.iter().map(|shard| of(&shard.read())).sum()
    }

    #[inline]
    fn read(&self, hash: u64) -> RwLockReadGuard<'_, Maplet> {
        self.shards[shard_of(hash)].read()
    }

    #[inline]
    fn write(&self, hash: u64) -> RwLockWriteGuard<'_, Maplet> {
        self.shards[shard_of(hash)].write()
    }
}

impl LockedShard {
    #[inline]
    fn read(&self) -> RwLockReadGuard<'_, Maplet> {
        self.shard.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn write(&self) -> RwLockWriteGuard<'_, Maplet> {
        self.shard.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an empty maplet that starts with room for this many keys, if there is memory for it.
fn empty_maplet(keys: u64) -> Option<Maplet> {
    let builder = Maplet::builder(SHARD_KEYS, RATE, LOCATION_BITS).grow_from(keys);
    // The store has a hash seed of its own, and `shard_hash` mixes.
    builder.trust_hashes().build().ok()
}

/// Returns the number of the shard of a hash.
#[inline]
pub(super) fn shard_of(hash: u64) -> usize {
    usize::try_from(hash >> (64 - SHARD_BITS)).unwrap_or(0)
}

/// Returns the hash inside a shard; the mapping is a bijection. All keys of a shard share the bits
/// that chose it, and a maplet uses both ends of a hash. So those bits are mixed into all others.
#[inline]
fn shard_hash(hash: u64) -> KeyHash {
    KeyHash::new((hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::keys::hashes;

    fn locations(index: &Index, hash: u64) -> Vec<u64> {
        let mut all: Vec<u64> = index.candidates(hash).into_iter().flatten().collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn any_number_of_equal_hashes_fits() -> Result<(), Error> {
        let index = Index::new(0)?;
        for location in 0..100 {
            index.insert(7, location)?;
        }
        assert_eq!(locations(&index, 7), Vec::from_iter(0..100));
        assert!((0..100).all(|location| index.replace(7, location, location + 1000)));
        assert!((0..50).all(|location| index.remove(7, location + 1000)));
        assert!(!index.replace(7, 1, 2) && !index.remove(7, 1));
        assert_eq!(locations(&index, 7), Vec::from_iter(1050..1100));
        assert_eq!(index.len(), 50);
        assert!(!index.contains(8, 1050));
        Ok(())
    }

    /// The bits shared by all hashes of a shard were once part of the fingerprint, so the rate was
    /// eight times that reported by the maplets.
    #[test]
    fn absent_keys_have_candidates_at_the_rate_of_the_maplets() -> Result<(), Error> {
        let index = Index::new(0)?;
        for (location, hash) in (0..).zip(hashes(1, 1_000_000)) {
            index.insert(hash, location)?;
        }
        let shares = index.shards.iter().map(|shard| shard.read().false_candidates());
        let expected = shares.sum::<f64>() / SHARDS as f64;
        assert!(expected < RATE, "{expected}");
        let absent = 4_000_000;
        let wrong = hashes(2, absent).filter_map(|hash| index.candidates(hash)).flatten().count();
        let wrong = wrong as f64;
        assert!(wrong < 3.0 * expected * absent as f64 + 5.0, "{wrong} at {expected}");
        let stashed = index.shards.iter().map(|shard| shard.read().stashed_pairs());
        assert_eq!(stashed.sum::<u64>(), 0);
        Ok(())
    }

    #[test]
    fn a_batch_is_inserted_except_for_hashes_that_may_be_known() -> Result<(), Error> {
        let index = Index::new(0)?;
        let hashes: Vec<u64> =
            (1..3000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let first = shard_of(hashes[0]);
        let hashes: Vec<u64> = hashes.into_iter().filter(|&hash| shard_of(hash) == first).collect();
        index.insert(hashes[3], 3)?;
        let mut places: Vec<u64> = (0..).take(hashes.len()).collect();
        places[5] = NO_LOCATION;
        let known = index.insert_new((&hashes, &places))?;
        assert_eq!(known, [3]);
        assert_eq!(index.len(), hashes.len() as u64 - 1);
        let at = |i: usize| locations(&index, hashes[i]);
        assert!((6..hashes.len()).all(|i| at(i) == [i as u64]));
        assert!(at(5).is_empty());
        Ok(())
    }

    #[test]
    fn an_index_that_does_not_fit_into_memory_is_an_error() {
        for keys in [u64::MAX, 1 << 56, 1 << 48] {
            let refused = Index::new(keys);
            assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{keys}");
        }
    }
}
