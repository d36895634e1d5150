//! Koel itself with both preferences: single calls, batches and bulk builds.
//!
//! To add a mode, write a type beside [`Single`] and [`Batch`] that implements `Filter`, and add
//! its lines to [`SUBJECTS`](super::SUBJECTS). Memory is [`CuckooFilter::size_in_bytes`], header
//! included.

use std::hint::black_box;

use koel::{Builder, CuckooFilter, Prefer};

use crate::subject::{Filter, tally, until_refused};

/// One call per key.
struct Single(CuckooFilter);

/// One call per slice of keys, as in a program that reads its keys from somewhere.
struct Batch(CuckooFilter);

/// One call for all keys, which builds the filter.
struct Bulk {
    builder: Builder<CuckooFilter>,
    filter: CuckooFilter,
    /// The slots of the filter that will be built.
    slots: Option<usize>,
}

pub(super) const SLICE: usize = 4096;

pub(super) fn fast(keys: usize, rate: f64) -> Box<dyn Filter> {
    Box::new(Single(empty(keys, rate, Prefer::Fast)))
}

pub(super) fn small(keys: usize, rate: f64) -> Box<dyn Filter> {
    Box::new(Single(empty(keys, rate, Prefer::Small)))
}

pub(super) fn fast_batch(keys: usize, rate: f64) -> Box<dyn Filter> {
    Box::new(Batch(empty(keys, rate, Prefer::Fast)))
}

pub(super) fn small_batch(keys: usize, rate: f64) -> Box<dyn Filter> {
    Box::new(Batch(empty(keys, rate, Prefer::Small)))
}

pub(super) fn fast_bulk(keys: usize, rate: f64) -> Box<dyn Filter> {
    bulk(keys, rate, Prefer::Fast)
}

pub(super) fn small_bulk(keys: usize, rate: f64) -> Box<dyn Filter> {
    bulk(keys, rate, Prefer::Small)
}

fn bulk(keys: usize, rate: f64, prefer: Prefer) -> Box<dyn Filter> {
    let builder = CuckooFilter::builder(keys as u64, rate).prefer(prefer);
    let slots = slots(&empty(keys, rate, prefer));
    Box::new(Bulk { builder, filter: empty(1, rate, prefer), slots })
}

fn empty(keys: usize, rate: f64, prefer: Prefer) -> CuckooFilter {
    let builder = CuckooFilter::builder(keys as u64, rate).prefer(prefer);
    builder.build().expect("rates and sizes of the bench can be built")
}

fn slots(filter: &CuckooFilter) -> Option<usize> {
    usize::try_from(filter.slots()).ok()
}

impl Filter for Single {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| self.0.insert(&key).is_ok())
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.contains(&key))
    }

    fn delete(&mut self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.remove(&key))
    }

    fn bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    fn slots(&self) -> Option<usize> {
        slots(&self.0)
    }
}

/// Calls `answer` slice by slice and counts the keys it reports present.
#[inline(always)]
pub(super) fn tally_slices(keys: &[u64], mut answer: impl FnMut(&[u64], &mut [bool])) -> usize {
    let mut answers = [false; SLICE];
    let mut yeses = 0;
    for slice in black_box(keys).chunks(SLICE) {
        let answers = &mut answers[..slice.len()];
        answer(slice, answers);
        yeses += answers.iter().filter(|&&yes| yes).count();
    }
    yeses
}

impl Filter for Batch {
    fn insert(&mut self, keys: &[u64]) -> usize {
        let before = self.0.len();
        let mut slices = black_box(keys).chunks(SLICE);
        if slices.all(|slice| self.0.insert_many(slice).is_ok()) {
            return keys.len();
        }
        usize::try_from(self.0.len() - before).unwrap_or(usize::MAX)
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally_slices(keys, |slice, found| self.0.contains_many(slice, found))
    }

    fn delete(&mut self, keys: &[u64]) -> usize {
        tally_slices(keys, |slice, removed| self.0.remove_many(slice, removed))
    }

    fn bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    fn slots(&self) -> Option<usize> {
        slots(&self.0)
    }
}

impl Filter for Bulk {
    fn insert(&mut self, keys: &[u64]) -> usize {
        match self.builder.build_from(black_box(keys)) {
            Ok(filter) => {
                self.filter = filter;
                keys.len()
            }
            Err(_) => 0,
        }
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally_slices(keys, |slice, found| self.filter.contains_many(slice, found))
    }

    fn bytes(&self) -> usize {
        self.filter.size_in_bytes()
    }

    fn slots(&self) -> Option<usize> {
        self.slots
    }
}
