//! Where the keys of a batch come from.
//!
//! | keys | how they are read | answers |
//! |---|---|---|
//! | numpy integers | copied in parts of 2 MiB, since other threads may write to them | numpy |
//! | masked numpy arrays | the same | masked, as the keys are |
//! | other numpy arrays, lists, any iterable | hashed object by object | numpy |
//! | Arrow array or stream | hashed in place (`arrow.rs`) | Arrow, with the nulls of the keys |
//! | pandas Series or Index | as numpy or as Arrow | numpy, so a missing key is refused |
//! | pandas MultiIndex | hashed tuple by tuple | numpy |

use arrow_buffer::NullBuffer;
use koel::KeyHash;
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMapping, PyMemoryView, PyString, PyType};

use crate::answer::Shape;
use crate::arrow;
use crate::batch::{Batch, CHUNK, Chunk};
use crate::error::reserve;
use crate::key::{Hashing, type_name};
use crate::origin::{Origin, library};

/// Reads all keys, and notes the shape of the answers before the first key is passed on.
pub(crate) fn read(
    batch: &mut Batch<'_>,
    keys: &Bound<'_, PyAny>,
    shape: &mut Shape,
) -> PyResult<()> {
    if let Ok(array) = keys.cast::<PyUntypedArray>() {
        return read_numpy(batch, array, shape);
    }
    let is_array = is_array(keys)?;
    if !is_array {
        refuse_file(keys)?;
        refuse_single_key(keys)?;
    }
    if is_array || keys.is_instance_of::<PyMemoryView>() {
        let array = numpy_module(keys.py())?.call_method1("asarray", (keys,))?;
        return read_numpy(batch, array.cast::<PyUntypedArray>()?, shape);
    }
    match library(keys)?.as_str() {
        "pandas" => return read_pandas(batch, keys, shape),
        "polars" => refuse_of_polars(keys)?,
        _ => {}
    }
    if arrow::is_arrow(keys)? {
        *shape = Shape::arrow(Origin::of(keys)?);
        return arrow::read(batch, keys, shape);
    }
    batch.read_objects(keys)
}

/// An array of any shape, in the order of its indices. What is masked is missing.
fn read_numpy(
    batch: &mut Batch<'_>,
    array: &Bound<'_, PyUntypedArray>,
    shape: &mut Shape,
) -> PyResult<()> {
    let masked = numpy_module(array.py())?.getattr("ma")?;
    if !array.is_instance(&masked.getattr("MaskedArray")?)? {
        *shape = Shape::numpy(array.shape());
        return read_flat(batch, &array.call_method1("reshape", (-1,))?);
    }
    let mask = masked.call_method1("getmaskarray", (array,))?;
    let present = mask.call_method1("reshape", (-1,))?.call_method0("__invert__")?;
    *shape = Shape::masked(array.shape());
    let present = present.cast::<PyArray1<bool>>()?.to_vec()?;
    shape.add_rows(present.len(), Some(&NullBuffer::from(present)))?;
    read_flat(batch, &array.call_method0("compressed")?)
}

/// A one-dimensional array of any type.
fn read_flat(batch: &mut Batch<'_>, flat: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = flat.py();
    let Some(Integers { is_signed, bits }) = integer_type(flat)? else {
        let mut hashes = Vec::new();
        for part in parts(flat)? {
            batch.hash_each(&part?.call_method0("tolist")?, &mut hashes)?;
        }
        return batch.pass_all(py, &hashes);
    };
    batch.hashing.check_bits(bits)?;
    let wide = if is_signed { "i8" } else { "u8" };
    for part in parts(flat)? {
        // A copy: another thread may write to the array while the filter reads without the GIL.
        let part = numpy_module(py)?.call_method1("array", (part?, wide))?;
        let words = part.call_method1("view", ("u8",))?;
        batch.read_words(py, words.cast::<PyArray1<u64>>()?.try_readonly()?.as_slice()?)?;
    }
    Ok(())
}

/// A Series or an Index.
fn read_pandas(batch: &mut Batch<'_>, keys: &Bound<'_, PyAny>, shape: &mut Shape) -> PyResult<()> {
    if keys.hasattr("columns")? {
        return Err(PyTypeError::new_err("keys are one column, not a DataFrame; pass df[name]"));
    }
    // A MultiIndex: its rows are tuples, which are keys.
    if keys.hasattr("levels")? {
        return batch.read_objects(keys);
    }
    let dtype = keys.getattr("dtype")?;
    let is_numpy = dtype.is_instance_of::<numpy::PyArrayDescr>();
    let kind = dtype.getattr("kind")?.extract::<String>()?;
    if is_numpy && kind != "O" {
        let array = keys.call_method0("to_numpy")?;
        return read_numpy(batch, array.cast::<PyUntypedArray>()?, shape);
    }
    refuse_missing(keys)?;
    if !is_numpy && keys.hasattr("__arrow_c_stream__")? && has_pyarrow(keys.py()) {
        return arrow::read(batch, keys, shape);
    }
    batch.read_objects(keys)
}

