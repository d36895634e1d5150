//! Room for a stamped entry whose buckets are full of live ones: by moving entries to empty slots
//! or to those of dead ones, by growth, or in place of an old entry that is evicted.

use super::expire::Stamped;
use crate::error::FullError;
use crate::image::Clock;
use crate::packing::Layout;
use crate::state::counters::ReadCounters;
use crate::state::full::Crowded;
use crate::state::sweeps::Sweeps;
use crate::table::search::{BUDGET, End, EvictionPath};
use crate::table::{CuckooMut, Dead, LocationOf, Step, grows};

/// Entries among which the oldest is evicted: those of 40 buckets.
const EVICTION_BUDGET: usize = 160;

/// The entries older than the window, with the time at which each group was swept.
#[derive(Clone, Copy)]
struct Expired<'a> {
    clock: &'a Clock,
    sweeps: &'a Sweeps,
    layout: Layout,
    budget: usize,
}

impl Dead for Expired<'_> {
    const ANY: bool = true;

    #[inline(always)]
    fn in_bucket(&self, bucket: u64) -> impl Fn(u64) -> bool {
        let is_dead = self.clock.dead_in(self.sweeps.swept(bucket));
        move |slot| is_dead(self.layout.value_of(slot))
    }

    fn budget(self) -> usize {
        self.budget
    }
}

/// Those that their stamps alone show to be older: all of them in groups that are not due to be
/// swept. In others, a dead entry may look live, but no live one dead. `F` tells the stamps.
#[derive(Clone, Copy)]
struct ExpiredByStamp<F> {
    is_dead: F,
    layout: Layout,
    budget: usize,
}

impl<F: Fn(u64) -> bool + Copy> Dead for ExpiredByStamp<F> {
    const ANY: bool = true;

    #[inline(always)]
    fn in_bucket(&self, _: u64) -> impl Fn(u64) -> bool {
        |slot| (self.is_dead)(self.layout.value_of(slot))
    }

    fn budget(self) -> usize {
        self.budget
    }
}

/// Dead entries are room, and `add` counts the entry.
impl<T: CuckooMut> Crowded<T> for Stamped<'_, T> {
    fn search(&mut self, at: &LocationOf<T>, stamp: u64) -> bool {
        match self.path_to_room(at) {
            Some(path) => self.follow(path, at, stamp),
            None => false,
        }
    }

    fn put(&mut self, at: &LocationOf<T>, stamp: u64) -> bool {
        self.put_stamped(at, stamp)
    }

    fn may_grow(&self, _: &LocationOf<T>, steps: u32) -> bool {
        steps == 0 && self.table.table().is_overfull(*self.len + 1)
    }

    fn grow(&mut self) -> Step {
        self.split_chunk()
    }

    fn relocate(&self, at: &LocationOf<T>) -> LocationOf<T> {
        self.table.relocate(at)
    }

    /// Merges two entries in a table that grows; otherwise evicts the oldest one near, if it may.
    fn last_resort(&mut self, at: &LocationOf<T>, stamp: u64) -> Result<(), FullError> {
        if self.share(at) && self.put_stamped(at, stamp) {
            return Ok(());
        }
        while let Some(path) = self.path_to_oldest() {
            if self.follow(path, at, stamp) {
                return Ok(());
            }
        }
        Err(FullError::Window { live: *self.len, capacity: self.capacity })
    }
}

