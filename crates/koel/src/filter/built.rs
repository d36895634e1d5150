//! A filter in the table that it was built with: the multiset over fingerprints that are equal or not.
//!
//! One walk serves every change: count the copies in the two buckets of a place, then write one slot or one counter. The
//! invariants: an entry has a counter only beside a copy in the buckets, and `len` is entries plus counts.

use crate::buffer::Buffer;
use crate::counters::{Counters, Identity, ReadCounters};
use crate::error::Full;
use crate::filter::tally::{COPIES_IN_BUCKETS, Tally};
use crate::geometry::Place;
use crate::placement::{End, Plan, Spares};
use crate::table::{At, Put, Table, Taken};

impl<C: ReadCounters> Tally<C> {
    /// How often the key of `place` was inserted.
    pub(super) fn count_place<B: AsRef<[u8]>>(&self, table: &Table<B>, place: &Place) -> u64 {
        let counted = self.counters.get(identity(table, place));
        table.copies(place, place.fingerprint).saturating_add(counted)
    }
}

/// The name of the counter of the entry at `place`.
pub(super) fn identity<B: AsRef<[u8]>>(table: &Table<B>, place: &Place) -> Identity {
    place.identity(table.layout().fingerprint_bits())
}

impl Tally<Counters> {
    /// Adds a copy of an entry.
    #[inline(always)]
    pub(super) fn add_one(
        &mut self,
        mut at: At<'_>,
        fingerprint: u64,
        place: impl FnOnce() -> Place,
    ) -> Result<(), Full> {
        match self.put_new(&mut at, fingerprint) {
            Put::Done => Ok(()),
            refused => self.add_refused(at.into_table(), &place(), refused),
        }
    }

    /// Adds the entry unless it is there.
    #[inline(always)]
    pub(super) fn add_unique(
        &mut self,
        mut at: At<'_>,
        fingerprint: u64,
        place: impl FnOnce() -> Place,
    ) -> Result<bool, Full> {
        match self.put_new(&mut at, fingerprint) {
            Put::Done => Ok(true),
            Put::Repeated(_) => Ok(false),
            Put::Full => {
                let (table, place) = (at.into_table(), place());
                let new = !table.contains(&place);
                if new {
                    self.add_refused(table, &place, Put::Full)?;
                }
                Ok(new)
            }
        }
    }

    /// The usual case: a new entry for which there is an empty slot.
    #[inline(always)]
    fn put_new(&mut self, at: &mut At<'_>, fingerprint: u64) -> Put {
        if self.len == u64::MAX {
            return Put::Full;
        }
        let put = at.put(fingerprint, 0);
        if put == Put::Done {
            self.note_new(1);
        }
        put
    }

    /// Counts new entries, which have got their slots.
    #[inline(always)]
    pub(super) fn note_new(&mut self, entries: u64) {
        self.len += entries;
        self.entries += entries;
    }

    /// Counts entries less, of which there was one each.
    #[inline(always)]
    pub(super) fn note_taken(&mut self, entries: u64) {
        self.len -= entries;
        self.entries -= entries;
    }

    /// Adds a copy of the entry of `place`, for which [`put_new`](Self::put_new) did not find an empty slot or found copies.
    #[inline(never)]
    fn add_refused(
        &mut self,
        table: &mut Table<Buffer>,
        place: &Place,
        refused: Put,
    ) -> Result<(), Full> {
        let len = self.len.checked_add(1).ok_or(Full::Overflow)?;
        match refused {
            Put::Done => {}
            Put::Full => self.make_room_for_new(table, place)?,
            Put::Repeated(copies) => self.add_copies(table, place, copies, 1)?,
        }
        self.len = len;
        Ok(())
    }

    /// Adds `times` copies of the entry of `place`. After a failure the filter must be dropped.
    pub(super) fn add(
        &mut self,
        table: &mut Table<Buffer>,
        place: &Place,
        times: u64,
    ) -> Result<(), Full> {
        let len = self.len.checked_add(times).ok_or(Full::Overflow)?;
        let (copies, left) = match self.put_new(&mut table.at(place.buckets()), place.fingerprint) {
            Put::Done => (1, times - 1),
            Put::Full => {
                self.make_room_for_new(table, place)?;
                (1, times - 1)
            }
            Put::Repeated(copies) => (copies, times),
        };
        self.add_copies(table, place, copies, left)?;
        self.len = len;
        Ok(())
    }

