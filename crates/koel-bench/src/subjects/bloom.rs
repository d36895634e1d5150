//! A plain Bloom filter: the baseline that everybody knows. Memory: its words.

use super::bits::Probes;
use crate::subject::{Filter, tally, until_refused};

struct Bloom {
    probes: Probes,
    words: Vec<u64>,
}

pub(super) fn build(keys: usize, rate: f64) -> Box<dyn Filter> {
    let probes = Probes::new(keys, rate);
    Box::new(Bloom { probes, words: vec![0; probes.cells().div_ceil(64)] })
}

impl Filter for Bloom {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| {
            self.probes.of(key).for_each(|bit| self.words[bit / 64] |= 1 << (bit % 64));
            true
        })
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| {
            self.probes.of(key).all(|bit| self.words[bit / 64] >> (bit % 64) & 1 == 1)
        })
    }

    fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}
