//! Which keys a memtable may have: a filter that is asked before the list is searched.
//!
//! Most reads look for keys that are not in the memtable, and a search of the list waits for memory
//! at every step. A writer adds a key here before its entry can be found.
//!
//! The bytes of a memtable bound the number of keys, but for very short ones. A filter that refuses
//! a key, because there are more after all or because their hashes collide on purpose, is not asked
//! any more.

use std::sync::atomic::{AtomicBool, Ordering};

use koel::{ConcurrentFilter, KeyHash};

/// The share of absent keys for which the memtable is searched.
const RATE: f64 = 0.02;
/// Bytes of a node with a key of 8 bytes and a value of as many, about: the filter takes 3 % of
/// what entries of this size take, and less beside longer ones.
const SHORTEST: u64 = 42;

#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Without one, every key may be there.
    filter: Option<ConcurrentFilter>,
    /// The filter has refused a key.
    is_full: AtomicBool,
}

impl Keys {
    /// Returns an empty filter for the keys of so many bytes of entries.
    pub(super) fn new(bytes: u64) -> Self {
        let builder = ConcurrentFilter::builder(bytes / SHORTEST, RATE).trust_hashes();
        // Without memory for a filter, the memtable is searched for every key.
        Self { filter: builder.build().ok(), is_full: AtomicBool::new(false) }
    }

    /// Adds a key with this hash.
    pub(super) fn insert(&self, hash: u64) {
        let Some(filter) = &self.filter else { return };
        if filter.insert_unique(&KeyHash::new(hash)).is_err() {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a key with this hash may be there.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let has = |filter: &ConcurrentFilter| filter.contains(&KeyHash::new(hash));
        self.filter.as_ref().is_none_or(has) || self.is_full.load(Ordering::Relaxed)
    }
}
