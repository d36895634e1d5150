//! Entries that expire: a stamp beside each fingerprint says at which step a key came.
//!
//! * **One entry.** Keys of one fingerprint and bucket pair share an entry. An insert gives it a
//!   younger stamp in place; a stamp never gets older.
//! * **Dead entries** are older than the window. Lookups ignore them, an insert takes their slots,
//!   and they never move: so the sweep, which goes through the table once in a number of steps,
//!   misses none. `image/clock.rs` says why it must not.
//! * **Counts.** There is a count of entries for each stamp. So `len`, the number of live entries,
//!   is exact without a pass, and where nothing is dead nothing is swept.
//!
//! Cost: an insert sweeps [`AHEAD`] buckets of the step's part, and [`Stamped::advance`] the rest.

use core::ops::Range;

use super::{Body, Buckets, Expiry, State, Writer};
use crate::address::geometry::Location;
use crate::error::FullError;
use crate::image::Clock;
use crate::mem::buffer::Buffer;
use crate::packing::Layout;
use crate::state::counters::{NoCounters, ReadCounters, WriteCounters};
use crate::table::blocks::{Hashes, each_candidate};
use crate::table::search::{BUDGET, End, EvictionPath, Search};
use crate::table::{CuckooMut, Dead, Match, Put, Table};

/// Buckets that an insert sweeps. With as many keys as the filter is built for, a step brings about
/// one insert for each bucket of its part.
const AHEAD: u64 = 2;
/// Entries among which the oldest is evicted: those of 40 buckets.
const EVICTION_BUDGET: usize = 160;

impl<B: AsRef<[u8]>, C: ReadCounters> Body<B, C> {
    /// The table and the clock.
    ///
    /// # Panics
    /// If it is not the body of an expiring filter.
    #[inline]
    fn stamped(&self) -> (&Table<B>, &Clock) {
        match (&self.buckets, &self.state.expiry) {
            (Buckets::Fixed(table), Some(expiry)) => (table, &expiry.clock),
            _ => unreachable!("an expiring filter has a table of one size, and a clock"),
        }
    }

    /// The clock.
    pub(crate) fn clock(&self) -> &Clock {
        self.stamped().1
    }

    /// The age of the live entry of the key with this address.
    #[inline]
    pub(crate) fn age(&self, address: u64) -> Option<u64> {
        let (table, clock) = self.stamped();
        let (location, is_there) = table.find(address);
        if !is_there {
            return None;
        }
        let age = clock.age(table.layout().value_of(table.longest(&location)?.slot));
        clock.is_live(age).then_some(age)
    }

    /// Calls `found` with the number and the age of each key that has a live entry.
    pub(crate) fn each_age(&self, hashes: impl Hashes, mut found: impl FnMut(usize, u64)) {
        let (table, clock) = self.stamped();
        let layout = table.layout();
        each_candidate(table, hashes, |key, slots| {
            let ages = slots.map(|slot| clock.age(layout.value_of(slot)));
            ages.filter(|&age| clock.is_live(age)).for_each(|age| found(key, age));
        });
    }

    /// The number of live entries, counted in a pass.
    pub(super) fn live_entries(&self) -> u64 {
        let (table, clock) = self.stamped();
        let layout = table.layout();
        let is_live = |entry: &Match| clock.is_live(clock.age(layout.value_of(entry.slot)));
        table.entries().filter(is_live).count() as u64
    }
}

impl<C: WriteCounters> Body<Buffer, C> {
    /// The body with its stamps counted, if it has any. `None` without memory for the counts.
    pub(super) fn with_counted_stamps(mut self) -> Option<Self> {
        if let Some(expiry) = &self.state.expiry {
            let mut counted = Expiry::counting(expiry.clock)?;
            let (table, _) = self.stamped();
            for entry in table.entries() {
                *counted.count(table.layout().value_of(entry.slot)) += 1;
            }
            self.state.expiry = Some(counted);
        }
        Some(self)
    }
}

