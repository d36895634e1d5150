//! A filter that has grown: the multiset over entries of which more or fewer bits are known.
//!
//! The rules are those of `built.rs`, said for entries that match a key by what they know of it:
//!
//! * A key is in the set if any entry matches it; its count is the number of those, and what their counters say.
//! * The first copy of a key gets a slot, the second one too where there is an empty slot. From then on the counter of the *longest* match goes up.
//! * A removal takes the longest match: from its counter if there is one, otherwise the entry. That entry may be another key's. Then the other key begins with
//!   the shorter matches too, as they are the first bits of the longest one, and has one of them instead: no key is ever lost.
//! * A counter goes by the absolute name of an entry, which growth does not change. An entry with a counter may not move where it would forget a
//!   bit. A void entry that is split leaves its counter to both halves.

pub(super) mod merge;

use crate::buffer::Buffer;
use crate::counters::{Counters, ReadCounters};
use crate::error::Full;
use crate::filter::tally::{COPIES_IN_BUCKETS, Tally};
use crate::geometry::BLOCK;
use crate::growth::{Grown, leave_to_both};
use crate::table::{EntryTest, Match, Prefix, Put, Site, Stretch, Table};

impl<C: ReadCounters> Tally<C> {
    /// How often the key of `site` was inserted.
    pub(super) fn count_grown<B: AsRef<[u8]>>(&self, grown: &Grown<B>, site: &Site) -> u64 {
        let mut seen = 0_u64;
        let mut count = 0_u64;
        for entry in grown.table().matches(site) {
            // All match one key: those of one length are equal, and share a counter.
            let bit = 1 << entry.prefix.length;
            if seen & bit == 0 {
                let counted = self.counters.get(grown.addresses().identity(&entry.prefix));
                count = count.saturating_add(counted);
            }
            seen |= bit;
            count = count.saturating_add(1);
        }
        count
    }
}

/// The longest of the entries that match, and how many they are.
fn longest(grown: &Grown<Buffer>, site: &Site) -> Option<(Match, u64)> {
    let mut matches = 0;
    let all = grown.table().matches(site).inspect(|_| matches += 1);
    let longest = all.max_by_key(|entry| entry.prefix.length);
    longest.map(|entry| (entry, matches))
}

