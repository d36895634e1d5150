//! The union of two counting filters of one shape.
//!
//! As in a filter, a slot and its bucket say all that is needed to place the entry elsewhere: in a table of the same geometry, or as the first bits of its keys in one that has grown
//! further, or less. An entry that knows too little to have one bucket there goes on as its two continuations, each with the full count. The work is done on a copy.
//!
//! Of a key, a filter that grows may have several entries, which count it together. The larger count of a key is made up for one entry after the other, from the one that knows
//! least: what an entry lacks is not taken from what was added for another.

use alloc::collections::BTreeSet;

use super::CountingFilter;
use crate::Merge;
use crate::counters::Identity;
use crate::error::{Full, MergeError};
use crate::geometry::Place;
use crate::growth::{Grown, leave_to_both};
use crate::store::Store;
use crate::table::{Match, Prefix};

impl CountingFilter {
    /// Adds the keys of `other` to this filter, each with its count: the sum of both, or the larger one. `other` may be a view, which is verified first. A filter that
    /// [grows](crate::CountingBuilder::grow_from) grows as need be, and merges with what has grown differently. The error rate of the union is at most the sum of both.
    /// O(buckets), and twice the memory while it runs.
    ///
    /// ```
    /// use koel::{CountingFilter, Merge};
    ///
    /// let builder = CountingFilter::builder(1000, 0.001);
    /// let (mut monday, mut tuesday) = (builder.build()?, builder.build()?);
    /// monday.add("ada", 3)?;
    /// tuesday.add("ada", 4)?;
    /// tuesday.insert("mary")?;
    /// monday.merge(&tuesday, Merge::Sum)?;
    /// assert_eq!((monday.count("ada"), monday.count("mary")), (7, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MergeError`] where the filters differ in layout, hash or the size that they were built with, where the union does not fit, or where a view is not sound; then nothing
    /// has changed.
    pub fn merge<S: Store>(
        &mut self,
        other: &CountingFilter<S>,
        counts: Merge,
    ) -> Result<(), MergeError> {
        self.check_compatible(other)?;
        if other.maplet.body_checksum.is_some() {
            other.verify().map_err(MergeError::Unsound)?;
        }
        let mut union = self.clone();
        let added = match &other.maplet.body.grown {
            None => union.add_built(other, counts)?,
            Some(grown) => union.add_grown(other, grown, counts)?,
        };
        let more = if counts == Merge::Sum { other.len } else { added };
        union.len = self.len.checked_add(more).ok_or(Full::Overflow)?;
        *self = union;
        Ok(())
    }

    fn check_compatible<S: Store>(&self, other: &CountingFilter<S>) -> Result<(), MergeError> {
        let (ours, theirs) = (&self.maplet.body.table, &other.maplet.body.table);
        MergeError::unless_alike([
            ("layout", self.layout() == other.layout()),
            ("size", ours.geometry() == theirs.geometry()),
            ("hash", self.hasher() == other.hasher()),
        ])
    }

    /// Adds the entries of a table as it was built: the sum of what was added.
    fn add_built<S: Store>(
        &mut self,
        other: &CountingFilter<S>,
        counts: Merge,
    ) -> Result<u64, Full> {
        let (table, layout) = (&other.maplet.body.table, self.layout());
        let mut sum = 0_u64;
        for bucket in 0..other.maplet.body.buckets() {
            for slot in table.read(bucket).0.into_iter().filter(|&slot| slot != 0) {
                let place = table.geometry().place_of(bucket, layout.fingerprint_of(slot));
                let theirs = other.total(slot, place.identity(layout.fingerprint_bits()));
                let held = self.held_at(&place);
                let ours = held.as_ref().map_or(0, |held| self.total(held.slot, held.identity));
                let missing = theirs.saturating_sub(if counts == Merge::Max { ours } else { 0 });
                match held {
                    Some(held) => self.raise(&held, missing).map(drop)?,
                    None => self.begin_at(&place, missing)?,
                }
                sum = sum.checked_add(missing).ok_or(Full::Overflow)?;
            }
        }
        Ok(sum)
    }

    /// Makes an entry at a place that has none like it.
    fn begin_at(&mut self, place: &Place, times: u64) -> Result<(), Full> {
        let in_slot = times.min(self.most());
        self.maplet.insert_place(place, in_slot)?;
        self.counters.add_all(place.identity(self.layout().fingerprint_bits()), times - in_slot);
        Ok(())
    }

    /// Adds the entries of a table that has grown: the sum of what was added.
    pub(super) fn add_grown<S: Store>(
        &mut self,
        other: &CountingFilter<S>,
        theirs: &Grown<S::Buckets>,
        counts: Merge,
    ) -> Result<u64, Full> {
        // Entries come in the order of their buckets, and would fill some of the buckets that growth makes and not others.
        let more = match counts {
            Merge::Sum => other.maplet.entries,
            Merge::Max => other.maplet.entries.saturating_sub(self.maplet.entries),
        };
        self.keep_load(more);
        let entries = (0..theirs.buckets()).flat_map(|bucket| theirs.table().entries_of(bucket));
        match counts {
            Merge::Sum => {
                let mut told = BTreeSet::new();
                entries
                    .map(|entry| {
                        let count = other.told_once(theirs, &entry, &mut told);
                        self.add_prefix(entry.prefix, count).map(|()| count)
                    })
                    .try_fold(0, saturating_sum)
            }
            Merge::Max => entries
                .flat_map(|entry| {
                    theirs.known_less(entry.prefix, &|site| other.count_grown(theirs, site))
                })
                .map(|(prefix, count)| self.raise_to(prefix, count))
                .try_fold(0, saturating_sum),
        }
    }

