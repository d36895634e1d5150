//! Growing and shrinking: when a filter leaves the table it was built with, and how it gives memory back.

use crate::CuckooFilter;
use crate::body::Body;
use crate::counters::{Counters, ReadCounters};
use crate::error::{BuildError, Full};
use crate::growth::{self, Grown};
use crate::layout::Layout;
use crate::placement::Search;
use crate::sizing;

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
        self.profile.growable = true;
        self.profile.counter_limit = u64::MAX;
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
        let entries = self.entries.saturating_add(additional);
        let has_room = match &self.body.grown {
            None => entries <= self.capacity(),
            Some(grown) => !grown.is_due(entries),
        };
        if has_room {
            return Ok(());
        }
        let (base, layout) = (self.body.table.geometry(), self.layout_to_grow_in());
        if !layout.is_some_and(|layout| growth::has_room_for(base, layout, entries)) {
            return Err(self.out_of_slots());
        }
        self.start_to_grow()?;
        while self.body.grown.as_ref().is_some_and(|grown| grown.is_due(entries)) {
            if !self.split_chunk() {
                return Err(self.out_of_slots());
            }
        }
        Ok(())
    }

    /// Gives back the memory that the entries do not need, down to the size that the filter was built with. Builds the smaller table beside this one, so it takes the
    /// memory of both for a while; where the entries do not fit into that, one for twice as many is tried. O(buckets).
    pub fn shrink_to_fit(&mut self) {
        let empty = |room| self.smaller(room);
        if let Some(smaller) =
            growth::moved_to_fewer(self.entries, empty, |empty| self.moved_to(empty))
        {
            *self = smaller;
        }
    }

    /// The filter without its entries, in the smallest table for so many; `None` where that is no smaller than this one.
    fn smaller(&self, entries: u64) -> Option<Self> {
        let table = self.body.grown.as_ref()?.smaller(entries)?;
        Some(Self {
            body: Body::grown(&self.body.table, table),
            counters: Counters::default(),
            search: Search::default(),
            entries: 0,
            distinct: 0,
            ..*self
        })
    }

    /// All entries in `smaller`; `None` where they do not fit, or only once it is no smaller.
    fn moved_to(&self, mut smaller: Self) -> Option<Self> {
        let grown = self.body.grown.as_ref()?;
        let moved = grown.table().distinct_entries().try_for_each(|entry| {
            smaller.add_prefix(entry.prefix, self.count_entry(grown, &entry))
        });
        (moved.is_ok() && smaller.buckets() < self.buckets()).then_some(smaller)
    }

    /// Leaves the table that the filter was built with, for one that grows: the first time, every bucket is rewritten.
    pub(super) fn start_to_grow(&mut self) -> Result<(), Full> {
        if self.body.grown.is_some() {
            return Ok(());
        }
        let grown = self.layout_to_grow_in();
        let grown = grown.and_then(|layout| Grown::widened(&self.body.table, layout));
        let grown = grown.ok_or(self.out_of_slots())?;
        let bits = self.layout().fingerprint_bits();
        let named = self.counters.iter().map(|(identity, count)| {
            let fingerprint = self.layout().fingerprint_of(identity);
            let prefix = grown.addresses().unstretched(identity >> bits, fingerprint);
            (grown.addresses().identity(&prefix), count)
        });
        self.counters = Counters::from_iter(named);
        self.body = Body::grown(&self.body.table, grown);
        self.keep_load(0);
        Ok(())
    }

    /// The layout that the filter has once it has grown, if it may.
    fn layout_to_grow_in(&self) -> Option<Layout> {
        self.marked_layout().filter(|_| self.profile.growable)
    }

    /// Inserts a key for which the table that the filter was built with has no room.
    #[cold]
    pub(super) fn insert_growing(&mut self, hash: u64, full: Full) -> Result<(), Full> {
        if !self.grows_instead(full) {
            return Err(full);
        }
        self.start_to_grow()?;
        self.insert_grown(hash)
    }

    /// Whether the filter grows instead of this error.
    pub(super) fn grows_instead(&self, full: Full) -> bool {
        self.profile.growable && matches!(full, Full::Slots { .. })
    }

    pub(super) fn out_of_slots(&self) -> Full {
        Full::Slots { in_use: self.entries, capacity: self.capacity() }
    }
}
