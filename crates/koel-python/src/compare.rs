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
#[pyclass(module = "koel", frozen, eq, from_py_object)]
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
    #[new]
    fn new(value: f64, standard_error: f64) -> Self {
        Self { value, standard_error }
    }

    fn __getnewargs__(&self) -> (f64, f64) {
        (self.value, self.standard_error)
    }

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
#[pyclass(module = "koel", frozen, eq)]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Comparison {
    /// The number of distinct keys in both filters.
    #[pyo3(get)]
    common: Estimate,
    /// The number of distinct keys in either filter.
    #[pyo3(get)]
    union: Estimate,
    /// The number of distinct keys in the first filter and not in the second.
    #[pyo3(get)]
    only_first: Estimate,
    /// The number of distinct keys in the second filter and not in the first.
    #[pyo3(get)]
    only_second: Estimate,
    /// The Jaccard index, 0 to 1: common keys divided by keys in either filter.
    #[pyo3(get)]
    pub(crate) jaccard: Estimate,
    /// The number of keys, with copies, that the first filter has and the second lacks. Exact
    /// unless different keys share an entry.
    #[pyo3(get)]
    surplus_first: u64,
    /// The number of keys, with copies, that the second filter has and the first lacks. Exact
    /// unless different keys share an entry.
    #[pyo3(get)]
    surplus_second: u64,
    /// The number of corrections that the first filter has and the second lacks.
    #[pyo3(get)]
    corrections_first: u64,
    /// The number of corrections that the second filter has and the first lacks.
    #[pyo3(get)]
    corrections_second: u64,
}

impl From<koel::Comparison> for Comparison {
    fn from(compared: koel::Comparison) -> Self {
        Self {
            common: compared.common().into(),
            union: compared.union().into(),
            only_first: compared.only_first().into(),
            only_second: compared.only_second().into(),
            jaccard: compared.jaccard().into(),
            surplus_first: compared.surplus_first(),
            surplus_second: compared.surplus_second(),
            corrections_first: compared.corrections_first(),
            corrections_second: compared.corrections_second(),
        }
    }
}

#[pymethods]
impl Comparison {
    /// As pickle makes it again: the estimates, what each has more of, and corrections.
    #[new]
    fn new(keys: [Estimate; 5], surplus: [u64; 2], corrections: [u64; 2]) -> Self {
        let [common, union, only_first, only_second, jaccard] = keys;
        let [surplus_first, surplus_second] = surplus;
        let [corrections_first, corrections_second] = corrections;
        Self {
            common,
            union,
            only_first,
            only_second,
            jaccard,
            surplus_first,
            surplus_second,
            corrections_first,
            corrections_second,
        }
    }

    fn __getnewargs__(&self) -> ([Estimate; 5], [u64; 2], [u64; 2]) {
        (
            [self.common, self.union, self.only_first, self.only_second, self.jaccard],
            [self.surplus_first, self.surplus_second],
            [self.corrections_first, self.corrections_second],
        )
    }

    fn __repr__(&self) -> String {
        let corrections = match [self.corrections_first, self.corrections_second] {
            [0, 0] => String::new(),
            [first, second] => format!("; {first} and {second} corrections of one alone"),
        };
        format!(
            "<koel.Comparison: {:.0} in both, {:.0} only in the first, {:.0} only in the \
             second{corrections}>",
            self.common.value, self.only_first.value, self.only_second.value,
        )
    }
}
