//! Operations that report their steps: see `state/trace.rs`.

use alloc::vec::Vec;

use crate::error::FullError;
use crate::packing::SLOTS;
use crate::state::TraceLocation;
use crate::state::insert::COPIES;
use crate::table::trace::TraceStep;
use crate::{CuckooFilter, Key};

/// Following an operation step by step, with the feature `trace`.
///
/// ```
/// use koel::CuckooFilter;
///
/// let mut filter = CuckooFilter::with_capacity(1000);
/// let mut copy = filter.clone();
/// let (inserted, steps) = filter.trace_insert("ada");
/// inserted?;
/// for step in &steps {
///     assert!(copy.replay(step)?);
/// }
/// assert_eq!(copy.to_bytes(), filter.to_bytes());
/// # Ok::<(), koel::FullError>(())
/// ```
impl CuckooFilter {
    /// Where `key` may be. O(1).
    #[must_use]
    pub fn trace_location<K: Key + ?Sized>(&self, key: &K) -> TraceLocation {
        self.body.trace_location(self.body.address(key))
    }

    /// [`insert`](Self::insert), with its steps.
    ///
    /// If it failed, the steps say what was tried. A growable filter may have grown on the way.
    pub fn trace_insert<K: Key + ?Sized>(
        &mut self,
        key: &K,
    ) -> (Result<(), FullError>, Vec<TraceStep>) {
        let address = self.body.address(key);
        self.body.traced(|body| body.insert::<COPIES>(address).map(|_| ()))
    }

    /// [`remove`](Self::remove), with its steps. There are none if no entry matches the key.
    pub fn trace_remove<K: Key + ?Sized>(&mut self, key: &K) -> (bool, Vec<TraceStep>) {
        let address = self.body.address(key);
        self.body.traced(|body| body.remove(address))
    }

    /// Makes a step of another filter that was built alike. All steps of its operations, made on an
    /// empty filter, give its file image. False, and nothing changed, if the step does not fit.
    ///
    /// O(1), but O(buckets) in a filter that has grown.
    ///
    /// # Errors
    /// [`FullError::NoMemory`] if there is no memory for more buckets.
    pub fn replay(&mut self, step: &TraceStep) -> Result<bool, FullError> {
        self.body.replay(step)
    }

