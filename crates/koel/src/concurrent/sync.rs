//! Atomics and locks: the machine's, or those of loom, which tries the orders in which threads may
//! run.
//!
//! Loom stands in under `--cfg loom` alone, for `tests/loom.rs`. The only file of the crate that
//! uses the standard library. A lock whose holder panicked is taken all the same: what it guards is
//! changed in single steps, each of which leaves it sound.

extern crate std;

use std::sync::PoisonError;

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::{
    Mutex, MutexGuard, RwLock, RwLockReadGuard as ReadGuard, RwLockWriteGuard as WriteGuard,
};
#[cfg(not(loom))]
pub(super) use std::sync::{
    Mutex, MutexGuard, RwLock, RwLockReadGuard as ReadGuard, RwLockWriteGuard as WriteGuard,
};

/// What `mutex` guards, for this thread alone.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `lock` guards, shared with others that read it.
pub(super) fn read<T>(lock: &RwLock<T>) -> ReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// What `lock` guards, for this thread alone.
pub(super) fn write<T>(lock: &RwLock<T>) -> WriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
