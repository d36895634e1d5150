//! Where a new entry goes when all its buckets are full: the only search in this crate, of the filter and of the map.
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

use alloc::{vec, vec::Vec};
use core::mem;

use crate::geometry::Place;
use crate::layout::SLOTS;
pub(crate) use crate::table::Neighbour;
use crate::table::Table;

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

/// What a search asks of the table of a filter, whoever else may be changing it.
pub(crate) trait Neighbourhood {
    /// The slots of full bucket `local` of the segment that starts at `base`, each with its other bucket.
    fn neighbours(&self, base: u64, local: u32) -> [Neighbour; SLOTS];

    /// Whether an equal one stands beside `slot` of `bucket` in its pair.
    fn is_spare(&self, bucket: u64, slot: u64) -> bool;
}

impl<B: AsRef<[u8]>> Neighbourhood for Table<B> {
    #[inline]
    fn neighbours(&self, base: u64, local: u32) -> [Neighbour; SLOTS] {
        self.neighbours(base, local)
    }

    fn is_spare(&self, bucket: u64, slot: u64) -> bool {
        let fingerprint = self.layout().fingerprint_of(slot);
        self.copies(&self.geometry().place_of(bucket, fingerprint), slot) > 1
    }
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
    /// A search that tells so many buckets apart.
    pub(crate) fn exact(buckets: u32) -> Self {
        Self { seen: Seen::exact(buckets), ..Self::default() }
    }

    /// The shortest way to room for an entry at `place` of a filter, whose buckets are full, or `None` if there is none within the budget.
    pub(crate) fn plan(
        &mut self,
        table: &impl Neighbourhood,
        place: &Place,
        spares: Spares,
    ) -> Option<Plan> {
        let (base, roots) = (place.base, [place.home, place.alternate]);
        let neighbours = |local: u32| table.neighbours(base, local);
        let is_spare = |local: u32, slot: u64| table.is_spare(base + u64::from(local), slot);
        let mut plan = None;
        if spares != Spares::AtOnce {
            plan = self.shortest(base, roots, neighbours, |_, _| false);
        }
        if plan.is_none() && spares != Spares::Keep {
            plan = self.shortest(base, roots, neighbours, is_spare);
        }
        plan
    }

    /// The shortest way from the full buckets `roots` to an empty slot, or to one that is spare. `neighbours` are the entries of a full bucket, each with
    /// another bucket that it may move to; buckets are numbered from `base`.
    #[inline]
    pub(crate) fn shortest<N: IntoIterator<Item = Neighbour>>(
        &mut self,
        base: u64,
        roots: impl IntoIterator<Item = u32>,
        neighbours: impl Fn(u32) -> N,
        is_spare: impl Fn(u32, u64) -> bool,
    ) -> Option<Plan> {
        self.start(roots);
        let mut next = 0;
        while next < self.steps.len() && self.looked < BUDGET {
            let from = self.steps[next].bucket;
            for Neighbour { slot, bucket, has_room } in neighbours(from) {
                self.looked += 1;
                if has_room {
                    let end = End::Empty(base + u64::from(bucket));
                    return Some(self.chain(base, next, slot, end));
                }
                if is_spare(from, slot) {
                    return Some(self.chain(base, next, slot, End::Spare));
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

    fn start(&mut self, roots: impl IntoIterator<Item = u32>) {
        self.seen.forget(self.steps.iter().map(|step| step.bucket));
        self.steps.clear();
        self.looked = 0;
        for bucket in roots {
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

/// Which buckets a search has been to. In a filter: exact in segments of up to 8192 buckets; in larger ones two buckets may share a bit, and the
/// later one is then looked at but not passed through. No bucket is ever passed through twice.
#[derive(Clone, Default)]
struct Seen(Vec<u64>);

impl Seen {
    /// A bit for each of so many buckets. The number of words is a power of two.
    fn exact(buckets: u32) -> Self {
        Self(vec![0; (buckets as usize).div_ceil(64).next_power_of_two()])
    }

    /// Unmarks `buckets`, which are all that are marked.
    fn forget(&mut self, buckets: impl Iterator<Item = u32>) {
        if self.0.is_empty() {
            self.0.resize(128, 0);
        }
        buckets.for_each(|bucket| *self.word(bucket) = 0);
    }

    /// Marks `bucket`; false if it was marked already.
    #[inline]
    fn insert(&mut self, bucket: u32) -> bool {
        let word = self.word(bucket);
        let bit = 1 << (bucket % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    #[inline]
    fn word(&mut self, bucket: u32) -> &mut u64 {
        let last = self.0.len() - 1;
        &mut self.0[(bucket as usize / 64) & last]
    }
}

#[cfg(test)]
mod tests;
