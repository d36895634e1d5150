//! Changing a counting filter: insert, add, remove, clear, shrink.
//!
//! What fits into the slot stays in the slot; from the largest value on, the counter of the entry goes up, and a removal takes from it first.
//!
//! In a filter that grows, an entry may belong to several keys, and a key may have several entries: those that know less and less of it. Any of them may count the key, and
//! a removal takes from the longest, so that every other key still has as many among its own; a count is the sum of all. An entry with a counter forgets nothing when it
//! moves, for the counter goes by its name; a void one that is split leaves its counter to both halves.

use core::ops::Range;

use super::{At, CountingFilter, Held};
use crate::blocks::{copies_of, each_hash, hashes_of};
use crate::buffer::Buffer;
use crate::counters::{Counters, ReadCounters};
use crate::error::Full;
use crate::growth::{self, leave_to_both};
use crate::table::{EntryTest, Match, Prefix, Site, Stretch, Table};
use crate::{Key, Maplet, Merge};

impl CountingFilter {
    /// Counts `key` once more: its count now. O(1) for a key that is in; at most 4096 slots are looked at for a new one.
    ///
    /// # Errors
    /// [`Full`], and then nothing has changed. It does not happen before [`capacity`](Self::capacity) distinct keys are in; in a filter that
    /// [grows](crate::CountingBuilder::grow_from) not before addresses of 32 bits end, except [`Full::Values`] for a key whose buckets are full of keys like it: of 120 million none.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<u64, Full> {
        self.add(key, 1)
    }

    /// [`insert`](Self::insert) for a key hashed beforehand. The 64 bits must be uniform: hash small integers, do not pass them.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<u64, Full> {
        self.add_hash(hash, 1)
    }

    /// Counts `key` so many `times` more: its count now. O(1), whatever the number; 0 times changes nothing.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and [`Full::Overflow`] where all counts would pass 2^64 - 1 together.
    #[inline]
    pub fn add<K: Key + ?Sized>(&mut self, key: &K, times: u64) -> Result<u64, Full> {
        self.add_hash(self.hasher().hash(key), times)
    }

    /// [`add`](Self::add) for a key hashed beforehand.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_hash(&mut self, hash: u64, times: u64) -> Result<u64, Full> {
        let len = self.len.checked_add(times).ok_or(Full::Overflow)?;
        let count = match self.held(hash) {
            Some(held) => self.raise(&held, times)?,
            None => self.begin(hash, times)?,
        };
        self.len = len;
        // A key may have several entries in a filter that grows.
        Ok(if self.maplet.body.grown.is_some() { self.count_hash(hash) } else { count })
    }

    /// [`insert`](Self::insert) for each of `keys`, in order; about twice as fast in a filter that no cache holds.
    ///
    /// # Errors
    /// [`Full`] at the first key that finds no room; those before it are counted, [`len`](Self::len) says how many.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), Full> {
        let hasher = *self.hasher();
        self.insert_each(hashes_of(&hasher, keys))
    }

    /// [`insert_many`](Self::insert_many) for keys hashed beforehand.
    ///
    /// # Errors
    /// As [`insert_many`](Self::insert_many).
    pub fn insert_many_hashes(&mut self, hashes: &[u64]) -> Result<(), Full> {
        self.insert_each(copies_of(hashes))
    }

    /// Counts `key` once less; false, and nothing changed, if its count is 0. O(1), or O(log of the number of counters).
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.remove_hash(self.hasher().hash(key))
    }

    /// [`remove`](Self::remove) for a key hashed beforehand.
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let Some(held) = self.held(hash) else { return false };
        if held.count < self.most() || !self.counters.take(held.identity) {
            self.set(&held, held.count - 1);
        }
        self.len = self.len.saturating_sub(1);
        true
    }

    /// Gives back the memory that the entries do not need, down to the size that the filter was built with. Builds the smaller table beside this one, so it takes the
    /// memory of both for a while; where the entries do not fit into that, one for twice as many is tried. O(buckets).
    pub fn shrink_to_fit(&mut self) {
        let (entries, empty) = (self.maplet.entries, |room| self.maplet.smaller(room));
        if let Some(smaller) = growth::moved_to_fewer(entries, empty, |empty| self.moved_to(empty))
        {
            *self = smaller;
        }
    }

    /// All entries in the place of `maplet`; `None` where they do not fit, or only once it is no smaller.
    fn moved_to(&self, maplet: Maplet) -> Option<Self> {
        let grown = self.maplet.body.grown.as_ref()?;
        let mut smaller = Self { maplet, counters: Counters::default(), len: self.len };
        let moved = smaller.add_grown(self, grown, Merge::Sum).is_ok();
        (moved && smaller.maplet.slots() < self.maplet.slots()).then_some(smaller)
    }

    /// Forgets every key. The size stays.
    pub fn clear(&mut self) {
        self.maplet.clear();
        self.counters.clear();
        self.len = 0;
    }

    fn insert_each(
        &mut self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
    ) -> Result<(), Full> {
        let prefetch = |filter: &Self, hash| filter.maplet.body.prefetch(hash);
        each_hash(self, prefetch, hashes, 0, |filter, _, hash| filter.insert_hash(hash).map(|_| ()))
    }

    /// Adds to the count of an entry: what it is then.
    pub(super) fn raise(&mut self, held: &Held, times: u64) -> Result<u64, Full> {
        let in_slot = held.count.saturating_add(times).min(self.most());
        let beyond = times - (in_slot - held.count);
        let counted = if beyond > 0 {
            self.counters.add(held.identity, beyond, u64::MAX)?
        } else {
            self.counted(in_slot, held.identity)
        };
        if in_slot > held.count {
            self.set(held, in_slot);
        }
        Ok(in_slot.saturating_add(counted))
    }

    /// Makes an entry for a key that has none: its count.
    fn begin(&mut self, hash: u64, times: u64) -> Result<u64, Full> {
        if times == 0 {
            return Ok(0);
        }
        let in_slot = times.min(self.most());
        if self.maplet.body.grown.is_none() {
            self.maplet.insert_hash(hash, in_slot)?;
        } else if let Err(full) = self.begin_grown(hash, in_slot) {
            if !self.site(hash).is_some_and(|site| self.share_room(&site)) {
                return Err(full);
            }
            self.begin_grown(hash, in_slot)?;
        }
        if times > in_slot
            && let Some(held) = self.held(hash)
        {
            self.counters.add_all(held.identity, times - in_slot);
        }
        Ok(times)
    }

    fn begin_grown(&mut self, hash: u64, count: u64) -> Result<(), Full> {
        let (pinned, counters) = (self.pinned(), &mut self.counters);
        let doubled = |addresses: &Stretch, void: Prefix| leave_to_both(counters, addresses, void);
        self.maplet.add_grown(hash, count, pinned, doubled)
    }

    /// The entries that forget nothing when they move: while there are counters, those that may have one.
    pub(super) fn pinned(&self) -> Option<&'static EntryTest<'static>> {
        (self.counters.len() > 0).then_some(&has_largest as &EntryTest<'_>)
    }

    /// Where the key with this hash may live, in a table that grows.
    fn site(&self, hash: u64) -> Option<Site> {
        self.maplet.body.grown.as_ref().map(|grown| grown.addresses().locate(hash))
    }

    /// Makes two entries of one core into what they have in common, with the sum of their counts, where both buckets of a key are one: growth may be long in coming to that
    /// one. False, and nothing changed, if there are no two.
    pub(super) fn share_room(&mut self, site: &Site) -> bool {
        let (layout, most) = (self.layout(), self.most());
        let Some(grown) = &mut self.maplet.body.grown else { return false };
        let [spot, other] = site.spots;
        let Some((kept, gone, length)) = grown.closest(spot.bucket).filter(|_| spot == other)
        else {
            return false;
        };
        let mut sum = 0_u64;
        for entry in [kept, gone] {
            let counted = self.counters.remove(grown.addresses().identity(&entry.prefix));
            sum = sum.saturating_add(layout.value_of(entry.slot)).saturating_add(counted);
        }
        grown.take(&gone);
        let count = sum.min(most);
        grown.revalue(&kept, count);
        let slot = layout.slot(layout.fingerprint_of(kept.slot), count);
        grown.shorten(&Match { slot, ..kept }, length);
        let shared = grown.addresses().identity(&Prefix { length, ..kept.prefix });
        self.counters.add_all(shared, sum - count);
        self.maplet.entries -= 1;
        true
    }

    /// Writes another count into the slot of an entry, or takes it out where that is 0.
    fn set(&mut self, held: &Held, count: u64) {
        let layout = self.layout();
        let body = &mut self.maplet.body;
        match (held.at, &mut body.grown) {
            (At::Grown(entry), Some(grown)) if count == 0 => grown.take(&entry),
            (At::Grown(entry), Some(grown)) => {
                grown.revalue(&entry, count);
            }
            (At::Grown(_), None) => {}
            (At::Built(bits), _) => {
                let fingerprint = layout.fingerprint_of(held.slot);
                let new = if count == 0 { 0 } else { layout.slot(fingerprint, count) };
                body.table.exchange(bits, held.slot, new);
            }
        }
        if count == 0 {
            self.maplet.entries -= 1;
            self.maplet.len = self.maplet.len.saturating_sub(1);
        }
    }
}

/// Whether a slot says the largest count, so that its entry may have a counter.
fn has_largest(table: &Table<Buffer, Stretch>, _: u64, slot: u64) -> bool {
    let layout = table.layout();
    layout.value_of(slot) == layout.largest_value()
}
