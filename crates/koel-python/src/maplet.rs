//! `koel.Maplet`: a small number for each key.

use std::path::PathBuf;
use std::sync::Arc;

use koel::{KeyHash, Values};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple, PyType};
use smallvec::SmallVec;

use crate::batch::{CHUNK, more, with_keys};
use crate::body::{MappedMaplet, with_filter};
use crate::counted::key_error;
use crate::error::{OrRaise, reserve};
use crate::face::face;
use crate::key::{Hashing, Width};
use crate::many::{self, Stopped, attach};
use crate::settings::{Settings, Whole};
use crate::shared::Shared;
use crate::source::{all_hashes, numpy_module};

/// Maps keys to small numbers, in little more space than the numbers take.
///
///     >>> import koel
///     >>> files = koel.Maplet(1_000_000, value_bits=5)
///     >>> files.add("ada", 3)
///     >>> files.get("ada")
///     [3]
///     >>> files.get("mary")
///     []
///
/// `get` returns every value that was added for the key. On average it also returns at most
/// `error_rate` values of other keys. With `grow=True`, each doubling beyond the capacity adds at
/// most about 0.7 times that. So maplets are for values that can be checked where they lead: which
/// of many files has the key, or where in a file its record starts.
///
/// A key may have any number of values. Those beyond eight take more memory than the others. With
/// two values for each key, make room for a tenth more.
///
/// Parameters
/// ----------
/// capacity : int
///     The number of pairs of distinct keys to make room for. They always fit.
/// error_rate : float
///     Wrong values that a lookup returns on average, above 0 and below 1.
/// value_bits : int
///     Bits of a value, 1 to 40.
/// grow : bool
///     Grow beyond the capacity instead of raising `koel.Full`.
/// grow_from : int, optional
///     Start with room for so many pairs, and grow to the capacity and beyond.
/// seed : int, optional
///     Seed of the hash function XXH3-64.
/// secret : bytes, optional
///     16 secret bytes. Keys are then hashed with SipHash-1-3, for keys that an adversary may
///     choose. Files contain the secret.
///
/// Keys and threads are as in `CuckooFilter`. **Remove and replace only pairs that were added.**
#[pyclass(module = "koel", frozen, weakref)]
pub(crate) struct Maplet {
    contents: Arc<Shared<Contents>>,
    hashing: Hashing,
}

face!(Maplet, MappedMaplet, "Maplet", "koel.Maplet(1000, value_bits=8)", "f.add('ada', 7)");

/// An array of uint64.
type Words<'py> = Bound<'py, PyArray1<u64>>;

