//! `koel.FilterPlan`: one filter, built in pieces by many processes (docs/CLUSTER.md).
//!
//! Everything long runs without the GIL, in steps of some hundred milliseconds. Between two steps
//! Python handles its signals, so Ctrl-C stops it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use koel::{FileError, KeyHash, Part, PieceError, PiecePlan};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyTuple, PyType};

use crate::answer::Shape;
use crate::batch::{Batch, Chunk};
use crate::error::{Full, IntoException, OrRaise, of_file, reserve};
use crate::file::bytes_of;
use crate::filter::CuckooFilter;
use crate::key::{Hashing, Width};
use crate::settings::{Settings, Whole, prefer};
use crate::source;

/// Keys that are split at once.
const BLOCK: usize = 1 << 22;

/// A filter that many processes build in pieces, such as the tasks of Spark or Dask.
///
///     >>> import koel
///     >>> plan = koel.FilterPlan(1_000_000, error_rate=0.001)
///     >>> parts = plan.split(["ada", "mary"]) + plan.split(["grace"])
///     >>> seen = plan.join(plan.build(parts), keys=3)
///     >>> "ada" in seen, len(seen)
///     (True, 3)
///
/// Each process makes the same plan, or gets it as a pickle. It splits the keys that it has, and
/// sends each part to the process that builds its segment. The pieces are joined, or saved as a
/// file. The bytes depend on the keys only: not on how they were divided, nor on a task that ran
/// twice.
///
/// Parameters
/// ----------
/// capacity : int
///     The number of distinct keys to make room for. They always fit.
/// error_rate : float
///     The false-positive rate of the full filter, above 0 and below 1.
/// multi : bool
///     Add a key each time that it comes, as `CuckooFilter.add` does with `multi=True`. Otherwise
///     a key is added once.
/// grow : bool
///     Let the finished filter grow beyond the capacity.
/// prefer : str
///     "small" (fewest bits per key) or "fast" (fewest instructions).
/// seed : int, optional
///     Seed of the hash function XXH3-64.
/// secret : bytes, optional
///     16 secret bytes, to hash keys with SipHash-1-3. **The pickles of the plan and all pieces
///     contain it.**
#[pyclass(module = "koel", frozen)]
pub(crate) struct FilterPlan {
    plan: PiecePlan,
    hashing: Hashing,
    error_rate: f64,
    arguments: Arguments,
}

/// What a copy is made from.
struct Arguments {
    multi: bool,
    grow: bool,
    prefer: String,
    seed: Option<u64>,
    secret: Option<PyBackedBytes>,
}

