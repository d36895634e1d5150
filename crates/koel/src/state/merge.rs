//! Adds the entries of one table to another, which may have grown further, or less.
//!
//! A slot and its bucket determine where the entry goes in another table with the same base
//! addresses: no key is hashed again. An entry is a prefix of its keys' addresses, and stands for
//! every key with that prefix. If the other table has grown further, a prefix may be too short to
//! have one bucket there. Then its two continuations are added: together they stand for the same
//! keys. If the other table has grown less, the many continuations of an entry that growth has
//! split are in two buckets there. To join them again is not safe, for two keys may have such
//! entries as well, and to let them share a slot adds up their counts. So a table is tried first
//! where all of them have room ([`Crowded`]).
//!
//! A key of a growing table may have several entries, and its count is the sum of theirs.
//! [`Merge::Max`] reads both tables in the order of [`runs`](super::runs), and adds what a key
//! lacks for one entry after the other, from the shortest, so that nothing is added twice. Most
//! entries lack nothing, and cost no lookup.

use alloc::vec::Vec;

use super::runs::{Joined, each_pair, each_run, join, next_group};
use super::{Body, COPIES_IN_BUCKETS};
use crate::error::FullError;
use crate::image::Kind;
use crate::mem::buffer::Buffer;
use crate::table::{Entry, GrowingLocation, LinearHashing, Place, Prefix, Put, Step};

/// How a merge combines the counts of a key that is in both filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Adds them: the union of two multisets of separate events.
    Sum,
    /// Takes the larger one: the union of two sets that may overlap.
    ///
    /// * If a filter has grown, [`len`](crate::CuckooFilter::len) of the union may be some percent
    ///   too high, by [what growth left](crate::CuckooFilter::leftovers) in both.
    /// * A key of one filter may be a false positive of the other. The two keys then share an
    ///   entry, and removing one removes the other.
    Max,
}

/// What becomes of an entry that finds no room in a growing table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowded {
    /// It is refused: a larger table may have room.
    Refuse,
    /// It shares the slot of a similar entry, if it can, and from then on both have the sum of
    /// their counts. No table has room for more than eight keys that differ in few bits.
    Share,
}

impl<B: AsRef<[u8]> + Sync> Body<B> {
    /// A lower bound for the counts of all keys of `prefix`.
    fn least_count(&self, prefix: Prefix) -> u64 {
        match self.table.addresses().location(prefix) {
            Some(at) => self.count_at(&at),
            None => {
                let [one, other] = prefix.continuations().map(|longer| self.least_count(longer));
                one.min(other)
            }
        }
    }
}

impl Body<Buffer> {
    /// Adds the entries of another table to a copy of `before`. The caller sets the number of keys.
    /// After a failure this table must be dropped.
    pub(super) fn merge_table<O: AsRef<[u8]> + Sync>(
        &mut self,
        before: &Self,
        other: &Body<O>,
        counts: Merge,
        crowded: Crowded,
    ) -> Result<(), FullError> {
        match counts {
            Merge::Sum => self.add_all(other, crowded),
            Merge::Max => self.raise_all(before, other, crowded),
        }
    }

    /// Adds all entries of another table.
    pub(super) fn add_all<O: AsRef<[u8]> + Sync>(
        &mut self,
        other: &Body<O>,
        crowded: Crowded,
    ) -> Result<(), FullError> {
        let addresses = other.table.addresses();
        if matches!(self.state.kind(), Kind::Maplet | Kind::Expiring) {
            let mut entries = other.table.entries();
            return entries.try_for_each(|it| self.add_pair(it.prefix, other.in_slot(&it)));
        }
        each_run(other, |_, run| {
            let mut entries = run.entries();
            entries
                .try_for_each(|(it, count)| self.add_entry(addresses.ordered(it), count, crowded))
        })
    }

    /// Adds copies to a filter, or a count to a counting filter.
    fn add_entry(
        &mut self,
        prefix: Prefix,
        amount: u64,
        crowded: Crowded,
    ) -> Result<(), FullError> {
        match self.state.kind() {
            Kind::Counting => self.add_count(prefix, amount, crowded),
            _ => self.add_copies(prefix, amount, crowded),
        }
    }

