//! What the rules of a filter ask of its table, of one size or growing.
//!
//! The rules are in `state/`, written once. What they read is in `matches.rs`, the same for all
//! tables. What they change differs: entries of a growing table may lose bits when they move, and
//! its match weight is kept. The operations that take a hash are those of hot paths; they read both
//! buckets of the key once.

use super::{Match, Prefix, Prefixes, Put, Table, Taken};
use crate::packing::SLOTS;
use crate::table::search::{EvictionPath, Frontier, Search, Spares};

/// Whether something holds for an entry with this slot and this name.
pub(crate) type EntryTest<'a> = dyn Fn(u64, u64) -> bool + 'a;

/// What a removal took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    /// Nothing: no entry matches.
    Nothing,
    /// One from the counter of an entry.
    Counted,
    /// One of several entries that match.
    Copy,
    /// The only entry that matched.
    Last,
}

impl From<Taken> for Removed {
    #[inline(always)]
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Nothing => Self::Nothing,
            Taken::Copy => Self::Copy,
            Taken::Last => Self::Last,
        }
    }
}

/// A table that is read.
pub(crate) trait Cuckoo {
    type Bytes: AsRef<[u8]>;
    type Addresses: Prefixes;

    /// The buckets.
    fn table(&self) -> &Table<Self::Bytes, Self::Addresses>;

    /// Whether an entry matches the key with this hash.
    fn contains(&self, hash: u64) -> bool;
}

/// Where a key of a table may live.
pub(crate) type LocationOf<T> = <<T as Cuckoo>::Addresses as Prefixes>::Location;

/// Whether a table grows.
pub(crate) const fn grows<T: Cuckoo>() -> bool {
    T::Addresses::GROWS
}

/// A table that is changed. The methods that have a body are those of growth: a table of one size
/// has nothing to do there.
pub(crate) trait CuckooMut: Cuckoo {
    /// Adds the entry of the key with this hash to an empty slot, where at most `most` entries
    /// match the key. Returns where the key may live, too.
    fn put_key(&mut self, hash: u64, value: u64, most: u64) -> (LocationOf<Self>, Put);

    /// The same at a location.
    fn put(&mut self, at: &LocationOf<Self>, value: u64, most: u64) -> Put;

    /// Takes out the longest entry with this value that matches the key, unless `is_counted`
    /// takes one from the counter of this name.
    fn take_key(&mut self, hash: u64, value: u64, is_counted: impl FnOnce(u64) -> bool) -> Removed;

    /// Changes the value of the longest entry with value `old` that matches the key; false if there
    /// is none.
    fn revalue_key(&mut self, hash: u64, old: u64, new: u64) -> bool;

    /// Writes another slot over that of an entry: with another value, or 0 to take it out.
    fn write(&mut self, entry: &Match, slot: u64);

    /// The shortest way to room for an entry whose buckets are full, along which entries that are
    /// `pinned` keep all their bits.
    fn way_to_room(
        &self,
        search: &mut Search,
        at: &LocationOf<Self>,
        spares: Spares,
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath>;

    /// Makes the moves of a plan, the last one first, so that no entry is ever in no bucket. Adds
    /// an entry where the first one was.
    fn carry_out(&mut self, plan: &EvictionPath, at: &LocationOf<Self>, value: u64);

    /// Adds the buckets that the entries of a full bucket of a location could move to.
    fn open(
        &self,
        at: &LocationOf<Self>,
        bucket: u64,
        pinned: Option<&EntryTest<'_>>,
        ways: &mut Frontier,
    );

    /// Slots of the full buckets of a location, where no entry in them has another bucket to go to.
    fn held_fast(&self, at: &LocationOf<Self>, pinned: Option<&EntryTest<'_>>) -> Option<u64> {
        let (home, other) = Self::Addresses::pair(at);
        let mut ways = Frontier::default();
        self.open(at, home, pinned, &mut ways);
        self.open(at, other, pinned, &mut ways);
        let buckets = if home == other { 1 } else { 2 };
        let is_closed = ways.buckets().iter().all(|&bucket| bucket == home || bucket == other);
        is_closed.then_some(buckets * SLOTS as u64)
    }

    /// The same location after the table has grown.
    fn relocate(&self, at: &LocationOf<Self>) -> LocationOf<Self> {
        *at
    }

    /// Whether so many entries are more than the table should hold.
    fn is_due(&self, _entries: u64) -> bool {
        false
    }

    /// Whether splitting buckets may help an entry for which no room was found.
    fn is_hopeful(&self, _entries: u64) -> bool {
        false
    }

    /// Whether so many entries leave so much room that a failed search says more about the keys.
    fn is_sparse(&self, _entries: u64) -> bool {
        false
    }

    /// Splits the next chunk of buckets, or widens the next ones. Calls `doubled` with the name of
    /// each void entry, which is in two buckets from then on, and the names of both halves. False,
    /// and nothing changed, where the table cannot grow or where growth would make no room.
    fn split(&mut self, _doubled: &mut impl FnMut(u64, [u64; 2])) -> bool {
        false
    }

    /// Widens all buckets that are still narrow; false if none is.
    fn finish_widening(&mut self) -> bool {
        false
    }

    /// Whether both buckets of a location are one, in a table that grows.
    fn is_alone(_at: &LocationOf<Self>) -> bool {
        false
    }

    /// Whether a prefix is too short to say which its other bucket is.
    fn is_short(&self, _at: &LocationOf<Self>) -> bool {
        false
    }

    /// Whether an entry has as many bits of this prefix as every bucket has room for.
    fn is_whole(&self, _entry: &Match, _prefix: &Prefix) -> bool {
        true
    }

    /// The two entries in a bucket of a location that have most bits in common, and how many bits.
    fn closest(&self, _at: &LocationOf<Self>) -> Option<(Match, Match, u32)> {
        None
    }

    /// Whether an entry may lose the bits beyond this length.
    fn may_shorten(&self, _entry: &Match, _length: u32) -> bool {
        false
    }

    /// Cuts the prefix of an entry to so many bits and gives it this value.
    fn shorten(&mut self, _entry: &Match, _length: u32, _value: u64) {}
}
