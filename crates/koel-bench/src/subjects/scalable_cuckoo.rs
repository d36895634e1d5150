//! `scalable_cuckoo_filter` 0.5: any fingerprint width, a power of two of buckets, and another table beside it when that is full.
//! Memory as the crate reports it: its tables and the list of items that found no place.

use std::hash::Hasher;

use scalable_cuckoo_filter::{DefaultHasher, ScalableCuckooFilter, ScalableCuckooFilterBuilder};

use super::mix::Mix;
use crate::subject::{Filter, tally, until_refused};

struct Rival<H>(ScalableCuckooFilter<u64, H>);

pub(super) fn default(keys: usize, rate: f64) -> Box<dyn Filter> {
    with_hasher(keys, rate, DefaultHasher::default())
}

pub(super) fn mix(keys: usize, rate: f64) -> Box<dyn Filter> {
    with_hasher(keys, rate, Mix::default())
}

fn with_hasher<H: Hasher + Clone + 'static>(keys: usize, rate: f64, hasher: H) -> Box<dyn Filter> {
    let builder = ScalableCuckooFilterBuilder::new()
        .initial_capacity(keys)
        .false_positive_probability(rate)
        .hasher(hasher);
    Box::new(Rival(builder.finish()))
}

impl<H: Hasher + Clone> Filter for Rival<H> {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| {
            self.0.insert(&key);
            true
        })
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.contains(&key))
    }

    fn delete(&mut self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.remove(&key))
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.0.bits().div_ceil(8)).unwrap_or(usize::MAX)
    }

    /// The slots of its tables, and a few for items that found no place.
    fn slots(&self) -> Option<usize> {
        Some(self.0.capacity())
    }

    /// Grows by at least as many slots as it had; the list of items without a place stays below that.
    fn fill(&mut self, keys: &[u64]) -> usize {
        let grown = self.0.capacity() * 3 / 2;
        until_refused(keys, |key| {
            self.0.insert(&key);
            self.0.capacity() < grown
        })
    }
}
