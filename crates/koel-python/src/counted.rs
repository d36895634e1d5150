//! What filters have besides `face.rs`: removal, and those that count, counts and unions.

use koel::Merge;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

/// What a merge does with the counts of a key in both.
pub(crate) fn merge_of(counts: &str) -> PyResult<Merge> {
    match counts {
        "max" => Ok(Merge::Max),
        "sum" => Ok(Merge::Sum),
        _ => Err(PyValueError::new_err(format!("counts is 'max' or 'sum', not {counts:?}"))),
    }
}

/// The exception for a key that is not in, as of a set.
pub(crate) fn key_error(key: &Bound<'_, PyAny>) -> PyErr {
    PyKeyError::new_err(key.clone().unbind())
}

/// Implements removal for a class with keys alone. `$new` and `$add` are examples of calls that
/// make one and add to it, `$copy` the words for one of several copies, if there can be several.
macro_rules! removal_face {
    ($Face:ident, $new:literal, $add:literal, $copy:literal) => {
        #[pymethods]
        impl $Face {
            #[doc = concat!(
                "Removes ", $copy, "a key. Returns False if it is not in.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.discard('ada')\n",
                "    False\n",
            )]
            fn discard(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = self.hashing.hash(key)?;
                self.contents.write(key.py(), |contents| Ok(contents.owned()?.remove(&hash)))
            }

            #[doc = concat!(
                "Removes ", $copy, "a key. Raises KeyError if it is not in.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.remove('ada')\n",
                "    Traceback (most recent call last):\n",
                "    KeyError: 'ada'\n",
            )]
            fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
                if self.discard(key)? { Ok(()) } else { Err($crate::counted::key_error(key)) }
            }

            #[doc = concat!(
                "Removes ", $copy, "each of many keys. Returns which were in, as an array of\n",
                "bool in the shape of the keys.\n\n",
                "Takes the keys, and `width`, as `contains_many` does.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> ", $add, "\n",
                "    >>> f.remove_many(['ada', 'mary'])\n",
                "    array([ True, False])\n",
            )]
            #[pyo3(signature = (keys, *, width=64))]
            fn remove_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                width: u32,
            ) -> PyResult<Bound<'py, PyAny>> {
                let work = self.contents.change(|filter, chunk, removed: &mut [bool]| {
                    with_keys!(chunk, keys => filter.remove_many(keys, removed));
                    Ok(())
                });
                $crate::many::answers(keys, self.with_width(width)?, work)
            }
        }
    };
}
pub(crate) use removal_face;

/// Implements the rest of it for a class that counts.
macro_rules! counted_face {
    ($Face:ident, $name:literal) => {
        #[pymethods]
        impl $Face {
            #[doc = concat!(
                "How often a key was added and not removed. Never too low; too high with the\n",
                "probability `false_positive_rate`, by the count of another key.\n\n",
                "    >>> import koel\n",
                "    >>> f = koel.", $name, "(1000)\n",
                "    >>> f.count('ada')\n",
                "    0\n",
            )]
            fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
                let hash = self.hashing.hash(key)?;
                Ok(self.contents.read(key.py(), |contents| {
                    with_filter!(contents, filter => filter.count(&hash))
                }))
            }

            #[doc = concat!(
                "The count of each of many keys: an array of uint64 in the shape of the keys.\n\n",
                "Takes the keys, and `width`, as `contains_many` does.\n\n",
                "    >>> import koel\n",
                "    >>> f = koel.", $name, "(1000)\n",
                "    >>> f.update(['ada'])\n",
                "    1\n",
                "    >>> f.count_many(['ada', 'mary']).tolist()\n",
                "    [1, 0]\n",
            )]
            #[pyo3(signature = (keys, *, width=64))]
            fn count_many<'py>(
                &self,
                keys: &Bound<'py, PyAny>,
                width: u32,
            ) -> PyResult<Bound<'py, PyAny>> {
                let work = self.contents.lookup(|contents, chunk, counts: &mut [u64]| {
                    with_filter!(contents, filter => with_keys!(chunk, keys => {
                        filter.count_many(keys, counts);
                    }));
                });
                $crate::many::answers(keys, self.with_width(width)?, work)
            }

            #[doc = concat!(
                "An estimate of the number of distinct keys.\n\n",
                "    >>> import koel\n",
                "    >>> f = koel.", $name, "(1000)\n",
                "    >>> f.update(['ada', 'mary'])\n",
                "    2\n",
                "    >>> round(f.distinct())\n",
                "    2\n",
            )]
            fn distinct(&self, py: Python<'_>) -> f64 {
                self.contents.read(py, |contents| {
                    with_filter!(contents, filter => filter.distinct_estimate())
                })
            }

            #[doc = concat!(
                "Adds the keys of another filter that was built alike.\n\n",
                "A key in both gets the larger count with `counts='max'`, as in a union of sets,\n",
                "and the sum of both with `counts='sum'`. `a |= b` is `a.merge(b)`.\n\n",
                "Rates add up: `false_positive_rate` of the union is up to the sum of both. It\n",
                "stays within `error_rate` if each filter was built with room for the union, but\n",
                "not if small ones have grown. To build one filter in many processes, use\n",
                "`koel.FilterPlan`: it merges nothing.\n\n",
                "Raises ValueError unless both were built alike, and `koel.Full` if the union\n",
                "does not fit; then nothing has changed.\n\n",
                "    >>> import koel\n",
                "    >>> f, g = koel.", $name, "(1000), koel.", $name, "(1000)\n",
                "    >>> f.update(['ada']), g.update(['ada', 'mary'])\n",
                "    (1, 2)\n",
                "    >>> f.merge(g, counts='sum')\n",
                "    >>> f.count('ada'), f.count('mary')\n",
                "    (2, 1)\n",
            )]
            #[pyo3(signature = (other, *, counts="max"))]
            fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>, counts: &str) -> PyResult<()> {
                let (counts, other) = ($crate::counted::merge_of(counts)?, other.get());
                let copy = if std::ptr::eq(self, other) { Some(self.copied(py)?) } else { None };
                let (ours, theirs) = match copy {
                    Some(copy) => (self.contents.clone(), Self::own(copy).contents),
                    None => (self.contents.clone(), other.contents.clone()),
                };
                $crate::long::run(py, move |wanted| ours.write_by(&theirs, |ours, theirs| {
                    let ours = ours.owned()?;
                    let mut union = ours.try_clone().or_raise()?;
                    with_filter!(theirs, filter => union.merge(filter, counts)).or_raise()?;
                    if wanted.take() {
                        *ours = union;
                    }
                    Ok(())
                }))?
            }

            fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                let py = other.py();
                let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
                let union = Self::own(self.copied(py)?);
                union.merge(py, other, "max")?;
                Ok(Py::new(py, union)?.into_any())
            }

            fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
                self.merge(py, other, "max")
            }
        }
    };
}
pub(crate) use counted_face;