#[pymethods]
impl FilterPlan {
    #[new]
    #[pyo3(signature = (
        capacity, error_rate=0.001, *, multi=false, grow=false, prefer="small", seed=None,
        secret=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::settings::capacity)] capacity: Whole,
        error_rate: f64,
        multi: bool,
        grow: bool,
        prefer: &str,
        seed: Option<Whole>,
        secret: Option<PyBackedBytes>,
    ) -> PyResult<Self> {
        let copied = secret.as_ref().map(|secret| PyBytes::new(py, secret).into());
        let settings = Settings { capacity, grow, grow_from: None, seed, secret: copied };
        let builder = settings.hashing(koel::CuckooFilter::builder(capacity.0, error_rate))?;
        let builder = builder.prefer(self::prefer(prefer)?);
        let builder = if grow { builder.growable() } else { builder };
        let plan = builder.pieces().or_raise()?;
        let plan = if multi { plan } else { plan.unique() };
        let seed = seed.map(|Whole(seed)| seed);
        let arguments = Arguments { multi, grow, prefer: prefer.to_owned(), seed, secret };
        Ok(Self { plan, hashing: Hashing::new(plan.hasher(), [0; 8]), error_rate, arguments })
    }

    /// Splits keys by segment: a list of `(segment, part)`, where a part is bytes.
    ///
    /// Takes the keys, and `width`, as `CuckooFilter.contains_many` does. Skips missing keys
    /// (null). Send all parts of a segment to one process. There is one part for each segment and
    /// four million keys, so pass as many keys at a time as there is memory for.
    ///
    ///     >>> import koel
    ///     >>> plan = koel.FilterPlan(1000)
    ///     >>> [(segment, part)] = plan.split(["ada", "mary"])
    ///     >>> segment, part[:8]
    ///     (0, b'koelpart')
    #[pyo3(signature = (keys, *, width=64))]
    fn split<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        width: u32,
    ) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
        let hashing = Hashing { width: Width::of(width)?, ..self.hashing };
        let (mut hashes, mut parts) = (Vec::new(), Vec::new());
        let mut work = |py: Python<'_>, chunk: Chunk<'_>| {
            py.detach(|| {
                self.push(&mut hashes, chunk)?;
                if hashes.len() >= BLOCK {
                    self.split_into(&mut parts, &mut hashes)
                } else {
                    Ok(())
                }
            })
        };
        source::read(&mut Batch { hashing, work: &mut work }, keys, &mut Shape::flat())?;
        let py = keys.py();
        py.detach(|| self.split_into(&mut parts, &mut hashes))?;
        Ok(parts.iter().map(|part| (part.segment(), PyBytes::new(py, part.as_ref()))).collect())
    }

    /// Builds segments from their parts: a list of `(segment, piece)`, where a piece is bytes.
    ///
    /// `parts` yields what `split` returned, in any order: all parts of some segments. To make the
    /// piece of an empty segment, give its number as `segments`, with those of the others.
    ///
    /// Raises ValueError for what is damaged or of another plan, and `koel.Full` if more distinct
    /// keys have come than the plan has room for.
    ///
    ///     >>> import koel
    ///     >>> plan = koel.FilterPlan(1000)
    ///     >>> [(segment, piece)] = plan.build(plan.split(["ada", "mary"]))
    ///     >>> plan.build([], segments=range(plan.segments))[0][0]
    ///     0
    #[pyo3(signature = (parts, *, segments=None))]
    fn build<'py>(
        &self,
        parts: &Bound<'py, PyAny>,
        segments: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
        let py = parts.py();
        let mut of_segment = BTreeMap::<u64, Vec<PyBackedBytes>>::new();
        for part in parts.try_iter()? {
            let (segment, part) = part?.extract::<(u64, Bound<'py, PyAny>)>()?;
            let of_it = of_segment.entry(segment).or_default();
            reserve(of_it, 1)?;
            of_it.push(bytes_of(&part)?);
        }
        for segment in
            segments.map(|segments| segments.try_iter()).transpose()?.into_iter().flatten()
        {
            of_segment.entry(segment?.extract()?).or_default();
        }
        let mut pieces = Vec::new();
        for (segment, parts) in of_segment {
            let piece = py.detach(|| self.plan.build(segment, &parts)).or_raise()?;
            pieces.push((segment, PyBytes::new(py, piece.as_ref())));
            py.check_signals()?;
        }
        Ok(pieces)
    }

    /// Saves the filter of all pieces as a file, with the memory of one piece. Returns the number
    /// of keys that went into the parts, with those that came twice.
    ///
    /// `pieces` yields pieces, or what `build` returned, in any order. Give that number as `keys`
    /// if it is known: then a part or a piece that was lost is noticed, and segments without a
    /// piece are empty. Without it, each segment must have a piece.
    ///
    /// Raises ValueError if a piece is missing, damaged, of another plan, or contradicts another
    /// one, and OSError. The file is complete, or as it was before.
    ///
    ///     >>> import koel, os, tempfile
    ///     >>> plan = koel.FilterPlan(1000)
    ///     >>> path = os.path.join(tempfile.mkdtemp(), 'keys.koel')
    ///     >>> plan.save(plan.build(plan.split(["ada", "mary", "ada"])), path, keys=3)
    ///     3
    ///     >>> len(koel.CuckooFilter.open(path))
    ///     2
    #[pyo3(signature = (pieces, path, *, keys=None))]
    fn save(&self, pieces: &Bound<'_, PyAny>, path: PathBuf, keys: Option<u64>) -> PyResult<u64> {
        let py = pieces.py();
        let pieces = Pieces(pieces.try_iter()?.unbind());
        py.detach(|| self.plan.save(&path, pieces, keys)).map_err(|error| match error {
            SaveError::Python(error) => error,
            SaveError::File(error) => of_file(error, &path),
        })
    }

    /// The filter of all pieces, in memory. Takes `pieces` and `keys` as `save` does.
    ///
    ///     >>> import koel
    ///     >>> plan = koel.FilterPlan(1000)
    ///     >>> "ada" in plan.join(plan.build(plan.split(["ada"])))
    ///     True
    #[pyo3(signature = (pieces, *, keys=None))]
    fn join(&self, pieces: &Bound<'_, PyAny>, keys: Option<u64>) -> PyResult<CuckooFilter> {
        let py = pieces.py();
        let (mut pieces, mut failed) = (Pieces(pieces.try_iter()?.unbind()), None);
        let joined = py.detach(|| {
            let each = std::iter::from_fn(|| match pieces.next()? {
                Ok(piece) => Some(piece),
                Err(SaveError::Python(error)) => {
                    failed = Some(error);
                    None
                }
                Err(SaveError::File(_)) => None,
            });
            self.plan.join(each, keys)
        });
        failed.map_or(Ok(()), Err)?;
        joined.map(CuckooFilter::own).or_raise()
    }

    /// The number of segments: how many processes can build at once.
    ///
    ///     >>> import koel
    ///     >>> koel.FilterPlan(10_000_000_000).segments
    ///     8192
    #[getter]
    fn segments(&self) -> u64 {
        self.plan.segments()
    }

    /// Distinct keys that will fit.
    ///
    ///     >>> import koel
    ///     >>> koel.FilterPlan(1000).capacity
    ///     1000
    #[getter]
    fn capacity(&self) -> u64 {
        self.plan.capacity()
    }

    /// The false-positive rate that was asked for.
    ///
    ///     >>> import koel
    ///     >>> koel.FilterPlan(1000).error_rate
    ///     0.001
    #[getter]
    fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// Whether a key is added each time that it comes.
    ///
    ///     >>> import koel
    ///     >>> koel.FilterPlan(1000).multi
    ///     False
    #[getter]
    fn multi(&self) -> bool {
        self.arguments.multi
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().plan == self.plan)
    }

    fn __repr__(&self) -> String {
        let (capacity, rate) = (self.plan.capacity(), self.error_rate);
        format!("<koel.FilterPlan: {capacity} keys at {rate}, {} segments>", self.plan.segments())
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, plan) = (this.py(), this.get());
        let Arguments { multi, grow, prefer, seed, secret } = &plan.arguments;
        let keywords = PyDict::new(py);
        keywords.set_item("multi", multi)?;
        keywords.set_item("grow", grow)?;
        keywords.set_item("prefer", prefer)?;
        keywords.set_item("seed", seed)?;
        let secret = secret.as_ref().map(|secret| PyBytes::new(py, secret));
        keywords.set_item("secret", secret)?;
        let arguments = (plan.plan.capacity(), plan.error_rate, keywords);
        Ok((this.get_type().getattr("_of")?, arguments.into_pyobject(py)?))
    }

    /// The plan of these arguments, for pickle.
    #[classmethod]
    fn _of<'py>(
        cls: &Bound<'py, PyType>,
        capacity: u64,
        error_rate: f64,
        keywords: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        cls.call((capacity, error_rate), Some(keywords))
    }
}

