//! The search for room when both buckets of a new entry are full, shared by all filters and
//! maplets.
//!
//! Every entry has one other bucket, so making room means moving entries along an eviction path:
//! `x` to the slot of `a`, `a` to the slot of `b`, `b` to an empty slot. A breadth-first search
//! finds the shortest path *before* anything is written. So an insert that fails has changed
//! nothing, and no entry is ever left over. No random number is used, so the same operations give
//! the same bytes.
//!
//! * Cost: at most [`BUDGET`] slots looked at; per insert 2 to 3 on average at a load of 0.90, 15
//!   at 0.95, 88 at 0.97, in paths of at most 5 moves
//!   (`cargo test -p koel --lib -- --ignored --nocapture cost_of_search`).
//! * Three searches of four in a filter of one size end with one move. That one is looked for
//!   first, among the eight entries of both buckets at once, in code for the packing of the table.
//!   All others are one function for all tables, which asks for the four entries of a bucket at a
//!   time.
//! * Buckets are prefetched some time before they are looked at, so that a search in a table larger
//!   than the cache does not wait for each. That halves the time of inserts into a growing filter
//!   of 8 million keys (docs/decisions/0008-growth.md).
//! * A slot is *spare* when the same entry is stored twice in its pair. Instead of moving on, a
//!   spare copy can be handed to the counters, so copies never take room from distinct keys.
//! * The caller carries out the path, and decides what else moves along with each entry.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;

use crate::packing::SLOTS;

/// Slots whose other bucket is looked at before the search gives up.
pub(crate) const BUDGET: usize = 4096;

/// The buckets that a search starts from.
const ROOTS: usize = 2;

/// For how many buckets' entries a search prefetches before it looks at the first of them.
const AHEAD: usize = 3;
/// As many in a table that is in a cache. Buckets that are expanded ahead but never reached cost a
/// tenth of such a search.
const AHEAD_CACHED: usize = 1;

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

/// How to make room. Its moves are made from the last one to the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvictionPath {
    /// Bucket and slot content of each entry that makes way for the one before it. All buckets
    /// differ.
    pub(crate) moves: Vec<(u64, u64)>,
    /// Where the last entry of the path goes.
    pub(crate) end: End,
}

/// The end of an eviction path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// An empty slot in this bucket.
    Empty(u64),
    /// Nowhere: an equal copy stays in the table, and this one is to be counted; or it is evicted.
    Spare,
}

/// The slots of a full bucket, and the bucket that each could move to, which may be its own.
#[derive(Clone, Default)]
pub(crate) struct Neighbours {
    pub(crate) slots: [u64; SLOTS],
    pub(crate) others: [u64; SLOTS],
}

impl Neighbours {
    /// Whether slot `i` of `bucket` is in its pair of buckets twice. Other threads may have emptied
    /// slots of the bucket before it was read: those are no copies.
    fn is_spare(&self, table: &dyn Neighbourhood, bucket: u64, i: usize) -> bool {
        let (slot, other) = (self.slots[i], self.others[i]);
        let here = self.slots.iter().filter(|&&it| it == slot).count();
        slot != 0 && (here > 1 || other != bucket && table.holds(other, slot))
    }
}

/// What a search asks of a table, which other threads may be changing.
pub(crate) trait Neighbourhood {
    /// The slots of a full bucket, which is in the segment that starts at `base`. Prefetches the
    /// buckets that they could move to. Written where they stay: a copy that is read as a whole
    /// would wait for the stores of its parts.
    fn expand(&self, base: u64, bucket: u64, found: &mut Neighbours);

    /// Which of these buckets have room: bit i for bucket i.
    fn rooms(&self, buckets: &[u64; SLOTS]) -> u32;

    /// Whether a slot of `bucket` holds `slot`.
    fn holds(&self, bucket: u64, slot: u64) -> bool;

    /// Whether the table is in a cache that answers soon.
    fn is_near(&self) -> bool;

    /// How many slots the search looks at before it gives up.
    fn budget(&self) -> usize {
        BUDGET
    }
}

/// The working memory of searches, kept from one to the next.
///
/// The buckets that a search comes to have numbers, in the order in which it looks at them: the
/// roots, then for each expanded bucket those that its four entries could move to.
#[derive(Clone, Default)]
pub(crate) struct Search {
    roots: [u64; ROOTS],
    /// What was found in each expanded bucket, with the number of that bucket.
    found: Vec<(usize, Neighbours)>,
    /// How many buckets were expanded, or were equal to one that was.
    expanded: usize,
    seen: Seen,
    /// How many slots were looked at.
    looked: usize,
    /// The moves of the last path, to be filled again.
    moves: Vec<(u64, u64)>,
}