impl Body<Buffer, NoCounters> {
    /// The body for changes.
    ///
    /// # Panics
    /// If it is not the body of an expiring filter.
    #[inline]
    pub(crate) fn stamped_mut(&mut self) -> Stamped<'_> {
        let Writer { table, state } = self.fixed_writer();
        Stamped::of(table, state)
    }

    /// Calls `work` with the number and the address of each key, until one fails. The buckets of
    /// the key were prefetched.
    pub(crate) fn each_stamped<E>(
        &mut self,
        hashes: impl Hashes,
        mut work: impl FnMut(Stamped<'_>, usize, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.fixed_writer().one_by_one(hashes, 0, |writer, key, address| {
            work(Stamped::of(writer.table, writer.state), key, address)
        })
    }

    #[inline]
    fn fixed_writer(&mut self) -> Writer<'_, Table<Buffer>, NoCounters> {
        match &mut self.buckets {
            Buckets::Fixed(table) => Writer { table, state: &mut self.state },
            Buckets::Growing(_) => unreachable!("an expiring filter has a table of one size"),
        }
    }
}

/// The entries older than the window.
#[derive(Clone, Copy)]
struct Expired {
    clock: Clock,
    layout: Layout,
    budget: usize,
}

impl Dead for Expired {
    const ANY: bool = true;

    #[inline]
    fn is_dead(self, slot: u64) -> bool {
        !self.clock.is_live(self.clock.age(self.layout.value_of(slot)))
    }

    fn budget(self) -> usize {
        self.budget
    }
}

/// A table of stamped entries, for changes.
pub(crate) struct Stamped<'a> {
    table: &'a mut Table<Buffer>,
    layout: Layout,
    expiry: &'a mut Expiry,
    /// Live entries.
    len: &'a mut u64,
    /// Live and dead ones.
    entries: &'a mut u64,
    search: &'a mut Search,
    capacity: u64,
}

impl<'a> Stamped<'a> {
    #[inline]
    fn of(table: &'a mut Table<Buffer>, state: &'a mut State<NoCounters>) -> Self {
        let State { expiry, len, entries, search, profile, .. } = state;
        let Some(expiry) = expiry else { unreachable!("an expiring filter has a clock") };
        let layout = table.layout();
        Self { table, layout, expiry, len, entries, search, capacity: profile.capacity }
    }

    /// Gives the entry of a key a stamp of this age, unless it has a younger one; where `KEEPS`,
    /// unless it is live. True if the key had no live entry.
    #[inline]
    pub(crate) fn insert<const KEEPS: bool>(
        &mut self,
        address: u64,
        age: u64,
    ) -> Result<bool, FullError> {
        let (location, is_there) = self.table.find(address);
        let entry = if is_there { self.table.longest(&location) } else { None };
        let is_new = match entry {
            Some(entry) => self.refresh::<KEEPS>(&entry, age),
            None => {
                self.add(&location, age)?;
                true
            }
        };
        let ahead = self.expiry.clock.take_unswept(AHEAD);
        self.sweep(ahead, 0);
        Ok(is_new)
    }

    /// Stamps an entry again, as [`insert`](Self::insert) says.
    fn refresh<const KEEPS: bool>(&mut self, entry: &Match, age: u64) -> bool {
        let old = self.expiry.age(self.layout, entry.slot);
        let is_live = self.expiry.clock.is_live(old);
        if is_live && (KEEPS || old <= age) {
            return false;
        }
        let stamp = self.expiry.clock.stamp_of(age);
        let slot = self.layout.slot(self.layout.fingerprint_of(entry.slot), stamp);
        self.table.replace(entry.bucket, entry.slot, slot);
        *self.expiry.count(self.layout.value_of(entry.slot)) -= 1;
        *self.expiry.count(stamp) += 1;
        *self.len += u64::from(!is_live);
        !is_live
    }

    /// Adds an entry for a key that has none.
    fn add(&mut self, at: &Location, age: u64) -> Result<(), FullError> {
        self.drop_dead(at.home, 0);
        self.drop_dead(at.alternate, 0);
        let stamp = self.expiry.clock.stamp_of(age);
        if self.table.put(at, stamp, u64::MAX) != Put::Done {
            self.make_room(at, stamp)?;
        }
        *self.entries += 1;
        *self.len += 1;
        *self.expiry.count(stamp) += 1;
        Ok(())
    }

