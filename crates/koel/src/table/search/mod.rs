//! Where a new entry goes when all its buckets are full: the only search in this crate, the same
//! for filters, maplets and the map.
//!
//! Every entry has one other bucket, so making room means moving entries along a chain: `x` to the
//! place of `a`, `a` to the place of `b`, `b` to an empty slot. A breadth-first search finds the
//! shortest such chain *before* anything is written: an insert that fails has changed nothing, no
//! entry is ever left over, and there is no random number in it, so the same operations give the
//! same bytes.
//!
//! * Cost: at most [`BUDGET`] slots looked at; per insert 2 to 3 on average at a load of 0.90, 15
//!   at 0.95, 88 at 0.97, in chains of at most 5 moves
//!   (`cargo test -p koel --lib -- --ignored --nocapture cost_of_placement`).
//! * Three searches of four in a filter of one size end with one move, so that is looked for first,
//!   among the eight entries of both buckets at once.
//! * The memory is asked for a bucket some [`LOOKAHEAD`] others before it is looked at, so that a
//!   search in a table that no cache holds does not wait for each: half the time of inserts into a
//!   growing filter of 8 million keys (docs/decisions/0008-growth.md).
//! * A slot is *spare* when the same entry is stored twice in its pair. Instead of moving on, a
//!   spare copy can be handed to the counters, so copies never take room from distinct keys.
//! * The result is a plan. Who carries it out decides what else moves along with each entry.

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use crate::address::geometry::{Geometry, Location};
use crate::packing::SLOTS;

/// Slots whose other bucket is looked at before the search gives up.
pub(crate) const BUDGET: usize = 4096;

/// Buckets that a search asks for before the first of them is looked at, so that it does not wait
/// for each.
pub(crate) const LOOKAHEAD: usize = 8;
/// The same in a table that a cache holds: one that answers soon. Buckets that are opened ahead and
/// not come to are a tenth of a search.
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

/// How to make room: read from the end backwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvictionPath {
    /// Bucket and slot content of each entry that makes way for the one before it. Buckets are all
    /// different.
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

/// The buckets that a search comes to, in the order in which it looks at them: first those it
/// starts from, then of each that it opened those that the entries in it could move to. In columns:
/// what is written in parts and then read as a whole makes a processor wait for its own writes.
#[derive(Clone, Default)]
pub(crate) struct Frontier {
    /// What would move there.
    slots: Vec<u64>,
    buckets: Vec<u64>,
    /// Which way led to the bucket that it would come from. The first ones point to themselves.
    from: Vec<usize>,
    /// The way whose bucket is being opened.
    opening: usize,
}

impl Frontier {
    /// Adds what a slot holds, and a bucket that it could move to; it may be its own.
    pub(crate) fn push(&mut self, slot: u64, bucket: u64) {
        self.slots.push(slot);
        self.buckets.push(bucket);
        self.from.push(self.opening);
    }

    /// Adds the slots of a bucket.
    #[inline(always)]
    pub(crate) fn add(&mut self, Neighbours { slots, others }: Neighbours) {
        self.slots.extend_from_slice(&slots);
        self.buckets.extend_from_slice(&others);
        self.from.extend_from_slice(&[self.opening; SLOTS]);
    }

    /// The buckets, in order.
    pub(crate) fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// Only the buckets that a search starts from.
    fn start(&mut self, roots: impl IntoIterator<Item = u64>) {
        self.slots.clear();
        self.buckets.clear();
        self.from.clear();
        for root in roots {
            self.opening = self.buckets.len();
            self.push(0, root);
        }
    }

    /// The bucket that the entry of a way would come from.
    fn origin(&self, way: usize) -> u64 {
        self.buckets[self.from[way]]
    }
}

/// What the slots of a full bucket hold, and the bucket that each could move to.
pub(crate) struct Neighbours {
    pub(crate) slots: [u64; SLOTS],
    pub(crate) others: [u64; SLOTS],
}

impl Neighbours {
    /// Of a bucket of a filter with these slots, which is in the segment that starts at `base`.
    #[inline(always)]
    pub(crate) fn of(slots: [u64; SLOTS], geometry: &Geometry, (base, bucket): (u64, u64)) -> Self {
        let mut others = slots;
        for other in &mut others {
            *other = geometry.alternate(base, bucket, *other);
        }
        Self { slots, others }
    }
}