    /// The slots of a bucket: fingerprints, and 0 for an empty slot. `None` if there is no such
    /// bucket.
    #[must_use]
    pub fn trace_bucket(&self, bucket: u64) -> Option<[u64; SLOTS]> {
        (bucket < self.buckets()).then(|| self.body.buckets.read(bucket).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prefer;
    use testkit::keys::splitmix64;

    /// Does random inserts and removals, and compares a filter that makes their steps after each.
    fn follow(filter: &mut CuckooFilter, keys: u64, operations: u64) -> Vec<TraceStep> {
        let empty = filter.clone();
        let mut replayed = empty.clone();
        let (mut inside, mut log) = (Vec::new(), Vec::new());
        for number in 0..operations {
            let random = splitmix64(number);
            let steps = if random.is_multiple_of(5) && !inside.is_empty() {
                let key = inside.swap_remove((random >> 8) as usize % inside.len());
                let (removed, steps) = filter.trace_remove(&key);
                assert!(removed);
                steps
            } else {
                let key = (random >> 16) % keys;
                let (inserted, steps) = filter.trace_insert(&key);
                inside.extend(inserted.is_ok().then_some(key));
                steps
            };
            for step in &steps {
                assert!(replayed.replay(step).unwrap(), "operation {number}: {step:?}");
            }
            assert!(replayed.to_bytes() == filter.to_bytes(), "operation {number}: {steps:?}");
            log.extend(steps);
        }
        let mut all = empty;
        assert!(log.iter().all(|step| all.replay(step).unwrap()));
        assert!(all.to_bytes() == filter.to_bytes());
        log
    }

    fn has(log: &[TraceStep], test: impl Fn(&TraceStep) -> bool) -> bool {
        log.iter().any(test)
    }

    #[test]
    fn replayed_steps_give_the_image_of_fixed_filters() {
        for prefer in [Prefer::Small, Prefer::Fast] {
            for (capacity, keys) in [(60, 40), (200, 10_000), (500, 1_000_000)] {
                let builder = CuckooFilter::builder(capacity, 0.01).prefer(prefer);
                let log = follow(&mut builder.build().unwrap(), keys, 6 * capacity);
                let is_counted = |step: &_| matches!(step, TraceStep::Counted { .. });
                assert!(keys != 40 || has(&log, is_counted), "{prefer:?}, {capacity}");
                let moves = |step: &_| matches!(step, TraceStep::Written { from: Some(_), .. });
                assert!(keys == 40 || has(&log, moves), "{prefer:?}, {capacity}");
                let fails = |step: &_| matches!(step, TraceStep::Searched { moves: None, .. });
                assert!(keys == 40 || has(&log, fails), "{prefer:?}, {capacity}");
            }
        }
    }

    #[test]
    fn replayed_steps_give_the_image_of_growing_filters() {
        for prefer in [Prefer::Small, Prefer::Fast] {
            for keys in [30, 2000, 1 << 40] {
                let builder = CuckooFilter::builder(60, 0.01).prefer(prefer).growable();
                let log = follow(&mut builder.build().unwrap(), keys, 1000);
                let has_grown = has(&log, |step| matches!(step, TraceStep::Split { .. }));
                assert!(keys == 30 || has_grown, "{prefer:?}, {keys}");
                assert_eq!(has(&log, |step| *step == TraceStep::Widened), has_grown);
            }
            let builder = CuckooFilter::builder(100_000, 0.01).prefer(prefer).grow_from(1000);
            follow(&mut builder.build().unwrap(), 1 << 40, 2000);
        }
    }

    #[test]
    fn the_steps_of_a_path_lead_from_an_empty_slot_to_the_key() {
        let mut filter = CuckooFilter::builder(200, 0.001).build().unwrap();
        let mut longest = 0;
        for key in 0_u64.. {
            let location = filter.trace_location(&key);
            let before = filter.to_bytes();
            let (inserted, steps) = filter.trace_insert(&key);
            if inserted.is_err() {
                assert!(matches!(steps[..], [TraceStep::Searched { moves: None, .. }]));
                assert!(filter.to_bytes() == before);
                break;
            }
            let writes: Vec<_> = steps
                .iter()
                .filter_map(|step| match *step {
                    TraceStep::Written { bucket, old, new, from } => Some((bucket, old, new, from)),
                    _ => None,
                })
                .collect();
            let (first, last) = (writes[0], writes[writes.len() - 1]);
            assert_eq!(first.1, 0, "the path ends in an empty slot");
            assert!(location.buckets.contains(&last.0) && last.3.is_none());
            assert!(location.fingerprints.contains(&last.2));
            for pair in writes.windows(2) {
                assert_eq!(pair[0].3, Some(pair[1].0), "an entry goes where the next one was");
                assert_eq!(pair[0].2, pair[1].1, "and is the one that is replaced there");
            }
            longest = longest.max(writes.len());
        }
        assert!(longest > 2);
    }

    #[test]
    fn steps_that_do_not_fit_change_nothing() {
        let mut filter = CuckooFilter::builder(60, 0.01).build().unwrap();
        let (_, mut steps) = filter.trace_insert("ada");
        let image = filter.to_bytes();
        steps.truncate(1);
        let Some(&TraceStep::Written { bucket, new, .. }) = steps.first() else { panic!() };
        let from = None;
        steps.push(TraceStep::Written { bucket, old: new + 1, new, from });
        steps.push(TraceStep::Written { bucket: filter.buckets(), old: 0, new, from });
        steps.push(TraceStep::Split { bucket: 0, into: filter.buckets() });
        steps.push(TraceStep::Widened);
        for step in &steps[1..] {
            assert!(!filter.replay(step).unwrap(), "{step:?}");
            assert!(filter.to_bytes() == image, "{step:?}");
        }
        assert_eq!(filter.trace_bucket(filter.buckets()), None);
    }
}
