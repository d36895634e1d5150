//! What the rules of a filter ask of its table, of one size or growing.
//!
//! The rules are in `state/`, written once. The tables differ in how they compare an entry with a
//! key, and in growth: an entry may lose bits when it moves, and the table keeps its match weight.

use super::{Addressing, Match, Prefix, Put, Table, Taken};
use crate::mem::buffer::Buffer;

/// Whether something holds for an entry with this slot and this name.
pub(crate) type EntryTest<'a> = dyn Fn(u64, u64) -> bool + 'a;

/// Below this load, a failed search says more about the keys than about the room: growth would not
/// help them.
const SPARSE_LOAD: f64 = 0.5;

/// What became of a step of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Some buckets were split or widened.
    Done,
    /// The table cannot grow, or growth would make no room. Nothing was changed.
    Refused,
    /// The system has no memory for more buckets. Nothing was changed.
    NoMemory,
}

/// A table that is read.
pub(crate) trait Cuckoo {
    type Bytes: AsRef<[u8]>;
    type Addresses: Addressing;

    /// The buckets.
    fn table(&self) -> &Table<Self::Bytes, Self::Addresses>;

    /// Whether an entry matches the key with this address.
    fn contains(&self, address: u64) -> bool;

    /// Where the key with this address may live, and whether an entry there matches it.
    fn look_up(&self, address: u64) -> (LocationOf<Self>, bool);
}

/// Where a key of a table may live.
pub(crate) type LocationOf<T> = <<T as Cuckoo>::Addresses as Addressing>::Location;

/// Whether a table grows.
pub(crate) const fn grows<T: Cuckoo>() -> bool {
    T::Addresses::GROWS
}

/// A table that is changed.
pub(crate) trait CuckooMut: Cuckoo<Bytes = Buffer> + Sized {
    /// The buckets.
    fn table_mut(&mut self) -> &mut Table<Buffer, Self::Addresses>;

    /// Adds an entry for the key of a location to an empty slot, if at most `most` entries match.
    fn put(&mut self, location: &LocationOf<Self>, value: u64, most: u64) -> Put;

    /// Takes out the longest entry with this value that matches. `None` if `is_counted` took one
    /// from the counter of this name instead.
    fn take(
        &mut self,
        location: &LocationOf<Self>,
        value: u64,
        is_counted: impl FnOnce(u64) -> bool,
    ) -> Option<Taken>;

    /// Changes the value of the longest entry with value `old` that matches. False if there is
    /// none.
    fn revalue(&mut self, location: &LocationOf<Self>, old: u64, new: u64) -> bool;

    /// Writes another slot over that of an entry: with another value, or 0 to take it out.
    fn write(&mut self, entry: &Match, slot: u64) {
        let table = self.table_mut();
        table.replace(entry.bucket, entry.slot, slot);
        if slot == 0 {
            table.match_weight -= Self::Addresses::weight_of(entry.prefix.length);
        }
    }

    /// The same location after the table has grown.
    fn relocate(&self, location: &LocationOf<Self>) -> LocationOf<Self> {
        self.table().geometry().relocate(location)
    }

    /// The load that growth can change, with so many entries: of the slots that void entries leave.
    /// 1 in a table of one size.
    fn divisible_load(&self, _entries: u64) -> f64 {
        1.0
    }

    /// Whether so many entries leave so much room that a failed search says more about the keys.
    fn is_sparse(&self, entries: u64) -> bool {
        self.divisible_load(entries) <= SPARSE_LOAD
    }

    /// Whether a prefix is too short to tell its other bucket.
    fn is_short(&self, location: &LocationOf<Self>) -> bool {
        self.table().geometry().is_short(location)
    }

    /// Whether an entry stores as many bits of this prefix as every bucket can.
    fn is_whole(&self, entry: &Match, prefix: &Prefix) -> bool {
        entry.prefix.length >= prefix.length.min(self.table().geometry().common_length())
    }

    /// Whether an entry may lose the bits beyond this length.
    fn may_shorten(&self, entry: &Match, length: u32) -> bool {
        let shorter = Prefix { length, ..entry.prefix };
        let bucket = self.table().geometry().bucket_of(shorter.base, &shorter);
        entry.prefix.length > length && bucket.is_some()
    }

    /// Cuts the prefix of an entry to this length, which [it may](Self::may_shorten), and gives it
    /// this value.
    fn shorten(&mut self, entry: &Match, length: u32, value: u64) {
        let table = self.table_mut();
        let Some(location) = table.geometry.location(Prefix { length, ..entry.prefix }) else {
            return;
        };
        let [fingerprint, _] = table.geometry.fingerprints(&location);
        let slot = table.layout.slot(fingerprint, value);
        table.replace(entry.bucket, entry.slot, slot);
        let stored = table.geometry.stored_length(&location, 0);
        table.match_weight -= Self::Addresses::weight_of(entry.prefix.length);
        table.match_weight += Self::Addresses::weight_of(stored);
    }

    /// The bucket that the next [`split`](Self::split) splits after so many others; `None` beyond
    /// the last one.
    fn nth_to_split(&self, _others: u64) -> Option<u64> {
        None
    }

    /// Splits the next chunk of buckets, or widens the next ones. Calls `doubled` with the value
    /// and the name of each void entry, which is in two buckets from then on, and the names of both
    /// halves.
    fn split(&mut self, _doubled: &mut impl FnMut(u64, u64, [u64; 2])) -> Step {
        Step::Refused
    }

    /// Gets memory for as many [splits](Self::split) as one insert makes. Returns how many buckets
    /// there may be then; `None`, and no byte changed, where the system has no memory.
    fn reserve_steps(&mut self) -> Option<u64> {
        Some(self.table().geometry().buckets())
    }

    /// Whether a search that found no room may find some after a [`split`](Self::split).
    fn may_gain_room(&self, _entries: u64) -> bool {
        false
    }

    /// Widens all buckets that are still narrow. False if none is.
    fn finish_widening(&mut self) -> bool {
        false
    }
}
