//! The rules of filters, maplets and counting filters, and the state that they keep besides slots.
//!
//! ```text
//!     Body      a table and its state: what a face has, and what a file stores
//!     Table     buckets, of one size or growing (table/)
//!     State     counters, stash and corrections (side.rs), totals and settings
//! ```
//!
//! The rules are methods of [`Body`], written once for all types:
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
//! The lists of side.rs are B-trees, which abort where there is no memory for a node: their inserts
//! cannot report that. All other memory whose size depends on bytes, keys or arguments is requested
//! in a way that may fail.

mod body;
mod cluster;
mod count;
pub(crate) mod edit;
pub(crate) mod expire;
mod grow;
mod lookup;
mod many;
mod merge;
mod patch;
mod relate;
mod room;
pub(crate) mod runs;
pub(crate) mod segments;
mod stamps;
pub(crate) mod store;
mod sweep;
mod union;
mod value;
mod verify;

pub(crate) use body::Body;
pub use merge::Merge;
pub(crate) use relate::{Lengths, Overlap, are_same, relate};
pub(crate) use stamps::Expiry;

use crate::error::FullError;
use crate::image::shape::Profile;
use crate::image::{Clock, Kind};
use crate::mem::buffer::Buffer;
use crate::side::{Records, Side};
use crate::table::search::Search;

/// The most copies of an entry that take slots. Two *keys* share a fingerprint now and then: with
/// one copy, each such pair would need a counter.
const COPIES_IN_BUCKETS: u64 = 2;

/// Counters, totals and settings.
pub(crate) struct State<B> {
    kind: Kind,
    pub(crate) profile: Profile,
    /// Counters, stash and corrections.
    pub(crate) side: Side<B>,
    /// Keys or pairs inserted and not removed, with copies.
    pub(crate) len: u64,
    /// The number of slots in use.
    pub(crate) entries: u64,
    /// In a filter, the number of slots with the second copy of an entry.
    pub(crate) spares: u64,
    /// The time of an expiring filter, and its stamps: see [`time`](Self::time).
    expiry: Option<Expiry<B>>,
    search: Search,
}

impl<B: AsRef<[u8]>> State<B> {
    /// The state of an empty filter.
    pub(crate) fn new(kind: Kind, profile: Profile) -> Self {
        let (search, side) = (Search::default(), Side::default());
        Self { kind, profile, side, len: 0, entries: 0, spares: 0, expiry: None, search }
    }

    /// What it is a state of. Without other kinds, the code for them is left out.
    #[inline(always)]
    pub(crate) fn kind(&self) -> Kind {
        if cfg!(feature = "kinds") { self.kind } else { Kind::Filter }
    }

    /// The time of an expiring filter, and its stamps, if it is one. As [`kind`](Self::kind).
    #[inline(always)]
    pub(crate) fn time(&self) -> Option<&Expiry<B>> {
        if cfg!(feature = "kinds") { self.expiry.as_ref() } else { None }
    }

    /// The same, to change it.
    #[inline(always)]
    fn time_mut(&mut self) -> Option<&mut Expiry<B>> {
        if cfg!(feature = "kinds") { self.expiry.as_mut() } else { None }
    }

    /// A copy that can be changed, without the counts of stamps. `None` if there is no memory for
    /// it.
    fn copy(&self) -> Option<State<Buffer>> {
        let Self { kind, profile, len, entries, spares, .. } = *self;
        let expiry = match self.time() {
            Some(expiry) => Some(expiry.copy()?),
            None => None,
        };
        let side = self.side.copy()?;
        Some(State { side, len, entries, spares, expiry, ..State::new(kind, profile) })
    }

    /// The time of an expiring filter.
    ///
    /// # Panics
    /// If it is the state of something else.
    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.expiry_ref().clock
    }

    /// [`clock`](Self::clock), with stamps and sweeps.
    #[inline]
    fn expiry_ref(&self) -> &Expiry<B> {
        let Some(expiry) = self.time() else { unreachable!("an expiring filter has a clock") };
        expiry
    }

    /// [`expiry_ref`](Self::expiry_ref), to change them.
    #[inline]
    fn expiry(&mut self) -> &mut Expiry<B> {
        let Some(expiry) = self.time_mut() else { unreachable!("an expiring filter has a clock") };
        expiry
    }

    /// Bytes that searches have left for the next.
    fn search_bytes(&self) -> usize {
        self.search.allocated_bytes()
    }

    /// The number of slots that one needs for the keys, without second copies and dead entries:
    /// those in use, and those that keys in the stash found taken.
    fn wanted_slots(&self) -> u64 {
        self.distinct() + self.side.stash.len()
    }

    /// The number of entries, without second copies and dead ones.
    pub(crate) fn distinct(&self) -> u64 {
        if self.kind() == Kind::Expiring { self.len } else { self.entries - self.spares }
    }

    /// Whether a growable filter must leave its fixed table of so many slots before the next key:
    /// it has the keys it was built for, or its stash has a sixteenth as many as there are slots.
    /// Only chosen keys, or a table that is too small for its capacity, lead to that. A table that
    /// grows does so for its load alone, whatever the stash has.
    fn must_grow(&self, slots: u64) -> bool {
        let is_at_capacity = self.wanted_slots() >= self.profile.capacity;
        self.profile.growable && (is_at_capacity || self.side.stash.len() > slots / 16)
    }

    fn out_of_slots(&self) -> FullError {
        FullError::Slots { in_use: self.entries, capacity: self.profile.capacity }
    }

    /// Whether it grows instead of returning this error.
    fn grows_instead(&self, full: FullError) -> bool {
        self.profile.growable && matches!(full, FullError::Slots { .. })
    }
}

impl State<Buffer> {
    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        let mut expiry = self.expiry.take();
        if let Some(expiry) = &mut expiry {
            expiry.clear();
            expiry.clock.forget_evicted();
        }
        *self = Self { expiry, ..Self::new(self.kind, self.profile) };
    }

    /// Forgets what the table held. The exact answers beside it stay.
    fn clear_table(&mut self) {
        self.side.counters = Records::default();
        (self.entries, self.spares) = (0, 0);
    }

    /// Raises the counter of the entry with this name by `copies`.
    fn count_copies(&mut self, name: u64, copies: u64) -> Result<(), FullError> {
        self.side.counters.add(name, copies, self.profile.counter_limit).map(|_| ())
    }
}

/// Copies all but the working memory of the search.
impl<B: AsRef<[u8]> + Clone> Clone for State<B> {
    fn clone(&self) -> Self {
        let Self { kind, profile, len, entries, spares, .. } = *self;
        let (side, expiry) = (self.side.clone(), self.expiry.clone());
        Self { side, len, entries, spares, expiry, ..Self::new(kind, profile) }
    }
}

/// Compares all but the working memory of the search.
impl<B: AsRef<[u8]>> PartialEq for State<B> {
    fn eq(&self, other: &Self) -> bool {
        self.profile == other.profile
            && self.side == other.side
            && (self.len, self.entries, self.spares) == (other.len, other.entries, other.spares)
            && self.expiry == other.expiry
    }
}
