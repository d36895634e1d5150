//! What a filter, a maplet or a counting filter is besides its slots, and the rules for both.
//!
//! ```text
//!     Body      buckets and state: what the faces are made of, and what a file holds
//!     Buckets   a table of one size, or one that grows
//!     State     the counters, the totals and the settings
//!     Reader    a table with its state: the rules for questions
//!     Writer    the same to be changed: the rules for changes
//! ```
//!
//! The rules are written once, for every table that is [`Cuckoo`]:
//!
//! * A key is in the set if an entry matches it. Its count is what all matches say, with their
//!   counters.
//! * In a filter, the first copy of a key gets a slot, and the second one where there is room. From
//!   then on the counter of the longest match goes up. In a counting filter the value of the one
//!   entry goes up, and beyond the largest value its counter. A maplet has no counters.
//! * A removal takes from the counter of the longest match, or takes out that entry. It may be
//!   another key's. Then the other key matches the shorter entries too, which are the first bits of
//!   the longest one, and one of them is left for it: no key is ever lost.
//! * A counter goes by the name of its entry and exists only beside such an entry. An entry with a
//!   counter loses no bit when it moves. A void entry that is split leaves its counter to both
//!   halves.

mod body;
mod buckets;
mod count;
pub(crate) mod counters;
mod grow;
mod insert;
mod many;
mod merge;
mod relate;
mod room;
pub(crate) mod store;
mod value;
mod verify;

pub(crate) use body::Body;
pub(crate) use buckets::{Buckets, changing, on_table, reading};
pub use merge::Merge;
pub(crate) use relate::{Lengths, Surplus};

use crate::error::FullError;
use crate::image::Kind;
use crate::image::shape::Profile;
use crate::packing::Layout;
use crate::state::counters::{ReadCounters, WriteCounters};
use crate::table::Cuckoo;
use crate::table::search::Search;

/// Copies of an entry that may stay in the buckets. Two rather than one, because now and then two
/// *keys* share a fingerprint: with one, each such pair would need a counter.
const COPIES_IN_BUCKETS: u64 = 2;

/// The counters, the totals and the settings.
pub(crate) struct State<C> {
    pub(crate) kind: Kind,
    pub(crate) profile: Profile,
    pub(crate) counters: C,
    /// Keys or pairs inserted and not removed, copies included.
    pub(crate) len: u64,
    /// Slots in use.
    pub(crate) entries: u64,
    /// Second copies of entries among them, in a filter.
    pub(crate) spares: u64,
    search: Search,
}

impl<C: ReadCounters> State<C> {
    /// The state of an empty filter, with these counters.
    pub(crate) fn new(kind: Kind, profile: Profile, counters: C) -> Self {
        Self { kind, profile, counters, len: 0, entries: 0, spares: 0, search: Search::default() }
    }

    /// The same with counters that can be changed.
    pub(crate) fn to_owned_state(&self) -> State<C::Owned> {
        self.with_counters(self.counters.to_owned_counters())
    }

    fn with_counters<D: ReadCounters>(&self, counters: D) -> State<D> {
        let Self { len, entries, spares, .. } = *self;
        State { len, entries, spares, ..State::new(self.kind, self.profile, counters) }
    }

    /// Entries without their second copies.
    pub(crate) fn distinct(&self) -> u64 {
        self.entries - self.spares
    }

    fn out_of_slots(&self) -> FullError {
        FullError::Slots { in_use: self.entries, capacity: self.profile.capacity }
    }

    /// Whether the filter grows instead of returning this error.
    fn grows_instead(&self, full: FullError) -> bool {
        self.profile.growable && matches!(full, FullError::Slots { .. })
    }
}

/// A table with its state, to be read.
pub(crate) struct Reader<'a, T, C> {
    pub(crate) table: &'a T,
    pub(crate) state: &'a State<C>,
}

impl<T, C> Clone for Reader<'_, T, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, C> Copy for Reader<'_, T, C> {}

/// A table with its state, to be changed.
pub(crate) struct Writer<'a, T, C> {
    pub(crate) table: &'a mut T,
    pub(crate) state: &'a mut State<C>,
}

impl<T: Cuckoo, C> Writer<'_, T, C> {
    /// The same to be read.
    #[inline(always)]
    fn reader(&self) -> Reader<'_, T, C> {
        Reader { table: self.table, state: self.state }
    }

    /// The same for a function that is not inlined: handed over in registers.
    #[inline(always)]
    fn reborrow(&mut self) -> Writer<'_, T, C> {
        Writer { table: self.table, state: self.state }
    }

    fn layout(&self) -> Layout {
        self.table.table().layout()
    }
}

impl<C: WriteCounters> State<C> {
    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.kind, self.profile, C::default());
    }

    /// Counts so many copies more of the entry of this name.
    fn count_copies(&mut self, name: u64, copies: u64) -> Result<(), FullError> {
        self.counters.add(name, copies, self.profile.counter_limit).map(|_| ())
    }
}

/// Equal, but for the working memory.
impl<C: PartialEq> PartialEq for State<C> {
    fn eq(&self, other: &Self) -> bool {
        self.profile == other.profile
            && self.counters == other.counters
            && (self.len, self.entries, self.spares) == (other.len, other.entries, other.spares)
    }
}

impl<C: WriteCounters> Clone for State<C> {
    fn clone(&self) -> Self {
        self.with_counters(self.counters.clone())
    }
}
