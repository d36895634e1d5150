//! `cuckoofilter` 0.5: 8-bit fingerprints, buckets rounded up to a power of two. Memory as the
//! crate reports it.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use cuckoofilter::CuckooFilter;

use super::mix::Mix;
use crate::subject::{Filter, tally, until_refused};

struct Rival<H>(CuckooFilter<H>);

pub(super) fn default(keys: usize, _rate: f64) -> Box<dyn Filter> {
    Box::new(Rival(CuckooFilter::<DefaultHasher>::with_capacity(keys)))
}

pub(super) fn mix(keys: usize, _rate: f64) -> Box<dyn Filter> {
    Box::new(Rival(CuckooFilter::<Mix>::with_capacity(keys)))
}

impl<H: Hasher + Default> Filter for Rival<H> {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| self.0.add(&key).is_ok())
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.contains(&key))
    }

    fn delete(&mut self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.delete(&key))
    }

    fn bytes(&self) -> usize {
        self.0.memory_usage()
    }

    /// One byte per slot, plus the struct itself.
    fn slots(&self) -> Option<usize> {
        Some(self.0.memory_usage() - size_of_val(&self.0))
    }
}
