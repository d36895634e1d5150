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
//! `room.rs` makes room for an entry whose buckets are full.

use core::convert::Infallible;
use core::{iter, mem};

use super::stamps::Counts;
use super::{Body, Expiry};
use crate::error::FullError;
use crate::image::shape::{Profile, Shape};
use crate::image::{Clock, Kind};
use crate::mem::buffer::Buffer;
use crate::table::blocks::{Hashes, each_candidate};
use crate::table::{Entry, Place, Put, at_place};

/// An insert of a live key gives it the time of the insert.
pub(crate) const RENEWS: bool = false;
/// A live key keeps its time.
pub(crate) const KEEPS: bool = true;

impl<B: AsRef<[u8]>> Body<B> {
    /// The clock.
    ///
    /// # Panics
    /// If it is not the body of an expiring filter.
    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        self.state.clock()
    }

    /// The age of the youngest live entry of the key with this address.
    #[inline]
    pub(crate) fn age(&self, address: u64) -> Option<u64> {
        at_place!(self.table, P => {
            let (at, is_there) = P::look_up(&self.table, address);
            if !is_there {
                return None;
            }
            let ages = self.table.matches(&at).map(|it| self.age_of(it.bucket, it.slot));
            ages.min().filter(|&age| self.clock().is_live(age))
        })
    }

    /// Calls `found` with the number and the age of each key that has a live entry.
    pub(crate) fn each_age(&self, hashes: impl Hashes, mut found: impl FnMut(usize, u64)) {
        let clock = self.clock();
        each_candidate(&self.table, hashes, |key, buckets, mut slots| {
            let slots = iter::from_fn(|| slots.next_of_pair());
            let age = slots.map(|(which, slot)| self.age_of(buckets[which], slot)).min();
            if let Some(age) = age.filter(|&age| clock.is_live(age)) {
                found(key, age);
            }
        });
    }

    /// The age of the entry in a slot of a bucket.
    #[inline]
    pub(super) fn age_of(&self, bucket: u64, slot: u64) -> u64 {
        let stamp = self.table.layout().value_of(slot);
        let expiry = self.state.expiry_ref();
        expiry.clock.age(expiry.sweeps.swept(bucket), stamp)
    }

    /// Calls `each` with the stamp of every live entry.
    pub(crate) fn each_live(&self, mut each: impl FnMut(u64)) {
        let layout = self.table.layout();
        let is_live = |it: &Entry| self.clock().is_live(self.age_of(it.bucket, it.slot));
        let entries = self.table.entries();
        entries.filter(is_live).for_each(|it| each(layout.value_of(it.slot)));
    }

    /// The number of live entries, counted in a pass.
    pub(crate) fn live_entries(&self) -> u64 {
        let mut live = 0;
        self.each_live(|_| live += 1);
        live
    }
}

impl Body<Buffer> {
    /// The body with its stamps counted, if it has any. `None` without memory for the counts.
    pub(crate) fn with_counted_stamps(mut self) -> Option<Self> {
        if let Some(expiry) = self.state.time() {
            self.count_stamps(Counts::zeros(&expiry.clock)?);
        }
        Some(self)
    }

    /// Counts the stamps of live entries in `counts`, which are 0.
    fn count_stamps(&mut self, mut counts: Counts) {
        self.each_live(|stamp| *counts.of(stamp) += 1);
        self.state.time_mut().into_iter().for_each(|expiry| expiry.counts = mem::take(&mut counts));
    }
}

/// Changes of an expiring filter. They panic if it is the body of something else.
impl Body<Buffer> {
    /// The body of an empty filter, swept at the present step; `None` if there is no memory for it.
    pub(crate) fn expiring(shape: Shape, profile: Profile, clock: Clock) -> Option<Self> {
        let mut body = Self::empty(Kind::Expiring, shape, profile)?;
        body.state.expiry = Some(Expiry::empty(clock, body.table.buckets())?);
        Some(body)
    }

    /// The same as [`insert_stamped`](Self::insert_stamped) at age 0 for many keys, in order. Sets
    /// `added` for those that were new.
    pub(crate) fn insert_each_stamped<const KEEPS: bool>(
        &mut self,
        hashes: impl Hashes,
        added: &mut [bool],
    ) -> Result<(), FullError> {
        self.one_by_one(hashes, 0, |body, key, address| {
            added[key] = body.insert_stamped::<KEEPS>(address, 0)?;
            Ok(())
        })
    }

    /// [`remove_stamped`](Self::remove_stamped) for many keys. Writes to `removed` whether each had
    /// a live entry.
    pub(crate) fn remove_each_stamped(&mut self, hashes: impl Hashes, removed: &mut [bool]) {
        let Ok(()) = self.one_by_one(hashes, 0, |body, key, address| {
            removed[key] = body.remove_stamped(address);
            Ok::<(), Infallible>(())
        });
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
        self.sweep_all();
        self.shrink_to_fit();
        let (buckets, expiry) = (self.table.buckets(), self.state.expiry());
        expiry.sweeps.note_all(buckets, expiry.clock.step);
        // Growth may double entries without bits of their own, so they are counted again.
        let counts = mem::take(&mut expiry.counts).cleared();
        self.count_stamps(counts);
        self.state.len = self.state.entries;
    }
}