/// Answers of numpy have no null. False or 0 would be a claim about a key that nobody knows.
fn refuse_missing(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let missing =
        numpy_module(keys.py())?.call_method1("asarray", (keys.call_method0("isna")?,))?;
    if !missing.call_method0("any")?.is_truthy()? {
        return Ok(());
    }
    let position = missing.call_method0("argmax")?;
    Err(PyTypeError::new_err(format!(
        "the key at position {position} is missing; pass dropna(), or an Arrow array, whose \
         answers are null where its keys are"
    )))
}

/// Objects of polars that are no column of Arrow: frames, and a Series of Python objects, whose
/// array holds pointers, or of 128 bits, which Arrow does not have.
fn refuse_of_polars(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let name = keys.get_type().name()?.to_string();
    if name == "LazyFrame" || name == "DataFrame" {
        let collected = if name == "LazyFrame" { "frame.collect()" } else { "frame" };
        let message = format!("keys are one column, not a {name}; pass {collected}[name]");
        return Err(PyTypeError::new_err(message));
    }
    let dtype = if keys.hasattr("dtype")? { keys.getattr("dtype")?.to_string() } else { name };
    if ["Object", "Int128", "UInt128"].contains(&dtype.as_str()) {
        let message = format!("a polars Series of {dtype} is no batch; pass to_list()");
        return Err(PyTypeError::new_err(message));
    }
    Ok(())
}

/// All hashes of a batch, for what needs every key at once.
pub(crate) fn all_hashes(keys: &Bound<'_, PyAny>, hashing: Hashing) -> PyResult<Vec<KeyHash>> {
    let mut hashes = Vec::new();
    let mut collect = |_: Python<'_>, chunk: Chunk<'_>| {
        reserve(&mut hashes, chunk.len())?;
        match chunk {
            Chunk::Words(words) => {
                hashes.extend(words.iter().map(|word| hashing.hasher.hash(word)))
            }
            Chunk::Hashes(more) => hashes.extend_from_slice(more),
        }
        Ok(())
    };
    let mut shape = Shape::flat();
    read(&mut Batch { hashing, work: &mut collect }, keys, &mut shape)?;
    shape.refuse_nulls()?;
    Ok(hashes)
}

/// The parts of a one-dimensional array, a chunk each.
fn parts<'a, 'py>(
    flat: &'a Bound<'py, PyAny>,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + 'a> {
    let len = flat.len()?;
    let slice = move |start: usize| {
        let end = (start + CHUNK).min(len);
        flat.get_item(pyo3::types::PySlice::new(flat.py(), start as isize, end as isize, 1))
    };
    Ok((0..len).step_by(CHUNK).map(slice))
}

/// A type of integers of numpy.
struct Integers {
    is_signed: bool,
    bits: u32,
}

/// The integers of an array; `None` if it holds objects or strings. Others are not keys.
fn integer_type(array: &Bound<'_, PyAny>) -> PyResult<Option<Integers>> {
    let dtype = array.getattr("dtype")?;
    let kind = dtype.getattr("kind")?.extract::<String>()?;
    match kind.as_str() {
        "i" | "u" => {
            let bits = 8 * dtype.getattr("itemsize")?.extract::<u32>()?;
            Ok(Some(Integers { is_signed: kind == "i", bits }))
        }
        "O" | "U" | "S" | "T" => Ok(None),
        // What `numpy.array([])` makes.
        _ if array.len()? == 0 => Ok(None),
        _ => Err(PyTypeError::new_err(format!(
            "an array of keys holds integers, strings or bytes, not {dtype}"
        ))),
    }
}

/// A str or bytes is one key. As an iterable, it would be its characters or the integers of its
/// bytes, which nobody means.
fn refuse_single_key(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let advice = if keys.is_instance_of::<PyString>() {
        "use [key]"
    } else if has_bytes(keys)? {
        "use [key], or numpy.frombuffer(keys, 'u1') for integers"
    } else {
        return Ok(());
    };
    let name = keys.get_type().name()?;
    Err(PyTypeError::new_err(format!("keys are an iterable, not one {name}; {advice}")))
}

/// Whether the elements of its buffer are bytes: `bytes`, and what else has a `memoryview`.
fn has_bytes(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(view) = PyMemoryView::from(keys) else { return Ok(false) };
    Ok(view.getattr("itemsize")?.extract::<usize>()? == 1)
}

/// The lines of a file have their ends, which no key has that was added as text: none would be
/// found.
fn refuse_file(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    if !keys.hasattr("readline")? {
        return Ok(());
    }
    let name = type_name(keys);
    Err(PyTypeError::new_err(format!(
        "keys are an iterable, not a {name}, whose lines end with line breaks; pass \
         (line.rstrip(\"\\r\\n\") for line in file)"
    )))
}

/// A mapping may have a count for each key, which would be lost.
pub(crate) fn refuse_mapping(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    if keys.cast::<PyMapping>().is_err() {
        return Ok(());
    }
    let name = keys.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "the values of a {name} would not be counted; add each key as often as it says, or pass \
         its keys()"
    )))
}

/// Whether the keys are an `array.array`.
fn is_array(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let array = ARRAY.import(keys.py(), "array", "array")?;
    keys.is_instance(array)
}

pub(crate) fn numpy_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("numpy")
}

fn has_pyarrow(py: Python<'_>) -> bool {
    py.import("pyarrow").is_ok()
}
