//! The Python package `koel` (on PyPI: `koel-filter`): cuckoo filters that count, forget and grow.
//!
//! * `filter`, `counting`, `expiring`, `maplet`: the classes. `face`, `file`, `counted`,
//!   `settings`: what they have in common.
//! * `key`: one Python object as a key. `source`, `arrow`: many keys at once, which `batch` passes
//!   on in chunks. `many`: the frame of all methods for many keys. `answer`, `origin`: the arrays
//!   that are returned.
//! * `shared`: the lock, and when Python's own is released. `fork`: no lock is held over a fork.
//!   `long`: work that Ctrl-C gives up. `body`: filters in memory and in files.
//! * `compare`, `error`: estimates and exceptions.
//! * `plan`: one filter, built in pieces by many processes. `remote`: one that is asked where it
//!   lies.
//!
//! The classes delegate to the library; no rule of a filter is here. docs/PYTHON.md is for users,
//! docs/decisions/0029-python.md has the choices.

mod answer;
#[expect(unsafe_code, reason = "the interface of Arrow is in C")]
mod arrow;
mod batch;
#[expect(unsafe_code, reason = "a memory map")]
mod body;
mod compare;
mod counted;
mod counting;
mod error;
mod expiring;
mod face;
mod file;
mod filter;
mod fork;
#[expect(unsafe_code, reason = "a function of Python in C")]
mod key;
mod long;
mod many;
mod maplet;
mod origin;
mod plan;
mod remote;
mod settings;
mod shared;
mod source;

use pyo3::pymodule;

/// The compiled part of `koel`.
// Free-threaded Python has wheels of its own, which are not built or tested yet.
#[pymodule(gil_used = true)]
mod _koel {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::compare::{Comparison, Estimate};
    #[pymodule_export]
    use crate::counting::CountingFilter;
    #[pymodule_export]
    use crate::error::Full;
    #[pymodule_export]
    use crate::expiring::ExpiringFilter;
    #[pymodule_export]
    use crate::filter::CuckooFilter;
    #[pymodule_export]
    use crate::maplet::Maplet;
    #[pymodule_export]
    use crate::origin::ArrowArray;
    #[pymodule_export]
    use crate::plan::FilterPlan;
    #[pymodule_export]
    use crate::remote::{RemoteFilter, open_remote};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::fork::register(module.py())
    }
}
