//! `koel.CuckooFilter`: a set of keys in a few bits per key.

use std::path::PathBuf;
use std::sync::Arc;

use koel::{Key, KeyHash, KeyHasher, Store};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::batch::with_keys;
use crate::body::{Body, MappedFilter, with_filter};
use crate::compare::{Comparison, Estimate};
use crate::counted::{counted_face, removal_face};
use crate::error::{OrRaise, read_only, reserve};
use crate::face::face;
use crate::file::bytes_of;
use crate::key::{Hashing, Width};
use crate::long;
use crate::many::{self, Stopped};
use crate::settings::{Settings, Whole, prefer};
use crate::shared::Shared;
use crate::source::refuse_mapping;

/// A set of keys in a few bits per key, from which keys can be removed.
///
///     >>> import koel
///     >>> seen = koel.CuckooFilter(1_000_000, error_rate=0.001)
///     >>> seen.add("ada")
///     True
///     >>> "ada" in seen, "mary" in seen
///     (True, False)
///     >>> seen.discard("ada")
///     True
///
/// A key that was added is always found. An absent key is reported as present with a probability of
/// at most `error_rate`, or 1.35 times that once `grow=True` made it grow. A filter does not store
/// its keys, so it cannot list them.
///
/// Parameters
/// ----------
/// capacity : int
///     The number of distinct keys to make room for. They always fit.
/// error_rate : float
///     The false-positive rate of the full filter, above 0 and below 1.
/// grow : bool
///     Grow beyond the capacity instead of raising `koel.Full`.
/// grow_from : int, optional
///     Start with room for so many keys, and grow to the capacity and beyond.
/// prefer : str
///     "small" (fewest bits per key) or "fast" (fewest instructions).
/// seed : int, optional
///     Seed of the hash function XXH3-64. Filters with different seeds cannot be merged.
/// secret : bytes, optional
///     16 secret bytes. Keys are then hashed with SipHash-1-3, for keys that an adversary may
///     choose. Files contain the secret.
///
/// Keys are str, bytes, int, or tuples of these. A str counts as its UTF-8 bytes, an int as eight
/// bytes. The same keys in the same order give the same file in Rust and here.
///
/// **Remove only keys that were added**: the removal of another key may remove a key with the same
/// fingerprint. Unless `multi=True`, `add` returns False for a key whose fingerprint is in already,
/// and does not add it: that key is absent once the other key is removed. So add keys with
/// `multi=True` if you will remove some.
///
/// Threads may share a filter. Lookups run side by side, and changes one after the other.
#[pyclass(module = "koel", frozen, weakref)]
pub(crate) struct CuckooFilter {
    contents: Arc<Shared<Contents>>,
    hashing: Hashing,
}

face!(
    CuckooFilter,
    MappedFilter,
    "CuckooFilter",
    "koel.CuckooFilter(1000)",
    "f.update(['ada'])\n    1"
);

removal_face!(CuckooFilter, "koel.CuckooFilter(1000)", "f.update(['ada'])\n    1", "one copy of ");
counted_face!(CuckooFilter, "CuckooFilter");

