//! `atomic-cuckoo-filter` 0.3: 4, 8, 16 or 32-bit fingerprints, lock-free, buckets rounded up to a
//! power of two. Measured on one thread. Memory: slots times fingerprint bits, as its source
//! allocates them.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use atomic_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder};

use super::mix::Mix;
use crate::subject::{Filter, tally, until_refused};

struct Rival<H: Hasher + Default> {
    filter: CuckooFilter<H>,
    fingerprint_bits: usize,
}

/// The narrowest fingerprint that meets the rate. A lookup compares eight slots, at most 95 % of
/// them in use. Each matches an absent key with probability 1 / (2^bits - 1), since fingerprint 0
/// means an empty slot.
pub(crate) fn fingerprint_bits(rate: f64) -> usize {
    let right = |bits: &usize| 1.0 - ((*bits as f64).exp2() - 1.0).recip();
    let keeps = |bits: &usize| 1.0 - right(bits).powf(8.0 * 0.95) <= rate;
    [4, 8, 16].into_iter().find(keeps).unwrap_or(32)
}

pub(super) fn default(keys: usize, rate: f64) -> Box<dyn Filter> {
    with_hasher::<DefaultHasher>(keys, rate)
}

pub(super) fn mix(keys: usize, rate: f64) -> Box<dyn Filter> {
    with_hasher::<Mix>(keys, rate)
}

fn with_hasher<H: Hasher + Default + 'static>(keys: usize, rate: f64) -> Box<dyn Filter> {
    let fingerprint_bits = fingerprint_bits(rate);
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

#[cfg(test)]
mod tests {
    use testkit::keys::hashes;

    use super::*;

    #[test]
    fn it_gets_as_few_bits_as_keep_the_rate_in_a_full_table() {
        let keys: Vec<_> = hashes(1, 62_259).collect();
        let absent: Vec<_> = hashes(2, 1_000_000).collect();
        for (rate, bits) in [(0.03, 8), (0.029, 16), (0.000_2, 16), (0.000_1, 32)] {
            let mut filter = mix(keys.len(), rate);
            assert_eq!(filter.insert(&keys), keys.len(), "{rate}");
            assert_eq!(filter.bytes() * 8, 65_536 * bits, "{rate}");
            assert!(filter.find(&absent) as f64 / 1e6 <= rate, "{rate}");
        }
    }
}
