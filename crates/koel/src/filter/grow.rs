//! Growth: when a filter may leave the table it was built with, and making room ahead.

use crate::CuckooFilter;
use crate::error::{BuildError, FullError};
use crate::image::shape::Shape;
use crate::image::sizing;
use crate::state::store::Store;

impl<S: Store> CuckooFilter<S> {
    /// About how many distinct keys the filter can grow to, if it is growable or is
    /// [made growable](CuckooFilter::make_growable). `None` if it can never grow: its slots have no
    /// room for the bits that growth needs, or it was built for more keys than that.
    #[must_use]
    pub fn growth_limit(&self) -> Option<u64> {
        self.shape().growth_limit_from(self.capacity())
    }

    fn shape(&self) -> Shape {
        Shape::of(self.body.table.base(), self.layout())
    }
}

impl CuckooFilter {
    /// Lets the filter grow from now on, whatever it was built as: an [`insert`](Self::insert) that
    /// finds it full makes it larger. Any number of keys may then have a counter.
    ///
    /// # Errors
    /// Nothing has changed then. [`BuildError::TooPrecise`] if slots have no room for the bits that
    /// growth needs: at rates below about one in eight million, or one in two million with
    /// [`Prefer::Fast`](crate::Prefer::Fast). [`BuildError::TooLarge`] if the table is too large to
    /// grow, from about eight billion keys on.
    pub fn make_growable(&mut self) -> Result<(), BuildError> {
        if !self.layout().can_grow() {
            let rate = self.requested_false_positive_rate();
            return Err(sizing::too_precise_to_grow(self.layout(), self.capacity(), rate));
        }
        self.shape().that_grows_to(self.capacity())?;
        self.body.state.profile.growable = true;
        self.body.state.profile.counter_limit = u64::MAX;
        Ok(())
    }

    /// Makes room for `additional` more distinct keys now, if the filter is
    /// [growable](Self::is_growable). Inserts make room by themselves, a little at a time.
    ///
    /// An insert into a nearly full filter takes two to four times as long as one into a filter
    /// with room. If many keys are coming, reserve a tenth of those that are in, each time that
    /// many have come.
    ///
    /// # Errors
    /// [`FullError::Slots`] if there is no room and the filter is not growable, or if 32-bit bucket
    /// numbers have no room for so many buckets. [`FullError::NoMemory`] if the system has no
    /// memory for all of them. No answer has changed then.
    pub fn reserve(&mut self, additional: u64) -> Result<(), FullError> {
        self.body.reserve(additional)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Merge, Prefer};
    use alloc::{vec, vec::Vec};

    fn is_midway(filter: &CuckooFilter) -> bool {
        filter.body.table.is_midway()
    }

    /// A filter of `keys` keys, one in 50 of them inserted three times.
    fn filled(keys: u64, rate: f64, prefer: Prefer) -> CuckooFilter {
        let builder = CuckooFilter::builder(keys, rate).prefer(prefer).growable();
        let mut filter = builder.build().unwrap();
        for key in 0..keys {
            let copies = if key % 50 == 0 { 3 } else { 1 };
            (0..copies).for_each(|_| filter.insert(&key).unwrap());
        }
        filter
    }

    #[test]
    fn a_large_filter_is_widened_by_a_few_buckets_per_insert_and_finds_all_keys_meanwhile() {
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
                filter.insert(&key).unwrap();
                assert!(filter.buckets() - before <= before / 64, "more than a chunk at once");
                key += 1;
                steps += u64::from(is_midway(&filter) || was_midway);
                if was_midway {
                    // Removes one of the first keys for each new one.
                    assert!(filter.remove(&(50 * removed + 1)));
                    removed += 1;
                    let is_in = |key: &u64| key % 50 != 1 || key / 50 >= removed;
                    let keys: Vec<u64> = (0..key).filter(is_in).collect();
                    let mut found = vec![false; keys.len()];
                    filter.contains_many(&keys, &mut found);
                    assert!(found.iter().all(|&found| found));
                    assert!(keys.iter().all(|key| filter.contains(key)));
                    assert!((0..first).step_by(50).all(|key| filter.count(&key) >= 3));
                    let back = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
                    assert!(back == filter && filter == filter.clone());
                    assert_eq!(is_midway(&back), is_midway(&filter));
                    filter.verify().unwrap();
                }
                if was_midway && !is_midway(&filter) {
                    // The filter now has more entries than it is meant to have. A filter read from
                    // a file must accept that.
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
    fn operations_that_need_wide_buckets_finish_the_widening() {
        let begun = || {
            let mut filter = filled(40_000, 0.001, Prefer::Small);
            let mut inserted = 0;
            for key in (0..4000_u64).map(|i| !i) {
                filter.insert(&key).unwrap();
                inserted += 1;
                if is_midway(&filter) {
                    break;
                }
            }
            assert!(is_midway(&filter));
            (filter, inserted)
        };
        let all_in = |filter: &CuckooFilter, inserted: u64| {
            (0..40_000_u64).all(|key| filter.contains(&key))
                && (0..inserted).all(|i| filter.contains(&!i))
        };
        let (mut filter, inserted) = begun();
        filter.reserve(60_000).unwrap();
        assert!(!is_midway(&filter) && all_in(&filter, inserted));
        let ((filter, inserted), (mut union, _)) = (begun(), begun());
        union.merge(&filter, Merge::Sum).unwrap();
        assert!(!is_midway(&union) && all_in(&union, inserted));
        assert!((0..40_000_u64).all(|key| union.count(&key) >= 2));
        let (mut filter, inserted) = begun();
        filter.shrink_to_fit();
        assert!(all_in(&filter, inserted));
        filter.verify().unwrap();
        let (mut filter, _) = begun();
        filter.clear();
        filter.verify().unwrap();
        assert!(!is_midway(&filter));
        assert!((0..40_000_u64).all(|key| !filter.contains(&key)));
    }
}
