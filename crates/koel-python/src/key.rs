//! One Python object as a key.
//!
//! | Python | key of Rust |
//! |---|---|
//! | `str` | its UTF-8 bytes, as `str`; bytes that `os.fsdecode` escaped as they were |
//! | `bytes`, `bytearray`, `memoryview` | the bytes, as `[u8]` |
//! | `int` from -2**63 to 2**64 - 1, and numpy integers | 8 bytes, as `i64` or `u64` |
//! | a larger `int` up to 16 bytes | 16 bytes, as `i128` or `u128` |
//! | `tuple` of keys | its elements, each after its length, as a tuple |
//!
//! Anything else is a `TypeError`. That includes `bool`: Python holds `True` for the integer 1, and
//! Rust holds `true` for one byte. Python's own `hash()` is never used, since it differs between
//! processes.
//!
//! Where the application bytes say that keys were made of lines, a text or bytes become a key as
//! they did there (`koel_lines::KeyForm`), and nothing else is one.
//!
//! Cost: a key that is `str`, `int` or `bytes` is hashed where it lies.

use std::ffi::c_int;

use koel::{KeyHash, KeyHasher};
use koel_lines::{KeyForm, NoHost};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyInt, PyMemoryView, PyString, PyTuple};

use crate::error::reserve;

/// Tuples may be nested so deep.
const MAX_DEPTH: u32 = 32;

/// Bits of the integers of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    W8,
    W16,
    W32,
    W64,
}

impl Width {
    pub(crate) fn of(bits: u32) -> PyResult<Self> {
        match bits {
            8 => Ok(Self::W8),
            16 => Ok(Self::W16),
            32 => Ok(Self::W32),
            64 => Ok(Self::W64),
            _ => Err(PyValueError::new_err(format!("width is 8, 16, 32 or 64 bits, not {bits}"))),
        }
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::W8 => 8,
            Self::W16 => 16,
            Self::W32 => 32,
            Self::W64 => 64,
        }
    }

    /// Whether an integer has at most so many bits, with its sign.
    fn holds(self, word: u64, is_negative: bool) -> bool {
        let bits = self.bits();
        if is_negative {
            word.cast_signed() >> (bits - 1) == -1
        } else {
            bits == 64 || word >> bits == 0
        }
    }
}

/// From keys to hashes, as one filter does it.
#[derive(Clone, Copy)]
pub(crate) struct Hashing {
    pub(crate) hasher: KeyHasher,
    pub(crate) width: Width,
    /// How texts become keys; `None` if this version does not know it.
    pub(crate) form: Option<KeyForm>,
    /// Whether every key is its own bytes.
    pub(crate) is_exact: bool,
}

impl Hashing {
    /// For a filter with this hash and these application bytes.
    pub(crate) fn new(hasher: KeyHasher, application: [u8; 8]) -> Self {
        let form = KeyForm::of(application).ok();
        let is_exact = form.is_some_and(KeyForm::is_exact);
        Self { hasher, width: Width::W64, form, is_exact }
    }

    /// How texts become keys.
    pub(crate) fn form(&self) -> PyResult<KeyForm> {
        self.form.ok_or_else(|| PyValueError::new_err(UNKNOWN))
    }