    /// Gives an entry whose buckets are full of live ones the slot of a dead one, an empty slot, or
    /// that of an entry which it evicts. A failure changes nothing.
    #[inline(never)]
    fn make_room(&mut self, at: &Location, stamp: u64) -> Result<(), FullError> {
        let (clock, layout) = (self.expiry.clock, self.layout);
        let room_for = self.capacity.saturating_add(self.capacity / clock.steps);
        let is_over = clock.evicts && *self.len >= room_for;
        let budget = if is_over { EVICTION_BUDGET } else { BUDGET };
        let expired = Expired { clock, layout, budget };
        let mut path = self.table.path_to_dead(self.search, at, expired);
        if path.is_none() && clock.evicts {
            let age = |slot| clock.age(layout.value_of(slot));
            path = self.search.path_to_greatest(EVICTION_BUDGET, age);
        }
        let full = FullError::Window { live: *self.len, capacity: self.capacity };
        let path = path.ok_or(full)?;
        self.prepare(&path);
        self.table.carry_out(&path, at, stamp);
        self.search.recycle(path);
        Ok(())
    }

    /// Takes out what is at the end of a path: dead entries, or the one that is evicted.
    fn prepare(&mut self, path: &EvictionPath) {
        match (path.end, path.moves.last()) {
            (End::Empty(room), _) => self.drop_dead(room, 0),
            (End::Spare, Some(&(_, slot))) => {
                let stamp = self.layout.value_of(slot);
                let age = self.expiry.clock.age(stamp);
                self.expiry.clock.note_evicted(age);
                *self.expiry.count(stamp) -= 1;
                *self.len -= 1;
                *self.entries -= 1;
            }
            (End::Spare, None) => {}
        }
    }

    /// Takes out the live entry of a key. False if it has none.
    pub(crate) fn remove(&mut self, address: u64) -> bool {
        let (location, is_there) = self.table.find(address);
        let entry = if is_there { self.table.longest(&location) } else { None };
        let is_live =
            |entry: &Match| self.expiry.clock.is_live(self.expiry.age(self.layout, entry.slot));
        let Some(entry) = entry.filter(is_live) else { return false };
        self.table.replace(entry.bucket, entry.slot, 0);
        *self.expiry.count(self.layout.value_of(entry.slot)) -= 1;
        *self.entries -= 1;
        *self.len -= 1;
        true
    }

    /// Goes on to the step of tick `now`, unless it is earlier. Returns how many entries expired.
    pub(crate) fn advance(&mut self, now: u64) -> u64 {
        let (clock, before) = (self.expiry.clock, *self.len);
        match clock.steps_until(now) {
            0 => {}
            steps if steps > clock.steps => {
                self.clear();
                self.expiry.clock.forward(steps);
            }
            steps if steps < clock.parts() => (0..steps).for_each(|_| self.step()),
            steps => {
                // One pass instead of several, before old stamps look new.
                self.sweep(0..self.table.geometry().buckets(), steps);
                *self.len = *self.entries;
                self.expiry.clock.forward(steps);
            }
        }
        before - *self.len
    }

    /// Sets the tick at which the present step began.
    pub(crate) fn rebase(&mut self, now: u64) {
        self.expiry.clock.began = now;
    }

    /// Sweeps the rest of the part, and goes one step on.
    fn step(&mut self) {
        let rest = self.expiry.clock.take_unswept(u64::MAX);
        self.sweep(rest, 0);
        let clock = self.expiry.clock;
        *self.len -= *self.expiry.count(clock.stamp_of(clock.steps));
        self.expiry.clock.forward(1);
    }

    fn clear(&mut self) {
        if *self.entries > 0 {
            self.table.clear();
        }
        self.expiry.clear();
        (*self.len, *self.entries) = (0, 0);
    }

    /// Takes out the entries of these buckets that will be dead so many steps later.
    fn sweep(&mut self, buckets: Range<u64>, later: u64) {
        if *self.entries > *self.len || later > 0 {
            buckets.for_each(|bucket| self.drop_dead(bucket, later));
        }
    }

    /// Takes out the entries of a bucket that will be dead so many steps later.
    #[inline]
    fn drop_dead(&mut self, bucket: u64, later: u64) {
        if *self.entries == *self.len && later == 0 {
            return;
        }
        let mut slots = self.table.read(bucket);
        let before = slots;
        for slot in &mut slots.0 {
            let is_live = self.expiry.clock.is_live(self.expiry.age(self.layout, *slot) + later);
            if *slot != 0 && !is_live {
                *self.expiry.count(self.layout.value_of(*slot)) -= 1;
                *self.entries -= 1;
                *slot = 0;
            }
        }
        if slots != before {
            self.table.write_bucket(bucket, slots);
        }
    }
}
