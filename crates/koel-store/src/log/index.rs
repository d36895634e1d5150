//! The index: hash of a key -> locations that may be its record, in memory, in shards with a lock each.
//!
//! A shard is a `koel::Maplet` with slots of 64 bits: 26 of the hash, 38 of location. It grows with the keys, a small chunk at a time and without reading the log, at a load that
//! stays near 0.9. It never lies by leaving out; whoever asks reads the record at each location and
//! compares the key. A location is that of one record, so `(hash, location)` is in the index at most once, and [`contains`](Index::contains) says without reading
//! anything whether the record at a location is live.
//!
//! * A lookup reads two buckets. For an absent key it gives a location once in 4 million times in a store that has not grown, and once in
//!   250,000 times after 24 doublings.
//! * An insert cannot fail: a list beside the maplet takes the keys that it has no room for, since more of them share a pair of buckets than the pair has slots. Those have equal hashes,
//!   which only an adversary finds, or one bucket for a pair, which is rare.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use koel::Maplet;

/// Bits of a location.
pub(super) const LOCATION_BITS: u32 = 38;
/// No location.
pub(super) const NOWHERE: u64 = u64::MAX;
/// At most so many wrong locations for an absent key, on average, up to [`SHARD_KEYS`] in each shard.
const RATE: f64 = 0.000_01;
/// A shard in which less than this share of the slots is in use is made smaller, where it can be: half of what one that grows has.
const SPARSE: f64 = 0.45;
/// Keys that a shard is expected to grow to at most: 4 billion in all. Beyond, wrong locations become more by about a sixteenth for each doubling.
const SHARD_KEYS: u64 = 1 << 28;

const SHARD_BITS: u32 = 4;
/// How many shards there are: more of them made a miss slower (docs/decisions/0009-log-store.md).
pub(super) const SHARDS: usize = 1 << SHARD_BITS;

/// Locations by hash.
#[derive(Debug)]
pub(super) struct Index {
    shards: Box<[Guarded]>,
    /// Slots of each shard when it was made, which it always has.
    least: u64,
}

/// A shard behind its lock, in cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Guarded {
    shard: RwLock<Shard>,
    reads: AtomicU64,
}

/// The entries whose hashes begin with the same bits.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) maplet: Maplet,
    /// Hash and location of entries that the maplet has no room for.
    pub(super) beside: Vec<(u64, u64)>,
}

/// The locations that may be those of a key: one as a rule, and nothing is allocated for that.
#[derive(Debug)]
pub(super) struct Candidates {
    first: Option<u64>,
    others: std::vec::IntoIter<u64>,
}

impl Iterator for Candidates {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.first.take().or_else(|| self.others.next())
    }
}

impl Index {
    /// An empty index with room for so many keys.
    pub(super) fn new(keys: u64) -> Self {
        let each = (keys >> SHARD_BITS) + (keys >> (SHARD_BITS + 5));
        let shard = || Guarded {
            shard: RwLock::new(Shard { maplet: empty(each), beside: Vec::new() }),
            reads: AtomicU64::new(0),
        };
        let shards: Box<[Guarded]> = (0..SHARDS).map(|_| shard()).collect();
        let least = shards[0].read().maplet.slots();
        Self { shards, least }
    }

    /// Every location that may be that of a key with this hash; `None` where there is none, as for nearly every absent key, for which nothing else is done.
    #[inline(always)]
    pub(super) fn candidates(&self, hash: u64) -> Option<Candidates> {
        let shard = self.read(hash);
        let is_absent = shard.beside.is_empty() && !shard.maplet.contains_hash(inner(hash));
        if is_absent { None } else { shard.candidates(hash) }
    }

    /// Whether the record at `location`, of a key with this hash, is live.
    pub(super) fn contains(&self, hash: u64, location: u64) -> bool {
        self.candidates(hash).into_iter().flatten().any(|candidate| candidate == location)
    }

    /// Adds an entry.
    pub(super) fn insert(&self, hash: u64, location: u64) {
        let mut shard = self.write(hash);
        if shard.maplet.insert_hash(inner(hash), location).is_err() {
            shard.beside.push((hash, location));
        }
    }

