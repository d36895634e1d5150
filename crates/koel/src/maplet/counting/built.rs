//! A counting filter in the table that it was built with: each key has one entry.

use super::tally::{Held, Tally};
use crate::buffer::Buffer;
use crate::counters::{Counters, ReadCounters};
use crate::error::Full;
use crate::geometry::Place;
use crate::table::Table;

impl<C: ReadCounters> Tally<C> {
    /// How often the key of `place` came.
    pub(super) fn count_place<B: AsRef<[u8]>>(&self, table: &Table<B>, place: &Place) -> u64 {
        held(table, place).map_or(0, |held| self.total(table.layout(), held))
    }
}

/// The entry that counts the key of `place`.
#[inline]
fn held<B: AsRef<[u8]>>(table: &Table<B>, place: &Place) -> Option<Held> {
    let slot = table.candidates(place.buckets(), [place.fingerprint; 2]).next()?;
    Some((slot, place.identity(table.layout().fingerprint_bits())))
}

impl Tally<Counters> {
    /// Adds to the count of the key of `place`: what it is then.
    pub(super) fn add_at(
        &mut self,
        table: &mut Table<Buffer>,
        place: &Place,
        times: u64,
    ) -> Result<u64, Full> {
        let Some(held) = held(table, place) else { return self.begin(table, place, times) };
        let (in_slot, counted) = self.raise(table.layout(), held, times)?;
        set(table, place, held, in_slot);
        Ok(in_slot.saturating_add(counted))
    }

    /// Makes an entry for a key that has none: its count.
    fn begin(&mut self, table: &mut Table<Buffer>, place: &Place, times: u64) -> Result<u64, Full> {
        if times > 0 {
            let layout = table.layout();
            let in_slot = times.min(layout.largest_value());
            self.pairs.add(table.at(place.buckets()), (place.fingerprint, in_slot), || *place)?;
            self.counters.add_all(place.identity(layout.fingerprint_bits()), times - in_slot);
        }
        Ok(times)
    }

    /// Counts the key of `place` once less; false if it has no count.
    pub(super) fn remove_at(&mut self, table: &mut Table<Buffer>, place: &Place) -> bool {
        let Some(held) = held(table, place) else { return false };
        let left = self.lower(table.layout(), held);
        set(table, place, held, left);
        self.pairs.count_out(left == 0);
        true
    }
}

/// Writes another count into the slot that counts the key of `place`, or takes it out where that is 0.
fn set(table: &mut Table<Buffer>, place: &Place, (old, _): Held, count: u64) {
    let layout = table.layout();
    let new = if count == 0 { 0 } else { layout.slot(layout.fingerprint_of(old), count) };
    if new != old {
        table.at(place.buckets()).exchange(old, new);
    }
}
