//! The search for room when both buckets of a new entry are full: the only one in this crate,
//! shared by filters, maplets and the map.
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
//!   first, among the eight entries of both buckets at once.
//! * A bucket is prefetched some [`LOOKAHEAD`] others before it is looked at, so that a search in a
//!   table larger than the cache does not wait for each. That halves the time of inserts into a
//!   growing filter of 8 million keys (docs/decisions/0008-growth.md).
//! * A slot is *spare* when the same entry is stored twice in its pair. Instead of moving on, a
//!   spare copy can be handed to the counters, so copies never take room from distinct keys.
//! * The caller carries out the path, and decides what else moves along with each entry.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;
use core::ops::Range;

use crate::packing::SLOTS;

/// Slots whose other bucket is looked at before the search gives up.
pub(crate) const BUDGET: usize = 4096;

/// Buckets that a search prefetches before it looks at the first of them.
pub(crate) const LOOKAHEAD: usize = 8;
/// As many in a table that is in a cache. Buckets that are expanded ahead but never reached cost a
/// tenth of such a search.
pub(crate) const LOOKAHEAD_CACHED: usize = 2;

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

/// The buckets that a search comes to, in the order in which it looks at them: the roots, then for
/// each expanded bucket those that the entries in it could move to.
///
/// In separate columns: reading as a whole what was written in parts would stall on store
/// forwarding.
#[derive(Clone, Default)]
pub(crate) struct Frontier {
    /// The content of the slot that would move there.
    slots: Vec<u64>,
    buckets: Vec<u64>,
    /// The number of the bucket that it would come from. The roots point to themselves.
    from: Vec<usize>,
    /// The number of the bucket that is being expanded.
    expanding: usize,
}

impl Frontier {
    /// Adds the content of a slot, and a bucket that it could move to, which may be its own.
    pub(crate) fn push(&mut self, slot: u64, bucket: u64) {
        self.slots.push(slot);
        self.buckets.push(bucket);
        self.from.push(self.expanding);
    }

    /// Adds the slots of a bucket.
    #[inline(always)]
    fn add(&mut self, Neighbours { slots, others }: Neighbours) {
        self.slots.extend_from_slice(&slots);
        self.buckets.extend_from_slice(&others);
        self.from.extend_from_slice(&[self.expanding; SLOTS]);
    }

    /// Makes room for the slots of a bucket. `None` if there is no memory for them.
    #[inline(always)]
    fn reserve(&mut self) -> Option<()> {
        // The last column grows last, so the others have as much room.
        if self.from.capacity() - self.from.len() >= SLOTS { Some(()) } else { self.enlarge() }
    }

    #[cold]
    #[inline(never)]
    fn enlarge(&mut self) -> Option<()> {
        self.slots.try_reserve(SLOTS).ok()?;
        self.buckets.try_reserve(SLOTS).ok()?;
        self.from.try_reserve(SLOTS).ok()
    }

    /// Empties the frontier, and adds the buckets that a search starts from: at most [`SLOTS`].
    /// `None` if there is no memory for them.
    fn start(&mut self, roots: impl IntoIterator<Item = u64>) -> Option<()> {
        self.slots.clear();
        self.buckets.clear();
        self.from.clear();
        self.reserve()?;
        for root in roots {
            self.expanding = self.buckets.len();
            self.push(0, root);
        }
        Some(())
    }

    /// The bucket that the entry of this number would come from.
    fn origin(&self, number: usize) -> u64 {
        self.buckets[self.from[number]]
    }
}

/// The slots of a full bucket, and the bucket that each could move to.
pub(crate) struct Neighbours {
    pub(crate) slots: [u64; SLOTS],
    pub(crate) others: [u64; SLOTS],
}

/// What a search asks of a table, which other threads may be changing.
pub(crate) trait Neighbourhood {
    /// The slots of a full bucket, which is in the segment that starts at `base`.
    fn neighbours(&self, base: u64, bucket: u64) -> Neighbours;

    /// Prefetches a bucket.
    fn prefetch(&self, bucket: u64);

    /// Whether the table is in a cache that answers soon.
    fn is_near(&self) -> bool;

    /// Whether a slot of `bucket` is empty.
    fn has_room(&self, bucket: u64) -> bool;

    /// Whether a slot equal to `slot` of `bucket` is in its pair of buckets.
    fn is_spare(&self, bucket: u64, slot: u64) -> bool;

    /// How many slots the search looks at before it gives up.
    #[inline(always)]
    fn budget(&self) -> usize {
        BUDGET
    }
}