    /// Adds what is missing for every key of `prefix` to have this count: how much that was. An entry that knows more than the prefix, most likely of its key, forgets
    /// that, and counts for it.
    fn raise_to(&mut self, prefix: Prefix, count: u64) -> Result<u64, Full> {
        let mut missing = count.saturating_sub(self.count_shorter(prefix));
        if missing > 0 {
            missing = missing.saturating_sub(self.shorten(prefix));
        }
        self.add_prefix(prefix, missing)?;
        Ok(missing)
    }

    /// What every key of `prefix` would count.
    fn count_shorter(&self, prefix: Prefix) -> u64 {
        let grown = self.maplet.body.grown.as_ref();
        grown.map_or(0, |it| it.least_count(prefix, &|site| self.count_grown(it, site)))
    }

    /// Makes the entry with the largest count of those that continue `prefix` forget what it knows beyond it, with its counter: its count, 0 if there is none.
    fn shorten(&mut self, prefix: Prefix) -> u64 {
        let Some(grown) = &self.maplet.body.grown else { return 0 };
        let mut largest: Option<(u64, Match)> = None;
        grown.table().each_relative(prefix, &mut |entry| {
            let tells = grown.addresses().level_of(entry.bucket) <= prefix.length;
            let count = self.total(entry.slot, grown.addresses().identity(&entry.prefix));
            let is_larger = largest.is_none_or(|(most, _)| count > most);
            if entry.prefix.length > prefix.length && tells && is_larger {
                largest = Some((count, entry));
            }
        });
        let Some((count, entry)) = largest else { return 0 };
        let Some(grown) = &mut self.maplet.body.grown else { return 0 };
        let counted = self.counters.remove(grown.addresses().identity(&entry.prefix));
        grown.shorten(&entry, prefix.length);
        let shorter = Prefix { length: prefix.length, ..entry.prefix };
        self.counters.add_all(grown.addresses().identity(&shorter), counted);
        count
    }

    /// Adds so many times to the entry that this prefix is kept as, which is made if there is none.
    fn add_prefix(&mut self, prefix: Prefix, times: u64) -> Result<(), Full> {
        if times == 0 {
            return Ok(());
        }
        let in_slot = times.min(self.most());
        loop {
            let Some(grown) = &self.maplet.body.grown else { return Ok(()) };
            let addresses = grown.addresses();
            let Some(site) = addresses.site(prefix) else {
                return self.add_continuations(prefix, times);
            };
            // As much of it as any bucket has room for.
            let kept = prefix.length.min(addresses.level() + addresses.marked().most());
            if let Some(held) = self.held_at_site(&site).filter(|held| held.length() >= kept) {
                return self.raise(&held, times).map(drop);
            }
            // Too short to say which its other bucket is: its continuations can.
            let is_short = addresses.is_short(&site);
            if self.maplet.place_grown(&site, in_slot, self.pinned()) {
                if let Some(held) = self.held_at_site(&site) {
                    self.counters.add_all(held.identity, times - in_slot);
                }
                self.keep_load(0);
                return Ok(());
            }
            if is_short {
                return self.add_continuations(prefix, times);
            }
            if !self.split_for_room() && !self.share_room(&site) {
                return Err(self.maplet.out_of_slots());
            }
        }
    }

    fn add_continuations(&mut self, prefix: Prefix, times: u64) -> Result<(), Full> {
        prefix.continuations().into_iter().try_for_each(|it| self.add_prefix(it, times))
    }

    /// Splits chunks until the load is what it should be with so many more entries.
    fn keep_load(&mut self, more: u64) {
        let counters = &mut self.counters;
        self.maplet
            .keep_load(more, &mut |addresses, void| leave_to_both(counters, addresses, void));
    }

    /// Splits the next chunk because no room was found, if that can help.
    fn split_for_room(&mut self) -> bool {
        let counters = &mut self.counters;
        self.maplet.split_for_room(&mut |addresses, void| leave_to_both(counters, addresses, void))
    }
}

impl<S: Store> CountingFilter<S> {
    /// What an entry counts; entries of one name share a counter, and only the first one tells of it.
    fn told_once(
        &self,
        grown: &Grown<S::Buckets>,
        entry: &Match,
        told: &mut BTreeSet<Identity>,
    ) -> u64 {
        let identity = grown.addresses().identity(&entry.prefix);
        let count = self.layout().value_of(entry.slot);
        let counted = self.counted(count, identity);
        let tells = counted > 0 && told.insert(identity);
        count.saturating_add(if tells { counted } else { 0 })
    }
}

fn saturating_sum(sum: u64, added: Result<u64, Full>) -> Result<u64, Full> {
    Ok(sum.saturating_add(added?))
}