impl Search {
    /// Bytes that the last searches have left for the next.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.found.capacity() * size_of::<(usize, Neighbours)>()
            + self.seen.0.capacity() * size_of::<u64>()
            + self.moves.capacity() * size_of::<(u64, u64)>()
    }

    /// The shortest path from a pair of full buckets, in the segment that starts at `base`, to
    /// room. `None` if there is none within the budget, or within the memory of the system.
    ///
    /// `one_move` is [`Self::one_move`] for the same table, compiled for its packing.
    #[inline]
    pub(crate) fn path(
        &mut self,
        table: &dyn Neighbourhood,
        base: u64,
        pair: [u64; ROOTS],
        spares: Spares,
        one_move: impl FnOnce(&mut Self) -> Option<EvictionPath>,
    ) -> Option<EvictionPath> {
        let one = if spares == Spares::AtOnce { None } else { one_move(self) };
        one.or_else(|| self.many_moves(table, base, pair, spares))
    }

    /// The path of one move that [`many_moves`](Self::many_moves) would come to first, if there is
    /// one. `neighbours` and `rooms` are as in [`Neighbourhood`].
    ///
    /// Three searches of four end here. So all eight entries are looked at at once, without a
    /// branch on which of them it will be, and nothing is recorded for later ones. If there is no
    /// such path, the search is where it would be after those eight.
    #[inline(always)]
    pub(crate) fn one_move(
        &mut self,
        pair: [u64; ROOTS],
        neighbours: impl Fn(u64, &mut Neighbours),
        rooms: impl Fn(&[u64; SLOTS]) -> u32,
    ) -> Option<EvictionPath> {
        let mut found = [Neighbours::default(), Neighbours::default()];
        // Not a loop over both: that would go through the stack.
        neighbours(pair[0], &mut found[0]);
        neighbours(pair[1], &mut found[1]);
        #[cfg(test)]
        work::add(2 * SLOTS);
        let rooms = rooms(&found[0].others) | rooms(&found[1].others) << SLOTS;
        if rooms == 0 {
            self.start(pair)?;
            self.expand_next(|_, again| again.clone_from(&found[0]))?;
            self.expand_next(|_, again| again.clone_from(&found[1]))?;
            self.looked = self.found.len() * SLOTS;
            return None;
        }
        let first = rooms.trailing_zeros() as usize;
        self.looked = first + 1;
        let (which, slot) = (first / SLOTS, first % SLOTS);
        let mut moves = self.empty_moves()?;
        moves.push((pair[which], found[which].slots[slot]));
        Some(EvictionPath { moves, end: End::Empty(found[which].others[slot]) })
    }

    /// The path of any number of moves. Without spare copies at once, it continues from where
    /// [`one_move`](Self::one_move) left the search.
    #[inline(never)]
    fn many_moves(
        &mut self,
        table: &dyn Neighbourhood,
        base: u64,
        pair: [u64; ROOTS],
        spares: Spares,
    ) -> Option<EvictionPath> {
        if spares != Spares::AtOnce {
            let path = self.go_on(table, base, false);
            if path.is_some() || spares == Spares::Keep {
                return path;
            }
        }
        self.start(pair)?;
        self.go_on(table, base, true)
    }

    /// Looks at the entries of one expanded bucket after the other, until a path ends in one of
    /// their other buckets, or at one of them that `takes_spares` says may be taken out.
    fn go_on(
        &mut self,
        table: &dyn Neighbourhood,
        base: u64,
        takes_spares: bool,
    ) -> Option<EvictionPath> {
        let ahead = if table.is_near() { AHEAD_CACHED } else { AHEAD };
        for group in self.looked / SLOTS..table.budget() / SLOTS {
            #[cfg(test)]
            work::add(SLOTS);
            let first = ROOTS + group * SLOTS;
            while self.expanded < first && self.found.len() < group + ahead {
                self.expand_next(|bucket, found| table.expand(base, bucket, found))?;
            }
            let (from, found) = self.found.get(group)?;
            let rooms = table.rooms(&found.others);
            if rooms != 0 || takes_spares {
                let has_room = |i: usize| rooms & 1 << i != 0;
                let is_spare = |i| takes_spares && found.is_spare(table, self.bucket(*from), i);
                if let Some(i) = (0..SLOTS).find(|&i| has_room(i) || is_spare(i)) {
                    let end = if has_room(i) { End::Empty(found.others[i]) } else { End::Spare };
                    self.looked += i + 1;
                    return self.path_to(first + i, end);
                }
            }
            self.looked += SLOTS;
        }
        None
    }

    /// Discards the last search, and begins one with its roots. `None` if there is no memory for
    /// it.
    fn start(&mut self, roots: [u64; ROOTS]) -> Option<()> {
        let mut seen = mem::take(&mut self.seen);
        seen.forget((0..self.expanded).map(|number| self.bucket(number)))?;
        self.found.clear();
        (self.roots, self.seen, self.expanded, self.looked) = (roots, seen, 0, 0);
        Some(())
    }

    /// The bucket of this number.
    fn bucket(&self, number: usize) -> u64 {
        match number.checked_sub(ROOTS) {
            None => self.roots[number],
            Some(entry) => self.found[entry / SLOTS].1.others[entry % SLOTS],
        }
    }

    /// The slot whose entry would move to the bucket of this number, which is no root, and the
    /// number of the bucket that it is in.
    fn origin(&self, number: usize) -> (usize, u64) {
        let (from, found) = &self.found[(number - ROOTS) / SLOTS];
        (*from, found.slots[(number - ROOTS) % SLOTS])
    }

    /// Expands the next bucket, unless it was expanded before. `None`, and nothing changed, if
    /// there is no memory for it.
    #[inline(always)]
    fn expand_next(&mut self, expand: impl FnOnce(u64, &mut Neighbours)) -> Option<()> {
        self.found.try_reserve(1).ok()?;
        let bucket = self.bucket(self.expanded);
        if self.seen.insert(bucket) {
            self.found.push((self.expanded, Neighbours::default()));
            expand(bucket, &mut self.found.last_mut()?.1);
        }
        self.expanded += 1;
        Some(())
    }

    /// The memory of the last path, with room for one move. `None` if there is no memory for it.
    #[inline(always)]
    fn empty_moves(&mut self) -> Option<Vec<(u64, u64)>> {
        let mut moves = mem::take(&mut self.moves);
        moves.clear();
        moves.try_reserve(1).ok()?;
        Some(moves)
    }

    /// After a search that found no room: the path that ends with an entry which is taken out. It
    /// is the one of the first `most` numbers for which `rank`, of its bucket and slot, is
    /// greatest, and the first of these. `None` if the search had no memory.
    pub(crate) fn path_to_greatest(
        &mut self,
        most: usize,
        rank: impl Fn(u64, u64) -> u64,
    ) -> Option<EvictionPath> {
        let entries = self.found.iter().flat_map(|(from, found)| {
            let bucket = self.bucket(*from);
            found.slots.iter().map(move |&slot| (bucket, slot))
        });
        let entries = (ROOTS..most).zip(entries).filter(|&(_, (_, slot))| slot != 0);
        let (number, _) = entries
            .max_by_key(|&(number, (bucket, slot))| (rank(bucket, slot), Reverse(number)))?;
        self.path_to(number, End::Spare)
    }

    /// Takes back the memory of a path that was carried out.
    pub(crate) fn recycle(&mut self, path: EvictionPath) {
        self.moves = path.moves;
    }

    /// The moves that lead from a root to the bucket of this number, in that order. `None` if there
    /// is no memory for them.
    fn path_to(&mut self, mut number: usize, end: End) -> Option<EvictionPath> {
        let mut moves = self.empty_moves()?;
        while number >= ROOTS {
            let (from, slot) = self.origin(number);
            moves.try_reserve(1).ok()?;
            moves.push((self.bucket(from), slot));
            number = from;
        }
        moves.reverse();
        Some(EvictionPath { moves, end })
    }
}