/// The working memory of searches, kept from one to the next.
#[derive(Clone, Default)]
pub(crate) struct Search {
    frontier: Frontier,
    /// How many buckets of the frontier were expanded, or were equal to one that was.
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
        let Frontier { slots, buckets, from, .. } = &self.frontier;
        let columns = slots.capacity() + buckets.capacity() + from.capacity();
        let columns = columns + self.seen.0.capacity();
        columns * size_of::<u64>() + self.moves.capacity() * size_of::<(u64, u64)>()
    }

    /// The shortest path from a pair of full buckets, in the segment that starts at `base`, to
    /// room. `None` if there is none within the budget, or within the memory of the system.
    #[inline(always)]
    pub(crate) fn path(
        &mut self,
        table: &impl Neighbourhood,
        base: u64,
        pair: (u64, u64),
        spares: Spares,
    ) -> Option<EvictionPath> {
        if spares != Spares::AtOnce
            && let Some(path) = self.one_move(table, base, pair)
        {
            return Some(path);
        }
        if table.is_near() {
            self.many_moves::<LOOKAHEAD_CACHED>(table, base, pair, spares)
        } else {
            self.many_moves::<LOOKAHEAD>(table, base, pair, spares)
        }
    }

    /// The path of one move that [`shortest`](Self::shortest) would come to first, if there is one.
    ///
    /// Three searches of four end here. So all eight entries are looked at at once, without a
    /// branch on which of them it will be, and nothing is recorded for later ones. If there is no
    /// such path, the search is where it would be after those eight.
    #[inline(always)]
    fn one_move(
        &mut self,
        table: &impl Neighbourhood,
        base: u64,
        (home, other): (u64, u64),
    ) -> Option<EvictionPath> {
        // Not a map over both: that would go through the stack.
        let from_home = table.neighbours(base, home);
        let from_other = table.neighbours(base, other);
        // A bit for each, the first one highest: doubling and adding one is an addition with carry.
        let others = from_home.others.iter().chain(&from_other.others);
        let rooms = others.fold(0, |rooms, &other| 2 * rooms + u8::from(table.has_room(other)));
        if rooms == 0 {
            self.start([home, other])?;
            self.expand_next(|_, frontier| frontier.add(from_home))?;
            self.expand_next(|_, frontier| frontier.add(from_other))?;
            self.looked = self.frontier.buckets.len() - 2;
            return None;
        }
        let first = rooms.leading_zeros() as usize;
        let (bucket, from) = if first < SLOTS { (home, &from_home) } else { (other, &from_other) };
        self.looked = first + 1;
        let mut moves = self.empty_moves()?;
        moves.push((bucket, from.slots[first % SLOTS]));
        Some(EvictionPath { moves, end: End::Empty(from.others[first % SLOTS]) })
    }

    /// The path of any number of moves. Without spare copies, it continues from where
    /// [`one_move`](Self::one_move) left the search. Out of line, so that the search for one move
    /// has the registers to itself.
    #[inline(never)]
    fn many_moves<const LOOKAHEAD: usize>(
        &mut self,
        table: &impl Neighbourhood,
        base: u64,
        (home, other): (u64, u64),
        spares: Spares,
    ) -> Option<EvictionPath> {
        let roots = [home, other];
        let expand = |bucket: u64, frontier: &mut Frontier| {
            let neighbours = table.neighbours(base, bucket);
            let others = neighbours.others;
            frontier.add(neighbours);
            others.iter().for_each(|&other| table.prefetch(other));
        };
        let has_room = |bucket: u64| table.has_room(bucket);
        if spares != Spares::AtOnce {
            let left = self.frontier.buckets.len()..roots.len() + table.budget();
            let path = self.continue_in::<LOOKAHEAD>(left, expand, has_room, |_, _| false);
            if path.is_some() || spares == Spares::Keep {
                return path;
            }
        }
        let is_spare = |bucket: u64, slot: u64| table.is_spare(bucket, slot);
        self.shortest::<LOOKAHEAD>(roots, expand, has_room, is_spare)
    }

    /// The shortest path from the full buckets `roots` to an empty slot, or to a spare one.
    ///
    /// `expand` adds the entries of a full bucket, each with another bucket that it may move to.
    /// The path does not depend on `LOOKAHEAD`. Inlined, so that it is compiled for the table of
    /// each caller.
    #[inline(always)]
    pub(crate) fn shortest<const LOOKAHEAD: usize>(
        &mut self,
        roots: impl IntoIterator<Item = u64>,
        expand: impl Fn(u64, &mut Frontier),
        has_room: impl Fn(u64) -> bool,
        is_spare: impl Fn(u64, u64) -> bool,
    ) -> Option<EvictionPath> {
        self.start(roots)?;
        let first = self.frontier.buckets.len();
        self.continue_in::<LOOKAHEAD>(first..first + BUDGET, expand, has_room, is_spare)
    }

    /// Discards the last search, and begins one with its roots. `None` if there is no memory for
    /// it.
    fn start(&mut self, roots: impl IntoIterator<Item = u64>) -> Option<()> {
        self.seen.forget(&self.frontier.buckets[..self.expanded])?;
        (self.expanded, self.looked) = (0, 0);
        self.frontier.start(roots)
    }

    /// The memory of the last path, with room for one move. `None` if there is no memory for it.
    #[inline(always)]
    fn empty_moves(&mut self) -> Option<Vec<(u64, u64)>> {
        let mut moves = mem::take(&mut self.moves);
        moves.clear();
        moves.try_reserve(1).ok()?;
        Some(moves)
    }

    /// Looks at the buckets of these numbers in the frontier, until a path ends in one.
    #[inline(always)]
    fn continue_in<const LOOKAHEAD: usize>(
        &mut self,
        numbers: Range<usize>,
        expand: impl Fn(u64, &mut Frontier),
        has_room: impl Fn(u64) -> bool,
        is_spare: impl Fn(u64, u64) -> bool,
    ) -> Option<EvictionPath> {
        for number in numbers {
            while self.expanded < number && self.frontier.buckets.len() <= number + LOOKAHEAD {
                self.expand_next(
                    #[inline(always)]
                    |bucket, frontier| expand(bucket, frontier),
                )?;
            }
            let bucket = *self.frontier.buckets.get(number)?;
            self.looked += 1;
            if has_room(bucket) {
                return self.path_to(number, End::Empty(bucket));
            }
            if is_spare(self.frontier.origin(number), self.frontier.slots[number]) {
                return self.path_to(number, End::Spare);
            }
        }
        None
    }

    /// Expands the next bucket, unless it was expanded before. `None`, and nothing changed, if
    /// there is no memory for it.
    #[inline(always)]
    fn expand_next(&mut self, expand: impl FnOnce(u64, &mut Frontier)) -> Option<()> {
        self.frontier.reserve()?;
        let bucket = self.frontier.buckets[self.expanded];
        if self.seen.insert(bucket) {
            self.frontier.expanding = self.expanded;
            expand(bucket, &mut self.frontier);
        }
        self.expanded += 1;
        Some(())
    }

    /// After a search that found no room: the path that ends with an entry which is taken out. It
    /// is the one of the first `most` looked at for which `rank`, of its bucket and slot, is
    /// greatest, and the first of these. `None` if the search had no memory.
    pub(crate) fn path_to_greatest(
        &mut self,
        most: usize,
        rank: impl Fn(u64, u64) -> u64,
    ) -> Option<EvictionPath> {
        let rank = |number, slot| rank(self.frontier.origin(number), slot);
        let slots = self.frontier.slots.iter().enumerate().take(most);
        let entries = slots.filter(|&(_, &slot)| slot != 0);
        let (number, _) =
            entries.max_by_key(|&(number, &slot)| (rank(number, slot), Reverse(number)))?;
        self.path_to(number, End::Spare)
    }

    /// Takes back the memory of a path that was carried out.
    pub(crate) fn recycle(&mut self, path: EvictionPath) {
        self.moves = path.moves;
    }

    /// The moves that lead from a root to bucket `number` of the frontier, in that order. `None` if
    /// there is no memory for them.
    fn path_to(&mut self, mut number: usize, end: End) -> Option<EvictionPath> {
        let mut moves = self.empty_moves()?;
        let mut from = self.frontier.from[number];
        while number != from {
            moves.try_reserve(1).ok()?;
            moves.push((self.frontier.buckets[from], self.frontier.slots[number]));
            (number, from) = (from, self.frontier.from[from]);
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
    fn forget(&mut self, buckets: &[u64]) -> Option<()> {
        if self.0.is_empty() {
            self.0.try_reserve_exact(128).ok()?;
            self.0.resize(128, 0);
        }
        buckets.iter().for_each(|&bucket| *self.word(bucket) = 0);
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

#[cfg(test)]
mod tests;
