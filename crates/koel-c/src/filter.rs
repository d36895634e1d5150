//! A filter as C holds it: in memory, or a view of a mapped file. The logic, in safe Rust.
//!
//! A key is bytes. Where the application bytes say that keys were made of lines, they become a key
//! as they did there (`koel_lines::KeyForm`). Many keys are hashed first, because a hash is a key:
//! so the library's code for batches is compiled once, and a text that gives no key is noticed
//! before anything has changed.
//!
//! Cost: a call takes one comparison to know that keys are their own bytes, and one to find the
//! filter.

use std::ffi::{CString, c_char};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use koel::{CuckooFilter, FilterView, KeyHash, KeyHasher, Merge, Prefer};
use koel_lines::{KeyForm, UnknownRecipe};
use memmap2::Mmap;
use self_cell::self_cell;

use crate::raw::Keys;
use crate::status::{Failure, Status};

/// A filter. Its bytes are in memory, or in a file that koel_open mapped.
pub struct Filter {
    body: Body,
    form: Result<KeyForm, UnknownRecipe>,
    /// Whether every key is its own bytes.
    is_exact: bool,
    hasher: KeyHasher,
    /// The line options, as C has texts.
    line_options: CString,
}

#[expect(clippy::large_enum_variant, reason = "a filter is in a box of its own already")]
enum Body {
    Owned(CuckooFilter),
    Mapped(Mapped),
}

self_cell!(
    struct Mapped {
        owner: Mmap,
        #[not_covariant]
        dependent: FilterView,
    }
);

/// Runs an expression with the filter, wherever its bytes are.
macro_rules! with {
    ($filter:expr, $view:ident => $work:expr) => {
        match &$filter.body {
            Body::Owned($view) => $work,
            Body::Mapped(mapped) => mapped.with_dependent(|_, $view| $work),
        }
    };
}

/// What koel_describe tells of a filter.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Info {
    /// Keys that are in, copies included.
    pub len: u64,
    /// Distinct keys that it was built for.
    pub capacity: u64,
    /// Corrections: keys known to be absent that would be reported.
    pub corrections: u64,
    /// Bytes of its file.
    pub size: u64,
    /// The false-positive rate that it was built for.
    pub rate: f64,
    /// The false-positive rate as it is now: lower until it is full.
    pub current_rate: f64,
    /// Whether it grows when it is full, instead of refusing keys.
    pub growable: bool,
    /// Whether it has outgrown the table that it was built with.
    pub grown: bool,
    /// Whether it was opened with koel_open, and cannot be changed.
    pub read_only: bool,
}

/// What a filter is built with besides capacity and rate.
pub(crate) struct Settings<'a> {
    pub(crate) grow: bool,
    pub(crate) fast: bool,
    pub(crate) grow_from: u64,
    pub(crate) seed: Option<u64>,
    pub(crate) secret: Option<&'a [u8]>,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("info", &self.info()).finish_non_exhaustive()
    }
}

impl Filter {
    fn new(body: Body) -> Self {
        let (application, hasher) = match &body {
            Body::Owned(filter) => (filter.application(), filter.hasher()),
            Body::Mapped(mapped) => {
                mapped.with_dependent(|_, view| (view.application(), view.hasher()))
            }
        };
        let form = KeyForm::of(application);
        let is_exact = form.is_ok_and(KeyForm::is_exact);
        let words = form.map_or_else(|_| String::new(), KeyForm::words);
        Self { body, form, is_exact, hasher, line_options: CString::new(words).unwrap_or_default() }
    }

    fn owned(filter: CuckooFilter) -> Self {
        Self::new(Body::Owned(filter))
    }

    pub(crate) fn build(capacity: u64, rate: f64, settings: &Settings) -> Result<Self, Failure> {
        let prefer = if settings.fast { Prefer::Fast } else { Prefer::Small };
        let mut builder = CuckooFilter::builder(capacity, rate).prefer(prefer);
        if let Some(seed) = settings.seed {
            builder = builder.seed(seed);
        }
        if let Some(&secret) = settings.secret.and_then(<[u8]>::first_chunk) {
            builder = builder.sip_key(secret);
        }
        if settings.grow {
            builder = builder.growable();
        }
        if settings.grow_from > 0 {
            builder = builder.grow_from(settings.grow_from);
        }
        Ok(Self::owned(builder.build()?))
    }

    /// Maps a file. Checks its header.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let of_file = |error| Failure::new(Status::Io, format_args!("{}: {error}", path.display()));
        let map = map(path).map_err(of_file)?;
        let mapped = Mapped::try_new(map, |bytes| FilterView::open(bytes)).map_err(|error| {
            Failure::new(Status::from(&error), format_args!("{}: {error}", path.display()))
        })?;
        Ok(Self::new(Body::Mapped(mapped)))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Failure> {
        Ok(Self::owned(CuckooFilter::from_bytes(bytes)?))
    }

