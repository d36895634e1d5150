//! A maplet in a table that grows: its fingerprints are marked from the start, and match a key by what they know of it (growth.rs).
//!
//! The rules are those of a filter that has grown, without counters: every pair has a slot. Removing and replacing take the longest match of the value, so that each
//! other pair still has an entry of its own.

use super::built::check_value;
use super::pairs::Pairs;
use crate::buffer::Buffer;
use crate::error::Full;
use crate::growth::Grown;
use crate::placement::Ways;
use crate::table::{Candidates, EntryTest, Match, Prefix, Put, Site, Stretch};

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

impl Grown<Buffer> {
    /// Makes one pair of the key and `old` one of the key and `new`.
    pub(super) fn replace(&mut self, hash: u64, old: u64, new: u64) -> bool {
        check_value(self.table().layout(), new);
        let site = self.addresses().locate(hash);
        self.longest_with(&site, old).is_some_and(|entry| self.revalue(&entry, new))
    }
}

impl Pairs {
    /// Adds a pair, where entries that are `pinned` forget nothing; hands void entries that are in two buckets from now on to `doubled`.
    pub(super) fn insert_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        (hash, value): (u64, u64),
        pinned: Option<&EntryTest<'_>>,
        doubled: &mut impl FnMut(&Stretch, Prefix),
    ) -> Result<(), Full> {
        check_value(grown.table().layout(), value);
        loop {
            let site = grown.addresses().locate(hash);
            if self.place_grown(grown, &site, value, pinned) {
                break;
            }
            self.split_for(grown, &site, pinned, doubled)?;
        }
        self.keep_load(grown, 0, doubled);
        Ok(())
    }

    /// Gives the prefix of `site` a slot in the table as it is; false, and nothing changed, where there is none.
    #[inline]
    pub(super) fn place_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        site: &Site,
        value: u64,
        pinned: Option<&EntryTest<'_>>,
    ) -> bool {
        let is_in = grown.put(site, value, u64::MAX) == Put::Done
            || grown.make_room(&mut self.search, site, value, pinned);
        self.count_in(is_in);
        is_in
    }

    /// Splits chunks until the load is what it should be with so many `more` entries.
    pub(super) fn keep_load(
        &mut self,
        grown: &mut Grown<Buffer>,
        more: u64,
        doubled: &mut impl FnMut(&Stretch, Prefix),
    ) {
        while grown.is_due(self.entries + more) && self.split(grown, doubled) {}
    }

    /// Splits the next chunk because no room was found, if that can help.
    pub(super) fn split_for_room(
        &mut self,
        grown: &mut Grown<Buffer>,
        doubled: &mut impl FnMut(&Stretch, Prefix),
    ) -> bool {
        grown.is_hopeful(self.entries) && self.split(grown, doubled)
    }

    /// Splits the next chunk of buckets because no room was found at `site`; why there is none where that would not help.
    fn split_for(
        &mut self,
        grown: &mut Grown<Buffer>,
        site: &Site,
        pinned: Option<&EntryTest<'_>>,
        doubled: &mut impl FnMut(&Stretch, Prefix),
    ) -> Result<(), Full> {
        let open = |bucket, ways: &mut Ways| grown.table().open(bucket, pinned, ways);
        let full = self.full(site.buckets(), open);
        // Values of the key itself would be together in any table.
        let is_hopeless = matches!(full, Full::Values { .. });
        if !is_hopeless && self.split_for_room(grown, doubled) { Ok(()) } else { Err(full) }
    }

    /// Splits the next chunk of buckets; false where the table is as large as can be.
    fn split(
        &mut self,
        grown: &mut Grown<Buffer>,
        doubled: &mut impl FnMut(&Stretch, Prefix),
    ) -> bool {
        let mut twins = 0;
        let done = grown.split(|addresses, void| {
            twins += 1;
            doubled(addresses, void);
        });
        self.entries += twins;
        done
    }

    /// Takes out one pair of the key and `value`.
    pub(super) fn remove_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        hash: u64,
        value: u64,
    ) -> bool {
        let site = grown.addresses().locate(hash);
        let found = grown.longest_with(&site, value);
        self.count_out(found.is_some());
        found.inspect(|entry| grown.take(entry)).is_some()
    }

    /// Those of `smaller` with all entries of `grown`, which are moved there; `None` where they do not fit.
    pub(super) fn moved(&self, grown: &Grown<Buffer>, smaller: &mut Grown<Buffer>) -> Option<Self> {
        let (mut pairs, layout) = (Self::none(self.profile), grown.table().layout());
        let mut entries = (0..grown.buckets()).flat_map(|bucket| grown.table().entries_of(bucket));
        let moved = entries
            .all(|entry| pairs.add_prefix(smaller, entry.prefix, layout.value_of(entry.slot)));
        moved.then_some(Self { len: self.len, ..pairs })
    }

    /// Adds an entry of another maplet; false, and the table may have grown, where there is no room.
    fn add_prefix(&mut self, grown: &mut Grown<Buffer>, prefix: Prefix, value: u64) -> bool {
        loop {
            let Some(site) = grown.addresses().site(prefix) else { return false };
            if self.place_grown(grown, &site, value, None) {
                return true;
            }
            if !self.split_for_room(grown, &mut |_, _| {}) {
                return false;
            }
        }
    }
}
