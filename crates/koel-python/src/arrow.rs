//! Arrow arrays as keys.
//!
//! Arrays come through Arrow's C data interface, as capsules that the methods
//! `__arrow_c_array__` and `__arrow_c_stream__` return. pyarrow, polars, pandas, DuckDB and others
//! have them, and this package needs none of them.
//!
//! Strings and bytes of every encoding (32-bit and 64-bit offsets, views, fixed size) are hashed
//! where they lie. A dictionary is hashed once, not once per row. Nulls are left out, and come back
//! as nulls in the answers.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, NullArray, make_array};
use arrow_schema::DataType;
use koel::KeyHash;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::answer::Shape;
use crate::batch::{Batch, CHUNK, Chunk};
use crate::error::reserve;
use crate::key::{Hashing, Width};
use crate::origin::{ARRAY, SCHEMA, raise};

const STREAM: &CStr = c"arrow_array_stream";
/// Where a type that is made of another one has its name.
const EXTENSION: &str = "ARROW:extension:name";
/// The format of an array whose values are all null.
const NULLS: &str = "n";

/// Whether the object gives its data through Arrow's interface.
pub(crate) fn is_arrow(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(keys.hasattr("__arrow_c_array__")? || keys.hasattr("__arrow_c_stream__")?)
}

/// Passes the keys of an array or stream to the batch.
pub(crate) fn read(
    batch: &mut Batch<'_>,
    keys: &Bound<'_, PyAny>,
    shape: &mut Shape,
) -> PyResult<()> {
    if keys.hasattr("__arrow_c_array__")? {
        let capsules = keys.call_method0("__arrow_c_array__")?;
        return read_array(batch, keys.py(), &import_array(capsules.cast::<PyTuple>()?)?, shape);
    }
    let capsule = keys.call_method0("__arrow_c_stream__")?;
    let mut stream = Stream::import(capsule.cast::<PyCapsule>()?)?;
    while let Some(array) = stream.next()? {
        read_array(batch, keys.py(), &array, shape)?;
    }
    Ok(())
}

fn read_array(
    batch: &mut Batch<'_>,
    py: Python<'_>,
    array: &dyn Array,
    shape: &mut Shape,
) -> PyResult<()> {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    shape.add_rows(array.len(), nulls.as_ref())?;
    if nulls.is_none() && batch.hashing.width == Width::W64 && batch.hashing.is_exact {
        if let Some(words) = array.as_primitive_opt::<UInt64Type>() {
            return batch.read_words(py, words.values());
        }
        if let Some(words) = array.as_primitive_opt::<Int64Type>() {
            return batch.read_words(py, bytemuck::cast_slice(words.values()));
        }
    }
    let hash = row_hash(array, batch.hashing)?;
    let mut hashes = Vec::new();
    for start in (0..array.len()).step_by(CHUNK) {
        let mut rows = start..(start + CHUNK).min(array.len());
        hashes.clear();
        reserve(&mut hashes, rows.len())?;
        let hashed: PyResult<()> = py.detach(|| {
            rows.try_for_each(|row| {
                if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                    hashes.push(hash(row)?);
                }
                Ok(())
            })
        });
        batch.pass(py, Chunk::Hashes(&hashes))?;
        hashed?;
    }
    Ok(())
}

/// The hash of the key in a row that is not null.
type RowHash<'a> = Box<dyn Fn(usize) -> PyResult<KeyHash> + Send + Sync + 'a>;

fn row_hash(array: &dyn Array, hashing: Hashing) -> PyResult<RowHash<'_>> {
    macro_rules! bytes {
        ($array:expr) => {{
            let array = $array;
            Box::new(move |row| {
                let bytes: &[u8] = array.value(row).as_ref();
                hashing.hash_bytes(bytes)
            })
        }};
    }
    Ok(match array.data_type() {
        DataType::Utf8 => bytes!(array.as_string::<i32>()),
        DataType::LargeUtf8 => bytes!(array.as_string::<i64>()),
        DataType::Utf8View => bytes!(array.as_string_view()),
        DataType::Binary => bytes!(array.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(array.as_binary::<i64>()),
        DataType::BinaryView => bytes!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes!(array.as_fixed_size_binary()),
        DataType::Int8 => integers::<Int8Type>(array, hashing)?,
        DataType::Int16 => integers::<Int16Type>(array, hashing)?,
        DataType::Int32 => integers::<Int32Type>(array, hashing)?,
        DataType::Int64 => integers::<Int64Type>(array, hashing)?,
        DataType::UInt8 => integers::<UInt8Type>(array, hashing)?,
        DataType::UInt16 => integers::<UInt16Type>(array, hashing)?,
        DataType::UInt32 => integers::<UInt32Type>(array, hashing)?,
        DataType::UInt64 => integers::<UInt64Type>(array, hashing)?,
        DataType::Dictionary(..) => dictionary(array, hashing)?,
        // No row has a key.
        DataType::Null => Box::new(|_| Ok(KeyHash::default())),
        DataType::Struct(_) => {
            return Err(PyTypeError::new_err("keys are one column, not a table; pass one column"));
        }
        other => {
            return Err(PyTypeError::new_err(format!(
                "an Arrow array of keys holds strings, bytes or integers, not {other}; cast it"
            )));
        }
    })
}

