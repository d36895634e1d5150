//! `koel.ExpiringFilter`: whether a key came within a window of time.
//!
//! Time is an argument, as in the library: a method that takes `now` advances the filter first,
//! under the same lock. `many` has the batches, `figures` the settings.

mod figures;
mod many;

use std::path::PathBuf;
use std::sync::Arc;

use koel::WhenFull;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::batch::with_keys;
use crate::body::{MappedExpiring, with_filter};
use crate::counted::removal_face;
use crate::error::OrRaise;
use crate::face::face;
use crate::key::{Hashing, Width};
use crate::settings::{Settings, Whole};
use crate::shared::Shared;

/// Answers "was this key seen within the last ten minutes?".
///
///     >>> import koel
///     >>> seen = koel.ExpiringFilter(1_000_000, window=600)
///     >>> seen.add("message 1", now=1000)
///     True
///     >>> seen.add("message 1", now=1500)
///     False
///     >>> seen.add("message 1", now=1700)
///     True
///
/// A key is in for at least the window, and at most one step longer. Then it is forgotten, and its
/// room is free for other keys. A key within the window is never missed; an absent key is reported
/// as present with a probability of at most `error_rate`. With `grow=True`, each doubling beyond
/// the capacity adds at most about 0.7 times that.
///
/// Time comes only from the caller, as an int or a float of any unit: `now=time.time()` for a
/// window in seconds. A timedelta and a datetime count in seconds: `window=timedelta(minutes=10)`.
/// An earlier time than before changes nothing; see `rebase`.
///
/// Parameters
/// ----------
/// capacity : int
///     The number of distinct keys in a window to make room for. They always fit.
/// error_rate : float
///     The share of absent keys that a full filter reports as present, above 0 and below 1.
/// window : int, float or timedelta
///     How long a key is in, in the unit of `now`. It is rounded up to a whole number.
/// steps : int
///     The steps that the window is divided into, 1 to 200.
/// when_full : str
///     What `add` does with more keys than fit: 'fail' raises `koel.Full`, 'evict' forgets old
///     keys.
/// grow : bool
///     Grow beyond the capacity instead.
/// grow_from : int, optional
///     Start with room for so many keys, and grow to the capacity and beyond.
/// seed : int, optional
///     Seed of the hash function XXH3-64.
/// secret : bytes, optional
///     16 secret bytes. Keys are then hashed with SipHash-1-3, for keys that an adversary may
///     choose. Files contain the secret.
///
/// Keys and threads are as in `CuckooFilter`. **Remove only keys that were added.**
#[pyclass(module = "koel", frozen, weakref)]
pub(crate) struct ExpiringFilter {
    contents: Arc<Shared<Contents>>,
    hashing: Hashing,
}

face!(
    ExpiringFilter,
    MappedExpiring,
    "ExpiringFilter",
    "koel.ExpiringFilter(1000, window=600)",
    "f.update(['ada'], now=0)\n    1"
);

removal_face!(
    ExpiringFilter,
    "koel.ExpiringFilter(1000, window=600)",
    "f.update(['ada'], now=0)\n    1",
    ""
);

/// A time or a length of time: a whole number, or a float that is rounded.
struct Ticks {
    down: u64,
    up: u64,
}

impl<'py> FromPyObject<'_, 'py> for Ticks {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(whole) = object.extract::<u64>() {
            return Ok(Self { down: whole, up: whole });
        }
        // A datetime or a timedelta, also of pandas, in seconds.
        let seconds = |method| object.hasattr(method).is_ok_and(|has| has).then_some(method);
        let number = match seconds("timestamp").or_else(|| seconds("total_seconds")) {
            Some(method) => object.call_method0(method)?.extract::<f64>(),
            None => object.extract::<f64>(),
        };
        let Ok(number) = number else {
            let message = "a time is an int, a float, a datetime or a timedelta";
            return Err(PyTypeError::new_err(message));
        };
        // 2^63, which a float holds exactly.
        if !(0.0..9_223_372_036_854_775_808.0).contains(&number) {
            let message = format!("a time is a number from 0 to 2**63, not {number}");
            return Err(PyValueError::new_err(message));
        }
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        let down = u64::try_from(number.floor() as i64)?;
        Ok(Self { down, up: down + u64::from(number.fract() > 0.0) })
    }
}

