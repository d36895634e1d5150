//! What every class is built with.

use koel::{Builder, Prefer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// The settings that every class has.
pub(crate) struct Settings {
    pub(crate) capacity: u64,
    pub(crate) grow: bool,
    pub(crate) grow_from: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) secret: Option<PyBackedBytes>,
}

impl Settings {
    /// The builder with the hash function.
    pub(crate) fn hashing<F>(&self, builder: Builder<F>) -> PyResult<Builder<F>> {
        let Some(secret) = &self.secret else {
            return Ok(match self.seed {
                Some(seed) => builder.seed(seed),
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
    pub(crate) fn first_keys(&self) -> Option<u64> {
        self.grow_from.or(self.grow.then_some(self.capacity))
    }
}

pub(crate) fn prefer(name: &str) -> PyResult<Prefer> {
    match name {
        "small" => Ok(Prefer::Small),
        "fast" => Ok(Prefer::Fast),
        _ => Err(PyValueError::new_err(format!("prefer is 'small' or 'fast', not {name:?}"))),
    }
}
