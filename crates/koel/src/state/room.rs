//! Room for an entry whose buckets are full: by moving other entries, by growth, or by merging two
//! entries.

use super::Writer;
use crate::error::FullError;
use crate::image::Kind;
use crate::mem::vector::BLOCK;
use crate::packing::SLOTS;
use crate::state::counters::WriteCounters;
use crate::state::full::Crowded;
use crate::table::search::{End, Spares};
use crate::table::{Addressing, CuckooMut, EntryTest, LocationOf, Put, Step, grows};

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Moves entries so that the one of `location`, whose buckets are full, gets a slot. Counts it.
    /// False, and nothing changed, if there is no way.
    pub(super) fn make_room(
        &mut self,
        location: &LocationOf<T>,
        value: u64,
        spares: Spares,
    ) -> bool {
        let (table, state) = (self.table.table_mut(), &mut *self.state);
        let layout = table.layout();
        let (kind, counters) = (state.kind, &state.counters);
        // An entry with a counter keeps its bits, for the counter goes by its name.
        let is_pinned = |slot: u64, name: u64| match kind {
            Kind::Counting => layout.value_of(slot) == layout.largest_value(),
            Kind::Filter | Kind::Maplet | Kind::Expiring => counters.get(name) > 0,
        };
        let pinned = (counters.len() > 0).then_some(&is_pinned as &EntryTest<'_>);
        let path = table.path_to_room(&mut state.search, location, spares, pinned);
        let Some(path) = path else { return false };
        let done = match (path.end, path.moves.last()) {
            (End::Empty(_), _) => {
                state.entries += 1;
                true
            }
            (End::Spare, Some(&(bucket, slot))) => {
                let name = table.name(&table.entry(bucket, slot));
                let is_counted = state.count_copies(name, 1).is_ok();
                state.spares -= u64::from(is_counted);
                is_counted
            }
            (End::Spare, None) => false,
        };
        if done {
            table.carry_out(&path, location, value);
        }
        state.search.recycle(path);
        done
    }

    fn slots(&self) -> u64 {
        self.table.table().geometry().buckets() * SLOTS as u64
    }

    /// Why an entry whose buckets are full finds no room: no entry in them has another bucket to
    /// move to, or the search found none.
    pub(super) fn why_full(&self, location: &LocationOf<T>) -> FullError {
        let layout = self.layout();
        let is_pinned = |slot: u64, _| layout.value_of(slot) == layout.largest_value();
        let pinned = (self.state.counters.len() > 0).then_some(&is_pinned as &EntryTest<'_>);
        let stuck = self.table.table().stuck_slots(location, pinned);
        stuck.map_or_else(|| self.state.out_of_slots(), |held| FullError::Values { held })
    }

    /// Makes a step of growth for an entry that has come, or for each of so many that are
    /// `coming`, while the table is too full for them. A table that was just widened is fuller than
    /// designed, and gets there in small steps. For an entry that has come, there is memory:
    /// [`place_refused`](Self::place_refused), or [`step_or_undo`](Self::step_or_undo) instead.
    pub(super) fn keep_load(&mut self, coming: u64) {
        let is_overfull =
            |writer: &Self| writer.table.table().is_overfull(writer.state.entries + coming);
        for _ in 0..coming.max(1) {
            if !is_overfull(self) || self.split_chunk() != Step::Done {
                return;
            }
        }
    }

    /// Gets memory for the steps of growth of one more entry, before anything is changed. Without,
    /// an insert would be in here, and the step made only on a machine that has memory.
    pub(super) fn reserve_steps(&mut self) -> Result<(), FullError> {
        let is_due = grows::<T>() && self.table.table().is_overfull(self.state.entries + 1);
        if is_due {
            self.table.reserve_steps().map(drop).ok_or(FullError::NoMemory)
        } else {
            Ok(())
        }
    }

    /// Gives an entry whose buckets are full a slot, and keeps the load.
    pub(super) fn place_refused(&mut self, at: LocationOf<T>, value: u64) -> Result<(), FullError> {
        self.reserve_steps()?;
        self.find_slot(at, value)?;
        self.keep_load(0);
        Ok(())
    }

    /// Makes the step of growth that an entry makes due, which was put in an empty slot and counted
    /// in `entries`. Takes it out again where there is no memory for the step.
    #[cold]
    #[inline(never)]
    pub(super) fn step_or_undo(&mut self, at: &LocationOf<T>, value: u64) -> Result<(), FullError> {
        if self.split_chunk() != Step::NoMemory {
            return Ok(());
        }
        self.table.take(at, value, |_| false);
        self.state.entries -= 1;
        Err(FullError::NoMemory)
    }

    /// Makes room ahead for as many of the coming keys as are a quarter of the entries. Returns how
    /// many keys that is. Searches in a table that is less full are shorter.
    pub(super) fn make_way(&mut self, keys: usize) -> usize {
        let quarter = usize::try_from(self.state.entries / 4).unwrap_or(usize::MAX);
        let coming = keys.min(quarter.max(BLOCK));
        self.keep_load(coming as u64);
        coming
    }

    /// Splits the next chunk of buckets. A void entry is in both halves from then on, each with the
    /// whole counter.
    #[inline(never)]
    pub(super) fn split_chunk(&mut self) -> Step {
        let (counters, mut twins) = (&mut self.state.counters, 0);
        let done = self.table.split(&mut |_, void, halves| {
            twins += 1;
            let count = counters.remove(void);
            halves.into_iter().for_each(|half| counters.add_all(half, count));
        });
        self.state.entries += twins;
        done
    }
}

/// Filters, counting filters and maplets.
impl<T: CuckooMut, C: WriteCounters> Crowded<T> for Writer<'_, T, C> {
    /// A growable filter is not filled to the last slot: it starts to grow while there is room for
    /// the keys that come until its buckets are wide.
    fn search(&mut self, at: &LocationOf<T>, value: u64) -> bool {
        let is_filter = self.state.kind == Kind::Filter;
        if is_filter && !grows::<T>() && self.state.must_grow(self.slots()) {
            return false;
        }
        let spares = if is_filter { self.state.spares_to_take() } else { Spares::Keep };
        self.make_room(at, value, spares)
    }

    fn put(&mut self, at: &LocationOf<T>, value: u64) -> bool {
        let is_in = self.table.put(at, value, u64::MAX) == Put::Done;
        self.state.entries += u64::from(is_in);
        is_in
    }

    /// Filters have the stash, so only if a step is due, or the stash is large. A maplet has none:
    /// it grows while it is half full, unless no entry in the buckets has another bucket in any
    /// table.
    fn may_grow(&self, at: &LocationOf<T>, steps: u32) -> bool {
        if C::COUNTS {
            let is_due = self.table.table().is_overfull(self.state.entries + 1);
            return steps == 0 && (is_due || self.state.has_large_stash(self.slots()));
        }
        let is_hopeless = matches!(self.why_full(at), FullError::Values { .. });
        !is_hopeless && self.table.may_gain_room(self.state.entries)
    }

    fn grow(&mut self) -> Step {
        self.split_chunk()
    }

    fn relocate(&self, at: &LocationOf<T>) -> LocationOf<T> {
        self.table.relocate(at)
    }

    fn last_resort(&mut self, at: &LocationOf<T>, _: u64) -> Result<(), FullError> {
        Err(if C::COUNTS { self.state.out_of_slots() } else { self.why_full(at) })
    }
}
