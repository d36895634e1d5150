//! Room for an entry whose buckets are full: what the search asks of a table, and how its result is
//! carried out.
//!
//! Entries that are *pinned* keep all their bits when they move, because a counter goes by their
//! name. Only a growing table has entries that could lose bits.

use super::{EntryTest, GrowingLocation, Place, Table};
use crate::address::geometry::Location;
use crate::mem::buffer::Buffer;
use crate::packing::{AnyPacking, Packing, SLOTS, is_near, with_packing};
use crate::table::search::{BUDGET, End, EvictionPath, Neighbourhood, Neighbours, Search, Spares};

/// Which of four buckets, by their numbers and slots, have a slot that is empty or has a dead
/// entry: bit i for bucket i. For four at once, since it costs a call.
pub(crate) type DeadTest<'a> = dyn Fn(&[u64; SLOTS], &[[u64; SLOTS]; SLOTS]) -> u32 + 'a;

impl Table<Buffer> {
    /// The shortest path to room for an entry whose buckets are full. Entries that are `pinned`
    /// keep all their bits along it.
    pub(crate) fn path_to_room(
        &self,
        search: &mut Search,
        location: &GrowingLocation,
        spares: Spares,
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath> {
        // Few entries are pinned, so those on the path are tested instead of all that the search
        // comes to.
        let around = self.around(None);
        let path = around.path(search, location, spares)?;
        match pinned {
            Some(test) if self.grows() && self.unpins(&path, test) => {
                search.recycle(path);
                Around { pinned, ..around }.path(search, location, spares)
            }
            _ => Some(path),
        }
    }

    /// [`path_to_room`](Self::path_to_room) in a table where the slots of `dead` entries are room,
    /// if there is one among so many slots.
    pub(crate) fn path_to_dead(
        &self,
        search: &mut Search,
        location: &GrowingLocation,
        dead: &DeadTest<'_>,
        budget: usize,
    ) -> Option<EvictionPath> {
        let around = self.around(None);
        let buckets = Buckets { dead: Some(dead), ..around.buckets };
        Around { buckets, budget, ..around }.path(search, location, Spares::Keep)
    }

    fn around<'a>(&'a self, pinned: Option<&'a EntryTest<'a>>) -> Around<'a> {
        let (packing, bytes, bucket_bits) = (&self.packing, self.bytes(), self.bucket_bits);
        let buckets = Buckets { packing, bytes, bucket_bits, dead: None };
        Around { table: self, buckets, pinned, budget: BUDGET }
    }

    /// The first bucket of the segment of a bucket, in a table of one size.
    fn segment_start(&self, bucket: u64) -> u64 {
        if self.grows() { 0 } else { bucket - bucket % u64::from(self.base().segment_buckets()) }
    }

    /// Whether a path makes a pinned entry lose a bit.
    fn unpins(&self, path: &EvictionPath, pinned: &EntryTest<'_>) -> bool {
        let room = if let End::Empty(bucket) = path.end { Some(bucket) } else { None };
        let targets = path.moves.iter().skip(1).map(|&(bucket, _)| bucket).chain(room);
        path.moves
            .iter()
            .zip(targets)
            .any(|(&(bucket, slot), target)| self.must_stay(bucket, slot, target, pinned))
    }

    /// Whether an entry may not move to bucket `target`: it is pinned, and would lose a bit there.
    fn must_stay(&self, bucket: u64, slot: u64, target: u64, pinned: &EntryTest<'_>) -> bool {
        self.addresses.loses_bits(bucket, self.layout.fingerprint_of(slot), target)
            && pinned(slot, self.name(&self.entry(bucket, slot)))
    }

    /// The number of slots in the full buckets of a location, if no entry in them has another
    /// bucket to move to.
    pub(crate) fn stuck_slots(
        &self,
        location: &GrowingLocation,
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<u64> {
        let (home, other) = location.pair();
        let base = self.segment_start(home);
        let is_stuck = |&bucket: &u64| {
            let others = self.others(base, bucket, pinned);
            others.iter().all(|&target| target == home || target == other)
        };
        let buckets = if home == other { 1 } else { 2 };
        [home, other].iter().all(is_stuck).then_some(buckets * SLOTS as u64)
    }

    /// The buckets that the entries of a full bucket could move to, in the segment that starts at
    /// `base`.
    fn others(&self, base: u64, bucket: u64, pinned: Option<&EntryTest<'_>>) -> [u64; SLOTS] {
        self.around(pinned).others(base, bucket, self.read(bucket).0)
    }

    /// If both buckets of a location are full, prefetches the buckets to which their entries could
    /// move: a search begins there.
    pub(crate) fn prefetch_frontier(&self, location: &Location) {
        let (home, other) = location.pair();
        let has_room = with_packing!(&self.packing, packing => {
            self.has_room_in(packing, home) | self.has_room_in(packing, other)
        });
        if !has_room {
            for bucket in [home, other] {
                let others = self.others(location.base, bucket, None);
                others.into_iter().for_each(|other| self.prefetch(other));
            }
        }
    }

    /// Makes the moves of a path, the last one first, so that no entry is ever in no bucket. Adds
    /// the entry of `location` where the first one was.
    pub(crate) fn carry_out(
        &mut self,
        path: &EvictionPath,
        location: &GrowingLocation,
        value: u64,
    ) {
        let mut moves = path.moves.iter().rev().copied();
        let free = if let End::Empty(room) = path.end { Some((room, 0)) } else { moves.next() };
        let Some(mut free) = free else { return };
        for (bucket, slot) in moves {
            let (moved, added) = self.addresses.moved_slot(self.layout, bucket, slot, free.0);
            self.replace(free.0, free.1, moved);
            self.match_weight += added;
            free = (bucket, slot);
        }
        let which = usize::from(free.0 != location.pair().0);
        let fingerprint = location.fingerprints(&self.addresses)[which];
        let added = self.layout.slot(fingerprint, value);
        self.replace(free.0, free.1, added);
        let length = self.addresses.stored_length(location, which);
        self.match_weight += self.addresses.weight(length);
    }
}