impl<T: CuckooMut> Stamped<'_, T> {
    /// Moves entries along a path and puts one with this stamp where it begins. If a group of the
    /// path was due to be swept, entries of the path may be gone: then the entry may have an empty
    /// slot instead. False if it has none.
    fn follow(&mut self, path: EvictionPath, at: &LocationOf<T>, stamp: u64) -> bool {
        let was_swept = self.prepare_groups(&path);
        if was_swept {
            self.search.recycle(path);
            return self.put_stamped(at, stamp) || self.search(at, stamp);
        }
        self.empty_end(&path);
        self.table.table_mut().carry_out(&path, at, stamp);
        self.search.recycle(path);
        true
    }

    /// The path to an empty slot, or to that of a dead entry. Stamps alone show nearly all of
    /// these. Looking at the sweeps of groups makes a search a seventh dearer.
    fn path_to_room(&mut self, at: &LocationOf<T>) -> Option<EvictionPath> {
        let (clock, layout, has_dead) =
            (&self.expiry.clock, self.layout, *self.entries > *self.len);
        let room_for = self.capacity.saturating_add(self.capacity / clock.steps);
        let is_over = !grows::<T>() && clock.evicts && *self.len >= room_for;
        let budget = if is_over { EVICTION_BUDGET } else { BUDGET };
        let (table, search) = (self.table.table(), &mut *self.search);
        let by_stamp = ExpiredByStamp { is_dead: clock.dead_in(clock.due()), layout, budget };
        table.path_to_dead(search, at, by_stamp).or_else(|| {
            let expired = Expired { clock, sweeps: self.sweeps, layout, budget };
            if has_dead { table.path_to_dead(search, at, expired) } else { None }
        })
    }

    /// After a search that found no room: the path to the oldest entry, if old ones are evicted.
    fn path_to_oldest(&mut self) -> Option<EvictionPath> {
        let (clock, layout, sweeps) = (&self.expiry.clock, self.layout, &*self.sweeps);
        let age = |bucket, slot| clock.age(sweeps.swept(bucket), layout.value_of(slot));
        if clock.evicts { self.search.path_to_greatest(EVICTION_BUDGET, age) } else { None }
    }

    /// Prepares the groups of a path. True if one was swept: then entries of the path may be gone.
    #[inline]
    fn prepare_groups(&mut self, path: &EvictionPath) -> bool {
        let room = if let End::Empty(room) = path.end { Some(room) } else { None };
        let is_due = room.is_some_and(|room| self.is_due(room))
            || path.moves.iter().any(|&(bucket, _)| self.is_due(bucket));
        if is_due {
            for bucket in path.moves.iter().map(|&(bucket, _)| bucket).chain(room) {
                self.prepare_group(bucket);
            }
        }
        is_due
    }

    /// Takes out what is at the end of a path: dead entries, or the one that is evicted.
    fn empty_end(&mut self, path: &EvictionPath) {
        match (path.end, path.moves.last()) {
            (End::Empty(room), _) => {
                self.drop_dead(room);
            }
            (End::Spare, Some(&(bucket, slot))) => {
                let age = self.age(&self.table.table().entry(bucket, slot));
                self.expiry.clock.note_evicted(age);
                *self.expiry.count(self.layout.value_of(slot)) -= 1;
                *self.len -= 1;
                *self.entries -= 1;
                self.table.table_mut().forget(bucket, slot);
            }
            (End::Spare, None) => {}
        }
    }

    /// Gets memory for the steps of growth of one more entry, before anything is changed.
    #[cold]
    #[inline(never)]
    pub(super) fn reserve_steps(&mut self) -> Result<(), FullError> {
        let buckets = self.table.reserve_steps();
        let is_there = buckets.is_some_and(|buckets| self.sweeps.reserve(buckets));
        if is_there { Ok(()) } else { Err(FullError::NoMemory) }
    }

    /// Makes a step of growth if one is due, for which memory is
    /// [reserved](Self::reserve_steps). Dead entries do not count: their slots are room.
    pub(super) fn keep_load(&mut self) {
        if self.table.table().is_overfull(*self.len) {
            self.split_chunk();
        }
    }

    /// Splits the next chunk of buckets, without their dead entries. A void entry is in both halves
    /// from then on.
    #[inline(never)]
    fn split_chunk(&mut self) -> Step {
        let (before, mut others) = (self.buckets(), 0);
        while let Some(bucket) = self.table.nth_to_split(others) {
            self.prepare_group(bucket);
            self.drop_dead(bucket);
            others += 1;
        }
        // The first new bucket may be in the group of the last old one.
        self.prepare_group(before - 1);
        if !self.sweeps.reserve(before + others) {
            return Step::NoMemory;
        }
        let (expiry, mut twins) = (&mut *self.expiry, 0);
        let step = self.table.split(&mut |stamp, _, _| {
            twins += 1;
            *expiry.count(stamp) += 1;
        });
        *self.entries += twins;
        *self.len += twins;
        self.sweeps.extend(before, self.buckets(), self.expiry.clock.step);
        step
    }

    /// Merges two entries of one core, in a bucket of `at`, into their common prefix with the
    /// younger stamp. So no key of either is forgotten. False, and nothing changed, if there are no
    /// two, or in a table of one size.
    fn share(&mut self, at: &LocationOf<T>) -> bool {
        if !grows::<T>() {
            return false;
        }
        let Some((kept, gone, length)) = self.table.table().most_alike(at) else { return false };
        let age = self.age(&kept).min(self.age(&gone));
        self.take_out(&gone);
        let stamp = self.expiry.clock.stamp_of(age);
        *self.expiry.count(self.layout.value_of(kept.slot)) -= 1;
        *self.expiry.count(stamp) += 1;
        self.table.shorten(&kept, length, stamp);
        true
    }
}
