//! The rules of filters, maplets and counting filters, and the state that they keep besides slots.
//!
//! ```text
//!     Body      buckets and state: what a face has, and what a file stores
//!     Buckets   a fixed table, or one that grows
//!     State     counters, totals and settings
//!     Reader    a table and its state, for lookups
//!     Writer    a table and its state, for changes
//! ```
//!
//! The rules are written once, for every table that is [`Cuckoo`]:
//!
//! * **Lookup.** A key is in if an entry matches it. Its count is the sum over all matches and
//!   their counters.
//! * **Insert.** In a filter, the first copy of a key gets a slot, and the second gets one if there
//!   is room. Each further copy raises the counter of the longest match. In a counting filter, the
//!   value of the one entry goes up, and from the largest value on its counter. A maplet has no
//!   counters.
//! * **Remove.** A removal lowers the counter of the longest match, or removes that entry. The
//!   entry may be another key's. That key then matches the shorter entries too, since they are the
//!   first bits of the longest one. One of them stays for it, so no key is ever lost.
//! * **Counters.** A counter has the name of its entry, and exists only beside such an entry. An
//!   entry with a counter loses no bits when it moves. When a void entry is split, both halves get
//!   its counter.
//!
//! Counters are in a B-tree, which aborts where there is no memory for a node: its inserts cannot
//! report that. All other memory whose size depends on bytes, keys or arguments is requested in a
//! way that may fail.

mod body;
mod buckets;
mod cluster;
mod count;
pub(crate) mod counters;
mod edit;
pub(crate) mod exact;
pub(crate) mod expire;
mod expire_room;
mod full;
mod grow;
pub(crate) mod insert;
mod lookup;
mod many;
mod merge;
mod patch;
pub(crate) mod record;
mod relate;
mod room;
pub(crate) mod segments;
mod stamps;
pub(crate) mod store;
mod sweep;
pub(crate) mod sweeps;
mod union;
mod value;
mod verify;

pub(crate) use body::Body;
pub(crate) use buckets::{Buckets, changing, on_table, reading};
pub use merge::Merge;
pub(crate) use relate::{Lengths, Overlap, relate};
pub(crate) use stamps::Expiry;

use core::mem;

use crate::error::FullError;
use crate::image::Kind;
use crate::image::shape::Profile;
use crate::packing::Layout;
use crate::state::counters::{ReadCounters, WriteCounters};
use crate::state::exact::ReadExact;
use crate::table::Cuckoo;
use crate::table::search::Search;

/// The most copies of an entry that take slots. Two *keys* share a fingerprint now and then: with
/// one copy, each such pair would need a counter.
const COPIES_IN_BUCKETS: u64 = 2;

/// Counters, totals and settings.
pub(crate) struct State<C: ReadCounters> {
    pub(crate) kind: Kind,
    pub(crate) profile: Profile,
    pub(crate) counters: C,
    /// The stash and the corrections.
    pub(crate) exact: C::Exact,
    /// Keys or pairs inserted and not removed, with copies.
    pub(crate) len: u64,
    /// The number of slots in use.
    pub(crate) entries: u64,
    /// In a filter, the number of slots with the second copy of an entry.
    pub(crate) spares: u64,
    /// The time of an expiring filter, and its stamps.
    pub(crate) expiry: Option<Expiry>,
    search: Search,
}

impl<C: ReadCounters> State<C> {
    /// The state of an empty filter, with these counters.
    pub(crate) fn new(kind: Kind, profile: Profile, counters: C, exact: C::Exact) -> Self {
        let (search, expiry) = (Search::default(), None);
        Self { kind, profile, counters, exact, len: 0, entries: 0, spares: 0, expiry, search }
    }

    /// A copy with counters that can be changed. `None` if there is no memory for the counters.
    fn copy(&self) -> Option<State<C::Owned>> {
        let Self { len, entries, spares, .. } = *self;
        let counters = self.counters.to_owned_counters()?;
        let expiry = self.expiry.as_ref().map(|expiry| Expiry::uncounted(expiry.clock));
        let empty = State::new(self.kind, self.profile, counters, self.exact.to_owned_exact()?);
        Some(State { len, entries, spares, expiry, ..empty })
    }