    /// Puts the location `new` of a key in the place of `old`, where there are any.
    pub(super) fn change(&self, hash: u64, old: Option<u64>, new: Option<u64>) {
        match (old, new) {
            (None, Some(new)) => self.insert(hash, new),
            (Some(old), Some(new)) => {
                self.replace(hash, old, new);
            }
            (Some(old), None) => {
                self.remove(hash, old);
            }
            (None, None) => {}
        }
    }

    /// Adds many entries of one shard, but for those whose hash may be in the index already: nothing is done about them, and their numbers are returned. The hashes are all
    /// different. A location of [`NOWHERE`] is only looked for.
    pub(super) fn insert_new(&self, (hashes, locations): (&[u64], &[u64])) -> Vec<usize> {
        let Some(&first) = hashes.first() else { return Vec::new() };
        let inner_hashes: Vec<u64> = hashes.iter().map(|&hash| inner(hash)).collect();
        let mut shard = self.write(first);
        let mut known = Vec::new();
        if shard.beside.is_empty() {
            shard.maplet.get_many_hashes(&inner_hashes, |i, _| known.push(i));
            known.dedup();
        } else {
            known.extend(0..hashes.len());
        }
        let is_new = |i: &usize| locations[*i] != NOWHERE && known.binary_search(i).is_err();
        let new: Vec<usize> = (0..hashes.len()).filter(is_new).collect();
        let new_hashes: Vec<u64> = new.iter().map(|&i| inner_hashes[i]).collect();
        let new_locations: Vec<u64> = new.iter().map(|&i| locations[i]).collect();
        let before = shard.maplet.len();
        if shard.maplet.insert_many_hashes(&new_hashes, &new_locations).is_err() {
            let done = usize::try_from(shard.maplet.len() - before).unwrap_or(usize::MAX);
            drop(shard);
            for &i in &new[done..] {
                self.insert(hashes[i], locations[i]);
            }
        }
        known
    }

    /// Gives an entry another location; false where there is none such.
    pub(super) fn replace(&self, hash: u64, old: u64, new: u64) -> bool {
        let mut shard = self.write(hash);
        if shard.maplet.replace_hash(inner(hash), old, new) {
            return true;
        }
        let entry = shard.beside.iter_mut().find(|entry| **entry == (hash, old));
        entry.map(|entry| entry.1 = new).is_some()
    }

    /// Takes an entry out; false where there is none such.
    pub(super) fn remove(&self, hash: u64, location: u64) -> bool {
        let mut shard = self.write(hash);
        if shard.maplet.remove_hash(inner(hash), location) {
            return true;
        }
        let at = shard.beside.iter().position(|entry| *entry == (hash, location));
        at.map(|at| shard.beside.swap_remove(at)).is_some()
    }

    /// Gives back the memory that a shard of few entries does not need, as far as it has grown since it was made. Lookups go on meanwhile; nobody may change the index.
    pub(super) fn shrink(&self, shard: usize) {
        let guarded = &self.shards[shard];
        let mut smaller = {
            let shard = guarded.read();
            if shard.maplet.slots() == self.least || shard.maplet.load_factor() >= SPARSE {
                return;
            }
            shard.maplet.clone()
        };
        smaller.shrink_to_fit();
        guarded.write().maplet = smaller;
    }

    /// Entries.
    pub(super) fn len(&self) -> u64 {
        self.sum(|shard| shard.maplet.len() + shard.beside.len() as u64)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.sum(|shard| shard.maplet.size_in_bytes() as u64 + shard.beside.capacity() as u64 * 16)
    }

    /// A record was read to see whether its key is that of a hash.
    #[inline]
    pub(super) fn count_read(&self, hash: u64) {
        self.shards[shard_of(hash)].reads.fetch_add(1, Ordering::Relaxed);
    }

    /// How often [`count_read`](Self::count_read) was called. Lookups are not counted: that would be a tenth of one that finds nothing.
    pub(super) fn reads(&self) -> u64 {
        self.shards.iter().map(|shard| shard.reads.load(Ordering::Relaxed)).sum()
    }

    fn sum(&self, of: impl Fn(&Shard) -> u64) -> u64 {
        self.shards.iter().map(|shard| of(&shard.read())).sum()
    }

