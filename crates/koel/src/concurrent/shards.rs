//! What the threads share besides the buckets, divided by fingerprint so that they seldom meet:
//! arrivals, departures, counters.
//!
//! A shard's lock guards its counters, and with them the copies of its entries: held shared by
//! whoever takes a copy out, exclusively by whoever counts a copy or moves an entry. So while a
//! copy is counted, its entry stays; while an entry moves, nobody takes it out twice.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::sync::{self, AtomicU64, Ordering, ReadGuard, RwLock, WriteGuard};
use crate::error::FullError;
use crate::state::counters::{Counters, Identity, ReadCounters, WriteCounters};

/// A power of two. Loom gets one: more of them would only hide how threads meet.
pub(super) const SHARDS: usize = if cfg!(loom) { 1 } else { 32 };

/// A cache line of its own, or two where the processor fetches them in pairs.
#[repr(align(128))]
struct Line<T>(T);

/// A part of the filter: the entries whose fingerprints have the same low bits.
pub(super) struct Shard<'a> {
    /// Entries that came to any bucket, by insert or by move. Read by lookups, so nothing else is
    /// in its line.
    arrivals: &'a AtomicU64,
    rest: &'a Rest,
}

struct Rest {
    /// Entries that left a bucket.
    departures: AtomicU64,
    /// Copies that are in no bucket: the sum of the counters.
    counted: AtomicU64,
    counters: RwLock<Counters>,
}

impl<'a> Shard<'a> {
    /// Arrivals before whatever is read next.
    #[inline(always)]
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals.load(Ordering::Acquire)
    }

    /// Whether there was no arrival since `before`, as far as it could matter to the buckets read
    /// in between.
    #[inline(always)]
    pub(super) fn is_still(&self, before: u64) -> bool {
        // Not moved up: the reads in between are acquiring ones.
        self.arrivals.load(Ordering::Relaxed) == before
    }

    /// After an entry has been written into a bucket, and before it, or an equal one, leaves
    /// another.
    #[inline(always)]
    pub(super) fn arrive(&self) {
        self.arrivals.fetch_add(1, Ordering::Release);
    }

    /// After an entry has been taken out of a bucket.
    #[inline(always)]
    pub(super) fn depart(&self) {
        self.rest.departures.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters, while nobody changes them.
    #[inline(always)]
    pub(super) fn read(&self) -> ReadGuard<'a, Counters> {
        sync::read(&self.rest.counters)
    }

    /// The counters, while nobody else looks at them or takes an entry out.
    pub(super) fn write(&self) -> WriteGuard<'a, Counters> {
        sync::write(&self.rest.counters)
    }
}

/// All shards.
pub(super) struct Shards {
    arrivals: Box<[Line<AtomicU64>; SHARDS]>,
    rest: Box<[Line<Rest>; SHARDS]>,
    /// Counters in all shards, and how many there may be. In a box, as all that changes is: so a
    /// reference to the filter is one to what does not, and compilers keep what a lookup reads of
    /// it in registers from one lookup to the next.
    counters: Box<AtomicU64>,
    limit: u64,
}

impl Shards {
    /// Shards of a table that holds so many entries and has these counters.
    pub(super) fn new(entries: u64, counters: &Counters, limit: u64) -> Self {
        let rest = |shard| {
            // An identity ends in the fingerprint.
            let owned = |&(identity, _): &(Identity, u64)| number(identity) == shard;
            let counters = Counters::from_iter(counters.iter().filter(owned));
            let counted = counters.iter().map(|(_, count)| count).sum();
            let (departures, counted) = (AtomicU64::new(0), AtomicU64::new(counted));
            Line(Rest { departures, counted, counters: RwLock::new(counters) })
        };
        let arrivals = |shard| Line(AtomicU64::new(if shard == 0 { entries } else { 0 }));
        Self {
            arrivals: Box::new(core::array::from_fn(arrivals)),
            rest: Box::new(core::array::from_fn(rest)),
            counters: Box::new(AtomicU64::new(counters.len())),
            limit,
        }
    }

    /// The shard of the entries with this fingerprint.
    #[inline(always)]
    pub(super) fn of(&self, fingerprint: u64) -> Shard<'_> {
        self.shard(number(fingerprint))
    }

    #[inline(always)]
    fn shard(&self, number: usize) -> Shard<'_> {
        Shard { arrivals: &self.arrivals[number].0, rest: &self.rest[number].0 }
    }

    #[inline(always)]
    fn all(&self) -> impl Iterator<Item = Shard<'_>> {
        (0..SHARDS).map(|number| self.shard(number))
    }

    /// The arrivals of every shard.
    #[inline(always)]
    pub(super) fn all_arrivals(&self) -> Arrivals {
        Arrivals(core::array::from_fn(|shard| self.shard(shard).arrivals()))
    }

    /// Whether no shard had an arrival since: then `before` is what they have before whatever is
    /// read next, too.
    #[inline(always)]
    pub(super) fn are_still(&self, before: &Arrivals) -> bool {
        self.all().zip(&before.0).all(|(shard, &before)| shard.arrivals() == before)
    }

    /// Whether the shard of `fingerprint` had no arrival since.
    #[inline(always)]
    pub(super) fn is_still(&self, before: &Arrivals, fingerprint: u64) -> bool {
        self.of(fingerprint).is_still(before.0[number(fingerprint)])
    }

    /// Slots in use.
    pub(super) fn entries(&self) -> u64 {
        let sum = |count: fn(&Shard) -> u64| {
            self.all().fold(0, |sum: u64, shard| sum.wrapping_add(count(&shard)))
        };
        // Departures first: each of them is of an earlier arrival.
        let departures = sum(|shard| shard.rest.departures.load(Ordering::Acquire));
        sum(|shard| shard.arrivals()).saturating_sub(departures)
    }

    /// Copies that are in no slot.
    pub(super) fn counted(&self) -> u64 {
        let counted = |shard: Shard| shard.rest.counted.load(Ordering::Relaxed);
        self.all().map(counted).fold(0, u64::saturating_add)
    }

    /// How many counters there are.
    pub(super) fn counters(&self) -> u64 {
        self.counters.load(Ordering::Relaxed)
    }

    pub(super) fn has_counter_left(&self) -> bool {
        self.counters() < self.limit
    }

    /// Counts a copy of an entry of `shard`, whose counters are `guard`, or changes nothing.
    pub(super) fn count(
        &self,
        shard: &Shard,
        guard: &mut Counters,
        identity: Identity,
    ) -> Result<(), FullError> {
        let reserve = |counters| (counters < self.limit).then_some(counters + 1);
        if guard.get(identity) == 0
            && self.counters.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_err()
        {
            return Err(FullError::Counters { limit: self.limit });
        }
        guard.add(identity, 1, u64::MAX)?;
        shard.rest.counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes one counted copy of an entry of `shard` away; false if it has no counter.
    pub(super) fn discount(&self, shard: &Shard, guard: &mut Counters, identity: Identity) -> bool {
        if !guard.take(identity) {
            return false;
        }
        if guard.get(identity) == 0 {
            self.counters.fetch_sub(1, Ordering::Relaxed);
        }
        shard.rest.counted.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Every shard for this thread alone.
    pub(super) fn write_all(&self) -> Vec<WriteGuard<'_, Counters>> {
        self.all().map(|shard| shard.write()).collect()
    }
}

/// What [`Shards::all_arrivals`] saw.
pub(super) struct Arrivals([u64; SHARDS]);

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the number of a shard")]
fn number(fingerprint: u64) -> usize {
    fingerprint as usize % SHARDS
}
