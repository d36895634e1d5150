//! A maplet that grows: its fingerprints are marked from the start, and match a key by what they know of it (growth.rs).
//!
//! The rules are those of a filter that has grown, without counters: every pair has a slot. Removing and replacing take the longest match of the value, so that each
//! other pair still has an entry of its own.

use crate::body::Body;
use crate::error::Full;
use crate::growth::{self, Grown};
use crate::maplet::Maplet;
use crate::placement::{Search, Ways};
use crate::table::{Candidates, EntryTest, Exceptions, Match, Prefix, Put, Site, Stretch};

impl<B: AsRef<[u8]>> Grown<B> {
    /// The slots that match the key with this hash.
    pub(super) fn candidates(&self, hash: u64) -> Candidates {
        let site = self.addresses().locate(hash);
        self.table().candidates(site.buckets(), self.table().keys(&site))
    }

    /// The longest match of a key with this value.
    fn longest_with(&self, site: &Site, value: u64) -> Option<Match> {
        let layout = self.table().layout();
        let matches = self.table().matches(site);
        let with = matches.filter(|entry| layout.value_of(entry.slot) == value);
        with.max_by_key(|entry| entry.prefix.length)
    }
}

impl Maplet {
    /// Adds a pair to a maplet that grows.
    pub(super) fn insert_grown(&mut self, hash: u64, value: u64) -> Result<(), Full> {
        self.add_grown(hash, value, None, |_, _| {})
    }

    /// Adds a pair, where entries that are `pinned` forget nothing; hands void entries that are in two buckets from now on to `doubled`.
    pub(super) fn add_grown(
        &mut self,
        hash: u64,
        value: u64,
        pinned: Option<&EntryTest<'_>>,
        mut doubled: impl FnMut(&Stretch, Prefix),
    ) -> Result<(), Full> {
        self.check_value(value);
        loop {
            let Some(grown) = &self.body.grown else { return Ok(()) };
            let site = grown.addresses().locate(hash);
            if self.place_grown(&site, value, pinned) {
                break;
            }
            self.split_for(&site, pinned, &mut doubled)?;
        }
        self.keep_load(0, &mut doubled);
        Ok(())
    }

    /// Gives the prefix of `site` a slot in the table as it is; false, and nothing changed, where there is none.
    #[inline]
    pub(super) fn place_grown(
        &mut self,
        site: &Site,
        value: u64,
        pinned: Option<&EntryTest<'_>>,
    ) -> bool {
        let Some(grown) = &mut self.body.grown else { return false };
        let exceptions = Exceptions { pinned, spare: None };
        let is_in = grown.put(site, value, u64::MAX) == Put::Done
            || grown.make_room(&mut self.search, site, value, exceptions).is_some();
        self.len += u64::from(is_in);
        self.entries += u64::from(is_in);
        is_in
    }

    /// Splits chunks until the load is what it should be with so many `more` entries.
    pub(super) fn keep_load(&mut self, more: u64, doubled: &mut impl FnMut(&Stretch, Prefix)) {
        while self.body.grown.as_ref().is_some_and(|grown| grown.is_due(self.entries + more))
            && self.split(doubled)
        {}
    }

    /// Splits the next chunk because no room was found, if that can help.
    pub(super) fn split_for_room(&mut self, doubled: &mut impl FnMut(&Stretch, Prefix)) -> bool {
        let hopeful = self.body.grown.as_ref().is_some_and(|grown| grown.is_hopeful(self.entries));
        hopeful && self.split(doubled)
    }

    /// Splits the next chunk of buckets because no room was found at `site`; why there is none where that would not help.
    fn split_for(
        &mut self,
        site: &Site,
        pinned: Option<&EntryTest<'_>>,
        doubled: &mut impl FnMut(&Stretch, Prefix),
    ) -> Result<(), Full> {
        let Some(grown) = &self.body.grown else { return Ok(()) };
        let open = |bucket, ways: &mut Ways| grown.table().open(bucket, pinned, ways);
        let full = self.full(site.buckets(), open);
        // Values of the key itself would be together in any table.
        let is_hopeless = matches!(full, Full::Values { .. });
        if !is_hopeless && self.split_for_room(doubled) { Ok(()) } else { Err(full) }
    }

    /// Splits the next chunk of buckets; false where the table is as large as can be.
    fn split(&mut self, doubled: &mut impl FnMut(&Stretch, Prefix)) -> bool {
        let Some(grown) = &mut self.body.grown else { return false };
        let mut twins = 0;
        let done = grown.split(|addresses, void| {
            twins += 1;
            doubled(addresses, void);
        });
        self.entries += twins;
        done
    }

    /// Gives back the memory that the entries do not need, down to the size that the maplet was built with. Builds the smaller table beside this one, so it takes the
    /// memory of both for a while; where the entries do not fit into that, one for twice as many is tried. O(buckets).
    pub fn shrink_to_fit(&mut self) {
        let empty = |room| self.smaller(room);
        if let Some(smaller) =
            growth::moved_to_fewer(self.entries, empty, |empty| self.moved_to(empty))
        {
            *self = smaller;
        }
    }

    /// The maplet without its entries, in the smallest table for so many; `None` where that is no smaller than this one.
    pub(super) fn smaller(&self, entries: u64) -> Option<Self> {
        let table = self.body.grown.as_ref()?.smaller(entries)?;
        let (body, search) = (Body::grown(&self.body.table, table), Search::default());
        Some(Self { body, search, len: 0, entries: 0, ..*self })
    }

    /// All entries in `smaller`; `None` where they do not fit, or only once it is no smaller.
    fn moved_to(&self, mut smaller: Self) -> Option<Self> {
        let (grown, layout) = (self.body.grown.as_ref()?, self.layout());
        let moved = (0..grown.buckets())
            .flat_map(|bucket| grown.table().entries_of(bucket))
            .all(|entry| smaller.add_prefix(entry.prefix, layout.value_of(entry.slot)));
        smaller.len = self.len;
        (moved && smaller.slots() < self.slots()).then_some(smaller)
    }

    /// Adds an entry of another maplet; false, and it may have grown, where there is no room.
    fn add_prefix(&mut self, prefix: Prefix, value: u64) -> bool {
        loop {
            let site = self.body.grown.as_ref().and_then(|grown| grown.addresses().site(prefix));
            let Some(site) = site else { return false };
            if self.place_grown(&site, value, None) {
                return true;
            }
            if !self.split_for_room(&mut |_, _| {}) {
                return false;
            }
        }
    }

    /// Makes one pair of the key and `old` one of the key and `new`.
    pub(super) fn replace_grown(&mut self, hash: u64, old: u64, new: u64) -> bool {
        self.check_value(new);
        let Some(grown) = &mut self.body.grown else { return false };
        let site = grown.addresses().locate(hash);
        let found = grown.longest_with(&site, old);
        found.is_some_and(|entry| grown.revalue(&entry, new))
    }

    /// Takes out one pair of the key and `value`.
    pub(super) fn remove_grown(&mut self, hash: u64, value: u64) -> bool {
        let Some(grown) = &mut self.body.grown else { return false };
        let site = grown.addresses().locate(hash);
        let Some(entry) = grown.longest_with(&site, value) else { return false };
        grown.take(&entry);
        self.entries -= 1;
        self.len = self.len.saturating_sub(1);
        true
    }
}