/// Which buckets a search has expanded. No bucket is ever expanded twice.
///
/// Exact in segments of up to 8192 buckets. In larger ones two buckets may share a bit; the later
/// one is then looked at, but not expanded.
#[derive(Clone, Default)]
struct Seen(Vec<u64>);

impl Seen {
    /// Unmarks `buckets`, which include all that are marked. Allocates before the first search;
    /// `None` if there is no memory for that.
    fn forget(&mut self, buckets: impl Iterator<Item = u64>) -> Option<()> {
        if self.0.is_empty() {
            self.0.try_reserve_exact(128).ok()?;
            self.0.resize(128, 0);
        }
        buckets.for_each(|bucket| *self.word(bucket) = 0);
        Some(())
    }

    /// Marks `bucket`; false if it was marked already.
    #[inline]
    fn insert(&mut self, bucket: u64) -> bool {
        let word = self.word(bucket);
        let bit = 1 << (bucket % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    #[inline]
    fn word(&mut self, bucket: u64) -> &mut u64 {
        let last = self.0.len() - 1;
        &mut self.0[(bucket / 64) as usize & last]
    }
}

/// Counts the slots that all searches of a thread look at.
#[cfg(test)]
pub(crate) mod work {
    extern crate std;

    use core::cell::Cell;

    std::thread_local!(static LOOKED: Cell<usize> = const { Cell::new(0) });

    pub(super) fn add(slots: usize) {
        LOOKED.set(LOOKED.get() + slots);
    }

    /// The slots since the last call.
    pub(crate) fn take() -> usize {
        LOOKED.take()
    }
}

#[cfg(test)]
mod tests;
