//! The answers of a batch, in the shape of its keys.
//!
//! A filter answers for the keys that are there. [`Shape`] knows which were missing, and what the
//! caller gets: a numpy array, or an Arrow array of the library that the keys came from.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use numpy::{Element, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

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
    /// Lengths of the dimensions of a numpy array.
    dimensions: Vec<usize>,
    /// The number of keys, missing ones included, as far as `present` is kept.
    rows: usize,
    /// Whether each key is there. `None` if all are.
    present: Option<Vec<bool>>,
    /// Where an Arrow array came from.
    origin: Option<Origin>,
}

impl Shape {
    /// One dimension, as numpy.
    pub(crate) fn flat() -> Self {
        Self { dimensions: Vec::new(), rows: 0, present: None, origin: None }
    }

    /// A numpy array of these dimensions.
    pub(crate) fn numpy(dimensions: &[usize]) -> Self {
        Self { dimensions: dimensions.to_vec(), ..Self::flat() }
    }

    /// An Arrow array. Its rows are still to be added.
    pub(crate) fn arrow(origin: Origin) -> Self {
        Self { origin: Some(origin), ..Self::flat() }
    }

    /// The same answers as a numpy array.
    pub(crate) fn in_numpy(self) -> Self {
        Self { origin: None, ..self }
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
        let Some(origin) = self.origin.take() else { return self.in_dimensions(py, answers) };
        origin.give_back(py, A::arrow(answers, self.present.map(NullBuffer::from)))
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

    fn in_dimensions<T: Element>(
        self,
        py: Python<'_>,
        answers: Vec<T>,
    ) -> PyResult<Bound<'_, PyAny>> {
        let array = PyArray1::from_vec(py, answers).into_any();
        if self.dimensions.len() < 2 {
            return Ok(array);
        }
        array.call_method1("reshape", (PyTuple::new(py, self.dimensions)?,))
    }
}