    /// Refuses integers where keys are texts, and those of more bits than the width.
    pub(crate) fn check_bits(&self, bits: u32) -> PyResult<()> {
        if !self.is_exact {
            return Err(self.not_a_text("integers"));
        }
        let width = self.width.bits();
        if bits <= width {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "keys of {bits} bits do not fit into width={width}; make them narrower first"
        )))
    }

    /// The hash of a key.
    #[inline]
    pub(crate) fn hash(&self, key: &Bound<'_, PyAny>) -> PyResult<KeyHash> {
        if !self.is_exact {
            return self.hash_made(key);
        }
        // Most keys are exactly that, which needs no call of Python to find out.
        if let Ok(text) = key.cast_exact::<PyString>() {
            return self.hash_text(text);
        }
        if let Ok(int) = key.cast_exact::<PyInt>() {
            return self.hash_int(int);
        }
        self.hash_other(key)
    }

    /// The hash of a key that is made of a text.
    #[inline(never)]
    fn hash_made(&self, key: &Bound<'_, PyAny>) -> PyResult<KeyHash> {
        let is_text = key.is_instance_of::<PyString>()
            || key.is_instance_of::<PyBytes>()
            || key.is_instance_of::<PyByteArray>()
            || key.is_instance_of::<PyMemoryView>();
        if !is_text {
            return Err(self.not_a_text(&type_name(key)));
        }
        let mut bytes = Vec::new();
        push_key(key, &mut bytes, 0)?;
        self.hash_bytes(&bytes)
    }

    /// The hash of a text or of bytes.
    #[inline]
    pub(crate) fn hash_bytes(&self, bytes: &[u8]) -> PyResult<KeyHash> {
        if self.is_exact {
            return Ok(self.hasher.hash(bytes));
        }
        let key = self.form()?.key(bytes).map_err(no_host)?;
        Ok(self.hasher.hash(&*key))
    }

    #[cold]
    fn not_a_text(&self, what: &str) -> PyErr {
        match self.form() {
            Err(error) => error,
            Ok(_) => PyTypeError::new_err(format!(
                "the keys of this filter were made of lines (see line_options): they are str or \
                 bytes, not {what}"
            )),
        }
    }

    #[inline(never)]
    fn hash_other(&self, key: &Bound<'_, PyAny>) -> PyResult<KeyHash> {
        if let Ok(text) = key.cast::<PyString>() {
            return self.hash_text(text);
        }
        if let Ok(int) = key.cast::<PyInt>() {
            return self.hash_int(int);
        }
        if let Ok(bytes) = key.cast::<PyBytes>() {
            return Ok(self.hasher.hash(bytes.as_bytes()));
        }
        if let Some(int) = as_int(key)? {
            return self.hash_int(&int);
        }
        let mut bytes = Vec::new();
        push_key(key, &mut bytes, 0)?;
        Ok(self.hasher.hash(bytes.as_slice()))
    }

    #[inline]
    fn hash_text(&self, text: &Bound<'_, PyString>) -> PyResult<KeyHash> {
        match text.to_str() {
            Ok(utf8) => Ok(self.hasher.hash(utf8)),
            Err(_) => Ok(self.hasher.hash(escaped(text)?.as_bytes())),
        }
    }

    #[inline]
    fn hash_int(&self, int: &Bound<'_, PyInt>) -> PyResult<KeyHash> {
        match Int::of(int)? {
            Int::Word(word) if self.width == Width::W64 => Ok(self.hasher.hash(&word)),
            Int::Long(bytes) if self.width == Width::W64 => Ok(self.hasher.hash(&bytes)),
            Int::Word(word) if self.width.holds(word, int.lt(0)?) => Ok(self.hash_word(word)),
            _ => {
                let bits = self.width.bits();
                let message = format!("the key {int} does not fit into width={bits} bits");
                Err(PyOverflowError::new_err(message))
            }
        }
    }

    /// The hash of an integer in as many bytes as the width names.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the integer has at most so many bits")]
    pub(crate) fn hash_word(&self, word: u64) -> KeyHash {
        match self.width {
            Width::W8 => self.hasher.hash(&(word as u8)),
            Width::W16 => self.hasher.hash(&(word as u16)),
            Width::W32 => self.hasher.hash(&(word as u32)),
            Width::W64 => self.hasher.hash(&word),
        }
    }
}

/// The bytes of an int, little-endian and in two's complement.
enum Int {
    /// From -2**63 to 2**64 - 1.
    Word(u64),
    /// Beyond that.
    Long([u8; 16]),
}

impl Int {
    #[inline]
    fn of(int: &Bound<'_, PyInt>) -> PyResult<Self> {
        if int.is_instance_of::<PyBool>() {
            return Err(not_a_key(int));
        }
        let mut overflow: c_int = 0;
        // SAFETY: the pointer is that of an int, and this thread holds the GIL.
        let word = unsafe { ffi::PyLong_AsLongLongAndOverflow(int.as_ptr(), &raw mut overflow) };
        if overflow == 0 { Ok(Self::Word(word.cast_unsigned())) } else { Self::of_large(int) }
    }

    /// An int that is not an `i64`.
    fn of_large(int: &Bound<'_, PyInt>) -> PyResult<Self> {
        if let Ok(word) = int.extract::<u64>() {
            return Ok(Self::Word(word));
        }
        let signed = int.extract::<i128>().map(i128::cast_unsigned);
        let Ok(bits) = signed.or_else(|_| int.extract::<u128>()) else {
            return Err(PyOverflowError::new_err(
                "an int of more than 128 bits is not a key; use its to_bytes()",
            ));
        };
        Ok(Self::Long(bits.to_le_bytes()))
    }
}