/// What a search asks of the table of a filter, whoever else may be changing it.
pub(crate) trait Neighbourhood {
    /// The slots of a full bucket, which is in the segment that starts at `base`.
    fn neighbours(&self, base: u64, bucket: u64) -> Neighbours;

    /// Asks the memory for a bucket.
    fn prefetch(&self, bucket: u64);

    /// Whether it is in a cache that answers soon.
    fn is_near(&self) -> bool;

    /// Whether a slot of `bucket` is empty.
    fn has_room(&self, bucket: u64) -> bool;

    /// Whether an equal one stands beside `slot` of `bucket` in its pair.
    fn is_spare(&self, bucket: u64, slot: u64) -> bool;
}

/// The working memory of searches, kept from one to the next.
#[derive(Clone, Default)]
pub(crate) struct Search {
    ways: Frontier,
    /// How many of them have had their bucket opened, or one like it.
    opened: usize,
    seen: Seen,
    /// How many slots were looked at.
    looked: usize,
    /// The moves of the last plan, to be filled again.
    moves: Vec<(u64, u64)>,
}

impl Search {
    /// The shortest way to room for an entry at `location` of a filter, whose buckets are full, or
    /// `None` if there is none within the budget.
    #[inline(always)]
    pub(crate) fn plan(
        &mut self,
        table: &impl Neighbourhood,
        location: &Location,
        spares: Spares,
    ) -> Option<EvictionPath> {
        if spares != Spares::AtOnce
            && let Some(plan) = self.one_move(table, location)
        {
            return Some(plan);
        }
        if table.is_near() {
            self.many_moves::<LOOKAHEAD_CACHED>(table, location, spares)
        } else {
            self.many_moves::<LOOKAHEAD>(table, location, spares)
        }
    }

    /// The plan of one move that [`shortest`](Self::shortest) would come to first, if there is one.
    /// Three searches of four end here, so all eight entries are looked at at once, without a
    /// branch on which of them it will be, and nothing is noted down for others. Where there is
    /// none the search is where it would be after them.
    #[inline(always)]
    fn one_move(
        &mut self,
        table: &impl Neighbourhood,
        location: &Location,
    ) -> Option<EvictionPath> {
        let (home, alternate) = location.buckets();
        // Not a map over both: that would go through the stack.
        let from_home = table.neighbours(location.base, home);
        let from_alternate = table.neighbours(location.base, alternate);
        // A bit for each, the first one highest: twice as many and one more is an addition with
        // carry.
        let others = from_home.others.iter().chain(&from_alternate.others);
        let rooms = others.fold(0, |rooms, &other| 2 * rooms + u8::from(table.has_room(other)));
        if rooms == 0 {
            self.start([home, alternate]);
            self.open_next(|_, ways| ways.add(from_home));
            self.open_next(|_, ways| ways.add(from_alternate));
            self.looked = self.ways.buckets.len() - 2;
            return None;
        }
        let first = rooms.leading_zeros() as usize;
        let (bucket, from) =
            if first < SLOTS { (home, &from_home) } else { (alternate, &from_alternate) };
        self.looked = first + 1;
        let mut moves = mem::take(&mut self.moves);
        moves.clear();
        moves.push((bucket, from.slots[first % SLOTS]));
        Some(EvictionPath { moves, end: End::Empty(from.others[first % SLOTS]) })
    }

    /// The plan of however many moves; without spare copies from where [`one_move`](Self::one_move)
    /// left the search. Out of line, so that the search for one move has the registers to itself.
    #[inline(never)]
    fn many_moves<const LOOKAHEAD: usize>(
        &mut self,
        table: &impl Neighbourhood,
        location: &Location,
        spares: Spares,
    ) -> Option<EvictionPath> {
        let (home, alternate) = location.buckets();
        let roots = [home, alternate];
        let open = |bucket: u64, ways: &mut Frontier| {
            let neighbours = table.neighbours(location.base, bucket);
            let others = neighbours.others;
            ways.add(neighbours);
            others.iter().for_each(|&other| table.prefetch(other));
        };
        let has_room = |bucket: u64| table.has_room(bucket);
        if spares != Spares::AtOnce {
            let left = self.ways.buckets.len()..roots.len() + BUDGET;
            let plan = self.go_on::<LOOKAHEAD>(left, open, has_room, |_, _| false);
            if plan.is_some() || spares == Spares::Keep {
                return plan;
            }
        }
        let is_spare = |bucket: u64, slot: u64| table.is_spare(bucket, slot);
        self.shortest::<LOOKAHEAD>(roots, open, has_room, is_spare)
    }