fn integers<T>(array: &dyn Array, hashing: Hashing) -> PyResult<RowHash<'_>>
where
    T: ArrowPrimitiveType<Native: Into<i128>>,
{
    hashing.check_bits(u32::try_from(8 * size_of::<T::Native>()).unwrap_or(u32::MAX))?;
    let integers = array.as_primitive::<T>();
    #[expect(clippy::cast_possible_truncation, reason = "two's complement")]
    Ok(Box::new(move |row| {
        let wide: i128 = integers.value(row).into();
        Ok(hashing.hash_word(wide.cast_unsigned() as u64))
    }))
}

/// Hashes each value of the dictionary once.
fn dictionary(array: &dyn Array, hashing: Hashing) -> PyResult<RowHash<'_>> {
    let array = array.as_any_dictionary();
    let values = array.values();
    let mut hashes = Vec::new();
    reserve(&mut hashes, values.len())?;
    let hash = row_hash(values, hashing)?;
    let nulls = values.logical_nulls();
    let is_there = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    for row in 0..values.len() {
        hashes.push(if is_there(row) { hash(row)? } else { KeyHash::default() });
    }
    // Without values every row is null.
    let rows = if values.is_empty() { Vec::new() } else { array.normalized_keys() };
    Ok(Box::new(move |row| Ok(hashes[rows[row]])))
}

fn import_array(capsules: &Bound<'_, PyTuple>) -> PyResult<ArrayRef> {
    let (schema, array) = capsules.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: a capsule of this name holds a schema, by the interface. `schema` keeps it alive.
    let schema = unsafe { schema.as_ref() };
    // SAFETY: a capsule of this name holds an array, which moves out and is released by its owner.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    import(array, schema)
}

fn import(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> PyResult<ArrayRef> {
    refuse_extension(schema)?;
    if schema.format() == NULLS {
        // pyarrow gives them a buffer, which `from_ffi` refuses.
        return Ok(Arc::new(NullArray::new(array.len())));
    }
    // SAFETY: whoever made the two vouches that they belong together and are sound.
    let data = unsafe { from_ffi(array, schema) };
    Ok(make_array(data.map_err(raise)?))
}

/// Types of other meaning than their storage are not keys: pandas keeps a period as a number.
fn refuse_extension(schema: &FFI_ArrowSchema) -> PyResult<()> {
    let metadata = schema.metadata().map_err(raise)?;
    match metadata.get(EXTENSION).map(String::as_str) {
        // The storage is what the key is: 16 bytes, or text.
        None | Some("arrow.uuid" | "arrow.json") => Ok(()),
        Some(name) => Err(PyTypeError::new_err(format!(
            "an Arrow array of keys holds strings, bytes or integers, not {name}; cast it"
        ))),
    }
}

/// A stream of arrays of one type.
struct Stream {
    stream: FFI_ArrowArrayStream,
    schema: FFI_ArrowSchema,
}

impl Stream {
    fn import(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name holds a stream, which moves out and is released here.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        let mut stream = Self { stream, schema: FFI_ArrowSchema::empty() };
        let get_schema = stream.stream.get_schema().ok_or_else(released)?;
        // SAFETY: the stream is not released, and the schema is empty.
        let status = unsafe { get_schema(&raw mut stream.stream, &raw mut stream.schema) };
        stream.check(status)?;
        Ok(stream)
    }

    /// The next array; `None` at the end.
    fn next(&mut self) -> PyResult<Option<ArrayRef>> {
        let get_next = self.stream.get_next().ok_or_else(released)?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is not released, and the array is empty.
        let status = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        self.check(status)?;
        if array.is_released() {
            return Ok(None);
        }
        import(array, &self.schema).map(Some)
    }

    /// Raises the error of the stream unless `status` is 0.
    fn check(&mut self, status: c_int) -> PyResult<()> {
        if status == 0 {
            return Ok(());
        }
        let unknown =
            || PyRuntimeError::new_err(format!("the Arrow stream failed: errno {status}"));
        let get_last_error = self.stream.get_last_error().ok_or_else(unknown)?;
        // SAFETY: the stream is not released, and its last call failed.
        let text = unsafe { get_last_error(&raw mut self.stream) };
        let text = NonNull::new(text.cast_mut()).ok_or_else(unknown)?;
        // SAFETY: a string with a zero at its end, which is valid until the next call.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        Err(PyRuntimeError::new_err(format!("the Arrow stream failed: {}", text.to_string_lossy())))
    }
}

fn released() -> PyErr {
    PyValueError::new_err("the Arrow stream was read before; pass a new one")
}
