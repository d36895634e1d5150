//! Counts: of keys in filters and counting filters, and how a counting filter changes them.
//!
//! In a filter each entry counts one, and its counter counts the further copies. In a counting
//! filter the value of an entry is its count. From the largest value on, the counter goes up; a
//! removal lowers the counter first.

use super::{Body, State};
use crate::error::FullError;
use crate::image::Kind;
use crate::mem::buffer::Buffer;
use crate::packing::Layout;
use crate::table::{Entry, Place, at_place};

impl<B: AsRef<[u8]>> State<B> {
    /// The count in a slot, without a counter.
    #[inline]
    pub(super) fn in_slot(&self, layout: Layout, slot: u64) -> u64 {
        if self.kind() == Kind::Filter { 1 } else { layout.value_of(slot) }
    }
}

impl<B: AsRef<[u8]>> Body<B> {
    /// All copies in slots, counters and the stash: those of the keys, and what growth has left.
    /// O(1), but in a view O(counters), and in a counting filter O(buckets).
    pub(crate) fn held(&self) -> u128 {
        let entries = u128::from(self.state.entries);
        let in_slots = match self.state.kind() {
            Kind::Filter | Kind::Maplet => entries,
            Kind::Counting => {
                let entries = self.table.entries();
                entries.map(|entry| u128::from(self.in_slot(&entry))).sum()
            }
            // Stamps are no copies.
            Kind::Expiring => return entries,
        };
        in_slots + self.state.side.counters.sum() + self.state.side.stash.sum()
    }

    /// How often the key with this address is in.
    pub(crate) fn count_key(&self, address: u64) -> u64 {
        at_place!(self.table, P => self.count_at(&P::locate(self.table.addresses(), address)))
    }

    /// The sum over all entries that match. Entries of one length have one name and one counter.
    pub(crate) fn count_at(&self, at: &impl Place) -> u64 {
        let (mut seen, mut sum) = (0_u64, 0_u64);
        for entry in self.table.matches(at) {
            let beyond = self.beyond(&entry);
            let bit = u64::from(beyond > 0) << entry.prefix.length;
            sum = sum.saturating_add(self.in_slot(&entry));
            sum = sum.saturating_add(if seen & bit == 0 { beyond } else { 0 });
            seen |= bit;
        }
        sum
    }

    /// How often the keys of an entry are in: its copies or its value, and its counter.
    pub(crate) fn count_of(&self, entry: &Entry) -> u64 {
        let in_slots = match self.state.kind() {
            Kind::Counting => self.in_slot(entry),
            Kind::Filter | Kind::Maplet | Kind::Expiring => self.table.equals(entry),
        };
        in_slots.saturating_add(self.beyond(entry))
    }

    /// The count in a slot of a bucket, with its counter.
    pub(crate) fn count_in(&self, bucket: u64, slot: u64) -> u64 {
        let entry = self.table.entry(bucket, slot);
        self.in_slot(&entry).saturating_add(self.beyond(&entry))
    }

    pub(super) fn in_slot(&self, entry: &Entry) -> u64 {
        self.state.in_slot(self.table.layout(), entry.slot)
    }

    /// The counter of an entry; 0 if it has none.
    #[inline]
    pub(crate) fn beyond(&self, entry: &Entry) -> u64 {
        if self.state.side.counters.len() > 0 && self.may_have_counter(entry) {
            self.state.side.counters.get(self.table.name(entry)).unwrap_or(0)
        } else {
            0
        }
    }

    /// Whether an entry may have a counter: only if its value is the largest. Without values, every
    /// entry may.
    #[inline]
    pub(super) fn may_have_counter(&self, entry: &Entry) -> bool {
        let layout = self.table.layout();
        layout.value_of(entry.slot) == layout.largest_value()
    }
}

impl Body<Buffer> {
    /// Raises the count of a key in a counting filter by `times`, and returns it.
    pub(super) fn add_in_table(&mut self, address: u64, times: u64) -> Result<u64, FullError> {
        at_place!(self.table, P => {
            let at = P::locate(self.table.addresses(), address);
            self.add_at(at, times)
        })
    }

    fn add_at<P: Place>(&mut self, at: P, times: u64) -> Result<u64, FullError> {
        let len = self.state.len.checked_add(times).ok_or(FullError::Overflow)?;
        let count = match self.table.longest(&at) {
            Some(entry) => self.raise(&entry, times)?,
            None => self.begin(at, times)?,
        };
        self.state.len = len;
        // In a growing table the key may have several entries.
        Ok(if P::GROWS { self.count_at(&at.relocated(self.table.addresses())) } else { count })
    }

    /// Makes an entry for a key that has none. Returns its count.
    fn begin(&mut self, at: impl Place, times: u64) -> Result<u64, FullError> {
        if times > 0 {
            let in_slot = times.min(self.layout().largest_value());
            self.insert_value(at, in_slot)?;
            self.add_beyond(&at.relocated(self.table.addresses()), times - in_slot);
        }
        Ok(times)
    }

    /// Adds to the counter of a new entry what its slot cannot hold.
    pub(super) fn add_beyond(&mut self, at: &impl Place, beyond: u64) {
        if beyond > 0
            && let Some(name) = self.table.name_of_longest(at)
        {
            self.state.side.counters.add_all(name, beyond);
        }
    }

    /// Raises the count of an entry by `times`, and returns it.
    pub(super) fn raise(&mut self, entry: &Entry, times: u64) -> Result<u64, FullError> {
        let layout = self.layout();
        let count = layout.value_of(entry.slot);
        let in_slot = count.saturating_add(times).min(layout.largest_value());
        let beyond = times - (in_slot - count);
        let counted = if beyond > 0 {
            self.state.side.counters.add(self.table.name(entry), beyond, u64::MAX)?
        } else if in_slot == layout.largest_value() {
            self.state.side.counters.get(self.table.name(entry)).unwrap_or(0)
        } else {
            0
        };
        self.revalue(entry, in_slot);
        Ok(in_slot.saturating_add(counted))
    }

    /// Lowers the count of a key in a counting filter by 1. False if it is 0.
    pub(super) fn subtract_in_table(&mut self, address: u64) -> bool {
        let longest = at_place!(self.table, P => {
            self.table.longest(&P::locate(self.table.addresses(), address))
        });
        let Some(entry) = longest else { return false };
        let (layout, may_have_counter) = (self.layout(), self.may_have_counter(&entry));
        if !may_have_counter || !self.state.side.counters.take(self.table.name(&entry)) {
            let left = layout.value_of(entry.slot) - 1;
            if left > 0 {
                self.revalue(&entry, left);
            } else {
                self.table.overwrite(&entry, 0);
                self.state.entries -= 1;
            }
        }
        self.note_one_less(self.table.grows());
        true
    }

    /// Gives an entry another value.
    fn revalue(&mut self, entry: &Entry, value: u64) {
        let layout = self.layout();
        let slot = layout.slot(layout.fingerprint_of(entry.slot), value);
        if slot != entry.slot {
            self.table.overwrite(entry, slot);
        }
    }
}