/// What has `__index__`, such as the integers of numpy, as an int.
#[inline(never)]
fn as_int<'py>(key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyInt>>> {
    if key.is_instance_of::<PyTuple>() || !key.hasattr("__index__")? {
        return Ok(None);
    }
    let int = key.call_method0("__index__").map_err(|_| not_a_key(key))?;
    Ok(Some(int.cast_into::<PyInt>()?))
}

/// The bytes of a text with bytes that are not UTF-8, as Python has file names and arguments
/// (`os.fsdecode`, "surrogateescape").
#[cold]
fn escaped<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"));
    let Ok(bytes) = bytes else {
        return Err(PyTypeError::new_err(
            "a str with a lone surrogate has no UTF-8, and is no key",
        ));
    };
    Ok(bytes.cast_into::<PyBytes>()?)
}

/// Appends the bytes of a key.
fn push_key(key: &Bound<'_, PyAny>, bytes: &mut Vec<u8>, depth: u32) -> PyResult<()> {
    if let Ok(text) = key.cast::<PyString>() {
        match text.to_str() {
            Ok(utf8) => push(bytes, utf8.as_bytes()),
            Err(_) => push(bytes, escaped(text)?.as_bytes()),
        }
    } else if let Ok(data) = key.cast::<PyBytes>() {
        push(bytes, data.as_bytes())
    } else if let Ok(data) = key.cast::<PyByteArray>() {
        push(bytes, &data.to_vec())
    } else if key.is_instance_of::<PyMemoryView>() {
        push(bytes, key.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes())
    } else if let Ok(parts) = key.cast::<PyTuple>() {
        push_tuple(parts, bytes, depth)
    } else if let Ok(int) = key.cast::<PyInt>() {
        push_int(int, bytes)
    } else if let Some(int) = as_int(key)? {
        push_int(&int, bytes)
    } else {
        Err(not_a_key(key))
    }
}

fn push_int(int: &Bound<'_, PyInt>, bytes: &mut Vec<u8>) -> PyResult<()> {
    match Int::of(int)? {
        Int::Word(word) => push(bytes, &word.to_le_bytes()),
        Int::Long(long) => push(bytes, &long),
    }
}

/// Appends each element, after its length in eight bytes.
fn push_tuple(parts: &Bound<'_, PyTuple>, bytes: &mut Vec<u8>, depth: u32) -> PyResult<()> {
    if parts.is_empty() || depth == MAX_DEPTH {
        return Err(PyTypeError::new_err(format!(
            "a tuple that is a key has an element, and at most {MAX_DEPTH} tuples around it"
        )));
    }
    for part in parts {
        let start = bytes.len();
        push(bytes, &[0; 8])?;
        push_key(&part, bytes, depth + 1)?;
        let len = (bytes.len() - start - 8) as u64;
        bytes[start..start + 8].copy_from_slice(&len.to_le_bytes());
    }
    Ok(())
}

fn push(bytes: &mut Vec<u8>, part: &[u8]) -> PyResult<()> {
    reserve(bytes, part.len())?;
    bytes.extend_from_slice(part);
    Ok(())
}

const UNKNOWN: &str = "the application bytes of this filter say how keys were made of lines in a \
                       way that this version does not know; use a later version";

/// A text that is to be a host is none.
#[cold]
pub(crate) fn no_host(error: NoHost<'_>) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn type_name(key: &Bound<'_, PyAny>) -> String {
    let name = key.get_type().fully_qualified_name();
    name.map_or("this object".into(), |name| name.to_string_lossy().into_owned())
}

/// Names the type of what is no key, and the types that are.
#[cold]
fn not_a_key(key: &Bound<'_, PyAny>) -> PyErr {
    let name = type_name(key);
    let advice = match name.as_str() {
        "bool" => "; use int(key)",
        "float" => "; use struct.pack or an int",
        "NoneType" => "; drop missing values",
        "uuid.UUID" => "; use its bytes",
        _ => "",
    };
    PyTypeError::new_err(format!(
        "a key is str, bytes, int or a tuple of these, not {name}{advice}"
    ))
}
