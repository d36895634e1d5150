//! The arrivals, departures and counters that threads share. There are 32 shards, chosen by
//! fingerprint, so that threads seldom contend.
//!
//! The lock of a shard guards its counters and the copies of its entries. A thread that removes a
//! copy holds a read lock. A thread that counts a copy or moves an entry holds the write lock. So
//! an entry stays while a copy of it is counted, and no entry is removed twice while it moves.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::array;

use super::sync::{self, AtomicU64, Ordering, ReadGuard, RwLock, WriteGuard};
use crate::address::geometry::Geometry;
use crate::error::FullError;
use crate::side::Counters;

/// A power of two. Under loom there is one, so that threads contend.
pub(super) const SHARDS: usize = if cfg!(loom) { 1 } else { 32 };

/// The part of the filter whose entries have the same low bits in their fingerprints.
pub(super) struct Shard {
    /// Entries written to any bucket, by an insert or by a move. Lookups read it, so nothing else
    /// is in its cache line.
    arrivals: Line,
    /// Entries cleared from a bucket.
    departures: AtomicU64,
    /// The sum of the counters: copies that are in no bucket.
    counted: AtomicU64,
    counters: RwLock<Counters>,
}

/// A number in a cache line of its own, or in two where the processor fetches them in pairs.
#[repr(align(128))]
struct Line(AtomicU64);

impl Shard {
    /// A shard with `entries` entries and these counters.
    fn new(entries: u64, counters: Counters) -> Self {
        let counted = counters.iter().map(|(_, count)| count).sum();
        Self {
            arrivals: Line(AtomicU64::new(entries)),
            departures: AtomicU64::new(0),
            counted: AtomicU64::new(counted),
            counters: RwLock::new(counters),
        }
    }

    /// The arrivals before the next read of a bucket.
    #[inline(always)]
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals.0.load(Ordering::Acquire)
    }

    /// Whether there was no arrival between `before` and the last read of a bucket.
    #[inline(always)]
    pub(super) fn is_still(&self, before: u64) -> bool {
        // Ordered after the reads in between, because those acquire.
        self.arrivals.0.load(Ordering::Relaxed) == before
    }

    /// Counts an arrival. To be called after an entry has been written to a bucket, and before it
    /// or an equal one is cleared from another.
    #[inline(always)]
    pub(super) fn arrive(&self) {
        self.arrivals.0.fetch_add(1, Ordering::Release);
    }

    /// Counts a departure. To be called after an entry has been cleared from a bucket.
    #[inline(always)]
    pub(super) fn depart(&self) {
        self.departures.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the read lock: no thread changes the counters meanwhile.
    #[inline(always)]
    pub(super) fn read(&self) -> ReadGuard<'_, Counters> {
        sync::read(&self.counters)
    }

    /// Takes the write lock: no other thread reads the counters or removes an entry meanwhile.
    pub(super) fn write(&self) -> WriteGuard<'_, Counters> {
        sync::write(&self.counters)
    }
}

/// All shards.
pub(super) struct Shards {
    all: Box<[Shard; SHARDS]>,
    /// Counters in all shards. In a box, like everything that changes: then the filter itself does
    /// not change, and compilers keep its fields in registers between lookups.
    counters: Box<AtomicU64>,
    /// The most counters allowed.
    limit: u64,
}

impl Shards {
    /// The shards of a table with `entries` entries and these counters.
    pub(super) fn new(entries: u64, counters: &Counters, geometry: &Geometry, limit: u64) -> Self {
        let shard = |shard| {
            let fingerprint = |name| {
                let (_, core, string, length) = geometry.named(name)?;
                Some(core << length | string)
            };
            let owned = |&(name, _): &(u64, u64)| fingerprint(name).map(number) == Some(shard);
            let counters = Counters::from_iter(counters.iter().filter(owned));
            Shard::new(if shard == 0 { entries } else { 0 }, counters)
        };
        Self {
            all: Box::new(array::from_fn(shard)),
            counters: Box::new(AtomicU64::new(counters.len())),
            limit,
        }
    }

    /// The shard of the entries with this fingerprint.
    #[inline(always)]
    pub(super) fn of(&self, fingerprint: u64) -> &Shard {
        &self.all[number(fingerprint)]
    }

    /// The arrivals of every shard.
    #[inline(always)]
    pub(super) fn all_arrivals(&self) -> Arrivals {
        Arrivals(array::from_fn(|shard| self.all[shard].arrivals()))
    }

    /// Whether no shard had an arrival since. Then `before` also holds for the next reads.
    #[inline(always)]
    pub(super) fn are_still(&self, before: &Arrivals) -> bool {
        self.all.iter().zip(&before.0).all(|(shard, &before)| shard.arrivals() == before)
    }

    /// Whether the shard of `fingerprint` had no arrival since.
    #[inline(always)]
    pub(super) fn is_still(&self, before: &Arrivals, fingerprint: u64) -> bool {
        self.of(fingerprint).is_still(before.0[number(fingerprint)])
    }

    /// Slots in use.
    pub(super) fn entries(&self) -> u64 {
        let sum = |count: fn(&Shard) -> u64| {
            self.all.iter().fold(0, |sum: u64, shard| sum.wrapping_add(count(shard)))
        };
        // Departures first: each of them has an earlier arrival.
        let departures = sum(|shard| shard.departures.load(Ordering::Acquire));
        sum(Shard::arrivals).saturating_sub(departures)
    }

    /// Copies that are in no bucket.
    pub(super) fn counted(&self) -> u64 {
        let counted = |shard: &Shard| shard.counted.load(Ordering::Relaxed);
        self.all.iter().map(counted).fold(0, u64::saturating_add)
    }

    /// How many counters there are.
    pub(super) fn counters(&self) -> u64 {
        self.counters.load(Ordering::Relaxed)
    }

    pub(super) fn has_counter_left(&self) -> bool {
        self.counters() < self.limit
    }

    /// Counts a copy of an entry of `shard`, whose counters are `guard`. Changes nothing on an
    /// error.
    pub(super) fn count(
        &self,
        shard: &Shard,
        guard: &mut Counters,
        name: u64,
    ) -> Result<(), FullError> {
        let reserve = |counters| (counters < self.limit).then_some(counters + 1);
        if guard.get(name).is_none()
            && self.counters.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_err()
        {
            return Err(FullError::Counters { limit: self.limit });
        }
        guard.add(name, 1, u64::MAX)?;
        shard.counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Subtracts one from the counter of an entry of `shard`. False if it has no counter.
    pub(super) fn discount(&self, shard: &Shard, guard: &mut Counters, name: u64) -> bool {
        if !guard.take(name) {
            return false;
        }
        if guard.get(name).is_none() {
            self.counters.fetch_sub(1, Ordering::Relaxed);
        }
        shard.counted.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Takes the write locks of all shards.
    pub(super) fn write_all(&self) -> Vec<WriteGuard<'_, Counters>> {
        self.all.iter().map(Shard::write).collect()
    }
}

/// The arrivals of every shard at one time.
pub(super) struct Arrivals([u64; SHARDS]);

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the number of a shard")]
fn number(fingerprint: u64) -> usize {
    fingerprint as usize % SHARDS
}
