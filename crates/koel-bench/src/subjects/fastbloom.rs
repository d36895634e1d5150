//! `fastbloom` 0.17: a Bloom filter. Memory: its bits.

use std::hash::BuildHasher;

use fastbloom::BloomFilter;

use super::mix::BuildMix;
use crate::subject::{Filter, tally, until_refused};

struct Rival<S>(BloomFilter<S>);

pub(super) fn default(keys: usize, rate: f64) -> Box<dyn Filter> {
    Box::new(Rival(BloomFilter::with_false_pos(rate).seed(&1).expected_items(keys)))
}

pub(super) fn mix(keys: usize, rate: f64) -> Box<dyn Filter> {
    let builder = BloomFilter::with_false_pos(rate).hasher(BuildMix::default());
    Box::new(Rival(builder.expected_items(keys)))
}

impl<S: BuildHasher> Filter for Rival<S> {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| {
            self.0.insert(&key);
            true
        })
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.contains(&key))
    }

    fn bytes(&self) -> usize {
        self.0.num_bits().div_ceil(8)
    }
}