#[pymethods]
impl CuckooFilter {
    #[new]
    #[pyo3(signature = (
        capacity, error_rate=0.001, *, grow=false, grow_from=None, prefer="small", seed=None,
        secret=None
    ))]
    fn new(
        #[pyo3(from_py_with = crate::settings::capacity)] capacity: Whole,
        error_rate: f64,
        grow: bool,
        grow_from: Option<Whole>,
        prefer: &str,
        seed: Option<Whole>,
        secret: Option<PyBackedBytes>,
    ) -> PyResult<Self> {
        let settings = Settings { capacity, grow, grow_from, seed, secret };
        let mut builder = settings.hashing(koel::CuckooFilter::builder(capacity.0, error_rate))?;
        builder = builder.prefer(self::prefer(prefer)?);
        if let Some(keys) = settings.first_keys()? {
            builder = builder.grow_from(keys);
        }
        builder.build().map(Self::own).or_raise()
    }

    /// Adds a key. Returns False, and changes nothing, if the filter reports it as present.
    ///
    /// With `multi=True` it always adds, and a key that was added twice must be removed twice.
    ///
    /// Raises `koel.Full`, and TypeError for what is not a key.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.CuckooFilter(1000)
    ///     >>> seen.add("ada"), seen.add("ada"), seen.add("ada", multi=True)
    ///     (True, False, True)
    ///     >>> seen.count("ada")
    ///     2
    #[pyo3(signature = (key, *, multi=false))]
    fn add(&self, key: &Bound<'_, PyAny>, multi: bool) -> PyResult<bool> {
        let hash = self.hashing.hash(key)?;
        self.contents.write(key.py(), |contents| {
            let filter = contents.owned()?;
            if multi {
                return filter.insert(&hash).map(|()| true).or_raise();
            }
            filter.insert_unique(&hash).or_raise()
        })
    }

    /// Adds many keys, as `add` does for each in order. Returns which were added, as an array of
    /// bool in the shape of the keys. A key that comes twice is new the first time only.
    ///
    /// Takes the keys, and `width`, as `contains_many` does. Raises `koel.Full` at the first key
    /// that finds no room. Whatever it raises, the keys before that one are in: `done` of the
    /// exception says how many, and `answers` has their answers.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.CuckooFilter(1000)
    ///     >>> seen.add_many(["ada", "mary", "ada"])
    ///     array([ True,  True, False])
    #[pyo3(signature = (keys, *, width=64))]
    fn add_many<'py>(&self, keys: &Bound<'py, PyAny>, width: u32) -> PyResult<Bound<'py, PyAny>> {
        let work = self.contents.change(|filter, chunk, added: &mut [bool]| {
            with_keys!(chunk, keys => add_unique(filter, keys, added))
        });
        many::answers(keys, self.with_width(width)?, work)
    }

    /// Adds many keys, those of one iterable or of several, as `add` does for each in order.
    /// Returns how many were added.
    ///
    /// Takes the keys, and `width`, as `contains_many` does. Skips missing keys (null). Raises
    /// `koel.Full` at the first key that finds no room. Whatever it raises, the keys before that
    /// one are in: `done` of the exception says how many, and `answers` how many of them were
    /// added.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.CuckooFilter(1000)
    ///     >>> seen.update(["ada", "mary", "ada"])
    ///     2
    ///     >>> seen.update(range(400), range(500))
    ///     500
    #[pyo3(signature = (*keys, multi=false, width=64))]
    fn update(&self, keys: &Bound<'_, PyTuple>, multi: bool, width: u32) -> PyResult<usize> {
        if multi {
            keys.iter().try_for_each(|keys| refuse_mapping(&keys))?;
        }
        let work = self.contents.change(|filter, chunk, added: &mut [bool]| {
            with_keys!(chunk, keys => if multi {
                added.fill(true);
                let before = filter.len();
                filter.insert_many(keys).map_err(|full| Stopped::after(before, filter.len(), full))
            } else {
                add_unique(filter, keys, added)
            })
        });
        many::count(keys, self.with_width(width)?, work)
    }

    /// Tells the filter that a key was not added. If the filter reports it, the key gets a
    /// correction and is not reported any more. Returns whether it got one.
    ///
    /// Never refute a key that is in: it would be hidden. Adding the key takes its correction back.
    ///
    /// Raises `koel.Full` if there are as many corrections as slots.
    ///
    ///     >>> import koel
    ///     >>> blocked = koel.CuckooFilter(1000, error_rate=0.1)
    ///     >>> blocked.update(range(1000)) > 900
    ///     True
    ///     >>> wrong = next(key for key in range(1000, 10_000) if key in blocked)
    ///     >>> blocked.refute(wrong), wrong in blocked, blocked.corrections
    ///     (True, False, 1)
    ///     >>> blocked.add(wrong), wrong in blocked, blocked.corrections
    ///     (True, True, 0)
    fn refute(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hashing.hash(key)?;
        self.contents.write(key.py(), |contents| contents.owned()?.refute(&hash).or_raise())
    }

    /// Refutes many keys, all or none. Returns how many corrections were made.
    ///
    /// If more of them are reported than chance explains, some are in, and would be hidden: that is
    /// a ValueError, unless `force` is true. A handful of keys may always be refuted.
    ///
    /// Takes the keys, and `width`, as `contains_many` does. Skips missing keys (null). Raises
    /// `koel.Full` if there would be more corrections than slots. Whatever it raises, nothing has
    /// changed.
    ///
    ///     >>> import koel
    ///     >>> blocked = koel.CuckooFilter(1000, error_rate=0.1)
    ///     >>> blocked.update(range(1000)) > 900
    ///     True
    ///     >>> allowed = range(1000, 10_000)
    ///     >>> blocked.refute_many(allowed) == blocked.corrections
    ///     True
    ///     >>> blocked.contains_many(allowed).any()
    ///     np.False_
    #[pyo3(signature = (keys, *, width=64, force=false))]
    fn refute_many(&self, keys: &Bound<'_, PyAny>, width: u32, force: bool) -> PyResult<u64> {
        let py = keys.py();
        self.contents.read(py, |contents| match contents {
            Body::Owned(_) => Ok(()),
            Body::Mapped(_) => Err(read_only()),
        })?;
        let hasher = self.hashing.hasher;
        let work = self.contents.lookup(|contents, chunk, reported: &mut [Option<KeyHash>]| {
            with_filter!(contents, filter => with_keys!(chunk, keys => {
                note_reported(filter, hasher, keys, reported);
            }));
        });
        let mut reported = Vec::new();
        let asked = many::collect(keys, self.with_width(width)?, work, |found| {
            reserve(&mut reported, found.len())?;
            reported.extend(found);
            Ok(())
        })?;
        reported.sort_unstable();
        reported.dedup();
        self.contents.write_detached(py, |contents| {
            let filter = contents.owned()?;
            if !force {
                filter.check_refutation(asked as u64, reported.len() as u64).or_raise()?;
            }
            filter.force_refute_many(&reported).or_raise()
        })
    }

    /// The number of corrections that `refute` made and no `add` took back.
    ///
    ///     >>> import koel
    ///     >>> koel.CuckooFilter(1000).corrections
    ///     0
    #[getter]
    fn corrections(&self, py: Python<'_>) -> u64 {
        self.contents.read(py, |contents| with_filter!(contents, filter => filter.corrections()))
    }

    /// Makes room for so many more keys now, if the filter grows.
    ///
    /// Raises `koel.Full` if there is no room and it does not grow, and MemoryError.
    ///
    ///     >>> import koel
    ///     >>> seen = koel.CuckooFilter(1000, grow=True)
    ///     >>> seen.reserve(100_000)
    fn reserve(&self, py: Python<'_>, additional: Whole) -> PyResult<()> {
        // Part by part, each of the same table, so that Ctrl-C is answered in between.
        let mut room = additional.0.min(RESERVED);
        loop {
            self.contents
                .write_detached(py, |contents| contents.owned()?.reserve(room).or_raise())?;
            py.check_signals()?;
            if room == additional.0 {
                return Ok(());
            }
            room = room.saturating_add(RESERVED).min(additional.0);
        }
    }

    /// How many keys two filters have in common: the Jaccard index with its standard error, 0 to 1.
    ///
    /// Raises ValueError unless both were built alike.
    ///
    ///     >>> import koel
    ///     >>> a, b = koel.CuckooFilter(1000), koel.CuckooFilter(1000)
    ///     >>> a.update(range(60)), b.update(range(30, 90))
    ///     (60, 60)
    ///     >>> round(a.similarity(b).value, 2)
    ///     0.33
    fn similarity(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Estimate> {
        Ok(self.diff(py, other)?.jaccard)
    }

    /// How many keys are in both filters, in one of them, and in this or the other one only.
    ///
    /// Raises ValueError unless both were built alike, and if a memory-mapped file is damaged.
    ///
    ///     >>> import koel
    ///     >>> a, b = koel.CuckooFilter(1000), koel.CuckooFilter(1000)
    ///     >>> a.update(range(60)), b.update(range(30, 90))
    ///     (60, 60)
    ///     >>> a.diff(b)
    ///     <koel.Comparison: 30 in both, 30 only in the first, 30 only in the second>
    fn diff(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Comparison> {
        let (ours, theirs) = (self.contents.clone(), other.get().contents.clone());
        let compared = long::run(py, move |_| {
            ours.read_both(&theirs, |ours, theirs| {
                // Entries that are gone would be differences, or none.
                verify_mapped(ours)?;
                verify_mapped(theirs)?;
                let compared = with_filter!(
                    ours,
                    first => with_filter!(theirs, second => first.compare(second))
                );
                compared.or_raise()
            })
        })?;
        compared.map(Comparison::from)
    }

    /// What changed from this filter to `new`, some 2 bytes a change, for `patched`.
    ///
    /// Both have the same capacity and the same settings. Raises ValueError otherwise, `koel.Full`
    /// if there is no way to place the new keys in this filter, and MemoryError.
    ///
    ///     >>> import koel
    ///     >>> monday, tuesday = koel.CuckooFilter(1000), koel.CuckooFilter(1000)
    ///     >>> monday.update(["ada", "mary"]), tuesday.update(["ada", "grace"])
    ///     (2, 2)
    ///     >>> patch = monday.patch_to(tuesday)
    ///     >>> len(patch) < 100
    ///     True
    ///     >>> monday.patched(patch).diff(tuesday)
    ///     <koel.Comparison: 2 in both, 0 only in the first, 0 only in the second>
    fn patch_to<'py>(&self, new: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        let (ours, theirs) = (self.contents.clone(), new.get().contents.clone());
        let patch = long::run(new.py(), move |_| {
            ours.read_both(&theirs, |ours, theirs| {
                with_filter!(ours, old => with_filter!(theirs, new => old.patch_to(new)))
            })
        })?;
        Ok(PyBytes::new(new.py(), &patch.or_raise()?))
    }

    /// The filter that a patch of `patch_to` makes of this one, which stays as it is.
    ///
    /// The result is verified. Raises ValueError if the patch is damaged or for another filter, and
    /// MemoryError.
    ///
    ///     >>> import koel
    ///     >>> old, new = koel.CuckooFilter(1000), koel.CuckooFilter(1000)
    ///     >>> new.add("ada")
    ///     True
    ///     >>> "ada" in old.patched(old.patch_to(new)), "ada" in old
    ///     (True, False)
    ///     >>> new.patched(old.patch_to(new))
    ///     Traceback (most recent call last):
    ///     ...
    ///     ValueError: ...
    fn patched(&self, patch: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = bytes_of(patch)?;
        let patched = self.contents.read_detached(
            patch.py(),
            |contents| with_filter!(contents, old => old.patched(&bytes)),
        );
        patched.or_raise().map(Self::own)
    }
}