    /// Bytes that searches have left for the next.
    fn search_bytes(&self) -> usize {
        self.search.allocated_bytes()
    }

    /// The number of slots that one needs for the keys, without second copies and dead entries:
    /// those in use, and those that keys in the stash found taken.
    fn wanted_slots(&self) -> u64 {
        self.distinct() + self.exact.lens()[0]
    }

    /// The number of entries, without second copies and dead ones.
    pub(crate) fn distinct(&self) -> u64 {
        if self.kind == Kind::Expiring { self.len } else { self.entries - self.spares }
    }

    /// Whether a growable filter must leave its fixed table of so many slots before the next key:
    /// it has the keys it was built for, or its stash has a sixteenth as many as there are slots.
    /// Only chosen keys, or a table that is too small for its capacity, lead to that.
    fn must_grow(&self, slots: u64) -> bool {
        let is_at_capacity = self.wanted_slots() >= self.profile.capacity;
        self.profile.growable && (is_at_capacity || self.has_large_stash(slots))
    }

    /// Whether the stash has more than a sixteenth as many keys as there are slots.
    fn has_large_stash(&self, slots: u64) -> bool {
        self.exact.lens()[0] > slots / 16
    }

    fn out_of_slots(&self) -> FullError {
        FullError::Slots { in_use: self.entries, capacity: self.profile.capacity }
    }

    /// Whether it grows instead of returning this error.
    fn grows_instead(&self, full: FullError) -> bool {
        self.profile.growable && matches!(full, FullError::Slots { .. })
    }
}

/// A table and its state, for lookups.
pub(crate) struct Reader<'a, T, C: ReadCounters> {
    pub(crate) table: &'a T,
    pub(crate) state: &'a State<C>,
}

impl<T, C: ReadCounters> Clone for Reader<'_, T, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, C: ReadCounters> Copy for Reader<'_, T, C> {}

/// A table and its state, for changes.
pub(crate) struct Writer<'a, T, C: ReadCounters> {
    pub(crate) table: &'a mut T,
    pub(crate) state: &'a mut State<C>,
}

impl<T: Cuckoo, C: ReadCounters> Writer<'_, T, C> {
    /// A reader of the table and its state.
    #[inline(always)]
    fn reader(&self) -> Reader<'_, T, C> {
        Reader { table: self.table, state: self.state }
    }

    /// Reborrows, for a function that is not inlined: it gets the references in registers.
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
        let mut expiry = self.expiry.take();
        if let Some(expiry) = &mut expiry {
            expiry.clear();
            expiry.clock.forget_evicted();
        }
        let counters = mem::take(&mut self.counters).cleared();
        let empty = Self::new(self.kind, self.profile, counters, C::Exact::default());
        *self = Self { expiry, ..empty };
    }

    /// Forgets what the table held. The exact answers beside it stay.
    fn clear_table(&mut self) {
        self.counters = mem::take(&mut self.counters).cleared();
        (self.entries, self.spares) = (0, 0);
    }

    /// Raises the counter of the entry with this name by `copies`.
    fn count_copies(&mut self, name: u64, copies: u64) -> Result<(), FullError> {
        self.counters.add(name, copies, self.profile.counter_limit).map(|_| ())
    }
}

/// Copies all but the working memory of the search.
impl<C: ReadCounters<Exact: Clone> + Clone> Clone for State<C> {
    fn clone(&self) -> Self {
        let Self { len, entries, spares, .. } = *self;
        let (counters, expiry) = (self.counters.clone(), self.expiry.clone());
        let empty = Self::new(self.kind, self.profile, counters, self.exact.clone());
        Self { len, entries, spares, expiry, ..empty }
    }
}

/// Compares all but the working memory of the search.
impl<C: ReadCounters + PartialEq> PartialEq for State<C> {
    fn eq(&self, other: &Self) -> bool {
        self.profile == other.profile
            && self.counters == other.counters
            && self.exact == other.exact
            && (self.len, self.entries, self.spares) == (other.len, other.entries, other.spares)
            && self.expiry == other.expiry
    }
}
