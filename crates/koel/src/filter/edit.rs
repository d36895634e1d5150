//! Changing a filter: insert, remove, clear.
//!
//! One walk serves them all: hash to place, count the copies in its two buckets, then write one slot or one counter. The
//! invariants: an entry has a counter only beside a copy in the buckets, and `len` is entries plus counts. A filter that has grown has rules of its own (`grown/`).

use crate::counters::ReadCounters;
use crate::error::Full;
use crate::geometry::Place;
use crate::placement::{End, Plan, Spares};
use crate::table::{Put, Taken};
use crate::{CuckooFilter, Key};

/// Copies of an entry that may stay in the buckets. Two rather than one, because now and then two *keys* share a fingerprint: with one, each such
/// pair would need a counter.
pub(super) const COPIES_IN_BUCKETS: u64 = 2;

impl CuckooFilter {
    /// Adds a copy of `key`. O(1); at most 4096 slots are looked at.
    ///
    /// # Errors
    /// [`Full`], and then nothing has changed. It does not happen before [`capacity`](Self::capacity) distinct keys are in, unless
    /// [`counter_limit`](crate::Builder::counter_limit) was set to less and keys repeat. A [growable](crate::Builder::growable) filter grows instead, as far as
    /// addresses of 32 bits go: 8 to 16 billion keys, and a quarter of that at error rates near 1e-7, and as long as fewer than one absent key in ten is reported
    /// present, which no filter but a union of many passes. Where that does not make room for the key, the filter may be larger than before, and
    /// all its answers are the same.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Full> {
        self.insert_hash(self.hasher().hash(key))
    }

    /// [`insert`](Self::insert) for a key hashed beforehand. The 64 bits must be uniform: hash small integers, do not pass them.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), Full> {
        if self.body.grown.is_some() {
            return self.insert_grown(hash);
        }
        match self.add_one(&self.body.table.geometry().locate(hash)) {
            Ok(()) => Ok(()),
            Err(full) => self.insert_growing(hash, full),
        }
    }

    /// Adds `key` unless it is there already; true if it was added.
    ///
    /// A false positive counts as "there already". So a filter filled this way should not be removed from: the key that was not added, and the one it
    /// was mistaken for, share one entry.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Full> {
        self.insert_unique_hash(self.hasher().hash(key))
    }

    /// [`insert_unique`](Self::insert_unique) for a key hashed beforehand.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique_hash(&mut self, hash: u64) -> Result<bool, Full> {
        if let Some(grown) = &self.body.grown {
            let new = !grown.contains(hash);
            return if new { self.insert_grown(hash).map(|()| true) } else { Ok(false) };
        }
        let place = self.body.table.geometry().locate(hash);
        match self.add_unique(self.body.table.bits(&place), place.fingerprint, || place) {
            Ok(new) => Ok(new),
            Err(full) => self.insert_growing(hash, full).map(|()| true),
        }
    }

    /// Adds the entry unless it is there.
    #[inline(always)]
    pub(super) fn add_unique(
        &mut self,
        bits: [u64; 2],
        fingerprint: u64,
        place: impl FnOnce() -> Place,
    ) -> Result<bool, Full> {
        match self.put_new(bits, fingerprint) {
            Put::Done => Ok(true),
            Put::Repeated(_) => Ok(false),
            Put::Full => {
                let place = place();
                let new = !self.body.table.contains(&place);
                if new {
                    self.add_refused(&place, Put::Full)?;
                }
                Ok(new)
            }
        }
    }

    /// Adds every key of `keys`, in order.
    ///
    /// # Errors
    /// [`Full`] at the first key that finds no room; those before it are in, [`len`](Self::len) says how many.
    pub fn try_extend<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), Full> {
        keys.into_iter().try_for_each(|key| self.insert(&key))
    }

    /// Takes out one copy of `key`; false, and nothing changed, if no entry answers to it. O(log of the number of counters).
    ///
    /// True does not prove that the key was there: see the type's note on removing absent keys.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.remove_hash(self.hasher().hash(key))
    }

    /// [`remove`](Self::remove) for a key hashed beforehand.
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        if self.body.grown.is_some() {
            return self.remove_grown(hash);
        }
        let place = self.body.table.geometry().locate(hash);
        let (home, alternate) = place.buckets();
        self.take_one(home.min(alternate), self.body.table.bits(&place), place.fingerprint)
    }

    /// Takes out one copy of the entry in the buckets at `bits`, of which `first` is the one with the smaller number: a counted copy if
    /// there is one, for then there is a copy in the buckets too.
    #[inline(always)]
    pub(super) fn take_one(&mut self, first: u64, bits: [u64; 2], fingerprint: u64) -> bool {
        if self.counters.take(first << self.layout().fingerprint_bits() | fingerprint) {
            self.len -= 1;
            return true;
        }
        let taken = self.body.table.take(bits, fingerprint);
        if taken == Taken::Nothing {
            return false;
        }
        self.len -= 1;
        self.entries -= 1;
        self.distinct -= u64::from(taken == Taken::Last);
        true
    }

    /// Forgets every key. The size stays.
    pub fn clear(&mut self) {
        self.body.clear();
        self.counters.clear();
        self.entries = 0;
        self.distinct = 0;
        self.len = 0;
    }

    /// Adds a copy of the entry of `place`.
    #[inline]
    fn add_one(&mut self, place: &Place) -> Result<(), Full> {
        match self.put_new(self.body.table.bits(place), place.fingerprint) {
            Put::Done => Ok(()),
            refused => self.add_refused(place, refused),
        }
    }

    /// The usual case: a new entry for which there is an empty slot.
    #[inline(always)]
    pub(super) fn put_new(&mut self, bits: [u64; 2], fingerprint: u64) -> Put {
        if self.len == u64::MAX {
            return Put::Full;
        }
        let put = self.body.table.put(bits, fingerprint, 0);
        if put == Put::Done {
            self.entries += 1;
            self.distinct += 1;
            self.len += 1;
        }
        put
    }

    /// Adds a copy of the entry of `place`, for which [`put_new`](Self::put_new) did not find an empty slot or found copies.
    #[inline(never)]
    pub(super) fn add_refused(&mut self, place: &Place, refused: Put) -> Result<(), Full> {
        let len = self.len.checked_add(1).ok_or(Full::Overflow)?;
        match refused {
            Put::Done => {}
            Put::Full => self.make_room_for_new(place)?,
            Put::Repeated(copies) => self.add_copies(place, copies, 1)?,
        }
        self.len = len;
        Ok(())
    }

    /// Adds `times` copies of the entry of `place`. After a failure the filter must be dropped.
    pub(super) fn add(&mut self, place: &Place, times: u64) -> Result<(), Full> {
        let len = self.len.checked_add(times).ok_or(Full::Overflow)?;
        let (copies, left) = match self.put_new(self.body.table.bits(place), place.fingerprint) {
            Put::Done => (1, times - 1),
            Put::Full => {
                self.make_room_for_new(place)?;
                (1, times - 1)
            }
            Put::Repeated(copies) => (copies, times),
        };
        self.add_copies(place, copies, left)?;
        self.len = len;
        Ok(())
    }

    /// Finds a slot for a new entry whose buckets are full. It may be the slot of a spare copy: at once where spare copies are common, for
    /// then empty slots are hard to reach.
    fn make_room_for_new(&mut self, place: &Place) -> Result<(), Full> {
        if !self.make_room(place, self.spares_to_take()) {
            return Err(self.out_of_slots());
        }
        self.distinct += 1;
        Ok(())
    }

    /// Adds `left` copies to the `copies` that are there. With one copy a failure changes nothing.
    fn add_copies(&mut self, place: &Place, copies: u64, mut left: u64) -> Result<(), Full> {
        if left > 0 && copies < COPIES_IN_BUCKETS && self.put_second(place) {
            left -= 1;
        }
        if left > 0 {
            self.counters.add(self.identity(place), left, self.profile.counter_limit)?;
        }
        Ok(())
    }

    fn spares_to_take(&self) -> Spares {
        if self.counters.len() >= self.profile.counter_limit {
            Spares::Keep
        } else if self.is_crowded() || self.spares_are_common() {
            Spares::AtOnce
        } else {
            Spares::IfNeeded
        }
    }

    /// Gives an entry its second slot while there is plenty; false, and nothing changed, where the copy should be counted instead.
    fn put_second(&mut self, place: &Place) -> bool {
        if self.is_crowded() || self.counters.get(self.identity(place)) > 0 {
            return false;
        }
        match self.body.table.put(self.body.table.bits(place), place.fingerprint, 1) {
            Put::Repeated(_) => false,
            Put::Done => {
                self.entries += 1;
                true
            }
            Put::Full => !self.spares_are_common() && self.make_room(place, Spares::Keep),
        }
    }

    /// Whether the slots up to the capacity are taken. From there on they are for distinct keys only.
    fn is_crowded(&self) -> bool {
        self.entries >= self.profile.capacity
    }

    /// Whether copies came from repeated keys, rather than from keys that happen to share an entry: those are 1 in 60 at a rate of 3 %.
    fn spares_are_common(&self) -> bool {
        (self.entries - self.distinct).saturating_mul(16) > self.entries
    }

    /// Finds a slot for the entry of `place`, whose buckets are full; false, and nothing changed, if there is none.
    fn make_room(&mut self, place: &Place, spares: Spares) -> bool {
        let Some(plan) = self.search.plan(&self.body.table, place, spares) else { return false };
        let done = self.carry_out(&plan, place.fingerprint);
        self.search.recycle(plan);
        done
    }

    /// Makes the moves of `plan`, last one first, so that no entry is ever in no place, and puts `slot` where the first one was.
    fn carry_out(&mut self, plan: &Plan, slot: u64) -> bool {
        let Some(&(bucket, last)) = plan.moves.last() else { return false };
        match plan.end {
            End::Empty(room) => {
                self.body.table.replace(room, 0, last);
                self.entries += 1;
            }
            End::Spare => {
                let place = self.body.table.geometry().place_of(bucket, last);
                let counted =
                    self.counters.add(self.identity(&place), 1, self.profile.counter_limit);
                if counted.is_err() {
                    return false;
                }
            }
        }
        self.body.table.shift(&plan.moves, slot);
        true
    }
}