    /// The shortest way from the full buckets `roots` to an empty slot, or to one that is spare.
    /// `open` adds the entries of a full bucket, each with another bucket that it may move to.
    /// Which way is found does not depend on `LOOKAHEAD`. Inlined, so that it is compiled for the
    /// table of whoever searches.
    #[inline(always)]
    pub(crate) fn shortest<const LOOKAHEAD: usize>(
        &mut self,
        roots: impl IntoIterator<Item = u64>,
        open: impl Fn(u64, &mut Frontier),
        has_room: impl Fn(u64) -> bool,
        is_spare: impl Fn(u64, u64) -> bool,
    ) -> Option<EvictionPath> {
        self.start(roots);
        let first = self.ways.buckets.len();
        self.go_on::<LOOKAHEAD>(first..first + BUDGET, open, has_room, is_spare)
    }

    /// Forgets the last search, and has nothing but the buckets that one starts from.
    fn start(&mut self, roots: impl IntoIterator<Item = u64>) {
        self.seen.forget(&self.ways.buckets[..self.opened]);
        self.ways.start(roots);
        (self.opened, self.looked) = (0, 0);
    }

    /// Looks at the ways of these numbers, until one ends.
    #[inline(always)]
    fn go_on<const LOOKAHEAD: usize>(
        &mut self,
        ways: Range<usize>,
        open: impl Fn(u64, &mut Frontier),
        has_room: impl Fn(u64) -> bool,
        is_spare: impl Fn(u64, u64) -> bool,
    ) -> Option<EvictionPath> {
        for way in ways {
            while self.opened < way && self.ways.buckets.len() <= way + LOOKAHEAD {
                self.open_next(
                    #[inline(always)]
                    |bucket, ways| open(bucket, ways),
                );
            }
            let bucket = *self.ways.buckets.get(way)?;
            self.looked += 1;
            if has_room(bucket) {
                return Some(self.chain(way, End::Empty(bucket)));
            }
            if is_spare(self.ways.origin(way), self.ways.slots[way]) {
                return Some(self.chain(way, End::Spare));
            }
        }
        None
    }

    /// Opens the next bucket, unless it is one that was opened.
    #[inline(always)]
    fn open_next(&mut self, open: impl FnOnce(u64, &mut Frontier)) {
        let bucket = self.ways.buckets[self.opened];
        if self.seen.insert(bucket) {
            self.ways.opening = self.opened;
            open(bucket, &mut self.ways);
        }
        self.opened += 1;
    }

    /// Takes back the memory of a plan that was carried out.
    pub(crate) fn recycle(&mut self, plan: EvictionPath) {
        self.moves = plan.moves;
    }

    /// The moves that lead from a root along way number `way`, in that order.
    fn chain(&mut self, way: usize, end: End) -> EvictionPath {
        let mut moves = mem::take(&mut self.moves);
        moves.clear();
        let (mut way, mut from) = (way, self.ways.from[way]);
        while way != from {
            moves.push((self.ways.buckets[from], self.ways.slots[way]));
            (way, from) = (from, self.ways.from[from]);
        }
        moves.reverse();
        EvictionPath { moves, end }
    }
}

/// Which buckets a search has been to. In a filter: exact in segments of up to 8192 buckets; in
/// larger ones two buckets may share a bit, and the later one is then looked at but not passed
/// through. No bucket is ever passed through twice.
#[derive(Clone, Default)]
struct Seen(Vec<u64>);

impl Seen {
    /// Unmarks `buckets`, among which are all that are marked. Before the first search it takes the
    /// memory instead.
    fn forget(&mut self, buckets: &[u64]) {
        if self.0.is_empty() {
            self.0.resize(128, 0);
        }
        buckets.iter().for_each(|&bucket| *self.word(bucket) = 0);
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
