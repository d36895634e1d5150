//! Room for an entry whose buckets are full: by moving other entries, by growth, or by merging two
//! entries.

use super::Writer;
use crate::error::FullError;
use crate::image::Kind;
use crate::mem::vector::BLOCK;
use crate::state::counters::WriteCounters;
use crate::table::search::{End, Spares};
use crate::table::trace::note;
use crate::table::{CuckooMut, EntryTest, LocationOf, Match, Prefix, Step};

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
        note!(
            table.log,
            Searched {
                slots: state.search.looked(),
                moves: path.as_ref().map(|path| path.moves.len() as u64),
            }
        );
        let Some(path) = path else { return false };
        let done = match (path.end, path.moves.last()) {
            (End::Empty(_), _) => {
                state.entries += 1;
                true
            }
            (End::Spare, Some(&(bucket, slot))) => {
                let name = table.name(&table.entry(bucket, slot));
                let is_counted = state.count_copies(name, 1).is_ok();
                note!(table.log, Counted { name, copies: state.counters.get(name) });
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
    /// designed, and gets there in small steps.
    pub(super) fn keep_load(&mut self, coming: u64) {
        let is_overfull =
            |writer: &Self| writer.table.table().is_overfull(writer.state.entries + coming);
        for _ in 0..coming.max(1) {
            if !is_overfull(self) || self.split_chunk() != Step::Done {
                return;
            }
        }
    }

    /// Makes room ahead for as many of the coming keys as are a quarter of the entries. Returns how
    /// many keys that is. Searches in a table that is less full are shorter.
    pub(super) fn make_way(&mut self, keys: usize) -> usize {
        let quarter = usize::try_from(self.state.entries / 4).unwrap_or(usize::MAX);
        let coming = keys.min(quarter.max(BLOCK));
        self.keep_load(coming as u64);
        coming
    }

    /// Splits the next chunk after a search found no room. False if that cannot help.
    ///
    /// # Errors
    /// [`FullError::NoMemory`] if it would help, and there is no memory for it.
    pub(super) fn split_for_room(&mut self) -> Result<bool, FullError> {
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

    /// Splits the next chunk of buckets, even of a sparse table, for a key whose only bucket is
    /// full of entries that cannot move either. False if no split tells them apart.
    pub(super) fn split_for_lone_key(&mut self, at: &LocationOf<T>) -> bool {
        self.table.divides_alone(at, self.state.entries) && self.split_chunk() == Step::Done
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

    /// Merges two entries of one core, in a bucket of `location`, into their common prefix, with
    /// the sum of their counts. False, and nothing changed, if there are no two.
    pub(super) fn share(&mut self, location: &LocationOf<T>) -> bool {
        if self.state.counters.len() >= self.state.profile.counter_limit {
            return false;
        }
        // A narrow slot has no room for the mark of a short fingerprint.
        self.table.finish_widening();
        let Some((kept, gone, length)) = self.table.table().most_alike(location) else {
            return false;
        };
        let mut sum = 0_u64;
        for entry in [kept, gone] {
            let name = self.table.table().name(&entry);
            let counted = self.state.counters.remove(name);
            note!(self.table.table_mut().log, Counted { name, copies: 0 });
            sum = sum.saturating_add(self.reader().in_slot(&entry)).saturating_add(counted);
        }
        self.table.write(&gone, 0);
        let (in_slot, value) = match self.state.kind {
            Kind::Filter => (1, 0),
            _ => [sum.min(self.layout().largest_value()); 2].into(),
        };
        self.table.shorten(&kept, length, value);
        let shared = Match { prefix: Prefix { length, ..kept.prefix }, ..kept };
        let name = self.table.table().name(&shared);
        self.state.counters.add_all(name, sum - in_slot);
        note!(self.table.table_mut().log, Counted { name, copies: sum - in_slot });
        self.note_gone(false);
        true
    }
}
