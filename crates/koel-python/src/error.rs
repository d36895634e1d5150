//! Errors of the library as Python exceptions, with the library's sentences.
//!
//! | error | exception |
//! |---|---|
//! | no room for a key | `koel.Full` |
//! | wrong settings, bytes that are no filter, filters that do not match | `ValueError` |
//! | members that would be refuted | `ValueError` |
//! | a count beyond 64 bits | `OverflowError` |
//! | a file that cannot be read or written | the `OSError` of its errno, with the path |
//! | no memory | `MemoryError` |

use std::io;
use std::path::Path;

use koel::{
    BuildError, FileError, FullError, ImageError, InsertError, JumpError, MemoryError, MergeError,
    PatchError, RefuteError, ValueError,
};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyMemoryError, PyOSError, PyOverflowError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(
    koel,
    Full,
    PyException,
    "A filter that does not grow has no room for the key. Nothing was changed by that key."
);

/// What becomes an exception.
pub(crate) trait IntoException {
    fn into_exception(self) -> PyErr;
}

/// A result of the library as one of Python.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: IntoException> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(E::into_exception)
    }
}

impl IntoException for FullError {
    fn into_exception(self) -> PyErr {
        match self {
            Self::NoMemory => PyMemoryError::new_err(self.to_string()),
            Self::Overflow => PyOverflowError::new_err(self.to_string()),
            _ => Full::new_err(self.to_string()),
        }
    }
}

impl IntoException for JumpError {
    fn into_exception(self) -> PyErr {
        PyValueError::new_err(self.to_string())
    }
}

impl IntoException for BuildError {
    fn into_exception(self) -> PyErr {
        match self {
            Self::NoMemory => PyMemoryError::new_err(self.to_string()),
            Self::Full(full) => full.into_exception(),
            Self::Rate { rate } => PyValueError::new_err(format!(
                "error_rate is above 0 and below 1, such as 0.001, not {rate:?}"
            )),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}

impl IntoException for ImageError {
    fn into_exception(self) -> PyErr {
        match self {
            Self::NoMemory => PyMemoryError::new_err(self.to_string()),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}

impl IntoException for MergeError {
    fn into_exception(self) -> PyErr {
        match self {
            Self::NoMemory => PyMemoryError::new_err(self.to_string()),
            Self::Full(FullError::Overflow) => PyOverflowError::new_err(self.to_string()),
            Self::Full(_) => Full::new_err(self.to_string()),
            Self::Incompatible { field } => PyValueError::new_err(format!(
                "the filters differ in {field}; build both with the same arguments"
            )),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}

impl IntoException for PatchError {
    fn into_exception(self) -> PyErr {
        match self {
            Self::NoMemory => PyMemoryError::new_err(self.to_string()),
            Self::Full(full) => full.into_exception(),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}

impl IntoException for RefuteError {
    fn into_exception(self) -> PyErr {
        match self {
            Self::Full(full) => full.into_exception(),
            Self::Members { asked, reported, expected } => PyValueError::new_err(format!(
                "{reported} of {asked} keys are reported, and chance explains about {expected}: \
                 some seem to be in, and would be hidden; leave those out, or pass force=True if \
                 none was added"
            )),
            error => PyValueError::new_err(error.to_string()),
        }
    }
}

impl IntoException for InsertError {
    fn into_exception(self) -> PyErr {
        match self {
            Self::Full(full) => full.into_exception(),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}

impl IntoException for ValueError {
    fn into_exception(self) -> PyErr {
        PyValueError::new_err(self.to_string())
    }
}

impl IntoException for MemoryError {
    fn into_exception(self) -> PyErr {
        PyMemoryError::new_err(self.to_string())
    }
}

/// The exception for a file, which names its path.
pub(crate) fn of_file(error: FileError, path: &Path) -> PyErr {
    match error {
        FileError::Io { error, .. } => of_io(&error, path),
        FileError::Image { error: ImageError::NoMemory, .. } => {
            ImageError::NoMemory.into_exception()
        }
        FileError::Image { path: None, error } => {
            PyValueError::new_err(format!("{}: {error}", path.display()))
        }
        error => PyValueError::new_err(error.to_string()),
    }
}

/// `OSError(errno, message, path)`, from which Python makes `FileNotFoundError` and the like.
pub(crate) fn of_io(error: &io::Error, path: &Path) -> PyErr {
    let Some(code) = error.raw_os_error() else {
        return PyOSError::new_err(format!("{}: {error}", path.display()));
    };
    let text = error.to_string();
    let message = text.split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((code, message, path.as_os_str().to_owned()))
}

/// No memory for `bytes` of answers or hashes.
pub(crate) fn no_memory(bytes: usize) -> PyErr {
    PyMemoryError::new_err(format!("no memory for {bytes} bytes; pass fewer keys at a time"))
}

/// A filter that reads a memory map cannot be changed.
pub(crate) fn read_only() -> PyErr {
    PyValueError::new_err(
        "opened with mmap=True, so it cannot be changed; use its copy(), or open it without mmap",
    )
}

/// Why `__iter__` fails.
pub(crate) fn no_keys() -> PyErr {
    PyTypeError::new_err("a filter does not store its keys, so it cannot list them")
}

/// A `Vec` with room for `more` further elements, or an exception.
pub(crate) fn reserve<T>(vector: &mut Vec<T>, more: usize) -> PyResult<()> {
    vector.try_reserve(more).map_err(|_| no_memory(more.saturating_mul(size_of::<T>())))
}
