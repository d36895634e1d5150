//! `koel.CountingFilter`: how often each key came.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::batch::with_keys;
use crate::body::{MappedCounting, with_filter};
use crate::counted::{counted_face, removal_face};
use crate::error::OrRaise;
use crate::face::face;
use crate::key::{Hashing, Width};
use crate::many::{self, Stopped};
use crate::settings::{Settings, Whole};
use crate::shared::Shared;
use crate::source::refuse_mapping;

/// Counts keys, for streams in which some keys come very often.
///
///     >>> import koel
///     >>> visits = koel.CountingFilter(1_000_000)
///     >>> visits.add("ada"), visits.add("ada"), visits.add("mary", 1000)
///     (1, 2, 1000)
///     >>> visits.count("ada"), visits.count("grace")
///     (2, 0)
///
/// A count is never too low. It is too high, by the count of another key, with a probability of at
/// most `error_rate`. With `grow=True`, each doubling beyond the capacity adds at most about 0.7
/// times that. The filter does not store its keys, so it cannot list them.
///
/// Parameters
/// ----------
/// capacity : int
///     The number of distinct keys to make room for. They always fit, each any number of times.
/// error_rate : float
///     The share of keys whose count is wrong in the full filter, above 0 and below 1.
/// count_bits : int
///     Bits of a count in its slot, 1 to 40. A larger count takes about 30 bytes more.
/// grow : bool
///     Grow beyond the capacity instead of raising `koel.Full`.
/// grow_from : int, optional
///     Start with room for so many keys, and grow to the capacity and beyond.
/// seed : int, optional
///     Seed of the hash function XXH3-64. Filters with different seeds cannot be merged.
/// secret : bytes, optional
///     16 secret bytes. Keys are then hashed with SipHash-1-3, for keys that an adversary may
///     choose. Files contain the secret.
///
/// Keys, threads and removal are as in `CuckooFilter`.
#[pyclass(module = "koel", frozen, weakref)]
pub(crate) struct CountingFilter {
    contents: Arc<Shared<Contents>>,
    hashing: Hashing,
}

face!(
    CountingFilter,
    MappedCounting,
    "CountingFilter",
    "koel.CountingFilter(1000)",
    "f.update(['ada'])\n    1"
);
removal_face!(
    CountingFilter,
    "koel.CountingFilter(1000)",
    "f.update(['ada'])\n    1",
    "one copy of "
);
counted_face!(CountingFilter, "CountingFilter");

#[pymethods]
impl CountingFilter {
    #[new]
    #[pyo3(signature = (
        capacity, error_rate=0.001, *, count_bits=8, grow=false, grow_from=None, seed=None,
        secret=None
    ))]
    fn new(
        #[pyo3(from_py_with = crate::settings::capacity)] capacity: Whole,
        error_rate: f64,
        count_bits: u32,
        grow: bool,
        grow_from: Option<Whole>,
        seed: Option<Whole>,
        secret: Option<PyBackedBytes>,
    ) -> PyResult<Self> {
        let settings = Settings { capacity, grow, grow_from, seed, secret };
        let builder = koel::CountingFilter::builder(capacity.0, error_rate).count_bits(count_bits);
        let mut builder = settings.hashing(builder)?;
        if let Some(keys) = settings.first_keys()? {
            builder = builder.grow_from(keys);
        }
        builder.build().map(Self::own).or_raise()
    }

    /// Raises the count of a key by `times`, and returns it. 0 changes nothing.
    ///
    /// Raises `koel.Full`, OverflowError beyond 2**64 - 1, and TypeError for what is not a key.
    ///
    ///     >>> import koel
    ///     >>> visits = koel.CountingFilter(1000)
    ///     >>> visits.add("ada", times=5)
    ///     5
    #[pyo3(signature = (key, times=Whole(1)))]
    fn add(&self, key: &Bound<'_, PyAny>, times: Whole) -> PyResult<u64> {
        let hash = self.hashing.hash(key)?;
        self.contents.write(key.py(), |contents| contents.owned()?.add(&hash, times.0).or_raise())
    }

    /// Counts each of many keys, those of one iterable or of several. Returns how many there were.
    /// A mapping, such as a `Counter`, raises TypeError: use `add(key, times)` for each of its
    /// items.
    ///
    /// Takes the keys, and `width`, as `contains_many` does. Skips missing keys (null). Raises
    /// `koel.Full` at the first key that finds no room. Whatever it raises, the keys before that
    /// one are counted: `done` of the exception says how many.
    ///
    ///     >>> import koel
    ///     >>> visits = koel.CountingFilter(1000)
    ///     >>> visits.update(["ada", "mary", "ada"])
    ///     3
    #[pyo3(signature = (*keys, width=64))]
    fn update(&self, keys: &Bound<'_, PyTuple>, width: u32) -> PyResult<usize> {
        keys.iter().try_for_each(|keys| refuse_mapping(&keys))?;
        let work = self.contents.change(|filter, chunk, counted| {
            counted.fill(true);
            let before = filter.len();
            with_keys!(chunk, keys => filter.insert_many(keys))
                .map_err(|full| Stopped::after(before, filter.len(), full))
        });
        many::count(keys, self.with_width(width)?, work)
    }
}