    /// Takes out one copy of an entry, of whose buckets `first` is the one with the smaller number: a counted copy if there is one, for then there is a copy in the
    /// buckets too.
    #[inline(always)]
    pub(super) fn take_one(&mut self, mut at: At<'_>, first: u64, fingerprint: u64) -> bool {
        if self.counters.take(first << at.layout().fingerprint_bits() | fingerprint) {
            self.len -= 1;
            return true;
        }
        let taken = at.take(fingerprint);
        if taken == Taken::Nothing {
            return false;
        }
        self.note_taken(1);
        self.spares -= u64::from(taken != Taken::Last);
        true
    }

    /// Finds a slot for a new entry whose buckets are full. It may be the slot of a spare copy: at once where spare copies are common, for
    /// then empty slots are hard to reach. A filter that grows is not filled to the last slot: it begins to grow while the keys that come until its buckets are wide find room.
    fn make_room_for_new(&mut self, table: &mut Table<Buffer>, place: &Place) -> Result<(), Full> {
        let is_due = self.profile.growable && self.distinct() >= self.profile.capacity;
        let done = !is_due && self.make_room(table, place, self.spares_to_take());
        if done { Ok(()) } else { Err(self.out_of_slots()) }
    }

    /// Adds `left` copies to the `copies` that are there. With one copy a failure changes nothing.
    fn add_copies(
        &mut self,
        table: &mut Table<Buffer>,
        place: &Place,
        copies: u64,
        mut left: u64,
    ) -> Result<(), Full> {
        if left > 0 && copies < COPIES_IN_BUCKETS && self.put_second(table, place) {
            left -= 1;
        }
        if left > 0 {
            self.count_copies(identity(table, place), left)?;
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
    fn put_second(&mut self, table: &mut Table<Buffer>, place: &Place) -> bool {
        if self.is_crowded() || self.counters.get(identity(table, place)) > 0 {
            return false;
        }
        let most = COPIES_IN_BUCKETS - 1;
        let done = match table.at(place.buckets()).put(place.fingerprint, most) {
            Put::Repeated(_) => false,
            Put::Done => {
                self.entries += 1;
                true
            }
            Put::Full => !self.spares_are_common() && self.make_room(table, place, Spares::Keep),
        };
        self.spares += u64::from(done);
        done
    }

    /// Whether the slots up to the capacity are taken. From there on they are for distinct keys only.
    fn is_crowded(&self) -> bool {
        self.entries >= self.profile.capacity
    }

    /// Whether copies came from repeated keys, rather than from keys that happen to share an entry: those are 1 in 60 at a rate of 3 %.
    fn spares_are_common(&self) -> bool {
        self.spares.saturating_mul(16) > self.entries
    }

    /// Finds a slot for the entry of `place`, whose buckets are full; false, and nothing changed, if there is none.
    fn make_room(&mut self, table: &mut Table<Buffer>, place: &Place, spares: Spares) -> bool {
        let Some(plan) = table.way_to_room(&mut self.search, place, spares) else { return false };
        let done = self.carry_out(table, &plan, place.fingerprint);
        self.search.recycle(plan);
        done
    }

    /// Makes the moves of `plan`, last one first, so that no entry is ever in no place, and puts `slot` where the first one was.
    fn carry_out(&mut self, table: &mut Table<Buffer>, plan: &Plan, slot: u64) -> bool {
        let Some(&(bucket, last)) = plan.moves.last() else { return false };
        match plan.end {
            End::Empty(room) => {
                table.replace(room, 0, last);
                self.entries += 1;
            }
            End::Spare => {
                let place = table.geometry().place_of(bucket, last);
                if self.count_copies(identity(table, &place), 1).is_err() {
                    return false;
                }
                self.spares -= 1;
            }
        }
        table.shift(&plan.moves, slot);
        true
    }
}
