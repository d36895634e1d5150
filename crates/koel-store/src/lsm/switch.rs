//! A value that readers share and that is replaced as a whole.
//!
//! A reader gets the value of one moment and keeps it for as long as it likes: nobody changes a
//! value that was published. A writer makes the next value from the current one, under the lock, so
//! that no replacement is lost.
//!
//! Cost of a read: a read lock for the time of one reference count. `tests.rs` runs every order of
//! a writer, a flush and a reader (`scripts/test threads`).

#[cfg(loom)]
use loom::sync::RwLock;
#[cfg(not(loom))]
use std::sync::RwLock;
use std::sync::{Arc, PoisonError};

/// The current value.
#[derive(Debug)]
pub(super) struct Switch<T>(RwLock<Arc<T>>);

impl<T> Switch<T> {
    pub(super) fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    /// Returns the current value.
    #[inline]
    pub(super) fn load(&self) -> Arc<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the value by what `next` makes of it.
    pub(super) fn update(&self, next: impl FnOnce(&T) -> T) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(next(&current));
        let old = std::mem::replace(&mut *current, next);
        // The old value may be large, and readers wait for the lock.
        drop(current);
        drop(old);
    }
}

#[cfg(all(test, loom))]
mod tests;
