//! The library that Arrow keys came from, and answers as its arrays.

use std::ffi::CStr;

use arrow_array::ffi::to_ffi;
use arrow_array::{Array, ArrayRef};
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Names of the capsules of Arrow's interface.
pub(crate) const SCHEMA: &CStr = c"arrow_schema";
pub(crate) const ARRAY: &CStr = c"arrow_array";

pub(crate) fn raise(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The top module of an object's type: `pandas`, `polars`, `pyarrow`.
pub(crate) fn library(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let module = object.get_type().getattr("__module__")?.extract::<String>()?;
    Ok(module.split('.').next().unwrap_or_default().to_owned())
}

/// The library that keys came from, which gets the answers.
#[derive(Clone, Copy)]
pub(crate) enum Origin {
    Pyarrow { is_chunked: bool },
    Polars,
    Other,
}

impl Origin {
    pub(crate) fn of(keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match library(keys)?.as_str() {
            "pyarrow" => Self::Pyarrow { is_chunked: !keys.hasattr("__arrow_c_array__")? },
            "polars" => Self::Polars,
            _ => Self::Other,
        })
    }

    /// The answers in a type of the library.
    pub(crate) fn give_back(self, py: Python<'_>, array: ArrayRef) -> PyResult<Bound<'_, PyAny>> {
        let answers = Bound::new(py, ArrowArray(array))?.into_any();
        match self {
            Self::Pyarrow { is_chunked: false } => {
                py.import("pyarrow")?.call_method1("array", (answers,))
            }
            Self::Pyarrow { is_chunked: true } => {
                let array = py.import("pyarrow")?.call_method1("array", (answers,))?;
                py.import("pyarrow")?.call_method1("chunked_array", (vec![array],))
            }
            Self::Polars => py.import("polars")?.call_method1("Series", (answers,)),
            Self::Other => Ok(answers),
        }
    }
}

/// The answers of a batch as an Arrow array, for any library that reads Arrow's C data interface.
///
/// A batch over an Arrow array of pyarrow or polars returns an array of that library. A batch over
/// another one returns this.
#[pyclass(module = "koel", frozen)]
pub(crate) struct ArrowArray(ArrayRef);

#[pymethods]
impl ArrowArray {
    /// The number of answers.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The array as two capsules, as Arrow's PyCapsule interface defines them.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface allows to ignore the requested schema.
        drop(requested_schema);
        let (array, schema) = to_ffi(&self.0.to_data()).map_err(raise)?;
        let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
        Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
    }

    fn __repr__(&self) -> String {
        format!("koel.ArrowArray({} of {})", self.0.len(), self.0.data_type())
    }
}
