//! Room in a table that grows. Such a table is always nearly full, so three inserts of four search
//! for room.
//!
//! The search is that of `placement.rs`; here is what it asks of the table. Entries that are
//! *pinned* keep all their bits when they move, because a counter goes by their name.

use super::linear_hashing::Origin;
use super::{EntryTest, LinearHashing, Prefixes, Table};
use crate::mem::buffer::Buffer;
use crate::packing::{Packing, with_packing};
use crate::table::search::{
    End, EvictionPath, Frontier, LOOKAHEAD, LOOKAHEAD_CACHED, Neighbours, Search,
};

/// Tables of at most so many bytes are in a cache that answers soon, even where a program has
/// several of them, as the log store's index. Tests have larger ones too.
const CACHED: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

impl Table<Buffer, LinearHashing> {
    /// The shortest way from the full buckets `roots` to an empty slot.
    pub(crate) fn way_to_room(
        &self,
        search: &mut Search,
        roots: [u64; 2],
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath> {
        // Few entries are pinned, as a rule, so those of the plan are looked at instead of all on
        // the way to it.
        let plan = self.shortest_way(search, roots, None)?;
        match pinned {
            Some(test) if self.forgets_pinned(&plan, test) => {
                search.recycle(plan);
                self.shortest_way(search, roots, pinned)
            }
            _ => Some(plan),
        }
    }

    fn shortest_way(
        &self,
        search: &mut Search,
        roots: [u64; 2],
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath> {
        let is_cached = self.bytes().len() <= CACHED;
        with_packing!(&self.packing, packing => if is_cached {
            self.way_in::<_, LOOKAHEAD_CACHED>(packing, search, roots, pinned)
        } else {
            self.way_in::<_, LOOKAHEAD>(packing, search, roots, pinned)
        })
    }

    /// A function for each lookahead, which the compiler knows then. With one that it does not
    /// know, or both in one function, a search takes a sixth longer.
    #[inline(never)]
    fn way_in<P: Packing, const LOOKAHEAD: usize>(
        &self,
        packing: &P,
        search: &mut Search,
        roots: [u64; 2],
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath> {
        search.shortest::<LOOKAHEAD>(
            roots,
            |bucket, ways| self.open_in(packing, bucket, pinned, ways),
            |bucket| self.has_room_in(packing, bucket),
            |_, _| false,
        )
    }

    /// Whether a plan makes an entry forget a bit that is `pinned`.
    fn forgets_pinned(&self, plan: &EvictionPath, pinned: &EntryTest<'_>) -> bool {
        let room = if let End::Empty(bucket) = plan.end { Some(bucket) } else { None };
        let targets = plan.moves.iter().skip(1).map(|&(bucket, _)| bucket).chain(room);
        plan.moves.iter().zip(targets).any(|(&(bucket, slot), target)| {
            self.stays(&self.geometry.origin(bucket), slot, target, pinned)
        })
    }

    /// Whether an entry may not go to bucket `target`: it would lose a bit there, and is pinned.
    fn stays(&self, from: &Origin, slot: u64, target: u64, pinned: &EntryTest<'_>) -> bool {
        let fingerprint = self.layout.fingerprint_of(slot);
        let name = || self.geometry.identity(&self.geometry.prefix(from.bucket(), fingerprint));
        self.geometry.would_forget(from, fingerprint, target) && pinned(slot, name())
    }

    /// Adds the slots of a full bucket, each with its other bucket, which the memory is asked for.
    /// One that cannot move has its own: its other bucket is unknown, or it would forget a bit
    /// there and is one of those that are `pinned`, if any are.
    pub(crate) fn open(&self, bucket: u64, pinned: Option<&EntryTest<'_>>, ways: &mut Frontier) {
        with_packing!(&self.packing, packing => self.open_in(packing, bucket, pinned, ways));
    }

    #[inline(always)]
    fn open_in<P: Packing>(
        &self,
        packing: &P,
        bucket: u64,
        pinned: Option<&EntryTest<'_>>,
        ways: &mut Frontier,
    ) {
        let origin = self.geometry.origin(bucket);
        let slots = self.slots_in(packing, bucket);
        let mut others = slots;
        for other in &mut others {
            *other = self.geometry.other_bucket(&origin, self.layout.fingerprint_of(*other));
        }
        if let Some(pinned) = pinned {
            for (other, slot) in others.iter_mut().zip(slots) {
                *other = if self.stays(&origin, slot, *other, pinned) { bucket } else { *other };
            }
        }
        ways.add(Neighbours { slots, others });
        for other in others {
            self.prefetch(other);
        }
    }
}