impl Tally<Counters> {
    /// Adds a copy of a key.
    pub(super) fn insert_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        hash: u64,
    ) -> Result<(), Full> {
        let len = self.len.checked_add(1).ok_or(Full::Overflow)?;
        loop {
            let site = grown.addresses().locate(hash);
            match grown.put(&site, 0, 0) {
                Put::Repeated(copies) => self.add_copy_grown(grown, &site, copies)?,
                Put::Full if !self.make_room_grown(grown, &site) => {
                    match self.split_for_room(grown) {
                        Ok(()) => continue,
                        Err(_)
                            if grown.is_sparse(self.entries) && self.share_room(grown, &site) =>
                        {
                            self.count_new_entry(grown);
                        }
                        Err(full) => return Err(full),
                    }
                }
                Put::Done | Put::Full => self.count_new_entry(grown),
            }
            self.len = len;
            return Ok(());
        }
    }

    /// Adds a key unless an entry matches it; true if it was added.
    pub(super) fn insert_unique_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        hash: u64,
    ) -> Result<bool, Full> {
        let new = !grown.contains(hash);
        if new {
            self.insert_grown(grown, hash)?;
        }
        Ok(new)
    }

    /// Counts an entry like no other, and keeps the load.
    fn count_new_entry(&mut self, grown: &mut Grown<Buffer>) {
        self.entries += 1;
        self.keep_load(grown, 0);
    }

    /// Adds a copy beside `copies` that match: in a slot if it is the second one and there is an empty one, otherwise counted.
    fn add_copy_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        site: &Site,
        copies: u64,
    ) -> Result<(), Full> {
        let Some((longest, _)) = longest(grown, site) else { return Ok(()) };
        let identity = grown.addresses().identity(&longest.prefix);
        let may_have_slot = copies < COPIES_IN_BUCKETS && self.counters.get(identity) == 0;
        if may_have_slot && grown.put(site, 0, COPIES_IN_BUCKETS - 1) == Put::Done {
            self.entries += 1;
            self.spares += 1;
            self.keep_load(grown, 0);
            return Ok(());
        }
        self.count_copies(identity, 1)
    }

    /// Takes out one copy of a key.
    pub(super) fn remove_grown(&mut self, grown: &mut Grown<Buffer>, hash: u64) -> bool {
        let site = grown.addresses().locate(hash);
        let Some((longest, matches)) = longest(grown, &site) else { return false };
        self.len = self.len.saturating_sub(1);
        if self.counters.take(grown.addresses().identity(&longest.prefix)) {
            return true;
        }
        grown.take(&longest);
        self.uncount_entry(matches == 1);
        true
    }

    /// Finds a slot for the prefix of `site`, whose buckets are full. False, and nothing changed, if there is none.
    fn make_room_grown(&mut self, grown: &mut Grown<Buffer>, site: &Site) -> bool {
        let counters = &self.counters;
        let has_counter = |table: &Table<Buffer, Stretch>, bucket: u64, slot: u64| {
            let prefix = table.geometry().prefix(bucket, table.layout().fingerprint_of(slot));
            counters.get(table.geometry().identity(&prefix)) > 0
        };
        let pinned = (counters.len() > 0).then_some(&has_counter as &EntryTest<'_>);
        // Growth may be long in coming to a bucket that is the only one.
        let is_alone = site.spots[0] == site.spots[1];
        grown.make_room(&mut self.search, site, 0, pinned)
            || is_alone && self.share_room(grown, site)
    }

    /// Makes two entries of one core, in a bucket of `site`, into what they have in common, and a count. False, and nothing changed, if there are no two.
    fn share_room(&mut self, grown: &mut Grown<Buffer>, site: &Site) -> bool {
        if self.counters.len() >= self.profile.counter_limit {
            return false;
        }
        // A narrow slot has no room for what says that little is known.
        grown.finish_widening();
        let pairs = site.spots.into_iter().filter_map(|spot| grown.closest(spot.bucket));
        let Some((kept, gone, length)) = pairs.max_by_key(|&(_, _, length)| length) else {
            return false;
        };
        let names = [kept, gone].map(|entry| grown.addresses().identity(&entry.prefix));
        let counted = names.map(|identity| self.counters.remove(identity));
        grown.take(&gone);
        grown.shorten(&kept, length);
        let shared = grown.addresses().identity(&Prefix { length, ..kept.prefix });
        self.counters.add_all(shared, counted[0].saturating_add(counted[1]).saturating_add(1));
        let has_room = grown.put(site, 0, u64::MAX) == Put::Done;
        self.uncount_entry(true);
        has_room
    }

    /// Counts one entry less, the last one of its kind or not. That is as much as is known: matches that know more or less of a key are not equal.
    fn uncount_entry(&mut self, last: bool) {
        self.entries -= 1;
        self.spares = self.spares.saturating_sub(u64::from(!last)).min(self.entries);
    }

    /// Splits chunks until the load is what it should be with so many `more` entries.
    pub(super) fn keep_load(&mut self, grown: &mut Grown<Buffer>, more: u64) {
        while grown.is_due(self.entries + more) && self.split_chunk(grown) {}
    }

    /// Makes room for those of so many keys to come that are no more than a quarter of the entries, and says how many: a search for room in a table that is less full is shorter.
    pub(super) fn make_way(&mut self, grown: &mut Grown<Buffer>, keys: usize) -> usize {
        let quarter = usize::try_from(self.entries / 4).unwrap_or(usize::MAX);
        let coming = keys.min(quarter.max(BLOCK));
        self.keep_load(grown, coming as u64);
        coming
    }

    /// Splits the next chunk because a search found no room.
    fn split_for_room(&mut self, grown: &mut Grown<Buffer>) -> Result<(), Full> {
        let done =
            grown.finish_widening() || grown.is_hopeful(self.entries) && self.split_chunk(grown);
        if done { Ok(()) } else { Err(self.out_of_slots()) }
    }

    /// Splits the next chunk of buckets; false where the table is as large as can be.
    pub(super) fn split_chunk(&mut self, grown: &mut Grown<Buffer>) -> bool {
        let counters = &mut self.counters;
        let mut twins = 0;
        let done = grown.split(|addresses, prefix| {
            twins += 1;
            leave_to_both(counters, addresses, prefix);
        });
        self.entries += twins;
        done
    }
}
