//! A counting Bloom filter with 4-bit counters: the oldest filter with deletes. Memory: its words.
//!
//! A counter saturates at 15. Source: L. Fan, P. Cao, J. Almeida, A. Broder, Summary Cache
//! (IEEE/ACM ToN 2000).

use super::bits::Probes;
use crate::subject::{Filter, tally, until_refused};

const STUCK: u64 = 15;

struct CountingBloom {
    probes: Probes,
    words: Vec<u64>,
}

pub(super) fn build(keys: usize, rate: f64) -> Box<dyn Filter> {
    let probes = Probes::new(keys, rate);
    Box::new(CountingBloom { probes, words: vec![0; probes.cells().div_ceil(16)] })
}

impl CountingBloom {
    #[inline]
    fn get(&self, cell: usize) -> u64 {
        self.words[cell / 16] >> (cell % 16 * 4) & STUCK
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.probes.of(key).all(|cell| self.get(cell) > 0)
    }
}

impl Filter for CountingBloom {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| {
            for cell in self.probes.of(key) {
                if self.get(cell) < STUCK {
                    self.words[cell / 16] += 1 << (cell % 16 * 4);
                }
            }
            true
        })
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.contains(key))
    }

    fn delete(&mut self, keys: &[u64]) -> usize {
        tally(keys, |key| {
            let there = self.contains(key);
            if there {
                for cell in self.probes.of(key) {
                    // May be zero already: a key that was never inserted can probe the same cell
                    // twice.
                    if (1..STUCK).contains(&self.get(cell)) {
                        self.words[cell / 16] -= 1 << (cell % 16 * 4);
                    }
                }
            }
            there
        })
    }

    fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}
