//! How the threads of a store are told that there is work.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::lock::lock;

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
