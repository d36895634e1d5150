//! `sbbf-rs-safe` 0.3: a split block Bloom filter, one 256-bit block per key. It takes hashes,
//! which are XXH3-64 here, as in Koel. Memory: its bytes.

use koel::KeyHasher;
use sbbf_rs_safe::Filter as Blocks;

use crate::subject::{Filter, tally, until_refused};

const BLOCK_BITS: f64 = 256.0;

struct Rival {
    filter: Blocks,
    hasher: KeyHasher,
}

pub(super) fn build(keys: usize, rate: f64) -> Box<dyn Filter> {
    let bits = (4..64).find(|&bits| expected_rate(bits as f64) <= rate).unwrap_or(64);
    Box::new(Rival { filter: Blocks::new(bits, keys), hasher: KeyHasher::default() })
}

/// The false-positive rate at this many bits per key. The number of keys in a block has a Poisson
/// distribution, and each key sets one bit in each of the block's eight 32-bit words.
fn expected_rate(bits_per_key: f64) -> f64 {
    let mean = BLOCK_BITS / bits_per_key;
    let mut weight = (-mean).exp();
    let mut rate = 0.0;
    for keys in 0..1000 {
        let word_hit = 1.0 - (31.0_f64 / 32.0).powi(keys);
        rate += weight * word_hit.powi(8);
        weight *= mean / f64::from(keys + 1);
    }
    rate
}

impl Filter for Rival {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| {
            self.filter.insert_hash(self.hasher.hash(&key).get());
            true
        })
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.filter.contains_hash(self.hasher.hash(&key).get()))
    }

    fn bytes(&self) -> usize {
        self.filter.as_bytes().len()
    }
}
