//! A number that any thread reads while another one changes it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A statistic: no other memory is published through it, so every access is relaxed.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Adds to the number; any thread may call this at any time.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Adds to a number that only the caller can change now, because it holds the lock or owns it.
    /// This is cheaper than [`add`](Self::add), of which a put would need several.
    #[inline]
    pub(crate) fn add_exclusive(&self, more: u64) {
        self.set(self.get() + more);
    }
}
