//! Growth of a table, as entries come and without their keys: linear hashing under cuckoo hashing.
//!
//! * **Load.** The next chunk of buckets is split when the entries exceed the design load
//!   (load.rs). A search for room that fails splits the next chunk too.
//! * **Pauses.** A chunk is a 64th of the level, at most 4096 buckets: less than a millisecond. A
//!   table that was built without marks is widened first, once: each insert widens a 16th of it, at
//!   most [`MAX_WIDENED`] buckets, in place (widening.rs).
//!
//! What happens to counters and totals is in `state/`.

use core::iter;

use super::load::{MAX_WIDENED, addresses_for, buckets_after_steps, design_limit, step_of};
use super::{LinearHashing, Table, table_bytes};
use crate::mem::buffer::Buffer;
use crate::packing::{Bucket, SLOTS};

/// A table is not split if an absent key matches more entries than this on average. That happens
/// only where most entries have no bits of their own, in a forged file or in a union of many
/// filters. Such entries go to both halves of a bucket, so splitting makes no room. A table that
/// grew from the narrowest fingerprints to 2^27 times its size has 0.09.
const MOST_MATCHES: f64 = 0.1;

/// Below this load, a failed search says more about the keys than about the room: growth would not
/// help them.
const SPARSE_LOAD: f64 = 0.5;

/// What became of a step of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Some buckets were split or widened.
    Done,
    /// The table cannot grow, or growth would make no room. Nothing was changed.
    Refused,
    /// The system has no memory for more buckets. Nothing was changed.
    NoMemory,
}

impl<B: AsRef<[u8]>> Table<B> {
    /// Whether some buckets are still to be widened.
    #[inline]
    pub(crate) fn is_midway(&self) -> bool {
        self.addresses.widening().is_some()
    }

    /// Whether buckets may still be split: they have numbers, and splitting makes room.
    fn may_split(&self) -> bool {
        self.grows() && self.addresses.can_grow() && self.matches_of_an_absent_key() < MOST_MATCHES
    }

    /// Whether a table that grows has room for more entries than so many, now or later.
    pub(crate) fn may_gain_entries(&self, entries: u64) -> bool {
        !self.is_overfull(entries) || self.may_split()
    }

    /// Whether a search that found no room may find some after a [`split`](Self::split): the load
    /// that growth can change is high, that of the slots that void entries leave.
    ///
    /// A split puts void entries in both halves, so they take the same share of the slots in a
    /// table of any size. If all entries were void, there would be `v`, the match weight in units
    /// of one bucket. Each other entry counts for half of one or less in `v`. So there are at least
    /// twice `v` less the number of entries.
    pub(crate) fn may_gain_room(&self, entries: u64) -> bool {
        let (buckets, entries) = (self.buckets() as f64, entries as f64);
        let weight = self.match_weight as f64 / LinearHashing::weight_of(0) as f64;
        let times = buckets / self.base().buckets() as f64;
        let void = (2.0 * weight * times - entries).clamp(0.0, entries);
        let load = (entries - void) / (buckets * SLOTS as f64 - void).max(1.0);
        self.grows() && self.addresses.can_grow() && load > SPARSE_LOAD
    }

    /// The bucket that the next [`split`](Self::split) splits after so many others; `None` beyond
    /// the last one.
    pub(crate) fn nth_to_split(&self, others: u64) -> Option<u64> {
        let bucket = || self.addresses.bucket_to_split(self.addresses.split() + others);
        (self.grows() && others < self.chunk()).then(bucket)
    }

    /// How many buckets the next step splits.
    fn chunk(&self) -> u64 {
        let level = self.addresses.level_buckets();
        step_of(level).min(level - self.addresses.split())
    }

    /// Sets the limit: the design limit, or 0 while buckets are widened. It follows from the table
    /// alone, so a copy from a file grows like the original.
    pub(super) fn set_limit(&mut self) {
        if self.grows() {
            let designed = design_limit(self.layout, self.buckets());
            self.limit = if self.is_midway() { 0 } else { designed };
        }
    }

