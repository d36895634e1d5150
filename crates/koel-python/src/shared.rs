//! A value that several Python threads use: lookups share it, changes come one after the other.
//!
//! **No thread waits for the lock while it holds the GIL.** The thread that has the lock may need
//! the GIL to return, and both would wait for ever. So a short operation tries the lock, and only
//! if it is taken detaches from Python and waits. A batch detaches first.
//!
//! **Two values are locked in the order of their addresses**, for reading too: a waiting writer
//! stops new readers, so two readers in opposite orders could wait for each other.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use pyo3::prelude::*;

/// A value behind a lock.
pub(crate) struct Shared<T>(RwLock<T>);

impl<T: Send + Sync> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    /// A short lookup.
    pub(crate) fn read<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&T) -> R + Send) -> R {
        match self.0.try_read() {
            Ok(value) => work(&value),
            Err(TryLockError::Poisoned(poisoned)) => work(&poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => self.read_detached(py, work),
        }
    }

    /// A short change.
    pub(crate) fn write<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> R + Send,
    ) -> R {
        match self.0.try_write() {
            Ok(mut value) => work(&mut value),
            Err(TryLockError::Poisoned(poisoned)) => work(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => self.write_detached(py, work),
        }
    }

    /// A long lookup: other threads run Python meanwhile.
    pub(crate) fn read_detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> R + Send,
    ) -> R {
        py.detach(|| work(&self.reader()))
    }

    /// A long change: other threads run Python meanwhile.
    pub(crate) fn write_detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> R + Send,
    ) -> R {
        py.detach(|| work(&mut self.writer()))
    }

    /// A long lookup in two values, which may be the same.
    pub(crate) fn read_both<R: Send>(
        &self,
        other: &Self,
        py: Python<'_>,
        work: impl FnOnce(&T, &T) -> R + Send,
    ) -> R {
        py.detach(|| {
            if std::ptr::eq(self, other) {
                let both = self.reader();
                return work(&both, &both);
            }
            let (ours, theirs);
            if self.is_first(other) {
                ours = self.reader();
                theirs = other.reader();
            } else {
                theirs = other.reader();
                ours = self.reader();
            }
            work(&ours, &theirs)
        })
    }

    /// A long change of this value by another one, which must not be this one.
    pub(crate) fn write_by<R: Send>(
        &self,
        other: &Self,
        py: Python<'_>,
        work: impl FnOnce(&mut T, &T) -> R + Send,
    ) -> R {
        py.detach(|| {
            let (mut ours, theirs);
            if self.is_first(other) {
                ours = self.writer();
                theirs = other.reader();
            } else {
                theirs = other.reader();
                ours = self.writer();
            }
            work(&mut ours, &theirs)
        })
    }

    fn is_first(&self, other: &Self) -> bool {
        std::ptr::from_ref(self) < std::ptr::from_ref(other)
    }

    // A panic of the library would be a bug of it. The value is still memory-safe then, so a lock
    // that saw one stays usable.
    fn reader(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
