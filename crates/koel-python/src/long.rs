//! Work that takes long and that the library does in one call: Ctrl-C is answered meanwhile.
//!
//! The work runs in a thread of its own. This one waits for it without the GIL, and lets Python
//! handle its signals now and then. After Ctrl-C the call raises at once. The work goes on to its
//! end, with its locks, but its result is dropped: it asks [`Wanted::take`] before it changes
//! anything.
//!
//! Cost: a thread for each call, some 30 us.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The time between two looks for signals.
const PAUSE: Duration = Duration::from_millis(20);

/// Whether the caller still wants the result. Only one of both sides decides that.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// True once, for the first who asks: for the work, which may then change the filter, or for
    /// the caller, who then gives it up.
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// Does the work. Raises KeyboardInterrupt, or what else a handler of a signal raises.
pub(crate) fn run<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Wanted) -> R + Send + 'static,
) -> PyResult<R> {
    let (sender, receiver) = mpsc::channel();
    let wanted = Wanted::default();
    let theirs = wanted.clone();
    let worker = thread::Builder::new().spawn(move || {
        // Nobody receives what was given up.
        drop(sender.send(work(&theirs)));
    });
    worker
        .map_err(|error| PyRuntimeError::new_err(format!("no thread could be started: {error}")))?;
    // For the waiting without the GIL, which may be left in any thread.
    let receiver = Mutex::new(receiver);
    let receive = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PAUSE);
    let mut raised = Ok(());
    loop {
        match py.detach(receive) {
            Ok(result) => return raised.map(|()| result),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the library panicked; please report it"));
            }
            Err(RecvTimeoutError::Timeout) => {
                let Err(error) = py.check_signals() else { continue };
                if wanted.take() {
                    return Err(error);
                }
                // The change has begun, and is done in a moment.
                raised = Err(error);
            }
        }
    }
}
