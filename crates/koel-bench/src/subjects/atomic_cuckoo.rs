//! `atomic-cuckoo-filter` 0.3: 4, 8, 16 or 32-bit fingerprints, lock-free, a power of two of buckets. One thread here. Memory: slots
//! times fingerprint bits, as its source allocates them.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use atomic_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder};

use super::mix::Mix;
use crate::subject::{Filter, tally, until_refused};

struct Rival<H: Hasher + Default> {
    filter: CuckooFilter<H>,
    fingerprint_bits: usize,
}

pub(super) fn default(keys: usize, rate: f64) -> Box<dyn Filter> {
    with_hasher::<DefaultHasher>(keys, rate)
}

pub(super) fn mix(keys: usize, rate: f64) -> Box<dyn Filter> {
    with_hasher::<Mix>(keys, rate)
}

fn with_hasher<H: Hasher + Default + 'static>(keys: usize, rate: f64) -> Box<dyn Filter> {
    // Eight slots are looked at, each wrong for one fingerprint in 2^bits.
    let keeps = |bits: &usize| 8.0 * (*bits as f64).exp2().recip() <= rate;
    let fingerprint_bits = [4, 8, 16].into_iter().find(keeps).unwrap_or(32);
    let builder = CuckooFilterBuilder::<H>::default();
    let filter = builder.capacity(keys).fingerprint_size(fingerprint_bits).build();
    Box::new(Rival { filter: filter.expect("a width that the crate has"), fingerprint_bits })
}

impl<H: Hasher + Default> Filter for Rival<H> {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| self.filter.insert(&key).is_ok())
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.filter.contains(&key))
    }

    fn delete(&mut self, keys: &[u64]) -> usize {
        tally(keys, |key| self.filter.remove(&key))
    }

    fn bytes(&self) -> usize {
        self.filter.capacity() * self.fingerprint_bits / 8
    }

    fn slots(&self) -> Option<usize> {
        Some(self.filter.capacity())
    }
}
