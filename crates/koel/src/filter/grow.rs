//! Growing and shrinking: when a filter leaves the table it was built with, and how it gives memory back.

use crate::CuckooFilter;
use crate::body::Body;
use crate::buffer::Buffer;
use crate::counters::{Counters, ReadCounters};
use crate::error::{BuildError, Full};
use crate::filter::tally::Tally;
use crate::growth::{self, Grown};
use crate::layout::Layout;
use crate::sizing;
use crate::table::Table;

impl CuckooFilter {
    /// Lets the filter grow from now on, whatever it was built as: an [`insert`](Self::insert) that finds it full makes it larger. Any number of keys may then have a counter
    /// for their copies.
    ///
    /// # Errors
    /// [`BuildError::TooPrecise`] where slots have no room for the bits that growth needs: below an error rate of about one in eight million, with
    /// [`Prefer::Fast`](crate::Prefer::Fast) one in two million. Nothing has changed then.
    pub fn make_growable(&mut self) -> Result<(), BuildError> {
        if !self.layout().can_grow() {
            let rate = self.requested_false_positive_rate();
            return Err(sizing::too_precise_to_grow(self.layout(), self.capacity(), rate));
        }
        self.tally.profile.growable = true;
        self.tally.profile.counter_limit = u64::MAX;
        Ok(())
    }

    /// Makes room for `additional` more distinct keys at once, where the filter is [growable](Self::is_growable) and has not got it; inserts do so by themselves,
    /// a little at a time. A filter that is always nearly full takes two to four times as long for a new key as one with room, so where many are coming this is worth
    /// a call: a tenth more than is in, say, each time that much has come.
    ///
    /// # Errors
    /// [`Full::Slots`], and then nothing has changed, where the filter is not growable, where addresses of 32 bits have no room for so many buckets, or where the system has no memory for
    /// them.
    pub fn reserve(&mut self, additional: u64) -> Result<(), Full> {
        let entries = self.slots_in_use().saturating_add(additional);
        let has_room = match &self.body {
            Body::Built(_) => entries <= self.capacity(),
            Body::Grown(grown) => !grown.is_due(entries),
        };
        if has_room {
            return Ok(());
        }
        let (base, layout) = (self.body.base(), self.layout_to_grow_in());
        if !layout.is_some_and(|layout| growth::has_room_for(base, layout, entries)) {
            return Err(self.tally.out_of_slots());
        }
        let (grown, tally) = self.start_to_grow()?;
        while grown.is_due(entries) {
            if !tally.split_chunk(grown) {
                return Err(tally.out_of_slots());
            }
        }
        Ok(())
    }

    /// Gives back the memory that the entries do not need, down to the size that the filter was built with. Builds the smaller table beside this one, so it takes the
    /// memory of both for a while; where the entries do not fit into that, one for twice as many is tried. O(buckets).
    pub fn shrink_to_fit(&mut self) {
        let Body::Grown(grown) = &self.body else { return };
        let moved = |smaller: &mut _| self.tally.moved(grown, smaller);
        if let Some((smaller, tally)) = grown.in_fewer_buckets(self.tally.entries, moved) {
            self.body = Body::Grown(smaller);
            self.tally = tally;
        }
    }

    /// The table that grows. The first time, the filter leaves the one that it was built with, and every bucket is rewritten.
    pub(super) fn start_to_grow(
        &mut self,
    ) -> Result<(&mut Grown<Buffer>, &mut Tally<Counters>), Full> {
        let layout = self.layout_to_grow_in();
        let tally = &mut self.tally;
        let grown = self.body.grown_by(|table| {
            let grown = layout.and_then(|layout| Grown::widened(table, layout));
            let mut grown = grown.ok_or(tally.out_of_slots())?;
            tally.start_to_grow(table, &mut grown);
            Ok(grown)
        })?;
        Ok((grown, tally))
    }

    /// The layout that the filter has once it has grown, if it may.
    fn layout_to_grow_in(&self) -> Option<Layout> {
        self.marked_layout().filter(|_| self.is_growable())
    }

    /// Inserts a key for which the table that the filter was built with has no room.
    #[cold]
    pub(super) fn insert_growing(&mut self, hash: u64, full: Full) -> Result<(), Full> {
        if !self.tally.grows_instead(full) {
            return Err(full);
        }
        let (grown, tally) = self.start_to_grow()?;
        tally.insert_grown(grown, hash)
    }
}

impl Tally<Counters> {
    /// Follows the entries from the table that they were built in to `grown`, which has them already: the counters get the names that they have there.
    fn start_to_grow(&mut self, built: &Table<Buffer>, grown: &mut Grown<Buffer>) {
        let layout = built.layout();
        let named = self.counters.iter().map(|(identity, count)| {
            let (bucket, fingerprint) =
                (identity >> layout.fingerprint_bits(), layout.fingerprint_of(identity));
            let base = built.geometry().dealt(bucket);
            let prefix = grown.addresses().unstretched(base, fingerprint);
            (grown.addresses().identity(&prefix), count)
        });
        self.counters = Counters::from_iter(named);
        self.keep_load(grown, 0);
    }

    /// That of `smaller` with all entries of `grown`, which are moved there; `None` where they do not fit.
    fn moved(&self, grown: &Grown<Buffer>, smaller: &mut Grown<Buffer>) -> Option<Self> {
        let mut tally = Self { len: self.len, ..Self::none(self.profile) };
        let moved = grown.table().distinct_entries().try_for_each(|entry| {
            tally.add_prefix(smaller, entry.prefix, self.count_entry(grown, &entry))
        });
        moved.is_ok().then_some(tally)
    }
}