    /// Raises the count of every key to its count in the other table. `before` has what is in.
    fn raise_all<O: AsRef<[u8]> + Sync>(
        &mut self,
        before: &Self,
        other: &Body<O>,
        crowded: Crowded,
    ) -> Result<(), FullError> {
        let (addresses, mut group) = (other.table.addresses(), Vec::new());
        each_pair(before, other, |_, runs| {
            let mut joined = join(runs);
            if !self.table.grows() {
                for (order, [ours, theirs]) in joined {
                    let missing = theirs.saturating_sub(ours);
                    self.add_entry(addresses.ordered(order), missing, crowded)?;
                }
                return Ok(());
            }
            while next_group(&mut joined, addresses.base(), &mut group)? {
                self.raise_group(addresses, &mut group, crowded)?;
            }
            Ok(())
        })
    }

    /// Raises the counts of entries that may be of the same keys, from the shortest. The count of a
    /// key is that of its entry and of all above it.
    fn raise_group(
        &mut self,
        addresses: &LinearHashing,
        group: &mut [Joined],
        crowded: Crowded,
    ) -> Result<(), FullError> {
        // A prefix before what continues it.
        group.sort_unstable_by_key(|(order, _)| (order & (order - 1), !order.trailing_zeros()));
        let mut above: [(Prefix, [u64; 2]); 64] = [(addresses.ordered(group[0].0), [0; 2]); 64];
        let mut depth = 0;
        for &(order, counts) in &*group {
            let prefix = addresses.ordered(order);
            while depth > 0 && !above[depth - 1].0.is_start_of(&prefix) {
                depth -= 1;
            }
            let of_above = if depth > 0 { above[depth - 1].1 } else { [0; 2] };
            let sums = [0, 1].map(|i| counts[i].saturating_add(of_above[i]));
            above[depth] = (prefix, sums);
            depth += 1;
            if counts[1] > 0 && sums[0] < sums[1] {
                self.raise_to(prefix, sums[1], crowded)?;
            }
        }
        Ok(())
    }

    /// Raises the count of every key of `prefix` to `wanted`.
    fn raise_to(&mut self, prefix: Prefix, wanted: u64, crowded: Crowded) -> Result<(), FullError> {
        let mut missing = wanted.saturating_sub(self.least_count(prefix));
        if missing > 0 {
            missing = missing.saturating_sub(self.shorten_longer(prefix));
        }
        self.add_entry(prefix, missing, crowded)
    }

    /// Shortens an entry that continues `prefix` to that prefix, and returns its count; 0 if there
    /// is no such entry. It most likely belongs to the same key, and from then on stands for all
    /// keys of the prefix. Takes an entry without a counter in a filter, and the one with the
    /// largest count in a counting filter.
    fn shorten_longer(&mut self, prefix: Prefix) -> u64 {
        if !self.table.grows() {
            return 0;
        }
        let mut chosen: Option<(u64, Entry)> = None;
        self.table.each_relative(prefix, &mut |entry| {
            let beyond = self.beyond(&entry);
            let count = self.in_slot(&entry).saturating_add(beyond);
            let is_better = match self.state.kind() {
                Kind::Counting => chosen.is_none_or(|(most, _)| count > most),
                Kind::Filter | Kind::Maplet | Kind::Expiring => beyond == 0,
            };
            if is_better && self.table.may_shorten(&entry, prefix.length) {
                chosen = Some((count, entry));
            }
        });
        let Some((count, entry)) = chosen else { return 0 };
        let counted = self.state.side.counters.remove(self.table.name(&entry)).unwrap_or(0);
        let value = self.layout().value_of(entry.slot);
        self.table.shorten(&entry, prefix.length, value);
        let shorter = Entry { prefix: Prefix { length: prefix.length, ..entry.prefix }, ..entry };
        self.state.side.counters.add_all(self.table.name(&shorter), counted);
        count
    }

