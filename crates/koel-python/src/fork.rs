//! Forks of the process: `os.fork`, and so `multiprocessing` on older Pythons.
//!
//! A child has only the thread that forked. A lock that another thread held would stay locked in it
//! for ever, and what that lock protects would be half changed. So work that has a lock without the
//! GIL prevents forks meanwhile, and a fork waits for it: a chunk of a batch takes some ms.

use std::cell::RefCell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// Read by work that prevents forks, written by a fork.
static FORKS: RwLock<()> = RwLock::new(());

thread_local! {
    /// The lock of the fork that this thread begins.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// No fork begins as long as this is held. Taken before any other lock, and without the GIL.
pub(crate) fn prevent() -> RwLockReadGuard<'static, ()> {
    FORKS.read().unwrap_or_else(PoisonError::into_inner)
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    // A write guard stays in its thread, so it is taken here after the wait without the GIL.
    while FORKING.with_borrow(Option::is_none) {
        if let Ok(guard) = FORKS.try_write() {
            FORKING.set(Some(guard));
        } else {
            py.detach(|| drop(FORKS.write()));
        }
    }
}

/// In the parent and in the child.
#[pyfunction]
fn after_fork() {
    FORKING.set(None);
}

/// Asks Python to call these functions at each fork, where it can fork.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let (before, after) = (wrap_pyfunction!(before_fork, py)?, wrap_pyfunction!(after_fork, py)?);
    let calls = [("before", &before), ("after_in_parent", &after), ("after_in_child", &after)];
    os.call_method("register_at_fork", (), Some(&calls.into_py_dict(py)?))?;
    Ok(())
}
