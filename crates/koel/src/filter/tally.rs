//! What a filter knows besides its slots: the counters of its copies, its totals, and what it was built for.
//!
//! The slots are in one of two tables, and each has rules of its own for what an insert and a removal do to both: `built.rs` for the table that the filter was built with,
//! `grown/` for the one that grows. They are methods of the tally, which are handed the table.

use super::Profile;
use crate::counters::{Counters, ReadCounters};
use crate::error::Full;
use crate::placement::Search;

/// Copies of an entry that may stay in the buckets. Two rather than one, because now and then two *keys* share a fingerprint: with one, each such
/// pair would need a counter.
pub(super) const COPIES_IN_BUCKETS: u64 = 2;

/// The counters, the totals and the settings.
pub(super) struct Tally<C> {
    pub(super) counters: C,
    pub(super) profile: Profile,
    /// Keys inserted and not removed, copies included.
    pub(super) len: u64,
    /// Slots in use.
    pub(super) entries: u64,
    /// Second copies of entries among them.
    pub(super) spares: u64,
    pub(super) search: Search,
}

impl<C: Default> Tally<C> {
    /// That of an empty filter.
    pub(super) fn none(profile: Profile) -> Self {
        let counters = C::default();
        Self { counters, profile, len: 0, entries: 0, spares: 0, search: Search::default() }
    }
}

impl<C: ReadCounters> Tally<C> {
    /// The same with counters that can be changed.
    pub(super) fn to_owned_tally(&self) -> Tally<Counters> {
        self.with_counters(Counters::from_iter(self.counters.iter()))
    }

    fn with_counters<D>(&self, counters: D) -> Tally<D> {
        let Self { profile, len, entries, spares, .. } = *self;
        Tally { counters, profile, len, entries, spares, search: Search::default() }
    }

    /// Entries without their second copies.
    pub(super) fn distinct(&self) -> u64 {
        self.entries - self.spares
    }

    pub(super) fn out_of_slots(&self) -> Full {
        Full::Slots { in_use: self.entries, capacity: self.profile.capacity }
    }

    /// Whether the filter grows instead of this error.
    pub(super) fn grows_instead(&self, full: Full) -> bool {
        self.profile.growable && matches!(full, Full::Slots { .. })
    }
}

impl Tally<Counters> {
    /// Counts so many copies more of the entry of this name.
    pub(super) fn count_copies(&mut self, identity: u64, copies: u64) -> Result<(), Full> {
        self.counters.add(identity, copies, self.profile.counter_limit).map(|_| ())
    }
}

/// Equal, but for the working memory.
impl PartialEq for Tally<Counters> {
    fn eq(&self, other: &Self) -> bool {
        self.profile == other.profile
            && self.counters == other.counters
            && (self.len, self.entries, self.spares) == (other.len, other.entries, other.spares)
    }
}

impl Clone for Tally<Counters> {
    fn clone(&self) -> Self {
        self.with_counters(self.counters.clone())
    }
}
