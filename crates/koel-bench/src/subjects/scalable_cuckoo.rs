//! `scalable_cuckoo_filter` 0.5: any fingerprint width, buckets rounded up to a power of two, and
//! an additional table when that is full. Memory as the crate reports it: its tables and its list
//! of items that found no slot.

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

    /// The slots of its tables, plus a few for items that found none.
    fn slots(&self) -> Option<usize> {
        Some(self.0.capacity())
    }

    /// It grows by at least as many slots as it had; the list of items without a slot stays
    /// shorter.
    fn fill(&mut self, keys: &[u64]) -> usize {
        let grown = self.0.capacity() * 3 / 2;
        until_refused(keys, |key| {
            self.0.insert(&key);
            self.0.capacity() < grown
        })
    }
}
