//! Where a new entry goes when all its buckets are full: the only search in this crate.
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
//! * The filter and the map go through the same steps, in [`Search::plan`] and [`Search::shortest`]: one loop for both, generic over the table, costs the
//!   filter 3 % of its inserts.

use alloc::{vec, vec::Vec};

use crate::geometry::Place;
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

/// The working memory of searches, kept from one to the next.
#[derive(Clone, Default)]
pub(crate) struct Search {
    steps: Vec<Step>,
    seen: Seen,
    /// Slots looked at so far.
    looked: usize,
}

impl Search {
    /// A search that tells so many buckets apart.
    pub(crate) fn exact(buckets: u32) -> Self {
        Self { seen: Seen::exact(buckets), ..Self::default() }
    }

    /// The shortest way to room for an entry at `place`, whose buckets are full, or `None` if there is none within the budget.
    pub(crate) fn plan<B: AsRef<[u8]>>(
        &mut self,
        table: &Table<B>,
        place: &Place,
        spares: Spares,
    ) -> Option<Plan> {
        let numbered = |local: u32| place.base + u64::from(local);
        self.start([place.home, place.alternate]);
        let mut spare = None;
        let mut next = 0;
        while next < self.steps.len() && self.looked < BUDGET {
            let local = self.steps[next].bucket;
            let bucket = table.read(numbered(local));
            for slot in bucket.entries() {
                self.looked += 1;
                let fingerprint = table.layout().fingerprint_of(slot);
                let target = table.geometry().alternate(local, fingerprint);
                let beyond = table.read(numbered(target));
                if beyond.free() > 0 {
                    return Some(self.chain(place.base, next, slot, End::Empty(numbered(target))));
                }
                let elsewhere = if target == local { 0 } else { beyond.copies(slot) };
                if spares != Spares::Keep && bucket.copies(slot) + elsewhere > 1 {
                    if spares == Spares::AtOnce {
                        return Some(self.chain(place.base, next, slot, End::Spare));
                    }
                    spare = spare.or(Some((next, slot)));
                }
                if self.seen.insert(target) {
                    self.steps.push(Step { bucket: target, from: next, slot });
                }
            }
            next += 1;
        }
        spare.map(|(step, slot)| self.chain(place.base, step, slot, End::Spare))
    }

    /// The shortest way to room from the full buckets `roots` of any table, without spare copies. `ways` are the entries of a full bucket, each
    /// with another bucket that it may move to; what a plan calls an entry is up to the caller.
    pub(crate) fn shortest<W: Iterator<Item = (u64, u32)>>(
        &mut self,
        roots: impl IntoIterator<Item = u32>,
        ways: impl Fn(u32) -> W,
        has_room: impl Fn(u32) -> bool,
    ) -> Option<Plan> {
        self.start(roots);
        let mut next = 0;
        while next < self.steps.len() && self.looked < BUDGET {
            for (slot, target) in ways(self.steps[next].bucket) {
                self.looked += 1;
                if has_room(target) {
                    return Some(self.chain(0, next, slot, End::Empty(u64::from(target))));
                }
                if self.seen.insert(target) {
                    self.steps.push(Step { bucket: target, from: next, slot });
                }
            }
            next += 1;
        }
        None
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
    fn chain(&self, base: u64, last: usize, slot: u64, end: End) -> Plan {
        let mut moves = Vec::new();
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
    fn insert(&mut self, bucket: u32) -> bool {
        let word = self.word(bucket);
        let bit = 1 << (bucket % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn word(&mut self, bucket: u32) -> &mut u64 {
        let last = self.0.len() - 1;
        &mut self.0[(bucket as usize / 64) & last]
    }
}

#[cfg(test)]
mod tests;
