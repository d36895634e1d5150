//! Which keys a memtable may have: a cuckoo filter of their hashes.
//!
//! The entries of a memtable take at least a known number of bytes each, so its size bounds the
//! number of keys. A filter that refuses a key, because there are more after all or because their
//! hashes collide on purpose, is not asked any more.

use std::sync::atomic::{AtomicBool, Ordering};

use koel::{ConcurrentFilter, KeyHash};

use super::super::entry::hash_of;

/// The share of absent keys for which the memtable is searched.
const RATE: f64 = 0.02;

/// The filter. A writer adds a key before its entry.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Without one, every key may be there.
    filter: Option<ConcurrentFilter>,
    /// The filter has refused a key.
    is_full: AtomicBool,
    seed: u64,
}

impl Keys {
    /// Returns an empty filter with room for so many keys. `seed` is that of their hashes.
    pub(super) fn new(capacity: u64, seed: u64) -> Self {
        let builder = ConcurrentFilter::builder(capacity, RATE).trust_hashes();
        // Without memory for a filter, the memtable is searched for every key.
        Self { filter: builder.build().ok(), is_full: AtomicBool::new(false), seed }
    }

    pub(super) fn insert(&self, key: &[u8]) {
        let Some(filter) = &self.filter else { return };
        if filter.insert_unique(&KeyHash::new(hash_of(key, self.seed))).is_err() {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a key with this hash may be there.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let has = |filter: &ConcurrentFilter| filter.contains(&KeyHash::new(hash));
        self.filter.as_ref().is_none_or(has) || self.is_full.load(Ordering::Relaxed)
    }
}
