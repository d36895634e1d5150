//! A counting filter in a table that grows: an entry may belong to several keys, and a key may have several entries: those that know less and less of it.
//!
//! Any of them may count the key, and a removal takes from the longest, so that every other key still has as many among its own; a count is the sum of all. An entry with a counter
//! forgets nothing when it moves, for the counter goes by its name; a void one that is split leaves its counter to both halves.

use super::tally::{Held, Tally, is_full};
use crate::buffer::Buffer;
use crate::counters::{Counters, ReadCounters};
use crate::error::Full;
use crate::growth::{Grown, leave_to_both};
use crate::table::{EntryTest, Match, Prefix, Site, Stretch, Table};

impl<C: ReadCounters> Tally<C> {
    /// The sum over all entries that match a key: those of one length have one name, and share a counter.
    pub(super) fn count_grown<B: AsRef<[u8]>>(&self, grown: &Grown<B>, site: &Site) -> u64 {
        let layout = grown.table().layout();
        let (mut seen, mut sum) = (0_u64, 0_u64);
        for entry in grown.table().matches(site) {
            let count = layout.value_of(entry.slot);
            let counted = self.counted(layout, count, grown.addresses().identity(&entry.prefix));
            let bit = if counted > 0 { 1 << entry.prefix.length } else { 0 };
            sum = sum.saturating_add(count);
            sum = sum.saturating_add(if seen & bit == 0 { counted } else { 0 });
            seen |= bit;
        }
        sum
    }
}

/// The entry that knows most of the keys of `site`.
pub(super) fn longest(grown: &Grown<Buffer>, site: &Site) -> Option<Match> {
    grown.table().matches(site).max_by_key(|entry| entry.prefix.length)
}

/// The slot of an entry, and its name.
pub(super) fn held(grown: &Grown<Buffer>, entry: &Match) -> Held {
    (entry.slot, grown.addresses().identity(&entry.prefix))
}

impl Tally<Counters> {
    /// Adds to the count of the key with this hash: what it is then.
    pub(super) fn add_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        hash: u64,
        times: u64,
    ) -> Result<u64, Full> {
        let site = grown.addresses().locate(hash);
        match longest(grown, &site) {
            Some(entry) => self.raise_entry(grown, &entry, times)?,
            None => self.begin_grown(grown, hash, times)?,
        }
        // It may have several entries.
        Ok(self.count_grown(grown, &grown.addresses().locate(hash)))
    }

    /// Adds to the count of an entry.
    pub(super) fn raise_entry(
        &mut self,
        grown: &mut Grown<Buffer>,
        entry: &Match,
        times: u64,
    ) -> Result<(), Full> {
        let (in_slot, _) = self.raise(grown.table().layout(), held(grown, entry), times)?;
        set(grown, entry, in_slot);
        Ok(())
    }

    /// Makes an entry for a key that has none.
    fn begin_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        hash: u64,
        times: u64,
    ) -> Result<(), Full> {
        if times == 0 {
            return Ok(());
        }
        let in_slot = times.min(grown.table().layout().largest_value());
        while let Err(full) = self.insert_grown(grown, hash, in_slot) {
            let site = grown.addresses().locate(hash);
            if !self.share_room(grown, &site) && !self.split_for_room(grown) {
                return Err(full);
            }
        }
        let site = grown.addresses().locate(hash);
        self.count_beyond(grown, &site, times - in_slot);
        Ok(())
    }

    fn insert_grown(
        &mut self,
        grown: &mut Grown<Buffer>,
        hash: u64,
        count: u64,
    ) -> Result<(), Full> {
        let (pinned, doubled) = (self.pinned(), &mut leaving(&mut self.counters));
        self.pairs.insert_grown(grown, (hash, count), pinned, doubled)
    }

    /// Counts what the slot of a new entry at `site` cannot say.
    pub(super) fn count_beyond(&mut self, grown: &Grown<Buffer>, site: &Site, beyond: u64) {
        if beyond > 0
            && let Some(entry) = longest(grown, site)
        {
            self.counters.add_all(grown.addresses().identity(&entry.prefix), beyond);
        }
    }

    /// Counts the key with this hash once less; false if it has no count.
    pub(super) fn remove_grown(&mut self, grown: &mut Grown<Buffer>, hash: u64) -> bool {
        let site = grown.addresses().locate(hash);
        let Some(entry) = longest(grown, &site) else { return false };
        let left = self.lower(grown.table().layout(), held(grown, &entry));
        set(grown, &entry, left);
        self.pairs.count_out(left == 0);
        true
    }

    /// The entries that forget nothing when they move: while there are counters, those that may have one.
    pub(super) fn pinned(&self) -> Option<&'static EntryTest<'static>> {
        (self.counters.len() > 0).then_some(&may_have_counter as &EntryTest<'_>)
    }

    /// Makes two entries of one core into what they have in common, with the sum of their counts, where both buckets of a key are one: growth may be long in coming to that
    /// one. False, and nothing changed, if there are no two.
    pub(super) fn share_room(&mut self, grown: &mut Grown<Buffer>, site: &Site) -> bool {
        let layout = grown.table().layout();
        let [spot, other] = site.spots;
        let Some((kept, gone, length)) = grown.closest(spot.bucket).filter(|_| spot == other)
        else {
            return false;
        };
        let mut sum = 0_u64;
        for entry in [kept, gone] {
            let counted = self.counters.remove(grown.addresses().identity(&entry.prefix));
            sum = sum.saturating_add(layout.value_of(entry.slot)).saturating_add(counted);
        }
        grown.take(&gone);
        let count = sum.min(layout.largest_value());
        grown.revalue(&kept, count);
        let slot = layout.slot(layout.fingerprint_of(kept.slot), count);
        grown.shorten(&Match { slot, ..kept }, length);
        let shared = grown.addresses().identity(&Prefix { length, ..kept.prefix });
        self.counters.add_all(shared, sum - count);
        self.pairs.entries -= 1;
        true
    }

    /// Splits chunks until the load is what it should be with so many more entries.
    pub(super) fn keep_load(&mut self, grown: &mut Grown<Buffer>, more: u64) {
        self.pairs.keep_load(grown, more, &mut leaving(&mut self.counters));
    }

    /// Splits the next chunk because no room was found, if that can help.
    pub(super) fn split_for_room(&mut self, grown: &mut Grown<Buffer>) -> bool {
        self.pairs.split_for_room(grown, &mut leaving(&mut self.counters))
    }
}

/// Leaves the counter of each void entry that is split to both halves.
fn leaving(counters: &mut Counters) -> impl FnMut(&Stretch, Prefix) {
    |addresses, void| leave_to_both(counters, addresses, void)
}

/// Writes another count into the slot of an entry, or takes it out where that is 0.
fn set(grown: &mut Grown<Buffer>, entry: &Match, count: u64) {
    let old = grown.table().layout().value_of(entry.slot);
    if count == 0 {
        grown.take(entry);
    } else if count != old {
        grown.revalue(entry, count);
    }
}

/// Whether an entry may have a counter.
fn may_have_counter(table: &Table<Buffer, Stretch>, _: u64, slot: u64) -> bool {
    is_full(table.layout(), slot)
}
