//! A value that several Python threads use: lookups share it, changes come one after the other.
//!
//! **No thread waits for the lock while it holds the GIL.** The thread that has the lock may need
//! the GIL to return, and both would wait for ever. So a short operation tries the lock, and only
//! if it is taken detaches from Python and waits. A batch detaches first.
//!
//! **Two values are locked in the order of their addresses**, for reading too: a waiting writer
//! stops new readers, so two readers in opposite orders could wait for each other.
//!
//! **No lock is held over a fork** (`fork.rs`): the child would wait for a thread that it has not.
//! A short operation keeps the GIL, which a fork needs.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use pyo3::prelude::*;

use crate::fork;

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
        py.detach(|| {
            let _no_fork = fork::prevent();
            work(&self.reader())
        })
    }

    /// A long change: other threads run Python meanwhile.
    pub(crate) fn write_detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> R + Send,
    ) -> R {
        py.detach(|| self.write_alone(work))
    }

    /// Looks into two values, which may be the same. Called without the GIL.
    pub(crate) fn read_both<R>(&self, other: &Self, work: impl FnOnce(&T, &T) -> R) -> R {
        let _no_fork = fork::prevent();
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
    }

    /// Changes this value by another one, which must not be this one. Called without the GIL.
    pub(crate) fn write_by<R>(&self, other: &Self, work: impl FnOnce(&mut T, &T) -> R) -> R {
        let _no_fork = fork::prevent();
        let (mut ours, theirs);
        if self.is_first(other) {
            ours = self.writer();
            theirs = other.reader();
        } else {
            theirs = other.reader();
            ours = self.writer();
        }
        work(&mut ours, &theirs)
    }

    /// Changes this value. Called without the GIL.
    pub(crate) fn write_alone<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let _no_fork = fork::prevent();
        work(&mut self.writer())
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
