//! How often a key is in, and how a counting filter changes that.
//!
//! In a filter each entry counts one, and its counter counts further copies. In a counting filter
//! the value of an entry is its count. From the largest value on its counter goes up, and a removal
//! takes from that first.

use super::{Reader, State, Writer};
use crate::error::FullError;
use crate::image::Kind;
use crate::packing::Layout;
use crate::state::counters::{ReadCounters, WriteCounters};
use crate::table::{Addressing, Cuckoo, CuckooMut, LocationOf, Match, grows};

impl<C: ReadCounters> State<C> {
    /// What a slot counts.
    #[inline]
    pub(super) fn in_slot(&self, layout: Layout, slot: u64) -> u64 {
        if self.kind == Kind::Filter { 1 } else { layout.value_of(slot) }
    }
}

impl<T: Cuckoo, C: ReadCounters> Reader<'_, T, C> {
    /// How often the key with this hash is in.
    pub(crate) fn count_key(self, hash: u64) -> u64 {
        self.count(&self.table.table().geometry().locate(hash))
    }

    /// The sum over all entries that match. Those of one length have one name, and share a counter.
    pub(crate) fn count(self, at: &LocationOf<T>) -> u64 {
        let (mut seen, mut sum) = (0_u64, 0_u64);
        for entry in self.table.table().matches(at) {
            let beyond = self.beyond(&entry);
            let bit = u64::from(beyond > 0) << entry.prefix.length;
            sum = sum.saturating_add(self.in_slot(&entry));
            sum = sum.saturating_add(if seen & bit == 0 { beyond } else { 0 });
            seen |= bit;
        }
        sum
    }

    /// How often the keys of an entry are in: its copies, or its value, with its counter.
    pub(crate) fn count_of(self, entry: &Match) -> u64 {
        let in_slots = match self.state.kind {
            Kind::Counting => self.in_slot(entry),
            Kind::Filter | Kind::Maplet => self.table.table().equals(entry),
        };
        in_slots.saturating_add(self.beyond(entry))
    }

    /// The count in a slot of a bucket, with the counter of its entry.
    pub(crate) fn count_in(self, bucket: u64, slot: u64) -> u64 {
        let entry = self.table.table().entry(bucket, slot);
        self.in_slot(&entry).saturating_add(self.beyond(&entry))
    }

    pub(super) fn in_slot(self, entry: &Match) -> u64 {
        self.state.in_slot(self.table.table().layout(), entry.slot)
    }

    /// What the counter of an entry counts besides.
    #[inline]
    pub(crate) fn beyond(self, entry: &Match) -> u64 {
        if self.state.counters.len() > 0 && self.may_have_counter(entry) {
            self.state.counters.get(self.table.table().name(entry))
        } else {
            0
        }
    }

    /// Whether an entry may have a counter: it has the largest value, or none at all.
    #[inline]
    pub(super) fn may_have_counter(self, entry: &Match) -> bool {
        let layout = self.table.table().layout();
        layout.value_of(entry.slot) == layout.largest_value()
    }
}

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Counts a key so many `times` more in a counting filter: its count then.
    pub(crate) fn add(mut self, hash: u64, times: u64) -> Result<u64, FullError> {
        let len = self.state.len.checked_add(times).ok_or(FullError::Overflow)?;
        let at = self.table.table().geometry().locate(hash);
        let count = match self.table.table().longest(&at) {
            Some(entry) => self.raise(&entry, times)?,
            None => self.begin(at, times)?,
        };
        self.state.len = len;
        // In a growing table the key may have several entries.
        Ok(if grows::<T>() { self.reader().count_key(hash) } else { count })
    }

    /// Makes an entry for a key that has none: its count.
    fn begin(&mut self, at: LocationOf<T>, times: u64) -> Result<u64, FullError> {
        if times > 0 {
            let in_slot = times.min(self.layout().largest_value());
            self.insert_value(at, in_slot)?;
            self.add_beyond(&self.table.relocate(&at), times - in_slot);
        }
        Ok(times)
    }

    /// Counts what the slot of a new entry cannot.
    pub(super) fn add_beyond(&mut self, at: &LocationOf<T>, beyond: u64) {
        if beyond > 0
            && let Some(name) = self.table.table().name_of_longest(at)
        {
            self.state.counters.add_all(name, beyond);
        }
    }

    /// Counts an entry so many `times` more: its count then.
    pub(super) fn raise(&mut self, entry: &Match, times: u64) -> Result<u64, FullError> {
        let layout = self.layout();
        let count = layout.value_of(entry.slot);
        let in_slot = count.saturating_add(times).min(layout.largest_value());
        let beyond = times - (in_slot - count);
        let counted = if beyond > 0 {
            self.state.counters.add(self.table.table().name(entry), beyond, u64::MAX)?
        } else if in_slot == layout.largest_value() {
            self.state.counters.get(self.table.table().name(entry))
        } else {
            0
        };
        self.revalue(entry, in_slot);
        Ok(in_slot.saturating_add(counted))
    }

    /// Counts a key once less in a counting filter; false if its count is 0.
    pub(crate) fn subtract(mut self, hash: u64) -> bool {
        let table = self.table.table();
        let Some(entry) = table.longest(&table.geometry().locate(hash)) else { return false };
        let (layout, may_have_counter) = (self.layout(), self.reader().may_have_counter(&entry));
        self.state.len = self.state.len.saturating_sub(1);
        if may_have_counter && self.state.counters.take(self.table.table().name(&entry)) {
            return true;
        }
        let left = layout.value_of(entry.slot) - 1;
        if left > 0 {
            self.revalue(&entry, left);
        } else {
            self.table.write(&entry, 0);
            self.state.entries -= 1;
        }
        true
    }

    /// Gives an entry another value.
    fn revalue(&mut self, entry: &Match, value: u64) {
        let layout = self.layout();
        let slot = layout.slot(layout.fingerprint_of(entry.slot), value);
        if slot != entry.slot {
            self.table.write(entry, slot);
        }
    }
}