#[pymethods]
impl ExpiringFilter {
    #[new]
    #[pyo3(signature = (
        capacity, error_rate=0.001, *, window, steps=24, when_full="fail", grow=false,
        grow_from=None, seed=None, secret=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords of Python")]
    fn new(
        #[pyo3(from_py_with = crate::settings::capacity)] capacity: Whole,
        error_rate: f64,
        window: Ticks,
        steps: u32,
        when_full: &str,
        grow: bool,
        grow_from: Option<Whole>,
        seed: Option<Whole>,
        secret: Option<PyBackedBytes>,
    ) -> PyResult<Self> {
        let when_full = match when_full {
            "fail" => WhenFull::Fail,
            "evict" => WhenFull::EvictOldest,
            _ => {
                let message = format!("when_full is 'fail' or 'evict', not {when_full:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        let settings = Settings { capacity, grow, grow_from, seed, secret };
        let builder = koel::ExpiringFilter::builder(capacity.0, error_rate).window(window.up);
        let mut builder = settings.hashing(builder.steps(steps).when_full(when_full))?;
        if let Some(keys) = settings.first_keys()? {
            builder = builder.grow_from(keys);
        }
        builder.build().map(Self::own).or_raise()
    }

    /// Adds a key unless it is in. Returns whether it was added: True for a key that did not come
    /// within the window.
    ///
    /// A key that is in keeps its time, so it is forgotten a window after it was first added. With
    /// `refresh=True` it gets the present time, so it is forgotten a window after it last came.
    /// `ttl` is a shorter time than the window for this key. `now` advances the filter first; there
    /// is no default, since keys that come without a time would never expire.
    ///
    /// Raises `koel.Full`, ValueError for a ttl longer than the window, and TypeError for what is
    /// not a key.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.add("ada", now=0), seen.add("ada", now=500, refresh=True)
    ///     (True, False)
    ///     >>> seen.add("ada", now=1000)
    ///     False
    ///     >>> seen.add("mary", now=1000, ttl=60)
    ///     True
    #[pyo3(signature = (key, *, now, refresh=false, ttl=None))]
    fn add(
        &self,
        key: &Bound<'_, PyAny>,
        now: Ticks,
        refresh: bool,
        ttl: Option<Ticks>,
    ) -> PyResult<bool> {
        let hash = self.hashing.hash(key)?;
        self.contents.write(key.py(), |contents| {
            let filter = contents.owned()?;
            filter.advance(now.down);
            match ttl {
                Some(ttl) if refresh || ttl.up > filter.window() || !filter.contains(&hash) => {
                    filter.insert_with_ttl(&hash, ttl.up).or_raise()
                }
                Some(_) => Ok(false),
                None if refresh => filter.insert(&hash).or_raise(),
                None => filter.insert_unique(&hash).or_raise(),
            }
        })
    }

    /// Whether a key is in at a later time, without a change of the filter. An earlier time is the
    /// present step, for which `key in seen` asks: what expired is not known any more.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.add("ada", now=1000)
    ///     True
    ///     >>> seen.contains_at("ada", 1500), seen.contains_at("ada", 1700), "ada" in seen
    ///     (True, False, True)
    fn contains_at(&self, key: &Bound<'_, PyAny>, now: Ticks) -> PyResult<bool> {
        let hash = self.hashing.hash(key)?;
        Ok(self.contents.read(
            key.py(),
            |contents| with_filter!(contents, filter => filter.contains_at(&hash, now.down)),
        ))
    }

    /// How many steps ago a key came, or was last refreshed. None if it is not in.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.add("ada", now=1000)
    ///     True
    ///     >>> seen.advance(1100)
    ///     0
    ///     >>> seen.age("ada"), seen.step, seen.age("mary")
    ///     (4, 25, None)
    fn age(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let hash = self.hashing.hash(key)?;
        Ok(self
            .contents
            .read(key.py(), |contents| with_filter!(contents, filter => filter.age(&hash))))
    }

    /// Sets the time, unless it is before the present step. Returns how many keys expired.
    ///
    /// With `most`, a time that is further ahead of the present step raises ValueError and changes
    /// nothing. Give it where a clock or a message may be wrong: a time far ahead makes all keys
    /// expire.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.add("ada", now=1000)
    ///     True
    ///     >>> seen.advance(1_800_000_000, most=86_400)
    ///     Traceback (most recent call last):
    ///     ValueError: tick 1800000000 is 1799999000 ticks ahead, and at most 86400 are ...
    ///     >>> seen.advance(2000)
    ///     1
    #[pyo3(signature = (now, *, most=None))]
    fn advance(&self, py: Python<'_>, now: Ticks, most: Option<Ticks>) -> PyResult<u64> {
        self.contents.write_detached(py, |contents| {
            let filter = contents.owned()?;
            match most {
                Some(most) => filter.advance_within(now.down, most.down).or_raise(),
                None => Ok(filter.advance(now.down)),
            }
        })
    }

    /// Says that the present step began at `now`, which may be earlier than before: for a clock
    /// that was set back. No key expires or gets older by that.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.ExpiringFilter(1000, window=600)
    ///     >>> seen.add("ada", now=5000)
    ///     True
    ///     >>> seen.rebase(100)
    ///     >>> seen.advance(800)
    ///     1
    fn rebase(&self, py: Python<'_>, now: Ticks) -> PyResult<()> {
        self.contents.write(py, |contents| {
            contents.owned()?.rebase(now.down);
            Ok(())
        })
    }
}
