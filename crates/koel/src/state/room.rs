//! Room for an entry whose buckets are full: by moving other entries, by growth, or by making two
//! entries one.

use super::Writer;
use crate::error::FullError;
use crate::image::Kind;
use crate::mem::vector::BLOCK;
use crate::state::counters::WriteCounters;
use crate::table::search::{End, Spares};
use crate::table::{CuckooMut, EntryTest, LocationOf, Match, Prefix};

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Moves entries so that the one at `at`, whose buckets are full, gets a slot. Counts it.
    /// False, and nothing changed, where there is no way.
    pub(super) fn make_room(&mut self, at: &LocationOf<T>, value: u64, spares: Spares) -> bool {
        let (layout, state) = (self.layout(), &mut *self.state);
        let (kind, counters) = (state.kind, &state.counters);
        // An entry with a counter keeps its bits, for the counter goes by its name.
        let is_pinned = |slot: u64, name: u64| match kind {
            Kind::Counting => layout.value_of(slot) == layout.largest_value(),
            Kind::Filter | Kind::Maplet => counters.get(name) > 0,
        };
        let pinned = (counters.len() > 0).then_some(&is_pinned as &EntryTest<'_>);
        let Some(plan) = self.table.way_to_room(&mut state.search, at, spares, pinned) else {
            return false;
        };
        let done = match (plan.end, plan.moves.last()) {
            (End::Empty(_), _) => {
                state.entries += 1;
                true
            }
            (End::Spare, Some(&(bucket, slot))) => {
                let table = self.table.table();
                let is_counted =
                    state.count_copies(table.name(&table.entry(bucket, slot)), 1).is_ok();
                state.spares -= u64::from(is_counted);
                is_counted
            }
            (End::Spare, None) => false,
        };
        if done {
            self.table.carry_out(&plan, at, value);
        }
        self.state.search.recycle(plan);
        done
    }

    /// Why an entry whose buckets are full finds no room: because no entry in them has another
    /// bucket to go to, or because the search found none.
    pub(super) fn why_full(&self, at: &LocationOf<T>) -> FullError {
        let layout = self.layout();
        let is_pinned = |slot: u64, _| layout.value_of(slot) == layout.largest_value();
        let pinned = (self.state.counters.len() > 0).then_some(&is_pinned as &EntryTest<'_>);
        let held = self.table.held_fast(at, pinned);
        held.map_or_else(|| self.state.out_of_slots(), |held| FullError::Values { held })
    }

    /// Splits chunks until the load is what it should be with so many `more` entries.
    pub(super) fn keep_load(&mut self, more: u64) {
        while self.table.is_due(self.state.entries + more) && self.split_chunk() {}
    }

    /// Makes room ahead for those of so many keys to come that are no more than a quarter of the
    /// entries. Returns how many. Searches in a table that is less full are shorter.
    pub(super) fn make_way(&mut self, keys: usize) -> usize {
        let quarter = usize::try_from(self.state.entries / 4).unwrap_or(usize::MAX);
        let coming = keys.min(quarter.max(BLOCK));
        self.keep_load(coming as u64);
        coming
    }

    /// Splits the next chunk because a search found no room, if that can help.
    pub(super) fn split_for_room(&mut self) -> bool {
        let is_hopeful = self.table.is_hopeful(self.state.entries);
        self.table.finish_widening() || is_hopeful && self.split_chunk()
    }

    /// Splits the next chunk of buckets; false where the table cannot grow. A void entry is in both
    /// halves from then on, each with the whole counter.
    #[inline(never)]
    pub(super) fn split_chunk(&mut self) -> bool {
        let (counters, mut twins) = (&mut self.state.counters, 0);
        let done = self.table.split(&mut |void, halves| {
            twins += 1;
            let count = counters.remove(void);
            halves.into_iter().for_each(|half| counters.add_all(half, count));
        });
        self.state.entries += twins;
        done
    }

    /// Makes two entries of one core, in a bucket of `at`, into what they have in common, with the
    /// sum of their counts. False, and nothing changed, if there are no two.
    pub(super) fn share(&mut self, at: &LocationOf<T>) -> bool {
        if self.state.counters.len() >= self.state.profile.counter_limit {
            return false;
        }
        // A narrow slot has no room for the mark of a short fingerprint.
        self.table.finish_widening();
        let Some((kept, gone, length)) = self.table.closest(at) else { return false };
        let mut sum = 0_u64;
        for entry in [kept, gone] {
            let counted = self.state.counters.remove(self.table.table().name(&entry));
            sum = sum.saturating_add(self.reader().in_slot(&entry)).saturating_add(counted);
        }
        self.table.write(&gone, 0);
        let (in_slot, value) = match self.state.kind {
            Kind::Filter => (1, 0),
            Kind::Maplet | Kind::Counting => [sum.min(self.layout().largest_value()); 2].into(),
        };
        self.table.shorten(&kept, length, value);
        let shared = Match { prefix: Prefix { length, ..kept.prefix }, ..kept };
        self.state.counters.add_all(self.table.table().name(&shared), sum - in_slot);
        self.note_gone(false);
        true
    }
}