impl FilterPlan {
    /// Appends the hashes of a chunk of keys.
    fn push(&self, hashes: &mut Vec<KeyHash>, chunk: Chunk<'_>) -> PyResult<()> {
        reserve(hashes, chunk.len())?;
        match chunk {
            Chunk::Words(words) => {
                hashes.extend(words.iter().map(|word| self.hashing.hasher.hash(word)));
            }
            Chunk::Hashes(more) => hashes.extend_from_slice(more),
        }
        Ok(())
    }

    fn split_into(&self, parts: &mut Vec<Part>, hashes: &mut Vec<KeyHash>) -> PyResult<()> {
        parts.extend(self.plan.split(hashes).or_raise()?);
        hashes.clear();
        Ok(())
    }
}

impl IntoException for PieceError {
    fn into_exception(self) -> PyErr {
        match self {
            Self::NoMemory => koel::BuildError::NoMemory.into_exception(),
            Self::Full { .. } | Self::TooMany(_) => Full::new_err(self.to_string()),
            _ => pyo3::exceptions::PyValueError::new_err(self.to_string()),
        }
    }
}

/// The pieces that an iterator of Python yields, each by itself or after its segment.
struct Pieces(Py<PyIterator>);

impl Iterator for Pieces {
    type Item = Result<PyBackedBytes, SaveError>;

    fn next(&mut self) -> Option<Self::Item> {
        Python::attach(|py| {
            if let Err(error) = py.check_signals() {
                return Some(Err(SaveError::Python(error)));
            }
            let piece = self.0.bind(py).clone().next()?;
            let bytes = piece.and_then(|piece| match piece.cast::<PyTuple>() {
                Ok(pair) => bytes_of(&pair.get_item(pair.len().saturating_sub(1))?),
                Err(_) => bytes_of(&piece),
            });
            Some(bytes.map_err(SaveError::Python))
        })
    }
}

/// An exception of the iterator, or an error of the file.
enum SaveError {
    Python(PyErr),
    File(FileError),
}

impl From<FileError> for SaveError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}