#[pymethods]
impl Maplet {
    #[new]
    #[pyo3(signature = (
        capacity, error_rate=0.001, *, value_bits, grow=false, grow_from=None, seed=None,
        secret=None
    ))]
    fn new(
        #[pyo3(from_py_with = crate::settings::capacity)] capacity: Whole,
        error_rate: f64,
        value_bits: u32,
        grow: bool,
        grow_from: Option<Whole>,
        seed: Option<Whole>,
        secret: Option<PyBackedBytes>,
    ) -> PyResult<Self> {
        let settings = Settings { capacity, grow, grow_from, seed, secret };
        let builder = koel::Maplet::builder(capacity.0, error_rate, value_bits);
        let mut builder = settings.hashing(builder)?;
        if let Some(keys) = settings.first_keys()? {
            builder = builder.grow_from(keys);
        }
        builder.build().map(Self::own).or_raise()
    }

    /// Bits of a value.
    ///
    ///     >>> import koel
    ///     >>> koel.Maplet(1000, value_bits=5).value_bits
    ///     5
    #[getter]
    fn value_bits(&self, py: Python<'_>) -> u32 {
        self.contents
            .read(py, |contents| with_filter!(contents, maplet => maplet.layout().value_bits()))
    }

    /// Adds a pair. A pair that is in already gets another entry.
    ///
    /// Other values of the key stay: the maplet cannot tell them from values of other keys. So
    /// there is no `m[key] = value` and no `del m[key]`. `replace` and `remove` name the old value.
    ///
    /// Raises `koel.Full`, and ValueError for a value of too many bits.
    ///
    ///     >>> import koel
    ///     >>> m = koel.Maplet(1000, value_bits=8)
    ///     >>> m.add("ada", 7)
    ///     >>> m["ada"]
    ///     [7]
    fn add(&self, key: &Bound<'_, PyAny>, value: Whole) -> PyResult<()> {
        let hash = self.hashing.hash(key)?;
        self.contents
            .write(key.py(), |contents| contents.owned()?.insert(&hash, value.0).or_raise())
    }

    /// The values of a key, and seldom one of another key. An empty list if there are none.
    ///
    ///     >>> import koel
    ///     >>> m = koel.Maplet(1000, value_bits=8)
    ///     >>> m.get("ada")
    ///     []
    fn get(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let hash = self.hashing.hash(key)?;
        Ok(self.contents.read(
            key.py(),
            |contents| with_filter!(contents, maplet => maplet.get(&hash).collect()),
        ))
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let values = self.get(key)?;
        if values.is_empty() { Err(key_error(key)) } else { Ok(values) }
    }

    /// The values of many keys, as two arrays `(offsets, values)`: those of key `i` are
    /// `values[offsets[i]:offsets[i + 1]]`.
    ///
    /// Takes the keys, and `width`, as `contains_many` does, but no missing ones.
    ///
    ///     >>> import koel
    ///     >>> m = koel.Maplet(1000, value_bits=8)
    ///     >>> m.update({"ada": 7, "mary": 9})
    ///     >>> offsets, values = m.get_many(["ada", "grace", "mary"])
    ///     >>> offsets.tolist(), values.tolist()
    ///     ([0, 1, 1, 2], [7, 9])
    #[pyo3(signature = (keys, *, width=64))]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        width: u32,
    ) -> PyResult<(Words<'py>, Words<'py>)> {
        let work = self.contents.lookup(|contents, chunk, found: &mut [SmallVec<[u64; 2]>]| {
            with_filter!(contents, maplet => with_keys!(chunk, keys => {
                let mut values = vec![Values::default(); keys.len()];
                maplet.get_many(keys, &mut values);
                for (found, values) in found.iter_mut().zip(values) {
                    *found = values.collect();
                }
            }));
        });
        let (mut offsets, mut values) = (vec![0], Vec::new());
        let _shape = many::each_chunk(keys, self.with_width(width)?, work, |found| {
            reserve(&mut offsets, found.len())?;
            for some in found {
                reserve(&mut values, some.len())?;
                values.extend_from_slice(some);
                offsets.push(values.len() as u64);
            }
            Ok(())
        })?;
        let py = keys.py();
        Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, values)))
    }

    /// Changes the value of one pair. Returns False if there is no such pair.
    ///
    /// Raises ValueError for a value of too many bits.
    ///
    ///     >>> import koel
    ///     >>> m = koel.Maplet(1000, value_bits=8)
    ///     >>> m.add("ada", 7)
    ///     >>> m.replace("ada", 7, 8), m.replace("ada", 7, 8)
    ///     (True, False)
    fn replace(&self, key: &Bound<'_, PyAny>, old: Whole, new: Whole) -> PyResult<bool> {
        self.check_value(key.py(), old.0)?;
        let hash = self.hashing.hash(key)?;
        self.contents
            .write(key.py(), |contents| contents.owned()?.replace(&hash, old.0, new.0).or_raise())
    }

    /// Removes one pair. Returns False if it is not in. Raises ValueError for a value of too many
    /// bits.
    ///
    ///     >>> import koel
    ///     >>> m = koel.Maplet(1000, value_bits=8)
    ///     >>> m.discard("ada", 7)
    ///     False
    fn discard(&self, key: &Bound<'_, PyAny>, value: Whole) -> PyResult<bool> {
        self.check_value(key.py(), value.0)?;
        let hash = self.hashing.hash(key)?;
        self.contents.write(key.py(), |contents| Ok(contents.owned()?.remove(&hash, value.0)))
    }

    /// Removes one pair. Raises KeyError if it is not in.
    ///
    ///     >>> import koel
    ///     >>> m = koel.Maplet(1000, value_bits=8)
    ///     >>> m.remove("ada", 7)
    ///     Traceback (most recent call last):
    ///     KeyError: ('ada', 7)
    fn remove(&self, key: &Bound<'_, PyAny>, value: Whole) -> PyResult<()> {
        if self.discard(key, value)? {
            return Ok(());
        }
        Err(PyKeyError::new_err((key.clone().unbind(), value.0)))
    }

    /// Adds many pairs: of a mapping, of an iterable of pairs, or of keys and as many values.
    ///
    /// Takes the keys, and `width`, as `contains_many` does, but no missing ones. Values are an
    /// array or a list of int.
    ///
    /// Raises ValueError for a value of too many bits, and then nothing has changed; `koel.Full` at
    /// the first pair that finds no room. Whatever it raises, the pairs before that one are in:
    /// `done` of the exception says how many.
    ///
    ///     >>> import koel
    ///     >>> m = koel.Maplet(1000, value_bits=8)
    ///     >>> m.update({"ada": 7})
    ///     >>> m.update([("mary", 9)])
    ///     >>> m.update(range(100), [1] * 100)
    ///     >>> len(m)
    ///     102
    #[pyo3(signature = (keys, values=None, *, width=64))]
    fn update(
        &self,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
        width: u32,
    ) -> PyResult<()> {
        let (keys, values) = match values {
            Some(values) => (keys.clone(), values.clone()),
            None => pairs(keys)?,
        };
        let changed = self.change_pairs(&keys, &values, width, |maplet, hashes, values| {
            let before = maplet.len();
            let added = maplet.insert_many(hashes, values);
            added.map_err(|error| Stopped::after(before, maplet.len(), error))
        });
        changed.map_err(|Stopped { done, error }| attach(keys.py(), error, done, keys.py().None()))
    }

    /// Removes one pair of each of many keys and the value at the same place. Returns which were
    /// in, as a numpy array of bool.
    ///
    /// Takes keys and values as `update` does.
    ///
    ///     >>> import koel
    ///     >>> m = koel.Maplet(1000, value_bits=8)
    ///     >>> m.add("ada", 7)
    ///     >>> m.remove_many(["ada", "mary"], [7, 7])
    ///     array([ True, False])
    #[pyo3(signature = (keys, values, *, width=64))]
    fn remove_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        width: u32,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let mut removed = Vec::new();
        let changed = self.change_pairs(keys, values, width, |maplet, hashes, values| {
            maplet.remove_many(hashes, values, more(&mut removed, hashes.len())?);
            Ok(())
        });
        let removed = PyArray1::from_vec(keys.py(), removed);
        match changed {
            Ok(()) => Ok(removed),
            Err(Stopped { done, error }) => Err(attach(keys.py(), error, done, removed)),
        }
    }
}

