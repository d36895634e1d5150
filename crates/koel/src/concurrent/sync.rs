//! Atomics and locks: those of the standard library, or under `--cfg loom` those of loom, which
//! runs threads in every order (`tests/loom.rs`).
//!
//! A lock is taken even if a thread panicked while it held it: the guarded data changes in single
//! steps, each of which leaves it sound.

extern crate std;

use std::sync::PoisonError;

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::Mutex;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::{
    MutexGuard, RwLock, RwLockReadGuard as ReadGuard, RwLockWriteGuard as WriteGuard,
};
#[cfg(not(loom))]
pub(super) use std::sync::Mutex;
#[cfg(not(loom))]
pub(super) use std::sync::{
    MutexGuard, RwLock, RwLockReadGuard as ReadGuard, RwLockWriteGuard as WriteGuard,
};

/// Locks `mutex`.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks `lock` for reading.
pub(super) fn read<T>(lock: &RwLock<T>) -> ReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks `lock` for writing.
pub(super) fn write<T>(lock: &RwLock<T>) -> WriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
