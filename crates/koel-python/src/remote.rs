//! `koel.open_remote`: a filter that is asked where it lies, by reading ranges of its bytes.
//!
//! The library says which ranges answer ([`koel::Remote`]); an object of the user reads them. The
//! header is read again behind the ranges of each batch, so that a file that was replaced is
//! noticed whatever the object reads from.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use koel::{KeyHash, Remote, RemoteError, RemoteOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::batch::with_keys;
use crate::error::{IntoException, OrRaise};
use crate::file::bytes_of;
use crate::key::{Hashing, Width, no_host};
use crate::many;

impl IntoException for RemoteError {
    fn into_exception(self) -> PyErr {
        PyValueError::new_err(self.to_string())
    }
}

/// Opens a filter where it lies: a file on a web server, in an object store, or of any other kind
/// whose ranges can be read. Nothing else of it is read.
///
/// `reader` has a method `read_range(start, end)`, or is a function of these two numbers, and
/// returns the bytes from `start` to before `end`. If it also has `read_ranges(ranges)`, which gets
/// a list of such pairs and returns a list of bytes, a batch is read with one call of it.
///
/// Parameters
/// ----------
/// reader : object or function
///     Reads ranges of the file. Called by the thread that asks.
/// page : int
///     Read whole pages of so many bytes, so that the server learns no more than the page.
/// gap : int
///     Ranges with at most so many bytes between them are read as one.
///
/// Raises ValueError if it is no filter, and what the reader raises.
///
///     >>> import koel
///     >>> f = koel.CuckooFilter(1000)
///     >>> f.add("ada")
///     True
///     >>> file = f.to_bytes()
///     >>> remote = koel.open_remote(lambda start, end: file[start:end])
///     >>> "ada" in remote, "mary" in remote
///     (True, False)
///     >>> remote.requests, remote.bytes_read
///     (5, 1008)
///
/// With obstore: `koel.open_remote(lambda a, b: obstore.get_range(store, path, start=a, end=b))`.
/// With fsspec: `koel.open_remote(lambda a, b: filesystem.cat_file(path, start=a, end=b))`.
#[pyfunction]
#[pyo3(signature = (reader, *, page=1, gap=RemoteOptions::default().gap))]
pub(crate) fn open_remote(
    py: Python<'_>,
    reader: Py<PyAny>,
    page: u64,
    gap: u64,
) -> PyResult<RemoteFilter> {
    let reader = Reader { reader, requests: AtomicU64::new(0), bytes: AtomicU64::new(0) };
    let header = reader.read_one(py, &Remote::HEADER)?;
    let answers = Remote::tail(&header).or_raise()?;
    let tail = if answers.is_empty() { Vec::new() } else { reader.read_one(py, &answers)? };
    let remote = Remote::open(&header, &tail).or_raise()?;
    let options = RemoteOptions { page, gap, ..RemoteOptions::default() };
    let hashing = Hashing::new(remote.hasher(), remote.application());
    Ok(RemoteFilter { remote, options, hashing, reader })
}

/// A filter that is asked where it lies: see `koel.open_remote`.
///
/// It answers as the whole filter would, with two short reads for a key, and one more that tells
/// whether the file was replaced. Then a ValueError says so.
///
///     >>> import koel
///     >>> file = koel.CuckooFilter(1000).to_bytes()
///     >>> koel.open_remote(lambda start, end: file[start:end])
///     <koel.RemoteFilter: 0 keys in 2048 bytes, of which 192 were read>
#[pyclass(module = "koel", frozen, weakref)]
pub(crate) struct RemoteFilter {
    remote: Remote,
    options: RemoteOptions,
    hashing: Hashing,
    reader: Reader,
}

