//! Batches for `koel.ExpiringFilter`.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{ExpiringFilter, Ticks};
use crate::batch::{Chunk, more, with_keys};
use crate::body::with_filter;
use crate::many::{self, Stopped};

#[pymethods]
impl ExpiringFilter {
    /// Adds many keys, as `add` does for each in order. Returns which were added, as an array of
    /// bool in the shape of the keys. A key that comes twice is new the first time only.
    ///
    /// Takes the keys, and `width`, as `contains_many` does. Raises `koel.Full` at the first key
    /// that finds no room. Whatever it raises, the keys before that one are in: `done` of the
    /// exception says how many, and `answers` has their answers.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.add_many(["ada", "mary", "ada"], now=1000)
    ///     array([ True,  True, False])
    #[pyo3(signature = (keys, *, now, refresh=false, width=64))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        now: Ticks,
        refresh: bool,
        width: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        many::answers(keys, self.with_width(width)?, self.adding(now, refresh))
    }

    /// Adds many keys, those of one iterable or of several, as `add_many` does. Returns how many
    /// were added.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.update(["ada", "mary", "ada"], now=1000)
    ///     2
    #[pyo3(signature = (*keys, now, refresh=false, width=64))]
    fn update(
        &self,
        keys: &Bound<'_, PyTuple>,
        now: Ticks,
        refresh: bool,
        width: u32,
    ) -> PyResult<usize> {
        many::count(keys, self.with_width(width)?, self.adding(now, refresh))
    }

    /// The age of each of many keys, as a numpy array of int64 in the shape of the keys: -1 for a
    /// key that is not in.
    ///
    /// Takes the keys, and `width`, as `contains_many` does, but no missing ones.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.update(["ada"], now=1000)
    ///     1
    ///     >>> seen.age_many(["ada", "mary"])
    ///     array([ 0, -1])
    #[pyo3(signature = (keys, *, width=64))]
    fn age_many<'py>(&self, keys: &Bound<'py, PyAny>, width: u32) -> PyResult<Bound<'py, PyAny>> {
        let work = self.contents.lookup(|contents, chunk, found: &mut [Option<u64>]| {
            with_filter!(contents, filter => with_keys!(chunk, keys => {
                filter.age_many(keys, found);
            }));
        });
        let mut ages = Vec::new();
        let shape = many::each_chunk(keys, self.with_width(width)?, work, |found| {
            for (age, found) in more(&mut ages, found.len())?.iter_mut().zip(found) {
                *age = found.map_or(Ok(-1), i64::try_from)?;
            }
            Ok(())
        })?;
        shape.reshape(PyArray1::from_vec(keys.py(), ages).into_any())
    }
}

impl ExpiringFilter {
    /// The work of adding a chunk of keys.
    fn adding(
        &self,
        now: Ticks,
        refresh: bool,
    ) -> impl Fn(Python<'_>, Chunk<'_>, &mut [bool]) -> Result<(), Stopped> {
        self.contents.change(move |filter, chunk, added| {
            filter.advance(now.down);
            with_keys!(chunk, keys => {
                let worked = if refresh {
                    filter.insert_many(keys, added)
                } else {
                    filter.insert_unique_many(keys, added)
                };
                let is_in = |key: usize| filter.contains(&keys[key]);
                worked.map_err(|full| Stopped::first_absent(added, is_in, full))
            })
        })
    }
}
