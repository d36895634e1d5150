//! Changing a maplet: insert, replace, remove, clear.
//!
//! Hash to place, fingerprint and value to slot; from there on a slot is a number that `table.rs` puts, exchanges and takes out.
//! The invariant: `len` is the number of slots in use, where the maplet does not grow.

use crate::error::Full;
use crate::geometry::Place;
use crate::layout::SLOTS;
use crate::placement::{End, Neighbourhood, Spares, Ways};
use crate::table::{Put, Taken};
use crate::{Key, Maplet};

impl Maplet {
    /// Adds the pair of `key` and `value`; once more if it is there already. O(1); at most 4096 slots are looked at.
    ///
    /// # Errors
    /// [`Full`], and then nothing has changed. It does not happen before [`capacity`](Self::capacity) entries are in, as long as keys are distinct; in a maplet that
    /// [grows](crate::MapletBuilder::grow_from) not before addresses of 32 bits end, except [`Full::Values`] for a key whose only
    /// bucket is full of keys like it: one of 120 million.
    ///
    /// # Panics
    /// Where the value has more bits than the maplet's values.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), Full> {
        self.insert_hash(self.hasher().hash(key), value)
    }

    /// [`insert`](Self::insert) for a key hashed beforehand. The 64 bits must be uniform: hash small integers, do not pass them.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_hash(&mut self, hash: u64, value: u64) -> Result<(), Full> {
        if self.body.grown.is_some() {
            return self.insert_grown(hash, value);
        }
        self.insert_place(&self.body.table.geometry().locate(hash), value)
    }

    /// Adds an entry at `place`, in a table as it was built.
    #[inline(always)]
    pub(super) fn insert_place(&mut self, place: &Place, value: u64) -> Result<(), Full> {
        let slot = self.slot(place.fingerprint, value);
        if self.put(self.body.table.bits(place), slot) {
            Ok(())
        } else {
            self.make_room(place, slot)
        }
    }

    /// Makes one pair of `key` and `old` one of `key` and `new`; false, and nothing changed, if there is none. O(1).
    ///
    /// # Panics
    /// Where `new` has more bits than the maplet's values.
    #[inline]
    pub fn replace<K: Key + ?Sized>(&mut self, key: &K, old: u64, new: u64) -> bool {
        self.replace_hash(self.hasher().hash(key), old, new)
    }

    /// [`replace`](Self::replace) for a key hashed beforehand.
    ///
    /// # Panics
    /// As [`replace`](Self::replace).
    #[inline]
    pub fn replace_hash(&mut self, hash: u64, old: u64, new: u64) -> bool {
        if self.body.grown.is_some() {
            return self.replace_grown(hash, old, new);
        }
        let place = self.body.table.geometry().locate(hash);
        let new = self.slot(place.fingerprint, new);
        self.exchange((self.body.table.bits(&place), place.fingerprint), old, new)
    }

    /// Takes out one pair of `key` and `value`; false, and nothing changed, if there is none. O(1).
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> bool {
        self.remove_hash(self.hasher().hash(key), value)
    }

    /// [`remove`](Self::remove) for a key hashed beforehand.
    #[inline]
    pub fn remove_hash(&mut self, hash: u64, value: u64) -> bool {
        if self.body.grown.is_some() {
            return self.remove_grown(hash, value);
        }
        let place = self.body.table.geometry().locate(hash);
        let entry = (self.body.table.bits(&place), place.fingerprint);
        let removed = self.exchange(entry, value, 0);
        self.len -= u64::from(removed);
        self.entries -= u64::from(removed);
        removed
    }

    /// Forgets every pair. The size stays.
    pub fn clear(&mut self) {
        self.body.clear();
        self.len = 0;
        self.entries = 0;
    }

    /// Writes the slot `new` over one of this fingerprint and the value `old`, in the pair at `bits`.
    #[inline(always)]
    pub(super) fn exchange(
        &mut self,
        (bits, fingerprint): ([u64; 2], u64),
        old: u64,
        new: u64,
    ) -> bool {
        if old >> self.layout().value_bits() != 0 {
            return false;
        }
        let old = self.layout().slot(fingerprint, old);
        self.body.table.exchange(bits, old, new) != Taken::Nothing
    }

    /// The usual case of an insert: an empty slot in one of the buckets.
    #[inline(always)]
    pub(super) fn put(&mut self, bits: [u64; 2], slot: u64) -> bool {
        let done = self.body.table.put(bits, slot, u64::MAX) == Put::Done;
        self.len += u64::from(done);
        self.entries += u64::from(done);
        done
    }

    /// Finds room for an entry whose buckets are full.
    #[inline(never)]
    pub(super) fn make_room(&mut self, place: &Place, slot: u64) -> Result<(), Full> {
        let Some(plan) = self.search.plan(&self.body.table, place, Spares::Keep) else {
            let table = &self.body.table;
            let open = |bucket, ways: &mut Ways| table.open(place.base, bucket, ways);
            return Err(self.full(place.buckets(), open));
        };
        if let (End::Empty(room), Some(&(_, last))) = (plan.end, plan.moves.last()) {
            self.body.table.replace(room, 0, last);
            self.body.table.shift(&plan.moves, slot);
            self.len += 1;
            self.entries += 1;
        }
        self.search.recycle(plan);
        Ok(())
    }

    /// Why a key whose two buckets are full finds no room: because no entry in them has another bucket to go to, or because the search found none. `open` adds the entries of
    /// a bucket, each with the buckets that it could go to.
    pub(super) fn full(&self, (home, other): (u64, u64), open: impl Fn(u64, &mut Ways)) -> Full {
        let mut ways = Ways::default();
        open(home, &mut ways);
        open(other, &mut ways);
        if ways.buckets().iter().all(|&bucket| bucket == home || bucket == other) {
            let buckets = if home == other { 1 } else { 2 };
            return Full::Values { held: buckets * SLOTS as u64 };
        }
        self.out_of_slots()
    }

    pub(super) fn out_of_slots(&self) -> Full {
        Full::Slots { in_use: self.entries, capacity: self.capacity() }
    }

    /// The slot of a value to be written.
    #[inline(always)]
    pub(super) fn slot(&self, fingerprint: u64, value: u64) -> u64 {
        self.check_value(value);
        self.layout().slot(fingerprint, value)
    }

    #[inline(always)]
    pub(super) fn check_value(&self, value: u64) {
        let bits = self.layout().value_bits();
        if value >> bits != 0 {
            too_wide(value, bits);
        }
    }
}

/// Away from where values are checked: to be printed they must be in memory, which would be written for every one.
#[cold]
#[inline(never)]
fn too_wide(value: u64, bits: u32) -> ! {
    panic!("the value {value} does not fit into {bits} bits");
}