    /// A copy in memory. All bytes of a mapped file are checked.
    pub(crate) fn copy(&self) -> Result<Self, Failure> {
        let copy = match &self.body {
            Body::Owned(filter) => filter.try_clone()?,
            Body::Mapped(mapped) => mapped.with_dependent(|_, view| view.to_owned())?,
        };
        Ok(Self::owned(copy))
    }

    pub(crate) fn verify(&self) -> Result<(), Failure> {
        Ok(with!(self, filter => filter.verify())?)
    }

    /// The filter, if it can be changed.
    pub(crate) fn change(&mut self) -> Result<&mut CuckooFilter, Failure> {
        match &mut self.body {
            Body::Owned(filter) => Ok(filter),
            Body::Mapped(_) => Err(Failure::new(
                Status::ReadOnly,
                "the filter was opened with koel_open, so it cannot be changed; use koel_copy",
            )),
        }
    }

    fn form(&self) -> Result<KeyForm, Failure> {
        self.form.map_err(|unknown| {
            Failure::new(Status::Lines, format_args!("{unknown}; use a later version"))
        })
    }

    /// The hash of a key, which is a key itself.
    pub(crate) fn hash(&self, key: &[u8]) -> Result<KeyHash, Failure> {
        if self.is_exact {
            return Ok(self.hasher.hash(key));
        }
        Ok(self.hasher.hash(&*self.form()?.key(key)?))
    }

    /// The hash of each key.
    pub(crate) fn hashes(&self, keys: Keys<'_>) -> Result<Vec<KeyHash>, Failure> {
        let mut hashes = Vec::new();
        hashes.try_reserve_exact(keys.len()).map_err(|_| Failure::no_memory())?;
        for key in keys.iter() {
            hashes.push(self.hash(key?)?);
        }
        Ok(hashes)
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool, Failure> {
        if self.is_exact {
            return Ok(with!(self, filter => filter.contains(key)));
        }
        Ok(self.contains_hash(self.hash(key)?))
    }

    #[inline]
    pub(crate) fn contains_hash(&self, hash: KeyHash) -> bool {
        with!(self, filter => filter.contains(&hash))
    }

    /// Whether the host of a URL or one of its parent domains is in, or, where keys are texts, the
    /// text itself.
    pub(crate) fn contains_url(&self, url: &[u8]) -> Result<bool, Failure> {
        let contains = |key: &[u8]| self.contains_hash(self.hasher.hash(key));
        Ok(self.form()?.finds_url(url, contains)?)
    }

    pub(crate) fn contains_many(&self, hashes: &[KeyHash], found: &mut [bool]) {
        with!(self, filter => filter.contains_many(hashes, found));
    }

    pub(crate) fn count(&self, hash: KeyHash) -> u64 {
        with!(self, filter => filter.count(&hash))
    }

    pub(crate) fn count_many(&self, hashes: &[KeyHash], counts: &mut [u64]) {
        with!(self, filter => filter.count_many(hashes, counts));
    }

    pub(crate) fn merge(&mut self, other: &Self, counts: Merge) -> Result<(), Failure> {
        let filter = self.change()?;
        Ok(with!(other, other => filter.merge(other, counts))?)
    }

    pub(crate) fn patch_to(&self, new: &Self) -> Result<Vec<u8>, Failure> {
        Ok(with!(self, old => with!(new, new => old.patch_to(new)))?)
    }

    pub(crate) fn patched(&self, patch: &[u8]) -> Result<Self, Failure> {
        Ok(Self::owned(with!(self, old => old.patched(patch))?))
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        Ok(with!(self, filter => filter.save(path))?)
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Failure> {
        Ok(with!(self, filter => filter.try_to_bytes())?)
    }

    /// The options of the command without which a text is another key; empty if there are none.
    pub(crate) fn line_options(&self) -> Result<*const c_char, Failure> {
        self.form().map(|_| self.line_options.as_ptr())
    }

    pub(crate) fn info(&self) -> Info {
        with!(self, filter => Info {
            len: filter.len(),
            capacity: filter.capacity(),
            corrections: filter.corrections(),
            size: filter.size_in_bytes() as u64,
            rate: filter.requested_false_positive_rate(),
            current_rate: filter.false_positive_rate(),
            growable: filter.is_growable(),
            grown: filter.has_grown(),
            read_only: matches!(self.body, Body::Mapped(_)),
        })
    }
}

/// Maps a regular file. Opening a pipe could wait for ever.
#[expect(unsafe_code, reason = "a memory map")]
fn map(path: &Path) -> io::Result<Mmap> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file; copy the filter to one"));
    }
    let file = File::open(path)?;
    // SAFETY: the map is only read, and lookups are memory-safe whatever the bytes are. koel.h says
    // to users that nobody may write into the file or cut it short meanwhile.
    unsafe { Mmap::map(&file) }
}
