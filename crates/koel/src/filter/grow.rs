//! Growing and shrinking: when a filter leaves the table it was built with, and how it gives memory back.

use crate::CuckooFilter;
use crate::body::Body;
use crate::buffer::Buffer;
use crate::counters::{Counters, ReadCounters};
use crate::error::{BuildError, Full};
use crate::filter::tally::Tally;
use crate::geometry::CORE_BITS;
use crate::growth::{self, Grown};
use crate::layout::Layout;
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
        grown.finish_widening();
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

    /// The table that grows. The first time, that is what the one that the filter was built with becomes.
    pub(super) fn start_to_grow(
        &mut self,
    ) -> Result<(&mut Grown<Buffer>, &mut Tally<Counters>), Full> {
        let layout = self.layout_to_grow_in();
        let tally = &mut self.tally;
        let grown = self.body.grown_by(|table| {
            let grown = layout.and_then(|layout| Grown::begun(table, layout, tally.entries));
            grown.inspect(|grown| tally.start_to_grow(grown)).ok_or(tally.out_of_slots())
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
    /// Follows the entries into `grown`, which has them already: the counters get the names that they have there.
    fn start_to_grow(&mut self, grown: &Grown<Buffer>) {
        let addresses = grown.addresses();
        let bits = CORE_BITS + addresses.base().fraction_bits();
        let named = self.counters.iter().map(|(identity, count)| {
            let (bucket, fingerprint) = (identity >> bits, identity & !(u64::MAX << bits));
            (addresses.identity(&addresses.unstretched(bucket, fingerprint)), count)
        });
        self.counters = Counters::from_iter(named);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Merge, Prefer};
    use alloc::{vec, vec::Vec};
    use testkit::keys::splitmix64 as hash;

    fn is_midway(filter: &CuckooFilter) -> bool {
        filter.body.grown().is_some_and(Grown::is_midway)
    }

    /// A filter of `keys` keys, one of 50 of them three times.
    fn filled(keys: u64, rate: f64, prefer: Prefer) -> CuckooFilter {
        let builder = CuckooFilter::builder(keys, rate).prefer(prefer).growable();
        let mut filter = builder.build().unwrap();
        for key in 0..keys {
            let copies = if key % 50 == 0 { 3 } else { 1 };
            (0..copies).for_each(|_| filter.insert_at(hash(key)).unwrap());
        }
        filter
    }

    #[test]
    fn a_large_filter_is_widened_a_few_buckets_an_insert_and_answers_for_all_keys_meanwhile() {
        for (rate, prefer) in [
            (0.05, Prefer::Small),
            (0.001, Prefer::Small),
            (0.001, Prefer::Fast),
            (1e-5, Prefer::Small),
        ] {
            let first = 40_000;
            let mut filter = filled(first, rate, prefer);
            let (mut key, mut removed, mut steps) = (first, 0, 0);
            while key < first + first / 50 {
                let (was_midway, before) = (is_midway(&filter), filter.buckets());
                filter.insert_at(hash(key)).unwrap();
                assert!(filter.buckets() - before <= before / 64, "more than a chunk at once");
                key += 1;
                steps += u64::from(is_midway(&filter) || was_midway);
                if was_midway {
                    // One of the first keys goes for each new one.
                    assert!(filter.remove_at(hash(50 * removed + 1)));
                    removed += 1;
                    let is_in = |key: &u64| key % 50 != 1 || key / 50 >= removed;
                    let hashes: Vec<_> = (0..key).filter(is_in).map(hash).collect();
                    let mut found = vec![false; hashes.len()];
                    filter.contains_each(&*hashes, &mut found);
                    assert!(found.iter().all(|&found| found));
                    assert!(hashes.iter().all(|&hash| filter.contains_at(hash)));
                    assert!((0..first).step_by(50).all(|key| filter.count_at(hash(key)) >= 3));
                    let back = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
                    assert!(!is_midway(&back) && back == filter && filter == filter.clone());
                    filter.verify().unwrap();
                }
                if was_midway && !is_midway(&filter) {
                    // It has more entries now than it should, and so has one that is read from a file.
                    filter = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
                }
            }
            assert!(!is_midway(&filter) && filter.has_grown());
            assert!(steps >= 16 && steps == removed + 1, "{steps} {removed}");
            assert!(filter.false_positive_rate() < 1.1 * rate);
            filter.verify().unwrap();
        }
    }

    #[test]
    fn what_needs_wide_buckets_finds_them() {
        let begun = || {
            let mut filter = filled(40_000, 0.001, Prefer::Small);
            let extra = (0..).map(|i| hash(!i)).take(4000);
            let mut inserted = 0;
            for hash in extra {
                filter.insert_at(hash).unwrap();
                inserted += 1;
                if is_midway(&filter) {
                    break;
                }
            }
            assert!(is_midway(&filter));
            (filter, inserted)
        };
        let all_in = |filter: &CuckooFilter, inserted: u64| {
            (0..40_000).all(|key| filter.contains_at(hash(key)))
                && (0..inserted).all(|i| filter.contains_at(hash(!i)))
        };
        let (mut filter, inserted) = begun();
        filter.reserve(60_000).unwrap();
        assert!(!is_midway(&filter) && all_in(&filter, inserted));
        let ((filter, inserted), (mut union, _)) = (begun(), begun());
        union.merge(&filter, Merge::Sum).unwrap();
        assert!(!is_midway(&union) && all_in(&union, inserted));
        assert!((0..40_000).all(|key| union.count_at(hash(key)) >= 2));
        let (mut filter, inserted) = begun();
        filter.shrink_to_fit();
        assert!(all_in(&filter, inserted));
        filter.verify().unwrap();
        let (mut filter, _) = begun();
        filter.clear();
        filter.verify().unwrap();
        assert!(!is_midway(&filter));
        assert!((0..40_000).all(|key| !filter.contains_at(hash(key))));
    }
}
