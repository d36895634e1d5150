//! What a maplet knows besides its slots: how many pairs there are, and what it was built for.
//!
//! The slots are in one of two tables, and each has rules of its own for what is inserted and removed: `built.rs` for the table that the maplet was built with, `grown.rs` for the one
//! that grows. They are methods of the pairs, which are handed the table. Those of a counting filter are its keys and their counts.

use crate::body::Body;
use crate::error::{Full, ImageError, require};
use crate::filter::Profile;
use crate::image::{Growth, Header, Kind};
use crate::layout::SLOTS;
use crate::placement::{Search, Ways};
use crate::sizing;

/// How many there are, and the settings.
pub(super) struct Pairs {
    pub(super) profile: Profile,
    /// Pairs inserted and not removed.
    pub(super) len: u64,
    /// Slots in use.
    pub(super) entries: u64,
    pub(super) search: Search,
}

impl Pairs {
    /// None at all.
    pub(super) fn none(profile: Profile) -> Self {
        Self { profile, len: 0, entries: 0, search: Search::default() }
    }

    /// Those that a header tells of.
    pub(super) fn of(header: &Header) -> Result<Self, ImageError> {
        let profile = header.profile;
        require("distinct entries", header.distinct, header.distinct == 0)?;
        let grows = header.growth.is_some();
        require("flags", u64::from(profile.growable), profile.growable == grows)?;
        let len = header.len.min(header.entries);
        Ok(Self { len, entries: header.entries, ..Self::none(profile) })
    }

    /// What the header of a file says that has these slots, and no counters.
    pub(super) fn header<B: AsRef<[u8]>>(
        &self,
        body: &Body<B>,
        kind: Kind,
        body_checksum: u64,
    ) -> Header {
        Header {
            kind,
            growth: body.grown().map(Growth::of),
            shape: body.shape(),
            profile: self.profile,
            len: self.len,
            entries: self.entries,
            distinct: 0,
            counters: 0,
            body_checksum,
        }
    }

    /// The share of slots in use, 0 to 1.
    pub(super) fn load_factor<B: AsRef<[u8]>>(&self, body: &Body<B>) -> f64 {
        self.entries as f64 / (body.buckets() * SLOTS as u64) as f64
    }

    /// How many entries match an absent key on average.
    pub(super) fn false_candidates<B: AsRef<[u8]>>(&self, body: &Body<B>) -> f64 {
        match body {
            Body::Built(table) => {
                let (bits, buckets) = (table.layout().fraction_bits(), table.geometry().buckets());
                self.entries as f64 / sizing::possible_entries(bits, buckets)
            }
            Body::Grown(grown) => grown.matches_of_an_absent_key(),
        }
    }

    /// Counts a pair that has got a slot.
    #[inline(always)]
    pub(super) fn count_in(&mut self, is_in: bool) {
        self.len += u64::from(is_in);
        self.entries += u64::from(is_in);
    }

    /// Counts a pair that has lost its slot. Where a table has grown, a file may say that there are fewer pairs than entries.
    #[inline(always)]
    pub(super) fn count_out(&mut self, is_out: bool) {
        self.len = self.len.saturating_sub(u64::from(is_out));
        self.entries -= u64::from(is_out);
    }

    /// Why a key whose two buckets are full finds no room: because no entry in them has another bucket to go to, or because the search found none. `open` adds the entries of
    /// a bucket, each with the buckets that it could go to.
    pub(super) fn full(&self, (home, other): (u64, u64), open: impl Fn(u64, &mut Ways)) -> Full {
        let mut ways = Ways::default();
        open(home, &mut ways);
        open(other, &mut ways);
        if ways.buckets().iter().all(|&bucket| bucket == home || bucket == other) {
            let buckets = if home == other { 1 } else { 2 };
            return Full::Values { held: buckets * SLOTS as u64 };
        }
        self.out_of_slots()
    }

    pub(super) fn out_of_slots(&self) -> Full {
        Full::Slots { in_use: self.entries, capacity: self.profile.capacity }
    }
}

impl Clone for Pairs {
    fn clone(&self) -> Self {
        Self { search: Search::default(), ..*self }
    }
}

/// Equal, but for the working memory.
impl PartialEq for Pairs {
    fn eq(&self, other: &Self) -> bool {
        self.profile == other.profile && (self.len, self.entries) == (other.len, other.entries)
    }
}
