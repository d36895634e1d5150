//! The maps under measurement: Koel's and hashbrown's, each with its own default hash and with the
//! other's.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap};
use koel::CuckooMap;
use koel::map::SipState;
use serde_json::Value;

use super::{Keys, measure, probes};

/// A map under measurement.
pub(super) trait Map {
    fn with_capacity(keys: usize) -> Self;
    fn insert(&mut self, key: u64, value: u64);
    fn get(&self, key: u64) -> Option<u64>;
    fn remove(&mut self, key: u64) -> bool;

    /// The memory of the table.
    fn bytes(&self) -> usize;

    /// The number of buckets or groups that a lookup of each key reads, in a map from which nothing
    /// was removed.
    fn probes(&self, keys: &[u64]) -> Vec<u32>;
}

type Measure = fn(&'static str, &Keys, u32) -> Value;

/// Each map with its name: `+` names a hash other than its own.
pub(super) const SUBJECTS: [(&str, Measure); 4] = [
    ("koel", measure::<CuckooMap<u64, u64>>),
    ("koel+foldhash", measure::<CuckooMap<u64, u64, DefaultHashBuilder>>),
    ("hashbrown", measure::<HashMap<u64, u64>>),
    ("hashbrown+siphash", measure::<HashMap<u64, u64, SipState>>),
];

impl<S: BuildHasher + Default> Map for CuckooMap<u64, u64, S> {
    fn with_capacity(keys: usize) -> Self {
        Self::with_capacity_and_hasher(keys, S::default())
    }

    fn insert(&mut self, key: u64, value: u64) {
        self.insert(key, value);
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }

    fn remove(&mut self, key: u64) -> bool {
        self.remove(&key).is_some()
    }

    /// A tag, a hash, a key and a value.
    fn bytes(&self) -> usize {
        self.slots() * (1 + 3 * size_of::<u64>())
    }

    /// A lookup always reads both; the overflow would count as one more.
    fn probes(&self, keys: &[u64]) -> Vec<u32> {
        vec![2 + u32::from(self.overflow_len() > 0); keys.len()]
    }
}

impl<S: BuildHasher + Default> Map for HashMap<u64, u64, S> {
    fn with_capacity(keys: usize) -> Self {
        Self::with_capacity_and_hasher(keys, S::default())
    }

    fn insert(&mut self, key: u64, value: u64) {
        self.insert(key, value);
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }

    fn remove(&mut self, key: u64) -> bool {
        self.remove(&key).is_some()
    }

    fn bytes(&self) -> usize {
        self.allocation_size()
    }

    fn probes(&self, keys: &[u64]) -> Vec<u32> {
        probes::of(self, keys)
    }
}
