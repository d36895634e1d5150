//! Settings and figures of `koel.ExpiringFilter`.

use koel::WhenFull;
use pyo3::prelude::*;

use super::ExpiringFilter;
use crate::body::with_filter;

#[pymethods]
impl ExpiringFilter {
    /// How long a key is in at least, in the unit of `now`: a whole number of steps.
    ///
    ///     >>> import koel
    ///     >>> koel.ExpiringFilter(1000, window=600).window
    ///     600
    #[getter]
    fn window(&self, py: Python<'_>) -> u64 {
        self.contents.read(py, |contents| with_filter!(contents, filter => filter.window()))
    }

    /// The steps of the window.
    ///
    ///     >>> import koel
    ///     >>> koel.ExpiringFilter(1000, window=600).steps
    ///     24
    #[getter]
    fn steps(&self, py: Python<'_>) -> u64 {
        self.contents.read(py, |contents| with_filter!(contents, filter => filter.steps()))
    }

    /// The length of a step, in the unit of `now`.
    ///
    ///     >>> import koel
    ///     >>> koel.ExpiringFilter(1000, window=600).step
    ///     25
    #[getter]
    fn step(&self, py: Python<'_>) -> u64 {
        self.contents.read(py, |contents| with_filter!(contents, filter => filter.step_ticks()))
    }

    /// The time at which the present step began.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.advance(1010)
    ///     0
    ///     >>> seen.step_began
    ///     1000
    #[getter]
    fn step_began(&self, py: Python<'_>) -> u64 {
        self.contents.read(py, |contents| with_filter!(contents, filter => filter.step_began()))
    }

    /// What `add` does with more keys than fit: 'fail' or 'evict'.
    ///
    ///     >>> import koel
    ///     >>> koel.ExpiringFilter(1000, window=600).when_full
    ///     'fail'
    #[getter]
    fn when_full(&self, py: Python<'_>) -> &'static str {
        let when_full =
            self.contents.read(py, |contents| with_filter!(contents, filter => filter.when_full()));
        match when_full {
            WhenFull::Fail => "fail",
            WhenFull::EvictOldest => "evict",
        }
    }

    /// How many keys were forgotten early, because there was no room for more.
    ///
    ///     >>> import koel
    ///     >>> koel.ExpiringFilter(1000, window=600, when_full="evict").evicted
    ///     0
    #[getter]
    fn evicted(&self, py: Python<'_>) -> u64 {
        self.contents.read(py, |contents| with_filter!(contents, filter => filter.evicted()))
    }

    /// The age in steps of the youngest key that was forgotten early; None if none was. Keys
    /// younger than that were all kept.
    ///
    ///     >>> import koel
    ///     >>> koel.ExpiringFilter(1000, window=600).youngest_evicted is None
    ///     True
    #[getter]
    fn youngest_evicted(&self, py: Python<'_>) -> Option<u64> {
        self.contents
            .read(py, |contents| with_filter!(contents, filter => filter.youngest_evicted()))
    }
}