impl Maplet {
    /// Changes many pairs, a chunk at a time.
    fn change_pairs(
        &self,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        width: u32,
        mut work: impl FnMut(&mut koel::Maplet, &[KeyHash], &[u64]) -> Result<(), Stopped> + Send,
    ) -> Result<(), Stopped> {
        let py = keys.py();
        let (hashes, values) = self.hashes_and_values(keys, values, width)?;
        let mut done = 0;
        for (hashes, values) in hashes.chunks(CHUNK).zip(values.chunks(CHUNK)) {
            let worked = self
                .contents
                .write_detached(py, |contents| work(contents.owned()?, hashes, values));
            worked.map_err(|stopped| Stopped { done: done + stopped.done, ..stopped })?;
            done += hashes.len();
            py.check_signals().map_err(|error| Stopped { done, error })?;
        }
        Ok(())
    }

    /// The hash of each key, and its value.
    fn hashes_and_values(
        &self,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        width: u32,
    ) -> PyResult<(Vec<KeyHash>, Vec<u64>)> {
        let hashes = all_hashes(keys, self.with_width(width)?)?;
        let values = numbers(values)?;
        if hashes.len() != values.len() {
            let (keys, values) = (hashes.len(), values.len());
            let message = format!("{keys} keys and {values} values; give one value for each key");
            return Err(PyValueError::new_err(message));
        }
        self.check_value(keys.py(), values.iter().copied().max().unwrap_or(0))?;
        Ok((hashes, values))
    }

    /// Refuses a value that no pair can have: "not in" would be an answer to another question.
    fn check_value(&self, py: Python<'_>, value: u64) -> PyResult<()> {
        let value_bits = self.value_bits(py);
        if value.checked_shr(value_bits).unwrap_or(0) == 0 {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "the value {value} does not fit into the {value_bits} bits of this maplet"
        )))
    }
}

/// The keys and the values of a mapping or of an iterable of pairs.
fn pairs<'py>(keys: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let py = keys.py();
    if keys.hasattr("keys")? && keys.hasattr("values")? {
        let list = |part: &str| keys.call_method0(part)?.try_iter()?.collect::<PyResult<Vec<_>>>();
        return Ok((list("keys")?.into_pyobject(py)?, list("values")?.into_pyobject(py)?));
    }
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for pair in keys.try_iter()? {
        let pair = pair?;
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract().map_err(|_| {
            PyTypeError::new_err("give a mapping, pairs of key and value, or keys and values")
        })?;
        firsts.push(key);
        seconds.push(value);
    }
    Ok((firsts.into_pyobject(py)?, seconds.into_pyobject(py)?))
}

/// Integers that are not negative.
fn numbers(values: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let numpy = numpy_module(values.py())?;
    if numpy.getattr("ma")?.call_method1("is_masked", (values,))?.is_truthy()? {
        let message = "some values are missing (masked); drop them and their keys";
        return Err(PyValueError::new_err(message));
    }
    let array = numpy.call_method1("asarray", (values,))?;
    let kind = array.getattr("dtype")?.getattr("kind")?.extract::<String>()?;
    let is_empty = array.cast::<PyUntypedArray>()?.is_empty();
    if !is_empty && kind != "u" && (kind != "i" || array.call_method0("min")?.lt(0)?) {
        return Err(PyValueError::new_err("values are integers of at least 0"));
    }
    // A copy, since another thread may write to the array.
    let words = numpy.call_method1("array", (array, "u8"))?;
    Ok(words.call_method1("reshape", (-1,))?.cast::<PyArray1<u64>>()?.to_vec()?)
}