/// What reads ranges, and how much it has read.
struct Reader {
    reader: Py<PyAny>,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Reader {
    fn read_one(&self, py: Python<'_>, range: &Range<u64>) -> PyResult<Vec<u8>> {
        let reader = self.reader.bind(py);
        let bytes = if reader.hasattr("read_range")? {
            reader.call_method1("read_range", (range.start, range.end))?
        } else {
            reader.call1((range.start, range.end))?
        };
        self.take(range, &bytes)
    }

    fn read(&self, py: Python<'_>, ranges: &[Range<u64>]) -> PyResult<Vec<Vec<u8>>> {
        let reader = self.reader.bind(py);
        if ranges.is_empty() || !reader.hasattr("read_ranges")? {
            return ranges.iter().map(|range| self.read_one(py, range)).collect();
        }
        let pairs: Vec<_> = ranges.iter().map(|range| (range.start, range.end)).collect();
        let all = reader.call_method1("read_ranges", (pairs,))?.try_iter()?;
        let all: Vec<_> = all.collect::<PyResult<_>>()?;
        if all.len() != ranges.len() {
            let message = format!("read_ranges returned {} of {} ranges", all.len(), ranges.len());
            return Err(PyValueError::new_err(message));
        }
        ranges.iter().zip(all).map(|(range, bytes)| self.take(range, &bytes)).collect()
    }

    /// Counts what was read, and makes sure that it is the whole range.
    fn take(&self, range: &Range<u64>, bytes: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let bytes = bytes_of(bytes)?.to_vec();
        let got = bytes.len() as u64;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(got, Ordering::Relaxed);
        if got == range.end - range.start {
            return Ok(bytes);
        }
        let (start, end) = (range.start, range.end);
        Err(PyValueError::new_err(format!(
            "read_range({start}, {end}) returned {got} bytes: the file is not a whole filter, or the \
             reader cuts or compresses it"
        )))
    }
}

impl RemoteFilter {
    fn ask<K: koel::Key>(&self, py: Python<'_>, keys: &[K], found: &mut [bool]) -> PyResult<()> {
        let batch = self.remote.ask(keys, self.options).or_raise()?;
        let fetched = self.reader.read(py, batch.ranges())?;
        self.remote.answer(&batch, &fetched, found).or_raise()?;
        let is_same = batch.ranges().is_empty()
            || self.remote.is_header(&self.reader.read_one(py, &Remote::HEADER)?);
        let replaced = || PyValueError::new_err("the file was replaced; open it again");
        if is_same { Ok(()) } else { Err(replaced()) }
    }
}

#[pymethods]
impl RemoteFilter {
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut found = [false];
        self.ask(key.py(), &[self.hashing.hash(key)?], &mut found)?;
        Ok(found[0])
    }

    /// Whether each of many keys is in, as `CuckooFilter.contains_many` says it. Each 262,144 keys
    /// are one batch, whose near ranges are read as one.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).contains_many(['ada', 7])
    ///     array([False, False])
    #[pyo3(signature = (keys, *, width=64))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        width: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let hashing = Hashing { width: Width::of(width)?, ..self.hashing };
        many::answers(keys, hashing, |py, chunk, found: &mut [bool]| {
            with_keys!(chunk, keys => self.ask(py, keys, found))?;
            Ok(())
        })
    }

    /// Whether the host of a URL, or one of its parent domains, is in. Where keys are not hosts,
    /// the text is also looked up as it is. One batch.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> remote = koel.open_remote(lambda start, end: file[start:end])
    ///     >>> remote.contains_url('https://example.org')
    ///     False
    fn contains_url(&self, py: Python<'_>, url: &str) -> PyResult<bool> {
        let (form, hasher) = (self.hashing.form()?, self.hashing.hasher);
        let keys = form.keys_of_url(url.as_bytes());
        let keys: Vec<KeyHash> = keys.iter().map(|key| hasher.hash(&**key)).collect();
        let mut found = vec![false; keys.len()];
        self.ask(py, &keys, &mut found)?;
        if found.contains(&true) {
            return Ok(true);
        }
        form.finds_url(url.as_bytes(), |_| false).map_err(no_host)
    }

    /// The number of keys that were added and not removed, counting each time.
    fn __len__(&self) -> PyResult<usize> {
        usize::try_from(self.remote.len()).map_err(|_| PyValueError::new_err("too many keys"))
    }

    fn __bool__(&self) -> bool {
        !self.remote.is_empty()
    }

    /// The options of `koel build` without which a text is another key: see
    /// `CuckooFilter.line_options`.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).line_options
    ///     ''
    #[getter]
    fn line_options(&self) -> Option<String> {
        self.hashing.form().ok().map(koel_lines::KeyForm::words)
    }

    /// The number of distinct keys it was built for.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).capacity
    ///     1000
    #[getter]
    fn capacity(&self) -> u64 {
        self.remote.capacity()
    }

    /// The false-positive rate it was built for.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).error_rate
    ///     0.001
    #[getter]
    fn error_rate(&self) -> f64 {
        self.remote.requested_false_positive_rate()
    }

    /// The false-positive rate as it is now.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).false_positive_rate
    ///     0.0
    #[getter]
    fn false_positive_rate(&self) -> f64 {
        self.remote.false_positive_rate()
    }

    /// The number of corrections.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).corrections
    ///     0
    #[getter]
    fn corrections(&self) -> u64 {
        self.remote.corrections()
    }

    /// The bytes of the whole file.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).nbytes == len(file)
    ///     True
    #[getter]
    fn nbytes(&self) -> u64 {
        self.remote.size_in_bytes()
    }

    /// The ranges that were read so far.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).requests
    ///     1
    #[getter]
    fn requests(&self) -> u64 {
        self.reader.requests.load(Ordering::Relaxed)
    }

    /// The bytes that were read so far.
    ///
    ///     >>> import koel
    ///     >>> file = koel.CuckooFilter(1000).to_bytes()
    ///     >>> koel.open_remote(lambda start, end: file[start:end]).bytes_read
    ///     192
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.reader.bytes.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        let (keys, bytes) = (self.remote.len(), self.remote.size_in_bytes());
        format!(
            "<koel.RemoteFilter: {keys} keys in {bytes} bytes, of which {} were read>",
            self.bytes_read()
        )
    }
}
