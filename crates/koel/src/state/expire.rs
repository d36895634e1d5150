//! Entries that expire: a stamp beside each fingerprint says at which step a key came.
//!
//! * **One entry.** Keys of one fingerprint and bucket pair share an entry. An insert gives it a
//!   younger stamp in place; a stamp never gets older.
//! * **Dead entries** are older than the window. Lookups ignore them, an insert takes their slots,
//!   and they never move. Before an entry is written to a group of buckets, dead ones that are too
//!   old are swept out of it (sweep.rs); `image/clock.rs` says why.
//! * **Counts.** There is a count of live entries for each stamp. So `len`, the number of all of
//!   them, is exact without a pass, and where nothing is dead nothing is swept.
//! * **In a table that grows**, entries of different lengths may match one key. A lookup takes the
//!   youngest of them, and an insert renews the longest, which fewest other keys share.
//!
//! `expire_room.rs` makes room for an entry whose buckets are full.

use core::convert::Infallible;
use core::{iter, mem};

use super::{Body, Expiry, State, Writer, changing, on_table};
use crate::error::FullError;
use crate::image::shape::{Profile, Shape};
use crate::image::{Clock, Kind};
use crate::mem::buffer::Buffer;
use crate::packing::Layout;
use crate::state::counters::{ReadCounters, WriteCounters};
use crate::state::full::Crowded;
use crate::state::sweeps::Sweeps;
use crate::table::blocks::{Hashes, each_candidate};
use crate::table::search::Search;
use crate::table::{Addressing, Cuckoo, CuckooMut, LocationOf, Match, Put, grows};

/// An insert of a live key gives it the time of the insert.
pub(crate) const RENEWS: bool = false;
/// A live key keeps its time.
pub(crate) const KEEPS: bool = true;

impl<B: AsRef<[u8]>, C: ReadCounters> Body<B, C> {
    /// The clock.
    ///
    /// # Panics
    /// If it is not the body of an expiring filter.
    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        let Some(expiry) = &self.state.expiry else {
            unreachable!("an expiring filter has a clock")
        };
        &expiry.clock
    }

    /// The age of the youngest live entry of the key with this address.
    #[inline]
    pub(crate) fn age(&self, address: u64) -> Option<u64> {
        on_table!(&self.buckets, table => {
            let (location, is_there) = table.look_up(address);
            if !is_there {
                return None;
            }
            let ages = table.matches(&location).map(|it| self.age_of(it.bucket, it.slot));
            ages.min().filter(|&age| self.clock().is_live(age))
        })
    }

    /// Calls `found` with the number and the age of each key that has a live entry.
    pub(crate) fn each_age(&self, hashes: impl Hashes, mut found: impl FnMut(usize, u64)) {
        let clock = self.clock();
        on_table!(&self.buckets, table => each_candidate(table, hashes, |key, buckets, slots| {
            let mut slots = slots;
            let slots = iter::from_fn(|| slots.next_of_pair());
            let age = slots.map(|(which, slot)| self.age_of(buckets[which], slot)).min();
            if let Some(age) = age.filter(|&age| clock.is_live(age)) {
                found(key, age);
            }
        }));
    }

    /// The age of the entry in a slot of a bucket.
    #[inline]
    fn age_of(&self, bucket: u64, slot: u64) -> u64 {
        let stamp = self.buckets.layout().value_of(slot);
        self.clock().age(self.state.counters.swept(bucket), stamp)
    }

    /// Calls `each` with the stamp of every live entry.
    pub(crate) fn each_live(&self, mut each: impl FnMut(u64)) {
        let layout = self.buckets.layout();
        let is_live = |it: &Match| self.clock().is_live(self.age_of(it.bucket, it.slot));
        on_table!(&self.buckets, table => {
            table.entries().filter(is_live).for_each(|it| each(layout.value_of(it.slot)));
        });
    }

    /// The number of live entries, counted in a pass.
    pub(crate) fn live_entries(&self) -> u64 {
        let mut live = 0;
        self.each_live(|_| live += 1);
        live
    }
}

impl<C: WriteCounters> Body<Buffer, C> {
    /// The body with its stamps counted, if it has any. `None` without memory for the counts.
    pub(crate) fn with_counted_stamps(mut self) -> Option<Self> {
        if let Some(expiry) = &self.state.expiry {
            let mut counted = Expiry::counting(expiry.clock)?;
            self.each_live(|stamp| *counted.count(stamp) += 1);
            self.state.expiry = Some(counted);
        }
        Some(self)
    }
}