    /// Empty tables with fewer buckets than this one, which may have room for so many entries, the
    /// smallest first. None if this one does not grow.
    ///
    /// The first is the table for `entries`. Growth has spread the halves of a void entry over many
    /// buckets, and in a small table all of them fall into two: they may need a larger one.
    pub(crate) fn smaller(&self, entries: u64) -> impl Iterator<Item = Table<Buffer>> {
        let buckets = self.buckets();
        let smaller = move |room| {
            let addresses = addresses_for(self.base(), self.layout, room)?;
            let bytes = table_bytes(self.layout, addresses.buckets());
            let bytes = bytes.filter(|_| addresses.buckets() < buckets)?;
            Some(Table::new(addresses, self.layout, Buffer::zeroed(bytes, true)?))
        };
        iter::successors(Some(entries.max(1)), |room| room.checked_mul(2)).map_while(smaller)
    }
}

impl Table<Buffer> {
    /// Splits the next chunk of buckets, or widens the next ones. Calls `doubled` with the value
    /// and the name of each void entry, which is in two buckets from then on, and the names of both
    /// halves.
    pub(crate) fn split(&mut self, doubled: &mut dyn FnMut(u64, u64, [u64; 2])) -> Step {
        let buckets = self.buckets();
        if self.widen((buckets / 16).clamp(1, MAX_WIDENED)) {
            return Step::Done;
        }
        if !self.may_split() {
            return Step::Refused;
        }
        let chunk = self.chunk();
        let bytes = table_bytes(self.layout, buckets + chunk);
        if !bytes.is_some_and(|bytes| self.bytes.grow(bytes)) {
            return Step::NoMemory;
        }
        (0..chunk).for_each(|_| self.split_next(doubled));
        self.set_limit();
        Step::Done
    }

    /// Gets memory for as many [splits](Self::split) as one insert makes. Returns how many buckets
    /// there may be then; `None`, and no byte changed, where the system has no memory.
    pub(crate) fn reserve_steps(&mut self) -> Option<u64> {
        let buckets = self.buckets();
        if !self.may_split() {
            return Some(buckets);
        }
        let most = buckets_after_steps(self.addresses.level_buckets(), buckets);
        self.bytes.reserve(table_bytes(self.layout, most)?).then_some(most)
    }

    /// Widens all buckets that are still narrow. False if none is.
    pub(crate) fn finish_widening(&mut self) -> bool {
        self.widen(u64::MAX)
    }

    /// Splits the next bucket of the level. Calls `doubled` as [`split`](Self::split) does.
    fn split_next(&mut self, doubled: &mut dyn FnMut(u64, u64, [u64; 2])) {
        let lower = self.addresses.bucket_to_split(self.addresses.split());
        let upper = self.addresses.buckets();
        let needed = table_bytes(self.layout, upper + 1);
        assert!(needed.is_some_and(|bytes| bytes <= self.bytes().len()), "no room for a bucket");
        let from = self.addresses.origin(lower);
        let mut halves = [[0; SLOTS]; 2];
        for (i, slot) in self.read(lower).0.into_iter().enumerate().filter(|&(_, slot)| slot != 0) {
            let (fingerprint, value) =
                (self.layout.fingerprint_of(slot), self.layout.value_of(slot));
            match self.addresses.half(&from, fingerprint) {
                Some((upper, rest)) => {
                    halves[usize::from(upper)][i] = self.layout.slot(rest, value);
                }
                None => {
                    halves.iter_mut().for_each(|half| half[i] = slot);
                    let void = self.addresses.prefix(lower, fingerprint);
                    let names = void.continuations().map(|half| self.addresses.name(&half));
                    doubled(value, self.addresses.name(&void), names);
                }
            }
        }
        self.write_bucket(lower, Bucket(halves[0]));
        self.write_bucket(upper, Bucket(halves[1]));
        self.addresses.advance();
        self.end += self.bucket_bits;
    }
}
