//! What the threads of a store share: locks, numbers that one of them changes, and how each is told
//! that there is work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::poison::Poison;
use crate::Error;
use crate::error::FOLDER;

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

/// Locks `mutex`, even if a thread panicked while it held the lock: no code of this crate can panic
/// between two changes that belong together.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a background thread sleep until it gets a [`Signal`].
#[derive(Debug, Default)]
pub(crate) struct Wakeup {
    signal: Mutex<Signal>,
    changed: Condvar,
}

/// What a background thread is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Signal {
    #[default]
    Wait,
    Work,
    Stop,
}

impl Wakeup {
    /// Sends a signal. Nothing replaces [`Signal::Stop`].
    pub(crate) fn send(&self, signal: Signal) {
        let mut current = lock(&self.signal);
        if *current != Signal::Stop {
            *current = signal;
        }
        self.changed.notify_all();
    }

    /// Waits for a signal. Returns whether it is [`Signal::Work`], not [`Signal::Stop`].
    pub(crate) fn wait(&self) -> bool {
        let mut current = lock(&self.signal);
        while *current == Signal::Wait {
            current = self.changed.wait(current).unwrap_or_else(PoisonError::into_inner);
        }
        let has_work = *current == Signal::Work;
        if has_work {
            *current = Signal::Wait;
        }
        has_work
    }

    /// Waits for [`Signal::Stop`], for at most `limit`. [`wait`](Self::wait) gets other signals.
    pub(crate) fn wait_for_stop(&self, limit: Duration) {
        let current = lock(&self.signal);
        let is_going_on = |signal: &mut Signal| *signal != Signal::Stop;
        let waited = self.changed.wait_timeout_while(current, limit, is_going_on);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns whether the thread is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        *lock(&self.signal) == Signal::Stop
    }
}

/// The running threads of a store.
#[derive(Debug, Default)]
pub(crate) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Starts a thread. A panic in it poisons the store, and ends there.
    pub(crate) fn start<S: Send + Sync + 'static>(
        &mut self,
        name: &str,
        store: &Arc<S>,
        poison: fn(&S) -> &Poison,
        run: impl FnOnce(&S) + Send + 'static,
    ) -> Result<(), Error> {
        let store = store.clone();
        let run = move || poison(&store).unless_panicked(|| run(&store));
        let started = thread::Builder::new().name(name.to_owned()).spawn(run);
        self.0.push(started.map_err(Error::io("start a thread for", FOLDER))?);
        Ok(())
    }

    /// Waits until all threads have ended, which are to be told before.
    pub(crate) fn join(&mut self) {
        for thread in self.0.drain(..) {
            // A panic in it has ended all writes, with the reason.
            drop(thread.join());
        }
    }
}
