//! The search for room when all buckets of a new entry are full: breadth-first, so that the fewest
//! entries move, and over before anything is written. So an insert that fails has changed nothing.
//!
//! Cost: at most [`BUDGET`] possible moves, in working memory of at most 100 KB.

use alloc::vec::Vec;
use core::iter;

/// Possible moves that are looked at before the search gives up.
const BUDGET: usize = 4096;

/// A possible move: the entry in a slot could move to a bucket.
#[derive(Clone, Copy)]
struct Move {
    slot: usize,
    bucket: u32,
    /// The number of the move to the bucket of the slot. `None` for a root, where a path begins.
    before: Option<u32>,
}

/// The working memory of searches, kept from one to the next.
#[derive(Clone, Default)]
pub(super) struct Search {
    moves: Vec<Move>,
    /// Marks of the buckets whose moves were listed. In a table of more than 8192 buckets two may
    /// share a bit; no move of the later one is listed then.
    seen: Vec<u64>,
}

impl Search {
    /// The bucket with room at the end of the shortest path from these full buckets. `None` if
    /// there is none within the budget, or no memory.
    ///
    /// `targets` lists the slots of a full bucket, each with a bucket that its entry could move to.
    pub(super) fn path<I: Iterator<Item = (usize, u32)>>(
        &mut self,
        roots: impl IntoIterator<Item = u32>,
        targets: impl Fn(u32) -> I,
        has_room: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        self.moves.clear();
        self.seen.clear();
        self.seen.try_reserve_exact(128).ok()?;
        self.seen.resize(128, 0);
        for bucket in roots {
            self.push(Move { slot: 0, bucket, before: None })?;
        }
        let most = self.moves.len() + BUDGET;
        for number in 0.. {
            let from = self.moves.get(number as usize)?.bucket;
            if !self.mark(from) {
                continue;
            }
            for (slot, bucket) in targets(from) {
                if self.moves.len() == most {
                    return None;
                }
                self.push(Move { slot, bucket, before: Some(number) })?;
                if has_room(bucket) {
                    return Some(bucket);
                }
            }
        }
        None
    }

    fn push(&mut self, step: Move) -> Option<()> {
        self.moves.try_reserve(1).ok()?;
        self.moves.push(step);
        Some(())
    }

    /// Marks a bucket; false if it was marked already.
    fn mark(&mut self, bucket: u32) -> bool {
        let (word, bit) = (&mut self.seen[bucket as usize / 64 % 128], 1 << (bucket % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// The slots of the entries that move along the path that was found, the last one first.
    pub(super) fn moving(&self) -> impl Iterator<Item = usize> {
        let before = |step: &Move| step.before.map(|number| self.moves[number as usize]);
        let path = iter::successors(self.moves.last().copied(), before);
        path.filter(|step| step.before.is_some()).map(|step| step.slot)
    }
}
