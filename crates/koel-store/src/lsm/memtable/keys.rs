//! Which keys a memtable may have: filters that are asked before the list is searched.
//!
//! Most reads look for keys that are not in the memtable, and a search of the list waits for memory
//! at every step. A writer adds a key here before its entry can be found.
//!
//! The bytes of a memtable bound the number of keys, but for very short ones. One filter for so
//! many would mostly be empty, and would take more of the processor's cache. So a first filter has
//! room for entries of usual length, and a second one for the rest, once the first is full. Each is
//! made for its first key. Once the second refuses a key, because there are more after all or
//! because their hashes collide on purpose, every read searches the list.

use std::sync::OnceLock;

use koel::{ConcurrentFilter, KeyHash};

use crate::kernel::bytes::usize_of;
use crate::kernel::threads::Counter;

/// The share of absent keys for which the memtable is searched.
const RATE: f64 = 0.02;
/// Bytes of a node with a key of 16 bytes and a value of 80, about.
const USUAL: u64 = 128;
/// Bytes of a node with a key of 8 bytes and a value of as many, about: the filters take 3 % of
/// what entries of this size take, and less beside longer ones.
const SHORTEST: u64 = 42;

#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The number of keys that each filter is made for.
    capacities: [u64; 2],
    filters: [OnceLock<ConcurrentFilter>; 2],
    /// How many of them have refused a key: once all have, every key may be there.
    full: Counter,
}

impl Keys {
    /// Returns a set for the keys of so many bytes of entries.
    pub(super) fn new(bytes: u64) -> Self {
        let usual = bytes / USUAL;
        Self { capacities: [usual, bytes / SHORTEST - usual], ..Self::default() }
    }

    /// Adds a key with this hash. One thread at a time calls this.
    pub(super) fn insert(&self, hash: u64) {
        let full = usize_of(self.full.get());
        for (place, capacity) in self.filters.iter().zip(self.capacities).skip(full) {
            let filter = made(place, capacity);
            if filter.is_some_and(|filter| filter.insert_unique(&KeyHash::new(hash)).is_ok()) {
                return;
            }
            self.full.add_exclusive(1);
        }
    }

    /// Returns whether a key with this hash may be there.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let key = KeyHash::new(hash);
        let has = |filter: &ConcurrentFilter| filter.contains(&key);
        let is_full = || self.full.get() == self.filters.len() as u64;
        self.filters.iter().any(|place| place.get().is_some_and(has)) || is_full()
    }
}

/// Returns the filter in this place, which is made first if need be; none if there is no memory.
fn made(place: &OnceLock<ConcurrentFilter>, capacity: u64) -> Option<&ConcurrentFilter> {
    if place.get().is_none() {
        let builder = ConcurrentFilter::builder(capacity, RATE).trust_hashes();
        place.set(builder.build().ok()?).ok()?;
    }
    place.get()
}
