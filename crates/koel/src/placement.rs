//! Where a new entry goes when both of its buckets are full: the only search in this crate.
//!
//! Every entry has one other bucket, so making room means moving entries along a chain: `x` to the place of `a`, `a` to the
//! place of `b`, `b` to an empty slot. A breadth-first search finds the shortest such chain *before* anything is written: an
//! insert that fails has changed nothing, no entry is ever left over, and there is no random number in it, so the same
//! operations give the same bytes.
//!
//! * Cost: at most [`BUDGET`] slots looked at; per insert 2 to 3 on average at a load of 0.90, 15 at 0.95, 91 at 0.97, in chains of at most 5
//!   moves (`cargo test -p koel --lib -- --ignored --nocapture cost_of_placement`).
//! * A slot is *spare* when the same entry is stored twice in its pair. Instead of moving on, a spare copy can be handed to the counters, so copies
//!   never take room from distinct keys.
//! * The result is a plan. Who carries it out decides what else moves along with each entry.

use alloc::vec::Vec;
use core::mem;

use crate::geometry::Place;
use crate::table::{Neighbour, Table};

/// Slots whose other bucket is looked at before the search gives up.
pub(crate) const BUDGET: usize = 4096;

/// Whether a spare copy may be taken out of the table to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spares {
    /// Never.
    Keep,
    /// When no empty slot was found.
    IfNeeded,
    /// As soon as one is seen.
    AtOnce,
}

/// How to make room: read from the end backwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Bucket and slot content of each entry that makes way for the one before it. Buckets are all different.
    pub(crate) moves: Vec<(u64, u64)>,
    /// Where the last entry of the chain goes.
    pub(crate) end: End,
}

/// The end of a chain of moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// An empty slot in this bucket.
    Empty(u64),
    /// Nowhere: an equal copy stays in the table, and this one is to be counted.
    Spare,
}

/// A bucket reached by the search.
#[derive(Clone, Copy)]
struct Step {
    /// The bucket, within its segment.
    bucket: u32,
    /// Index of the step that led here, and the slot there that would move here. Roots point to themselves.
    from: usize,
    slot: u64,
}

/// The working memory of searches, kept from one to the next.
#[derive(Clone, Default)]
pub(crate) struct Search {
    steps: Vec<Step>,
    seen: Seen,
    /// Slots looked at so far.
    looked: usize,
    /// The moves of the last plan, to be filled again.
    moves: Vec<(u64, u64)>,
}

impl Search {
    /// The shortest way to room for an entry at `place`, whose buckets are full, or `None` if there is none within the budget.
    pub(crate) fn plan<B: AsRef<[u8]>>(
        &mut self,
        table: &Table<B>,
        place: &Place,
        spares: Spares,
    ) -> Option<Plan> {
        let found = self.search(table, place, spares == Spares::AtOnce);
        if found.is_none() && spares == Spares::IfNeeded {
            return self.search(table, place, true);
        }
        found
    }

    /// The first empty slot, or, where `take_spares`, the first one that is empty or spare.
    fn search<B: AsRef<[u8]>>(
        &mut self,
        table: &Table<B>,
        place: &Place,
        take_spares: bool,
    ) -> Option<Plan> {
        let numbered = |local: u32| place.base + u64::from(local);
        self.start(place);
        let mut next = 0;
        while next < self.steps.len() && self.looked < BUDGET {
            let local = self.steps[next].bucket;
            for Neighbour { slot, bucket, has_room } in table.neighbours(place.base, local) {
                self.looked += 1;
                if has_room {
                    return Some(self.chain(place.base, next, slot, End::Empty(numbered(bucket))));
                }
                let entry =
                    table.geometry().place_of(numbered(local), table.layout().fingerprint_of(slot));
                if take_spares && table.copies(&entry, slot) > 1 {
                    return Some(self.chain(place.base, next, slot, End::Spare));
                }
                if self.seen.insert(bucket) {
                    self.steps.push(Step { bucket, from: next, slot });
                }
            }
            next += 1;
        }
        None
    }

    /// Takes back the memory of a plan that was carried out.
    pub(crate) fn recycle(&mut self, plan: Plan) {
        self.moves = plan.moves;
    }

    fn start(&mut self, place: &Place) {
        self.steps.clear();
        self.seen.clear();
        self.looked = 0;
        for bucket in [place.home, place.alternate] {
            if self.seen.insert(bucket) {
                self.steps.push(Step { bucket, from: self.steps.len(), slot: 0 });
            }
        }
    }

    /// The moves from a root to `slot` of step `last`, in that order.
    fn chain(&mut self, base: u64, last: usize, slot: u64, end: End) -> Plan {
        let mut moves = mem::take(&mut self.moves);
        moves.clear();
        let (mut index, mut leaving) = (last, slot);
        loop {
            let step = self.steps[index];
            moves.push((base + u64::from(step.bucket), leaving));
            if step.from == index {
                break;
            }
            (index, leaving) = (step.from, step.slot);
        }
        moves.reverse();
        Plan { moves, end }
    }
}

/// Which buckets a search has been to: exact in segments of up to 8192 buckets. In larger ones two buckets may share a bit, and the later one
/// is then looked at but not passed through; no bucket is ever passed through twice.
#[derive(Clone, Default)]
struct Seen(Vec<u64>);

impl Seen {
    fn clear(&mut self) {
        self.0.clear();
        self.0.resize(128, 0);
    }

    /// Marks `bucket`; false if it was marked already.
    fn insert(&mut self, bucket: u32) -> bool {
        let word = &mut self.0[bucket as usize / 64 % 128];
        let bit = 1 << (bucket % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

#[cfg(test)]
mod tests;
