//! A growing filter equals its multiset after any operations.

use std::collections::BTreeMap;

use koel::CuckooFilter;
use testkit::keys::{at, splitmix64};

use super::{builders, in_segments};

/// A filter and its exact multiset, over few keys with many collisions.
struct Pair {
    filter: CuckooFilter,
    held: BTreeMap<u64, u64>,
}

impl Pair {
    fn check(&self) {
        assert_eq!(self.filter.len(), self.held.values().sum::<u64>());
        for (&hash, &count) in &self.held {
            assert!(self.filter.count(&at(hash)) >= count, "{:?}: {hash:x}", self.filter);
            assert!(count == 0 || self.filter.contains(&at(hash)));
        }
        self.filter.verify().unwrap();
        let bytes = self.filter.to_bytes();
        assert!(CuckooFilter::from_bytes(&bytes).unwrap() == self.filter);
        assert!(testkit::audit::audit(&bytes) == Ok(()), "{:?}", testkit::audit::audit(&bytes));
    }

    fn step(&mut self, draw: u64) {
        // Most keys rarely, some often, one all the time.
        let key = match draw % 8 {
            0 => 0,
            1..3 => draw >> 8 & 63,
            _ => draw >> 8 & 0x7fff,
        };
        let hash = splitmix64(key);
        let count = self.held.entry(hash).or_default();
        match draw >> 40 & 7 {
            0 | 1 if *count > 0 => {
                assert!(self.filter.remove(&at(hash)));
                *count -= 1;
            }
            2 if *count > 0 => assert!(!self.filter.insert_unique(&at(hash)).unwrap()),
            _ => {
                self.filter.insert(&at(hash)).unwrap();
                *count += 1;
            }
        }
    }

    /// Removes everything again, in random order.
    fn drain(&mut self) {
        for (&hash, count) in self.held.iter_mut().rev() {
            for _ in 0..*count {
                assert!(self.filter.remove(&at(hash)), "{:?}", self.filter);
            }
            *count = 0;
        }
        self.check();
    }
}

#[test]
fn a_growing_filter_equals_its_multiset() {
    for rate in [0.05, 0.002] {
        let whole = builders(30_000, rate).map(|builder| builder.build().unwrap());
        let filters = whole.flat_map(|whole| [in_segments(&whole), whole]);
        for (seed, filter) in (0..).zip(filters) {
            let mut pair = Pair { filter, held: BTreeMap::new() };
            for step in 0..120_000_u64 {
                pair.step(splitmix64(step ^ seed << 32));
                if step % 20_000 == 19_999 {
                    pair.check();
                    pair.filter.shrink_to_fit();
                    pair.check();
                }
            }
            assert!(pair.filter.has_grown() && pair.filter.distinct_counters() > 0);
            pair.drain();
        }
    }
}
