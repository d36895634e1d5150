//! The union of two counting filters of one shape.
//!
//! As in a filter, a slot and its bucket say all that is needed to place the entry elsewhere: in a table of the same geometry, or as the first bits of its keys in one that has grown
//! further, or less. An entry that knows too little to have one bucket there goes on as its two continuations, each with the full count. The work is done on a copy.
//!
//! Of a key, a filter that grows may have several entries, which count it together. The larger count of a key is made up for one entry after the other, from the one that knows
//! least: what an entry lacks is not taken from what was added for another.

use alloc::collections::BTreeSet;

use super::CountingFilter;
use super::grown::{held, longest};
use super::tally::Tally;
use crate::Merge;
use crate::body::Body;
use crate::buffer::Buffer;
use crate::counters::{Counters, Identity, ReadCounters};
use crate::error::{Full, MergeError};
use crate::growth::Grown;
use crate::store::Store;
use crate::table::{Match, Prefix, Table};

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
        if other.body_checksum.is_some() {
            other.verify().map_err(MergeError::Unsound)?;
        }
        let (mut body, mut tally) = (self.body.clone(), self.tally.clone());
        let added = match (&mut body, &other.body) {
            (Body::Built(ours), Body::Built(theirs)) => {
                tally.add_slots(ours, (&other.tally, theirs), counts)?
            }
            (Body::Grown(ours), Body::Grown(theirs)) => {
                tally.add_entries(ours, (&other.tally, theirs), counts)?
            }
            _ => return Err(MergeError::Incompatible { field: "layout" }),
        };
        let more = if counts == Merge::Sum { other.len() } else { added };
        tally.len = self.len().checked_add(more).ok_or(Full::Overflow)?;
        (self.body, self.tally) = (body, tally);
        Ok(())
    }

    fn check_compatible<S: Store>(&self, other: &CountingFilter<S>) -> Result<(), MergeError> {
        MergeError::unless_alike([
            ("layout", self.layout() == other.layout()),
            ("size", self.body.base() == other.body.base()),
            ("hash", self.hasher() == other.hasher()),
            ("route", self.trusts_hashes() == other.trusts_hashes()),
        ])
    }
}

impl Tally<Counters> {
    /// Adds the counts of a table as it was built: the sum of what was added.
    fn add_slots<C: ReadCounters, B: AsRef<[u8]>>(
        &mut self,
        table: &mut Table<Buffer>,
        (other, theirs): (&Tally<C>, &Table<B>),
        counts: Merge,
    ) -> Result<u64, Full> {
        let mut sum = 0_u64;
        // Each key has one entry.
        for place in theirs.distinct_entries() {
            let wanted = other.count_place(theirs, &place);
            let missing = match counts {
                Merge::Sum => wanted,
                Merge::Max => wanted.saturating_sub(self.count_place(table, &place)),
            };
            self.add_at(table, &place, missing)?;
            sum = sum.checked_add(missing).ok_or(Full::Overflow)?;
        }
        Ok(sum)
    }

    /// That of `smaller` with all counts of `grown`, which are moved there; `None` where they do not fit.
    pub(super) fn moved(&self, grown: &Grown<Buffer>, smaller: &mut Grown<Buffer>) -> Option<Self> {
        let mut tally = Self { len: self.len, ..Self::none(self.pairs.profile) };
        tally.add_entries(smaller, (self, grown), Merge::Sum).is_ok().then_some(tally)
    }

    /// Adds the counts of a table that has grown: the sum of what was added.
    fn add_entries<C: ReadCounters, B: AsRef<[u8]>>(
        &mut self,
        grown: &mut Grown<Buffer>,
        (other, theirs): (&Tally<C>, &Grown<B>),
        counts: Merge,
    ) -> Result<u64, Full> {
        // Entries come in the order of their buckets, and would fill some of the buckets that growth makes and not others.
        let more = match counts {
            Merge::Sum => other.pairs.entries,
            Merge::Max => other.pairs.entries.saturating_sub(self.pairs.entries),
        };
        self.keep_load(grown, more);
        let entries = (0..theirs.buckets()).flat_map(|bucket| theirs.table().entries_of(bucket));
        match counts {
            Merge::Sum => {
                let mut told = BTreeSet::new();
                entries
                    .map(|entry| {
                        let count = other.told_once(theirs, &entry, &mut told);
                        self.add_prefix(grown, entry.prefix, count).map(|()| count)
                    })
                    .try_fold(0, saturating_sum)
            }
            Merge::Max => entries
                .flat_map(|entry| {
                    theirs.known_less(entry.prefix, &|site| other.count_grown(theirs, site))
                })
                .map(|(prefix, count)| self.raise_to(grown, prefix, count))
                .try_fold(0, saturating_sum),
        }
    }

