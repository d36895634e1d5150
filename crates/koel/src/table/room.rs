//! Room for an entry whose buckets are full: what the search asks of a table, and how its result is
//! carried out.
//!
//! Entries that are *pinned* keep all their bits when they move, because a counter goes by their
//! name. Only a growing table has entries that could lose bits.

use super::{EntryTest, GrowingLocation, Place, Table};
use crate::address::geometry::Location;
use crate::mem::buffer::Buffer;
use crate::packing::{Packing, SLOTS, is_near, with_packing};
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
        let around = Around { dead: Some(dead), budget, ..self.around(None) };
        around.path(search, location, Spares::Keep)
    }

    fn around<'a>(&'a self, pinned: Option<&'a EntryTest<'a>>) -> Around<'a> {
        Around { table: self, dead: None, pinned, budget: BUDGET }
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

/// A table around the buckets of a search, and which of its entries are dead or pinned.
struct Around<'a> {
    table: &'a Table<Buffer>,
    dead: Option<&'a DeadTest<'a>>,
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
        search.one_move(pair, neighbours, |buckets| self.rooms_in(packing, buckets))
    }

    #[inline(always)]
    fn neighbours_in(
        &self,
        packing: &impl Packing,
        base: u64,
        bucket: u64,
        found: &mut Neighbours,
    ) {
        found.slots = self.slots_in(packing, bucket);
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

    #[inline]
    fn slots_in(&self, packing: &impl Packing, bucket: u64) -> [u64; SLOTS] {
        packing.slots(self.table.bytes(), bucket * self.table.bucket_bits)
    }

    #[inline(always)]
    fn rooms_in(&self, packing: &impl Packing, buckets: &[u64; SLOTS]) -> u32 {
        let Some(rooms) = self.dead else {
            let (bytes, each) = (self.table.bytes(), self.table.bucket_bits);
            return bits(buckets, |bucket| packing.has_room(bytes, bucket * each));
        };
        // Not a map: that would be a call, and go through the stack once more.
        let mut slots = [[0; SLOTS]; SLOTS];
        for (slots, &bucket) in slots.iter_mut().zip(buckets) {
            *slots = self.slots_in(packing, bucket);
        }
        rooms(buckets, &slots)
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
        with_packing!(&self.table.packing, packing => self.rooms_in(packing, buckets))
    }

    fn holds(&self, bucket: u64, slot: u64) -> bool {
        with_packing!(&self.table.packing, packing => self.slots_in(packing, bucket).contains(&slot))
    }

    fn is_near(&self) -> bool {
        is_near(self.table.bytes().len())
    }

    fn budget(&self) -> usize {
        self.budget
    }
}