/// A table around the buckets of a search, and the entries that are pinned.
struct Around<'a> {
    table: &'a Table<Buffer>,
    buckets: Buckets<'a>,
    pinned: Option<&'a EntryTest<'a>>,
    budget: usize,
}

impl Around<'_> {
    fn path(
        &self,
        search: &mut Search,
        location: &GrowingLocation,
        spares: Spares,
    ) -> Option<EvictionPath> {
        // Equal entries of a growing table may differ in length, so none is known to be spare.
        let spares = if self.table.grows() { Spares::Keep } else { spares };
        let (home, other) = location.pair();
        let (base, pair) = (self.table.segment_start(home), [home, other]);
        search.path(self, base, pair, spares, |search| {
            with_packing!(&self.table.packing, packing => {
                self.one_move(packing, search, base, pair)
            })
        })
    }

    #[inline(never)]
    fn one_move(
        &self,
        packing: &impl Packing,
        search: &mut Search,
        base: u64,
        pair: [u64; 2],
    ) -> Option<EvictionPath> {
        let neighbours = |bucket, found: &mut _| self.neighbours_in(packing, base, bucket, found);
        search.one_move(pair, neighbours, |buckets| self.buckets.rooms_in(packing, buckets))
    }

    #[inline(always)]
    fn neighbours_in(
        &self,
        packing: &impl Packing,
        base: u64,
        bucket: u64,
        found: &mut Neighbours,
    ) {
        found.slots = self.buckets.slots_in(packing, bucket);
        found.others = self.others(base, bucket, found.slots);
    }

    /// The other buckets of these slots of a full bucket.
    #[inline(always)]
    fn others(&self, base: u64, bucket: u64, slots: [u64; SLOTS]) -> [u64; SLOTS] {
        let Self { table, pinned, .. } = *self;
        let Table { addresses, layout, .. } = table;
        if !table.grows() {
            return Location::other_buckets(addresses, *layout, base, bucket, slots);
        }
        let mut others = GrowingLocation::other_buckets(addresses, *layout, base, bucket, slots);
        if let Some(pinned) = pinned {
            for (other, slot) in others.iter_mut().zip(slots) {
                let stays = table.must_stay(bucket, slot, *other, pinned);
                *other = if stays { bucket } else { *other };
            }
        }
        others
    }
}

/// What a search asks of buckets whatever their addresses, so that it is compiled once. Some
/// entries may be dead.
#[derive(Clone, Copy)]
struct Buckets<'a> {
    packing: &'a AnyPacking,
    bytes: &'a [u8],
    bucket_bits: u64,
    dead: Option<&'a DeadTest<'a>>,
}

impl Buckets<'_> {
    #[inline]
    fn slots_in(&self, packing: &impl Packing, bucket: u64) -> [u64; SLOTS] {
        packing.slots(self.bytes, bucket * self.bucket_bits)
    }

    #[inline(always)]
    fn rooms_in(&self, packing: &impl Packing, buckets: &[u64; SLOTS]) -> u32 {
        let Some(rooms) = self.dead else {
            return bits(buckets, |it| packing.has_room(self.bytes, it * self.bucket_bits));
        };
        // Not a map: that would be a call, and go through the stack once more.
        let mut slots = [[0; SLOTS]; SLOTS];
        for (slots, &bucket) in slots.iter_mut().zip(buckets) {
            *slots = self.slots_in(packing, bucket);
        }
        rooms(buckets, &slots)
    }

    fn rooms(&self, buckets: &[u64; SLOTS]) -> u32 {
        with_packing!(self.packing, packing => self.rooms_in(packing, buckets))
    }

    fn holds(&self, bucket: u64, slot: u64) -> bool {
        with_packing!(self.packing, packing => self.slots_in(packing, bucket).contains(&slot))
    }
}

/// Bit i is set if the test holds for item i.
#[inline(always)]
pub(crate) fn bits<T>(items: &[T], test: impl Fn(&T) -> bool) -> u32 {
    items.iter().rev().fold(0, |bits, item| 2 * bits + u32::from(test(item)))
}

impl Neighbourhood for Around<'_> {
    fn expand(&self, base: u64, bucket: u64, found: &mut Neighbours) {
        with_packing!(&self.table.packing, packing => {
            self.neighbours_in(packing, base, bucket, found);
        });
        found.others.iter().for_each(|&other| self.table.prefetch(other));
    }

    fn rooms(&self, buckets: &[u64; SLOTS]) -> u32 {
        self.buckets.rooms(buckets)
    }

    fn holds(&self, bucket: u64, slot: u64) -> bool {
        self.buckets.holds(bucket, slot)
    }

    fn is_near(&self) -> bool {
        is_near(self.table.bytes().len())
    }

    fn budget(&self) -> usize {
        self.budget
    }
}
