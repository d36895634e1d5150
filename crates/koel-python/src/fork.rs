//! Forks of the process: `os.fork`, and so `multiprocessing` on older Pythons.
//!
//! A child has only the thread that forked. A lock that another thread held would stay locked in it
//! for ever, and what that lock protects would be half changed. So work that has a lock without the
//! GIL prevents forks meanwhile, and a fork waits for it: a chunk of a batch takes some ms. New
//! work waits for the fork, so that a fork comes about however busy the threads are.
//!
//! Atomics and short sleeps: a lock of the system would itself have to be unlocked in the child.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// Whether a thread forks, or waits to do so.
static FORKING: AtomicBool = AtomicBool::new(false);
/// How many threads prevent forks.
static WORKING: AtomicUsize = AtomicUsize::new(0);

fn wait() {
    thread::sleep(Duration::from_micros(100));
}

/// No fork begins as long as this is held.
pub(crate) struct NoFork(());

impl Drop for NoFork {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, SeqCst);
    }
}

/// Prevents forks. Called before any lock is taken, and without the GIL.
pub(crate) fn prevent() -> NoFork {
    loop {
        WORKING.fetch_add(1, SeqCst);
        if !FORKING.load(SeqCst) {
            return NoFork(());
        }
        WORKING.fetch_sub(1, SeqCst);
        wait();
    }
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(|| {
        while FORKING.swap(true, SeqCst) {
            wait();
        }
        while WORKING.load(SeqCst) > 0 {
            wait();
        }
    });
}

#[pyfunction]
fn after_in_parent() {
    FORKING.store(false, SeqCst);
}

#[pyfunction]
fn after_in_child() {
    // Threads that looked whether they may work are not there.
    WORKING.store(0, SeqCst);
    FORKING.store(false, SeqCst);
}

/// Asks Python to call these functions at each fork, where it can fork.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let calls = [
        ("before", wrap_pyfunction!(before_fork, py)?),
        ("after_in_parent", wrap_pyfunction!(after_in_parent, py)?),
        ("after_in_child", wrap_pyfunction!(after_in_child, py)?),
    ];
    os.call_method("register_at_fork", (), Some(&calls.into_py_dict(py)?))?;
    Ok(())
}