/// Changes of an expiring filter. They panic if it is the body of something else.
impl Body<Buffer, Sweeps> {
    /// The body of an empty filter, swept at the present step; `None` if there is no memory for it.
    pub(crate) fn expiring(shape: Shape, profile: Profile, clock: Clock) -> Option<Self> {
        let mut body = Self::empty(Kind::Expiring, shape, profile)?;
        body.state.counters = Sweeps::new(body.buckets.count(), clock.step)?;
        body.state.expiry = Some(Expiry::counting(clock)?);
        Some(body)
    }

    /// [`Stamped::insert`].
    #[inline]
    pub(crate) fn insert_stamped<const KEEPS: bool>(
        &mut self,
        address: u64,
        age: u64,
    ) -> Result<bool, FullError> {
        changing!(self, writer => Stamped::of(writer).insert::<KEEPS>(address, age))
    }

    /// The same at age 0 for many keys, in order. Sets `added` for those that were new.
    pub(crate) fn insert_each_stamped<const KEEPS: bool>(
        &mut self,
        hashes: impl Hashes,
        added: &mut [bool],
    ) -> Result<(), FullError> {
        changing!(self, writer => writer.one_by_one(hashes, 0, |writer, key, address| {
            added[key] = Stamped::of(writer).insert::<KEEPS>(address, 0)?;
            Ok(())
        }))
    }

    /// [`Stamped::remove`].
    #[inline]
    pub(crate) fn remove_stamped(&mut self, address: u64) -> bool {
        changing!(self, writer => Stamped::of(writer).remove(address))
    }

    /// The same for many keys. Writes to `removed` whether each had a live entry.
    pub(crate) fn remove_each_stamped(&mut self, hashes: impl Hashes, removed: &mut [bool]) {
        let Ok(()) = changing!(self, writer => writer.one_by_one(hashes, 0, |writer, key, address| {
            removed[key] = Stamped::of(writer).remove(address);
            Ok::<(), Infallible>(())
        }));
    }

    /// Goes on to the step of tick `now`, unless it is earlier. Returns how many entries expired.
    pub(crate) fn advance(&mut self, now: u64) -> u64 {
        changing!(self, writer => Stamped::of(writer).advance(now))
    }

    /// Sets the tick at which the present step began.
    pub(crate) fn rebase(&mut self, now: u64) {
        if let Some(expiry) = &mut self.state.expiry {
            expiry.clock.began = now;
        }
    }

    /// Moves the live entries to the smallest table that holds them.
    pub(crate) fn shrink_stamped(&mut self) {
        // All dead entries, in one pass.
        changing!(self, writer => Stamped::of(writer).sweep_all());
        let mut sweeps = mem::take(&mut self.state.counters);
        self.shrink_to_fit();
        sweeps.note_all(self.buckets.count(), self.clock().step);
        self.state.counters = sweeps;
        // Growth may double entries without bits of their own, so they are counted again.
        let Some(mut expiry) = self.state.expiry.clone() else { return };
        expiry.clear();
        self.each_live(|stamp| *expiry.count(stamp) += 1);
        self.state.expiry = Some(expiry);
        self.state.len = self.state.entries;
    }
}

/// A table of stamped entries, for changes.
pub(crate) struct Stamped<'a, T> {
    pub(super) table: &'a mut T,
    pub(super) layout: Layout,
    pub(super) expiry: &'a mut Expiry,
    pub(super) sweeps: &'a mut Sweeps,
    /// Live entries.
    pub(super) len: &'a mut u64,
    /// Live and dead ones.
    pub(super) entries: &'a mut u64,
    pub(super) search: &'a mut Search,
    pub(super) capacity: u64,
}

impl<'a, T: CuckooMut> Stamped<'a, T> {
    /// # Panics
    /// If it is not the table of an expiring filter.
    #[inline]
    fn of(writer: Writer<'a, T, Sweeps>) -> Self {
        let State { expiry, counters: sweeps, len, entries, search, profile, .. } = writer.state;
        let Some(expiry) = expiry else { unreachable!("an expiring filter has a clock") };
        let layout = writer.table.table().layout();
        let (table, capacity) = (writer.table, profile.capacity);
        Self { table, layout, expiry, sweeps, len, entries, search, capacity }
    }