    /// Adds `times` copies of an entry of another filter. The table may grow.
    fn add_copies(
        &mut self,
        prefix: Prefix,
        times: u64,
        crowded: Crowded,
    ) -> Result<(), FullError> {
        let mut left = times;
        if times > 0 && !self.table.grows() {
            let at = self.table.addresses().fixed_location(&prefix);
            let is_new = at.put(&mut self.table, 0, 0) == Put::Done;
            self.state.entries += u64::from(is_new);
            left -= u64::from(is_new);
        }
        while left > 0 {
            let Some(at) = self.location(prefix) else {
                return self.add_continuations(prefix, left, crowded);
            };
            let lengths = self.table.matches(&at).map(|entry| entry.prefix.length);
            let equals = lengths.filter(|&length| length == prefix.length).count() as u64;
            // If both buckets are one, a counter may count copies that got a slot before.
            let may_have_slot = equals.max(times - left) < COPIES_IN_BUCKETS;
            if may_have_slot && self.put_copy(&at, equals > 0) {
                left -= 1;
                self.keep_load(0);
            } else if !may_have_slot || equals > 0 {
                let name = self.table.name_of_longest(&at);
                return name.map_or(Ok(()), |name| self.state.count_copies(name, left));
            } else if self.table.addresses().is_short(&at) {
                // The prefix is too short to have another bucket. Its continuations have one.
                return self.add_continuations(prefix, left, crowded);
            } else if !self.finds_room(&at, crowded)? {
                return Err(self.state.out_of_slots());
            }
        }
        Ok(())
    }

    fn location(&self, prefix: Prefix) -> Option<GrowingLocation> {
        self.table.addresses().location(prefix)
    }

    /// Gives the first or the second copy of an entry a slot. False if it gets none.
    fn put_copy(&mut self, at: &GrowingLocation, is_second: bool) -> bool {
        if is_second && !self.table.grows() {
            let name = self.table.name_of_longest(at);
            return name.is_some_and(|name| self.put_second(at, name));
        }
        let is_in = self.put(at, 0) || self.move_in(at, 0);
        self.state.spares += u64::from(is_in && is_second);
        is_in
    }

    /// Adds an entry of another maplet.
    fn add_pair(&mut self, prefix: Prefix, value: u64) -> Result<(), FullError> {
        loop {
            let is_in = self.location(prefix).map(|at| self.put_value(&at, value));
            match is_in {
                Some(true) => return Ok(()),
                Some(false) if self.split_for_room()? => {}
                _ => return Err(self.state.out_of_slots()),
            }
        }
    }

    /// Adds `times` to the entry that stores this prefix, and makes the entry if there is none.
    fn add_count(&mut self, prefix: Prefix, times: u64, crowded: Crowded) -> Result<(), FullError> {
        if times == 0 {
            return Ok(());
        }
        let in_slot = times.min(self.layout().largest_value());
        loop {
            let Some(at) = self.location(prefix) else {
                return self.add_continuations(prefix, times, crowded);
            };
            let longest = self.table.longest(&at);
            if let Some(entry) = longest.filter(|entry| self.table.is_whole(entry, &prefix)) {
                return self.raise(&entry, times).map(|_| ());
            }
            if self.put_value(&at, in_slot) {
                self.add_beyond(&at, times - in_slot);
                self.keep_load(0);
                return Ok(());
            }
            // The prefix is too short to have another bucket. Its continuations have one.
            if self.table.addresses().is_short(&at) {
                return self.add_continuations(prefix, times, crowded);
            }
            if !self.finds_room(&at, crowded)? {
                return Err(self.state.out_of_slots());
            }
        }
    }

    /// Makes room after a search found none. False if there is no way to.
    fn finds_room(&mut self, at: &GrowingLocation, crowded: Crowded) -> Result<bool, FullError> {
        Ok(self.split_for_room()? || crowded == Crowded::Share && self.share(at))
    }

    /// Splits the next chunk after a search found no room. False if that cannot help.
    ///
    /// # Errors
    /// [`FullError::NoMemory`] if it would help, and there is no memory for it.
    fn split_for_room(&mut self) -> Result<bool, FullError> {
        let may_help = self.table.may_gain_room(self.state.entries);
        if self.table.finish_widening() {
            return Ok(true);
        }
        match if may_help { self.split_chunk() } else { Step::Refused } {
            Step::Done => Ok(true),
            Step::Refused => Ok(false),
            Step::NoMemory => Err(FullError::NoMemory),
        }
    }

    /// Adds `amount` to both continuations of a prefix.
    fn add_continuations(
        &mut self,
        prefix: Prefix,
        amount: u64,
        crowded: Crowded,
    ) -> Result<(), FullError> {
        let mut halves = prefix.continuations().into_iter();
        halves.try_for_each(|half| self.add_entry(half, amount, crowded))
    }
}