    #[inline]
    fn read(&self, hash: u64) -> RwLockReadGuard<'_, Shard> {
        self.shards[shard_of(hash)].read()
    }

    #[inline]
    fn write(&self, hash: u64) -> RwLockWriteGuard<'_, Shard> {
        self.shards[shard_of(hash)].write()
    }
}

impl Shard {
    #[inline(never)]
    fn candidates(&self, hash: u64) -> Option<Candidates> {
        let beside = self.beside.iter().filter(|entry| entry.0 == hash).map(|entry| entry.1);
        let mut all = self.maplet.get_hash(inner(hash)).chain(beside);
        let first = Some(all.next()?);
        Some(Candidates { first, others: all.collect::<Vec<_>>().into_iter() })
    }
}

impl Guarded {
    #[inline]
    fn read(&self) -> RwLockReadGuard<'_, Shard> {
        self.shard.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn write(&self) -> RwLockWriteGuard<'_, Shard> {
        self.shard.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An empty maplet for so many keys, and more.
fn empty(keys: u64) -> Maplet {
    let built = Maplet::builder(SHARD_KEYS, RATE, LOCATION_BITS).grow_from(keys).build();
    built.expect("a maplet that its constants allow")
}

/// The number of the shard of a hash.
#[inline]
pub(super) fn shard_of(hash: u64) -> usize {
    usize::try_from(hash >> (64 - SHARD_BITS)).unwrap_or(0)
}

/// The hash inside a shard, another for each hash. The bits that chose the shard are the same for all of its keys and tell none apart, so they are mixed into all others: a maplet takes a
/// hash from both ends.
#[inline]
fn inner(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
    fn any_number_of_equal_hashes_fits() {
        let index = Index::new(0);
        for location in 0..100 {
            index.insert(7, location);
        }
        assert_eq!(locations(&index, 7), Vec::from_iter(0..100));
        assert!((0..100).all(|location| index.replace(7, location, location + 1000)));
        assert!((0..50).all(|location| index.remove(7, location + 1000)));
        assert!(!index.replace(7, 1, 2) && !index.remove(7, 1));
        assert_eq!(locations(&index, 7), Vec::from_iter(1050..1100));
        assert_eq!(index.len(), 50);
        assert!(!index.contains(8, 1050));
    }

    /// Bits that all hashes of a shard have in common once stood among those that tell keys apart: eight times as many wrong locations as the maplets said.
    #[test]
    fn absent_keys_have_as_few_locations_as_the_maplets_say() {
        let index = Index::new(0);
        for (location, hash) in (0..).zip(hashes(1, 1_000_000)) {
            index.insert(hash, location);
        }
        let shares = index.shards.iter().map(|shard| shard.read().maplet.false_candidates());
        let expected = shares.sum::<f64>() / SHARDS as f64;
        assert!(expected < RATE, "{expected}");
        let absent = 4_000_000;
        let wrong = hashes(2, absent).filter_map(|hash| index.candidates(hash)).flatten().count();
        let wrong = wrong as f64;
        assert!(wrong < 3.0 * expected * absent as f64 + 5.0, "{wrong} at {expected}");
        let beside = index.shards.iter().map(|shard| shard.read().beside.len());
        assert_eq!(beside.sum::<usize>(), 0);
    }

    #[test]
    fn many_at_once_are_entered_unless_they_may_be_known() {
        let index = Index::new(0);
        let hashes: Vec<u64> =
            (1..3000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let first = shard_of(hashes[0]);
        let hashes: Vec<u64> = hashes.into_iter().filter(|&hash| shard_of(hash) == first).collect();
        index.insert(hashes[3], 3);
        let mut places: Vec<u64> = (0..).take(hashes.len()).collect();
        places[5] = NOWHERE;
        let known = index.insert_new((&hashes, &places));
        assert_eq!(known, [3]);
        assert_eq!(index.len(), hashes.len() as u64 - 1);
        let at = |i: usize| locations(&index, hashes[i]);
        assert!((6..hashes.len()).all(|i| at(i) == [i as u64]));
        assert!(at(5).is_empty());
    }
}
