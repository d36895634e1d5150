//! Counts keys before a filter is built for them: all of them, and about how many distinct ones.
//!
//! The first copy of a key takes a slot, and so does a second one if there are many slots. A counter
//! counts all further copies. So a capacity of twice the distinct keys is always enough, and with
//! `--unique` that of the distinct keys. Where few keys repeat, the exact number of keys is smaller.
//!
//! Source: `HyperLogLog` with 2^14 registers (Flajolet et al. 2007) in the form of `LogLog-Beta`
//! (Qin et al. 2016). Its standard error is `1.04 / sqrt(2^14)`. Cost: 12 KiB, and one register per
//! key.
#![forbid(unsafe_code)]

use std::hash::DefaultHasher;

use cardinality_estimator::CardinalityEstimator;
use koel::KeyHash;

use crate::quantity;

const REGISTERS_LOG2: usize = 14;
/// Five standard errors.
const MARGIN: f64 = 5.0 * 1.04 / 128.0;
/// The size that the distinct keys need is chosen only if it saves a tenth: it is not exact.
const WORTHWHILE: f64 = 0.9;

/// The number of keys so far.
#[derive(Debug, Default)]
pub(crate) struct KeyCount {
    keys: u64,
    distinct: CardinalityEstimator<u64, DefaultHasher, REGISTERS_LOG2>,
}

impl KeyCount {
    pub(crate) fn add(&mut self, key: KeyHash) {
        self.keys += 1;
        self.distinct.insert_hash(key.get());
    }

    /// All keys, copies included.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// The capacity of a filter for these keys, of which copies count only if not `unique`.
    pub(crate) fn capacity(&self, unique: bool) -> u64 {
        let copies = if unique { 1.0 } else { 2.0 };
        let enough = copies * (1.0 + MARGIN) * self.distinct.estimate() as f64;
        if enough >= WORTHWHILE * self.keys as f64 {
            self.keys
        } else {
            quantity::to_u64(enough) + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count of `distinct` keys that come `copies` times each.
    fn count(distinct: u64, copies: u64) -> KeyCount {
        let hasher = koel::KeyHasher::default();
        let mut count = KeyCount::default();
        for key in (0..copies).flat_map(|_| 0..distinct) {
            count.add(hasher.hash(&key));
        }
        count
    }

    #[test]
    fn a_list_without_copies_gets_exactly_its_size() {
        for keys in [0, 1, 7, 130, 5_000, 40_000, 1_000_000] {
            for unique in [false, true] {
                assert_eq!(count(keys, 1).capacity(unique), keys);
            }
        }
    }

    #[test]
    fn a_list_with_copies_gets_room_for_each_distinct_key_and_little_more() {
        for distinct in [1, 7, 130, 5_000, 40_000, 300_000] {
            let count = count(distinct, 5);
            for (unique, slots) in [(true, distinct), (false, 2 * distinct)] {
                let capacity = count.capacity(unique);
                let most = quantity::to_u64(slots as f64 * (1.0 + 2.0 * MARGIN)) + 2;
                assert!((slots..=most).contains(&capacity), "{capacity} for {slots}");
            }
        }
    }
}
