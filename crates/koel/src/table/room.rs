//! Room for an entry whose buckets are full: what the search asks of a table, and how its result is
//! carried out.
//!
//! Entries that are *pinned* keep all their bits when they move, because a counter goes by their
//! name. Only a growing table has entries that could lose bits.

use super::{Addressing, EntryTest, Table};
use crate::mem::buffer::Buffer;
use crate::packing::{Packing, SLOTS, is_near, with_packing};
use crate::table::search::{BUDGET, End, EvictionPath, Neighbourhood, Neighbours, Search, Spares};

impl<A: Addressing> Table<Buffer, A> {
    /// The shortest path to room for an entry whose buckets are full. Entries that are `pinned`
    /// keep all their bits along it.
    pub(crate) fn path_to_room(
        &self,
        search: &mut Search,
        location: &A::Location,
        spares: Spares,
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath> {
        // Few entries are pinned, so those on the path are tested instead of all that the search
        // comes to.
        let path = self.shortest_path(search, location, spares, None)?;
        match pinned {
            Some(test) if A::GROWS && self.unpins(&path, test) => {
                search.recycle(path);
                self.shortest_path(search, location, spares, pinned)
            }
            _ => Some(path),
        }
    }

    fn shortest_path(
        &self,
        search: &mut Search,
        location: &A::Location,
        spares: Spares,
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath> {
        with_packing!(&self.packing, packing => {
            Packed { table: self, packing, pinned, dead: NoneDead }.path(search, location, spares)
        })
    }

    /// [`path_to_room`](Self::path_to_room) in a table where the slots of `dead` entries are room.
    pub(crate) fn path_to_dead(
        &self,
        search: &mut Search,
        location: &A::Location,
        dead: impl Dead,
    ) -> Option<EvictionPath> {
        with_packing!(&self.packing, packing => {
            let packed = Packed { table: self, packing, pinned: None, dead };
            packed.path(search, location, Spares::Keep)
        })
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
        self.geometry.loses_bits(bucket, self.layout.fingerprint_of(slot), target)
            && pinned(slot, self.name(&self.entry(bucket, slot)))
    }

    /// The number of slots in the full buckets of a location, if no entry in them has another
    /// bucket to move to.
    pub(crate) fn stuck_slots(
        &self,
        location: &A::Location,
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<u64> {
        let (home, other) = A::pair(location);
        let base = A::segment_start(location);
        let is_stuck = |&bucket: &u64| {
            let others = self.neighbours(base, bucket, pinned).others;
            others.iter().all(|&target| target == home || target == other)
        };
        let buckets = if home == other { 1 } else { 2 };
        [home, other].iter().all(is_stuck).then_some(buckets * SLOTS as u64)
    }

    /// The slots of a full bucket, which is in the segment that starts at `base`, each with its
    /// other bucket.
    pub(super) fn neighbours(
        &self,
        base: u64,
        bucket: u64,
        pinned: Option<&EntryTest<'_>>,
    ) -> Neighbours {
        with_packing!(&self.packing, packing => {
            Packed { table: self, packing, pinned, dead: NoneDead }.neighbours(base, bucket)
        })
    }

    /// If both buckets of a location are full, prefetches the buckets to which their entries could
    /// move: a search begins there.
    pub(crate) fn prefetch_frontier(&self, location: &A::Location) {
        let (home, other) = A::pair(location);
        let has_room = with_packing!(&self.packing, packing => {
            self.has_room_in(packing, home) | self.has_room_in(packing, other)
        });
        if !has_room {
            for bucket in [home, other] {
                let others = self.neighbours(A::segment_start(location), bucket, None).others;
                others.iter().for_each(|&other| self.prefetch(other));
            }
        }
    }

    /// Makes the moves of a path, the last one first, so that no entry is ever in no bucket. Adds
    /// the entry of `location` where the first one was.
    pub(crate) fn carry_out(&mut self, path: &EvictionPath, location: &A::Location, value: u64) {
        let mut moves = path.moves.iter().rev().copied();
        let free = if let End::Empty(room) = path.end { Some((room, 0)) } else { moves.next() };
        let Some(mut free) = free else { return };
        for (bucket, slot) in moves {
            let (moved, added) = self.geometry.moved_slot(self.layout, bucket, slot, free.0);
            self.replace(free.0, free.1, moved);
            self.match_weight += added;
            free = (bucket, slot);
        }
        let which = usize::from(free.0 != A::pair(location).0);
        let fingerprint = self.geometry.fingerprints(location)[which];
        let added = self.layout.slot(fingerprint, value);
        self.replace(free.0, free.1, added);
        self.match_weight += A::weight_of(self.geometry.stored_length(location, which));
    }
}

/// Which entries are dead, so that their slots are room. A type, so that it costs nothing where no
/// entry ever is.
pub(crate) trait Dead: Copy {
    /// Whether any entry may be dead.
    const ANY: bool;

    /// Whether an entry in a slot of this bucket is dead.
    fn in_bucket(&self, bucket: u64) -> impl Fn(u64) -> bool;

    /// How many slots the search for room looks at before it gives up.
    fn budget(self) -> usize {
        BUDGET
    }
}

/// No entry is ever dead.
#[derive(Clone, Copy)]
struct NoneDead;

impl Dead for NoneDead {
    const ANY: bool = false;

    fn in_bucket(&self, _: u64) -> impl Fn(u64) -> bool {
        |_| false
    }
}

/// A table with its packing, the entries that are pinned, and those that are dead.
struct Packed<'a, A, P, D> {
    table: &'a Table<Buffer, A>,
    packing: &'a P,
    pinned: Option<&'a EntryTest<'a>>,
    dead: D,
}

impl<A: Addressing, P: Packing, D: Dead> Packed<'_, A, P, D> {
    #[inline(never)]
    fn path(
        &self,
        search: &mut Search,
        location: &A::Location,
        spares: Spares,
    ) -> Option<EvictionPath> {
        // Equal entries of a growing table may differ in length, so none is known to be spare.
        let spares = if A::GROWS { Spares::Keep } else { spares };
        search.path(self, A::segment_start(location), A::pair(location), spares)
    }
}

impl<A: Addressing, P: Packing, D: Dead> Neighbourhood for Packed<'_, A, P, D> {
    #[inline(always)]
    fn neighbours(&self, base: u64, bucket: u64) -> Neighbours {
        let Self { table, packing, pinned, .. } = *self;
        let slots = table.slots_in(packing, bucket);
        let mut others = table.geometry.other_buckets(table.layout, base, bucket, slots);
        if A::GROWS
            && let Some(pinned) = pinned
        {
            for (other, slot) in others.iter_mut().zip(slots) {
                let stays = table.must_stay(bucket, slot, *other, pinned);
                *other = if stays { bucket } else { *other };
            }
        }
        Neighbours { slots, others }
    }

    #[inline]
    fn prefetch(&self, bucket: u64) {
        self.table.prefetch(bucket);
    }

    #[inline]
    fn is_near(&self) -> bool {
        is_near(self.table.bytes().len())
    }

    #[inline(always)]
    fn has_room(&self, bucket: u64) -> bool {
        if D::ANY {
            let slots = self.table.slots_in(self.packing, bucket);
            let is_dead = self.dead.in_bucket(bucket);
            return slots.iter().any(|&slot| slot == 0 || is_dead(slot));
        }
        self.table.has_room_in(self.packing, bucket)
    }

    #[inline(always)]
    fn budget(&self) -> usize {
        self.dead.budget()
    }

    fn is_spare(&self, bucket: u64, slot: u64) -> bool {
        let Self { table, packing, .. } = *self;
        let location = table.geometry.location(table.entry(bucket, slot).prefix);
        location.is_some_and(|location| {
            let starts = table.starts(A::pair(&location));
            packing.copies(table.bytes(), starts, slot) > 1
        })
    }
}
