//! What every class is built with.

use koel::{Builder, Prefer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// The settings that every class has.
pub(crate) struct Settings {
    pub(crate) capacity: Whole,
    pub(crate) grow: bool,
    pub(crate) grow_from: Option<Whole>,
    pub(crate) seed: Option<Whole>,
    pub(crate) secret: Option<PyBackedBytes>,
}

impl Settings {
    /// The builder with the hash function.
    pub(crate) fn hashing<F>(&self, builder: Builder<F>) -> PyResult<Builder<F>> {
        let Some(secret) = &self.secret else {
            return Ok(match self.seed {
                Some(Whole(seed)) => builder.seed(seed),
                None => builder,
            });
        };
        if self.seed.is_some() {
            return Err(PyValueError::new_err("give a seed or a secret, not both"));
        }
        let key = secret.as_ref().try_into().map_err(|_| {
            let message = format!("a secret has 16 bytes, not {}", secret.len());
            PyValueError::new_err(message)
        })?;
        Ok(builder.sip_key(key))
    }

    /// The number of keys that a growing table begins with.
    pub(crate) fn first_keys(&self) -> PyResult<Option<u64>> {
        let (first, Whole(capacity)) = (self.grow_from, self.capacity);
        match first {
            Some(Whole(first)) if first > capacity => Err(PyValueError::new_err(format!(
                "grow_from={first} is more than the capacity, {capacity}; a filter grows up to it"
            ))),
            Some(Whole(first)) => Ok(Some(first)),
            None => Ok(self.grow.then_some(capacity)),
        }
    }
}

/// A number of keys, a seed, a value.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(whole) = object.extract::<u64>() {
            return Ok(Self(whole));
        }
        if object.hasattr("__index__")? {
            let message = format!("expected a number from 0 to 2**64 - 1, not {}", object.repr()?);
            return Err(PyValueError::new_err(message));
        }
        Err(PyTypeError::new_err(format!("expected an int, not {}", object.get_type().name()?)))
    }
}

/// The capacity, which the message names: it is the one argument that is given without its name.
pub(crate) fn capacity(object: &Bound<'_, PyAny>) -> PyResult<Whole> {
    object.extract::<Whole>().map_err(|error| {
        let py = object.py();
        PyErr::from_type(error.get_type(py), format!("capacity: {}", error.value(py)))
    })
}

pub(crate) fn prefer(name: &str) -> PyResult<Prefer> {
    match name {
        "small" => Ok(Prefer::Small),
        "fast" => Ok(Prefer::Fast),
        _ => Err(PyValueError::new_err(format!("prefer is 'small' or 'fast', not {name:?}"))),
    }
}
