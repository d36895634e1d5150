//! Files and bytes of every class, and so pickle.
//!
//! The bytes are those of docs/FORMAT.md, in memory, in files and in pickles alike.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};

/// Bytes of any object that has some: bytes, bytearray, memoryview, mmap.
pub(crate) fn bytes_of(data: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    if let Ok(bytes) = data.extract::<PyBackedBytes>() {
        return Ok(bytes);
    }
    let view = data.py().get_type::<PyMemoryView>().call1((data,));
    let Ok(view) = view else {
        let name = data.get_type().name()?;
        return Err(PyTypeError::new_err(format!("data is bytes, not {name}")));
    };
    Ok(view.call_method0("tobytes")?.cast_into::<PyBytes>()?.into())
}

/// Gives a class its methods for files and bytes. The arguments are those of `face!`.
macro_rules! file_face {
    ($Face:ident, $Mapped:ident, $name:literal, $new:literal, $add:literal) => {
        #[pymethods]
        impl $Face {
            #[doc = concat!(
                "Saves to a file, in the format that every Koel program reads.\n\n",
                "The file is complete or as it was before, even after a crash. Only its owner\n",
                "can read a new file.\n\n",
                "Raises OSError.\n\n",
                "    >>> import koel, os, tempfile\n",
                "    >>> f = ", $new, "\n",
                "    >>> path = os.path.join(tempfile.mkdtemp(), 'keys.koel')\n",
                "    >>> f.save(path)\n",
                "    >>> koel.", $name, ".open(path) == f\n",
                "    True\n",
            )]
            fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
                let saved = self.contents.read_detached(py, |contents| {
                    with_filter!(contents, filter => filter.save(&path))
                });
                saved.map_err(|error| $crate::error::of_file(error, &path))
            }

            #[doc = concat!(
                "Opens a file that any Koel program saved.\n\n",
                "Reads and checks all of it. With `mmap=True` it takes constant time and no\n",
                "memory of its own: processes share the file's pages, and the filter cannot be\n",
                "changed. Only the header is checked then; `verify` checks the rest. While the\n",
                "file is open, replace it (as `save` does), but do not write into it or cut it.\n\n",
                "Raises OSError, and ValueError if the file is not a sound one of this type.\n\n",
                "    >>> import koel, os, tempfile\n",
                "    >>> f = ", $new, "\n    >>> ", $add, "\n",
                "    >>> path = os.path.join(tempfile.mkdtemp(), 'keys.koel')\n",
                "    >>> f.save(path)\n",
                "    >>> 'ada' in koel.", $name, ".open(path, mmap=True)\n",
                "    True\n",
            )]
            #[classmethod]
            #[pyo3(signature = (path, *, mmap=false))]
            fn open(cls: &Bound<'_, PyType>, path: PathBuf, mmap: bool) -> PyResult<Self> {
                cls.py().detach(|| {
                    if mmap {
                        let mapped = $Mapped::open(&path);
                        return mapped.map(|mapped| Self::hold(Contents::Mapped(mapped)));
                    }
                    let loaded = koel::$Face::load(&path).map(Self::own);
                    loaded.map_err(|error| $crate::error::of_file(error, &path))
                })
            }

            #[doc = concat!(
                "The bytes of its file.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> koel.", $name, ".from_bytes(f.to_bytes()) == f\n",
                "    True\n",
            )]
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                Ok(PyBytes::new(py, &self.image(py)?))
            }

            #[doc = concat!(
                "Reads the bytes of a file, and checks all of them.\n\n",
                "Raises ValueError if they are not a sound one of this type.\n\n",
                "    >>> import koel\n",
                "    >>> koel.", $name, ".from_bytes(b'junk')\n",
                "    Traceback (most recent call last):\n",
                "    ValueError: not a Koel filter\n",
            )]
            #[classmethod]
            fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
                let bytes = $crate::file::bytes_of(data)?;
                cls.py().detach(|| koel::$Face::from_bytes(&bytes)).map(Self::own).or_raise()
            }

            #[doc = concat!(
                "Checks every byte of a file opened with `mmap=True`.\n\n",
                "Raises ValueError with the first fault.\n\n",
                "    >>> import koel\n",
                "    >>> f = ", $new, "\n",
                "    >>> f.verify()\n",
            )]
            fn verify(&self, py: Python<'_>) -> PyResult<()> {
                let verified = self.contents.read_detached(py, |contents| {
                    with_filter!(contents, filter => filter.verify())
                });
                verified.or_raise()
            }

            fn __reduce__<'py>(
                this: &Bound<'py, Self>,
            ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
                let py = this.py();
                let path = this.get().contents.read(py, |contents| match contents {
                    Contents::Owned(_) => None,
                    Contents::Mapped(mapped) => Some(mapped.borrow_owner().path().to_owned()),
                });
                let (name, argument) = match path {
                    Some(path) => ("_open_mapped", path.into_bound_py_any(py)?),
                    None => ("from_bytes", this.get().to_bytes(py)?.into_any()),
                };
                Ok((this.get_type().getattr(name)?, PyTuple::new(py, [argument])?))
            }

            /// What a pickle of a mapped filter calls.
            #[classmethod]
            fn _open_mapped(cls: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
                Self::open(cls, path, true)
            }
        }

        impl $Face {
            fn image(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
                let image = self.contents.read_detached(py, |contents| {
                    with_filter!(contents, filter => filter.try_to_bytes())
                });
                image.or_raise()
            }
        }
    };
}
pub(crate) use file_face;