    /// Gives the entry of a key a stamp of this age, unless it has a younger one; where `KEEPS`,
    /// unless it is live. True if the key had no live entry.
    #[inline]
    pub(crate) fn insert<const KEEPS: bool>(
        &mut self,
        address: u64,
        age: u64,
    ) -> Result<bool, FullError> {
        let (location, is_there) = self.table.look_up(address);
        // An entry that makes steps of growth due gets memory for them before any byte is changed.
        if grows::<T>()
            && self.table.table().is_overfull(*self.len + 1)
            && !(is_there && self.has_live(&location))
        {
            self.reserve_steps()?;
        }
        match if is_there { self.longest(&location) } else { None } {
            Some(longest) => Ok(self.renew::<KEEPS>(&location, &longest, age)),
            None => self.add(location, age).map(|()| true),
        }
    }

    /// The longest entry of a key. A dead one that a sweep of its group takes out is none.
    fn longest(&mut self, at: &LocationOf<T>) -> Option<Match> {
        loop {
            let longest = self.table.table().longest(at)?;
            if self.is_live(&longest) || !self.prepare_group(longest.bucket) {
                return Some(longest);
            }
        }
    }

    /// Whether a key has a live entry.
    fn has_live(&self, at: &LocationOf<T>) -> bool {
        self.table.table().matches(at).any(|entry| self.is_live(&entry))
    }

    /// Stamps the longest entry of a key again, as [`insert`](Self::insert) says.
    fn renew<const KEEPS: bool>(&mut self, at: &LocationOf<T>, longest: &Match, age: u64) -> bool {
        let was_live = self.is_live(longest);
        // Only in a table that grows does another entry match.
        let is_in = was_live || grows::<T>() && self.has_live(at);
        if is_in && KEEPS || self.age(longest) <= age {
            return !is_in;
        }
        self.prepare_group(longest.bucket);
        self.restamp(longest, age);
        if !was_live {
            *self.len += 1;
        }
        !is_in
    }

    /// Gives an entry a stamp of this age.
    fn restamp(&mut self, entry: &Match, age: u64) {
        let stamp = self.expiry.clock.stamp_of(age);
        if self.is_live(entry) {
            *self.expiry.count(self.layout.value_of(entry.slot)) -= 1;
        }
        let slot = self.layout.slot(self.layout.fingerprint_of(entry.slot), stamp);
        self.table.table_mut().replace(entry.bucket, entry.slot, slot);
        *self.expiry.count(stamp) += 1;
    }

    /// Adds an entry for a key that has none.
    fn add(&mut self, at: LocationOf<T>, age: u64) -> Result<(), FullError> {
        let stamp = self.expiry.clock.stamp_of(age);
        if !self.put_stamped(&at, stamp) {
            self.find_slot(at, stamp)?;
        }
        *self.entries += 1;
        *self.len += 1;
        *self.expiry.count(stamp) += 1;
        if grows::<T>() {
            self.keep_load();
        }
        Ok(())
    }

    /// Gives an entry an empty slot, or that of a dead one. False if there is neither. The caller
    /// counts it.
    #[inline]
    pub(super) fn put_stamped(&mut self, at: &LocationOf<T>, stamp: u64) -> bool {
        let (home, other) = T::Addresses::pair(at);
        if self.is_due(home) || self.is_due(other) {
            // Only if the entry gets a slot, so that a refusal changes nothing.
            if !self.has_room(home) && !self.has_room(other) {
                return false;
            }
            self.prepare_group(home);
            self.prepare_group(other);
        }
        self.table.put(at, stamp, u64::MAX) == Put::Done
            || (self.drop_dead(home) | self.drop_dead(other))
                && self.table.put(at, stamp, u64::MAX) == Put::Done
    }

    /// Takes out the live entries of a key: one, except in a table that grows. False if there is
    /// none.
    pub(crate) fn remove(&mut self, address: u64) -> bool {
        let (location, is_there) = self.table.look_up(address);
        let mut removed = false;
        while is_there && (grows::<T>() || !removed) {
            let live = self.table.table().matches(&location).find(|it| self.is_live(it));
            let Some(entry) = live else { break };
            self.take_out(&entry);
            removed = true;
        }
        removed
    }

    /// Takes out a live entry.
    pub(super) fn take_out(&mut self, entry: &Match) {
        self.table.write(entry, 0);
        *self.expiry.count(self.layout.value_of(entry.slot)) -= 1;
        *self.entries -= 1;
        *self.len -= 1;
    }
}
