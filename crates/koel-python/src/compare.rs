//! How two filters relate: estimates with their standard errors.

use pyo3::prelude::*;

/// An estimate with its standard error.
///
/// The truth is within `standard_error` of `value` in two of three cases, and within twice that in
/// 19 of 20. `float(estimate)` is the value.
///
///     >>> import koel
///     >>> a = koel.CuckooFilter(1000)
///     >>> a.similarity(a.copy())
///     Estimate(value=1.0, standard_error=0.0)
#[pyclass(module = "koel", frozen, eq)]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// The most likely value.
    #[pyo3(get)]
    value: f64,
    /// The standard error of the value.
    #[pyo3(get)]
    standard_error: f64,
}

impl From<koel::Estimate> for Estimate {
    fn from(estimate: koel::Estimate) -> Self {
        Self { value: estimate.value, standard_error: estimate.standard_error }
    }
}

#[pymethods]
impl Estimate {
    fn __float__(&self) -> f64 {
        self.value
    }

    fn __repr__(&self) -> String {
        format!("Estimate(value={:?}, standard_error={:?})", self.value, self.standard_error)
    }
}

/// How two filters relate: `first.diff(second)`.
///
///     >>> import koel
///     >>> a, b = koel.CuckooFilter(1000), koel.CuckooFilter(1000)
///     >>> a.update(["ada", "mary"]), b.update(["ada"])
///     (2, 1)
///     >>> a.diff(b)
///     <koel.Comparison: 1 in both, 1 only in the first, 0 only in the second>
#[pyclass(module = "koel", frozen)]
pub(crate) struct Comparison(pub(crate) koel::Comparison);

#[pymethods]
impl Comparison {
    /// The number of distinct keys in both filters.
    #[getter]
    fn common(&self) -> Estimate {
        self.0.common().into()
    }

    /// The number of distinct keys in either filter.
    #[getter]
    fn union(&self) -> Estimate {
        self.0.union().into()
    }

    /// The number of distinct keys in the first filter and not in the second.
    #[getter]
    fn only_first(&self) -> Estimate {
        self.0.only_first().into()
    }

    /// The number of distinct keys in the second filter and not in the first.
    #[getter]
    fn only_second(&self) -> Estimate {
        self.0.only_second().into()
    }

    /// The Jaccard index, 0 to 1: common keys divided by keys in either filter.
    #[getter]
    pub(crate) fn jaccard(&self) -> Estimate {
        self.0.jaccard().into()
    }

    /// The number of keys, with copies, that the first filter has and the second lacks. Exact
    /// unless different keys share an entry.
    #[getter]
    fn surplus_first(&self) -> u64 {
        self.0.surplus_first()
    }

    /// The number of keys, with copies, that the second filter has and the first lacks. Exact
    /// unless different keys share an entry.
    #[getter]
    fn surplus_second(&self) -> u64 {
        self.0.surplus_second()
    }

    fn __repr__(&self) -> String {
        format!(
            "<koel.Comparison: {:.0} in both, {:.0} only in the first, {:.0} only in the second>",
            self.0.common().value,
            self.0.only_first().value,
            self.0.only_second().value,
        )
    }
}