    /// Adds what is missing for every key of `prefix` to have this count: how much that was. An entry that knows more than the prefix, most likely of its key, forgets
    /// that, and counts for it.
    fn raise_to(
        &mut self,
        grown: &mut Grown<Buffer>,
        prefix: Prefix,
        count: u64,
    ) -> Result<u64, Full> {
        let every_key_has = grown.least_count(prefix, &|site| self.count_grown(grown, site));
        let mut missing = count.saturating_sub(every_key_has);
        if missing > 0 {
            missing = missing.saturating_sub(self.shorten(grown, prefix));
        }
        self.add_prefix(grown, prefix, missing)?;
        Ok(missing)
    }

    /// Makes the entry with the largest count of those that continue `prefix` forget what it knows beyond it, with its counter: its count, 0 if there is none.
    fn shorten(&mut self, grown: &mut Grown<Buffer>, prefix: Prefix) -> u64 {
        let mut largest: Option<(u64, Match)> = None;
        grown.each_longer(prefix, &mut |entry| {
            let count = self.total(grown.table().layout(), held(grown, &entry));
            if largest.is_none_or(|(most, _)| count > most) {
                largest = Some((count, entry));
            }
        });
        let Some((count, entry)) = largest else { return 0 };
        let counted = self.counters.remove(grown.addresses().identity(&entry.prefix));
        grown.shorten(&entry, prefix.length);
        let shorter = Prefix { length: prefix.length, ..entry.prefix };
        self.counters.add_all(grown.addresses().identity(&shorter), counted);
        count
    }

    /// Adds so many times to the entry that this prefix is kept as, which is made if there is none.
    fn add_prefix(
        &mut self,
        grown: &mut Grown<Buffer>,
        prefix: Prefix,
        times: u64,
    ) -> Result<(), Full> {
        if times == 0 {
            return Ok(());
        }
        let in_slot = times.min(grown.table().layout().largest_value());
        loop {
            let addresses = grown.addresses();
            let Some(site) = addresses.site(prefix) else {
                return self.add_continuations(grown, prefix, times);
            };
            // As much of it as any bucket has room for.
            let kept = prefix.length.min(addresses.level() + addresses.marked().most());
            if let Some(entry) = longest(grown, &site).filter(|entry| entry.prefix.length >= kept) {
                return self.raise_entry(grown, &entry, times);
            }
            // Too short to say which its other bucket is: its continuations can.
            let is_short = addresses.is_short(&site);
            if self.pairs.place_grown(grown, &site, in_slot, self.pinned()) {
                self.count_beyond(grown, &site, times - in_slot);
                self.keep_load(grown, 0);
                return Ok(());
            }
            if is_short {
                return self.add_continuations(grown, prefix, times);
            }
            if !self.split_for_room(grown) && !self.share_room(grown, &site) {
                return Err(self.pairs.out_of_slots());
            }
        }
    }

    fn add_continuations(
        &mut self,
        grown: &mut Grown<Buffer>,
        prefix: Prefix,
        times: u64,
    ) -> Result<(), Full> {
        prefix.continuations().into_iter().try_for_each(|it| self.add_prefix(grown, it, times))
    }
}

impl<C: ReadCounters> Tally<C> {
    /// What an entry counts; entries of one name share a counter, and only the first one tells of it.
    fn told_once<B: AsRef<[u8]>>(
        &self,
        grown: &Grown<B>,
        entry: &Match,
        told: &mut BTreeSet<Identity>,
    ) -> u64 {
        let (layout, identity) =
            (grown.table().layout(), grown.addresses().identity(&entry.prefix));
        let count = layout.value_of(entry.slot);
        let counted = self.counted(layout, count, identity);
        let tells = counted > 0 && told.insert(identity);
        count.saturating_add(if tells { counted } else { 0 })
    }
}

fn saturating_sum(sum: u64, added: Result<u64, Full>) -> Result<u64, Full> {
    Ok(sum.saturating_add(added?))
}