impl Body<Buffer> {
    /// Gives the entry of a key a stamp of this age, unless it has a younger one; where `KEEPS`,
    /// unless it is live. True if the key had no live entry.
    #[inline]
    pub(crate) fn insert_stamped<const KEEPS: bool>(
        &mut self,
        address: u64,
        age: u64,
    ) -> Result<bool, FullError> {
        at_place!(self.table, P => {
            let (at, is_there) = P::look_up(&self.table, address);
            self.insert_stamped_at::<KEEPS, P>(at, is_there, age)
        })
    }

    #[inline(always)]
    fn insert_stamped_at<const KEEPS: bool, P: Place>(
        &mut self,
        at: P,
        is_there: bool,
        age: u64,
    ) -> Result<bool, FullError> {
        // An entry that makes steps of growth due gets memory for them before any byte is changed.
        if P::GROWS
            && self.table.is_overfull(self.state.len + 1)
            && !(is_there && self.has_live(&at))
        {
            self.reserve_steps()?;
        }
        match if is_there { self.longest(&at) } else { None } {
            Some(longest) => Ok(self.renew::<KEEPS, P>(&at, &longest, age)),
            None => self.add_stamped(at, age).map(|()| true),
        }
    }

    /// The longest entry of a key. A dead one that a sweep of its group takes out is none.
    fn longest(&mut self, at: &impl Place) -> Option<Entry> {
        loop {
            let longest = self.table.longest(at)?;
            if self.is_live(&longest) || !self.prepare_group(longest.bucket) {
                return Some(longest);
            }
        }
    }

    /// Whether a key has a live entry.
    fn has_live(&self, at: &impl Place) -> bool {
        self.table.matches(at).any(|entry| self.is_live(&entry))
    }

    /// Stamps the longest entry of a key again, as [`insert_stamped`](Self::insert_stamped) says.
    fn renew<const KEEPS: bool, P: Place>(&mut self, at: &P, longest: &Entry, age: u64) -> bool {
        let was_live = self.is_live(longest);
        // Only in a table that grows does another entry match.
        let is_in = was_live || P::GROWS && self.has_live(at);
        if is_in && KEEPS || self.age_of(longest.bucket, longest.slot) <= age {
            return !is_in;
        }
        self.prepare_group(longest.bucket);
        self.restamp(longest, age);
        if !was_live {
            self.state.len += 1;
        }
        !is_in
    }

    /// Gives an entry a stamp of this age.
    fn restamp(&mut self, entry: &Entry, age: u64) {
        let (stamp, layout) = (self.state.clock().stamp_of(age), self.layout());
        if self.is_live(entry) {
            *self.state.expiry().count(layout.value_of(entry.slot)) -= 1;
        }
        let slot = layout.slot(layout.fingerprint_of(entry.slot), stamp);
        self.table.replace(entry.bucket, entry.slot, slot);
        *self.state.expiry().count(stamp) += 1;
    }

    /// Adds an entry for a key that has none.
    fn add_stamped<P: Place>(&mut self, at: P, age: u64) -> Result<(), FullError> {
        let stamp = self.state.clock().stamp_of(age);
        if !self.put(&at, stamp) {
            self.find_slot(at.general(self.table.addresses()), stamp)?;
        }
        self.state.len += 1;
        *self.state.expiry().count(stamp) += 1;
        if P::GROWS {
            self.keep_load(0);
        }
        Ok(())
    }

    /// Takes out the live entries of a key: one, except in a table that grows. False if there is
    /// none.
    pub(crate) fn remove_stamped(&mut self, address: u64) -> bool {
        at_place!(self.table, P => {
            let (at, is_there) = P::look_up(&self.table, address);
            is_there && self.remove_stamped_at(&at)
        })
    }

    #[inline(always)]
    fn remove_stamped_at<P: Place>(&mut self, at: &P) -> bool {
        let mut removed = false;
        while P::GROWS || !removed {
            let live = self.table.matches(at).find(|it| self.is_live(it));
            let Some(entry) = live else { break };
            self.take_out(&entry);
            removed = true;
        }
        removed
    }
}

impl Body<Buffer> {
    /// Gives an entry an empty slot, or that of a dead one. False if there is neither.
    #[inline]
    pub(super) fn put_stamped(&mut self, at: &impl Place, stamp: u64) -> bool {
        let (home, other) = at.pair();
        if self.is_due(home) || self.is_due(other) {
            // Only if the entry gets a slot, so that a refusal changes nothing.
            if !self.has_room(home) && !self.has_room(other) {
                return false;
            }
            self.prepare_group(home);
            self.prepare_group(other);
        }
        at.put(&mut self.table, stamp, u64::MAX) == Put::Done
            || (self.drop_dead(home) | self.drop_dead(other))
                && at.put(&mut self.table, stamp, u64::MAX) == Put::Done
    }

    /// Takes out a live entry.
    pub(super) fn take_out(&mut self, entry: &Entry) {
        self.table.overwrite(entry, 0);
        let stamp = self.layout().value_of(entry.slot);
        *self.state.expiry().count(stamp) -= 1;
        self.state.entries -= 1;
        self.state.len -= 1;
    }
}