/// An error if it reads a file that is damaged.
fn verify_mapped(contents: &Contents) -> PyResult<()> {
    match contents {
        Body::Owned(_) => Ok(()),
        Body::Mapped(mapped) => mapped.with_dependent(|_, view| view.verify()).or_raise(),
    }
}

/// Room that is reserved between two looks for Ctrl-C.
const RESERVED: u64 = 1 << 17;

/// Writes the hashes of the keys that the filter reports.
fn note_reported<S: Store, K: Key>(
    filter: &koel::CuckooFilter<S>,
    hasher: KeyHasher,
    keys: &[K],
    reported: &mut [Option<KeyHash>],
) {
    for (keys, reported) in keys.chunks(NOTED).zip(reported.chunks_mut(NOTED)) {
        let mut found = [false; NOTED];
        let found = &mut found[..keys.len()];
        filter.contains_many(keys, found);
        for ((key, hash), _) in keys.iter().zip(reported).zip(found).filter(|(_, found)| **found) {
            *hash = Some(hasher.hash(key));
        }
    }
}

/// Keys that are looked up at once for that.
const NOTED: usize = 1 << 12;

/// Adds each key that is not in. After a failure, none after the key that failed is in.
fn add_unique<K: Key>(
    filter: &mut koel::CuckooFilter,
    keys: &[K],
    added: &mut [bool],
) -> Result<(), Stopped> {
    let Err(full) = filter.insert_unique_many(keys, added) else { return Ok(()) };
    let stopped = Stopped::first_absent(added, |key| filter.contains(&keys[key]), full);
    // The library adds some of many keys out of order.
    for key in stopped.done..keys.len() {
        if added[key] {
            filter.remove(&keys[key]);
        }
    }
    Err(stopped)
}
