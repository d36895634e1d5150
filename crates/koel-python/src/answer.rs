//! The answers of a batch, in the shape of its keys.
//!
//! A filter answers for the keys that are there. [`Shape`] knows which were missing, and what the
//! caller gets: a numpy array, or an Arrow array of the library that the keys came from.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use numpy::{Element, PyArray1, PyUntypedArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyTuple};

use crate::error::reserve;
use crate::origin::Origin;

/// What a batch may answer for each key.
pub(crate) trait Answer: Element + Copy + Default {
    /// The answers as an Arrow array.
    fn arrow(answers: Vec<Self>, nulls: Option<NullBuffer>) -> ArrayRef;
}

/// Whether the key was found, added or removed.
impl Answer for bool {
    fn arrow(answers: Vec<Self>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(BooleanArray::new(BooleanBuffer::from(answers), nulls))
    }
}

/// The count of the key.
impl Answer for u64 {
    fn arrow(answers: Vec<Self>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(UInt64Array::new(ScalarBuffer::from(answers), nulls))
    }
}

/// Which keys were missing, and how the answers are returned.
pub(crate) struct Shape {
    /// Lengths of the dimensions of a numpy array. `None` for one dimension.
    dimensions: Option<Vec<usize>>,
    /// The number of keys, missing ones included, as far as `present` is kept.
    rows: usize,
    /// Whether each key is there. `None` if all are.
    present: Option<Vec<bool>>,
    /// Whether the answers are masked where keys are missing.
    is_masked: bool,
    /// Where an Arrow array came from.
    origin: Option<Origin>,
}

impl Shape {
    /// One dimension, as numpy.
    pub(crate) fn flat() -> Self {
        Self { dimensions: None, rows: 0, present: None, is_masked: false, origin: None }
    }

    /// A numpy array of these dimensions.
    pub(crate) fn numpy(dimensions: &[usize]) -> Self {
        Self { dimensions: Some(dimensions.to_vec()), ..Self::flat() }
    }

    /// A masked array of these dimensions. Its rows are still to be added.
    pub(crate) fn masked(dimensions: &[usize]) -> Self {
        Self { is_masked: true, ..Self::numpy(dimensions) }
    }

    /// An Arrow array. Its rows are still to be added.
    pub(crate) fn arrow(origin: Origin) -> Self {
        Self { origin: Some(origin), ..Self::flat() }
    }

    /// Adds `rows` keys, of which `nulls` are missing.
    pub(crate) fn add_rows(&mut self, rows: usize, nulls: Option<&NullBuffer>) -> PyResult<()> {
        if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
            let present = self.present.get_or_insert_default();
            let before = self.rows - present.len();
            reserve(present, before + rows)?;
            present.extend(std::iter::repeat_n(true, before));
            present.extend(nulls.iter());
        }
        self.rows += rows;
        Ok(())
    }

    /// For what has no answer for a missing key.
    pub(crate) fn refuse_nulls(&self) -> PyResult<()> {
        if self.present.is_none() {
            return Ok(());
        }
        Err(PyValueError::new_err("some keys are missing (null); drop them and their values"))
    }

    /// The answers as an array in this shape.
    pub(crate) fn give<A: Answer>(
        mut self,
        py: Python<'_>,
        answers: Vec<A>,
    ) -> PyResult<Bound<'_, PyAny>> {
        let answers = self.spread(answers)?;
        if let Some(origin) = self.origin.take() {
            return origin.give_back(py, A::arrow(answers, self.present.map(NullBuffer::from)));
        }
        let mut array = PyArray1::from_vec(py, answers).into_any();
        if self.is_masked {
            let missing = self.present.iter().flatten().map(|is_there| !is_there);
            let missing = PyArray1::from_iter(py, missing);
            let mask =
                if missing.is_empty() { false.into_bound_py_any(py)? } else { missing.into_any() };
            array = py.import("numpy.ma")?.call_method(
                "array",
                (array,),
                Some(&[("mask", mask)].into_py_dict(py)?),
            )?;
        }
        self.reshape(array)
    }

    /// A numpy array of one element for each key, in the dimensions of the keys.
    pub(crate) fn reshape<'py>(&self, array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some(dimensions) = &self.dimensions else { return Ok(array) };
        array.call_method1("reshape", (PyTuple::new(array.py(), dimensions)?,))
    }

    /// The answers so far as an array of one dimension: of the first rows, missing ones included.
    pub(crate) fn give_first<A: Answer>(
        mut self,
        py: Python<'_>,
        answers: Vec<A>,
    ) -> PyResult<Bound<'_, PyAny>> {
        self.rows = self.rows_of(answers.len());
        if let Some(present) = &mut self.present {
            present.truncate(self.rows);
        }
        Ok(PyArray1::from_vec(py, self.spread(answers)?).into_any())
    }

    /// How many rows there are before the one of the next key, if so many keys are done.
    pub(crate) fn rows_of(&self, keys: usize) -> usize {
        let mut left = keys;
        for (row, &is_there) in self.present.iter().flatten().enumerate() {
            if is_there && left == 0 {
                return row;
            }
            left -= usize::from(is_there);
        }
        self.present.as_ref().map_or(0, Vec::len) + left
    }

    /// An answer for each key, the default for a missing one.
    fn spread<T: Copy + Default>(&mut self, answers: Vec<T>) -> PyResult<Vec<T>> {
        let Some(present) = &mut self.present else { return Ok(answers) };
        let after = self.rows - present.len();
        reserve(present, after)?;
        present.extend(std::iter::repeat_n(true, after));
        let mut all = Vec::new();
        reserve(&mut all, present.len())?;
        let mut answers = answers.into_iter();
        all.extend(present.iter().map(|&is_there| {
            if is_there { answers.next().unwrap_or_default() } else { T::default() }
        }));
        Ok(all)
    }
}
