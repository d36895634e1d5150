//! What a Python object holds: a filter in memory, or a view of a memory-mapped file.

use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use koel::{MergeError, Store};
use memmap2::Mmap;
use pyo3::PyResult;
use self_cell::self_cell;

use crate::error::{self, OrRaise};

/// A filter that can be changed, or one that reads a memory map.
pub(crate) enum Body<O, M> {
    Owned(O),
    Mapped(M),
}

impl<O, M> Body<O, M> {
    /// The filter, if it can be changed.
    pub(crate) fn owned(&mut self) -> PyResult<&mut O> {
        match self {
            Self::Owned(owned) => Ok(owned),
            Self::Mapped(_) => Err(error::read_only()),
        }
    }

    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Self::Mapped(_))
    }
}

/// What `==` asks.
pub(crate) trait Same<T> {
    /// Whether both hold the same, or have the same bytes where order matters.
    fn is_same(&self, other: &T) -> PyResult<bool>;
}

/// Those whose content does not depend on the order of the calls.
macro_rules! same_content {
    ($($Face:ident),*) => {$(
        impl<S: Store, T: Store> Same<koel::$Face<T>> for koel::$Face<S> {
            fn is_same(&self, other: &koel::$Face<T>) -> PyResult<bool> {
                match self.holds_the_same(other) {
                    error @ Err(MergeError::NoMemory) => error.or_raise(),
                    // Settings that differ tell them apart.
                    same => Ok(same.unwrap_or(false)),
                }
            }
        }
    )*};
}
same_content!(CuckooFilter, CountingFilter);

/// The others.
macro_rules! same_bytes {
    ($($Face:ident),*) => {$(
        impl<S: Store, T: Store> Same<koel::$Face<T>> for koel::$Face<S> {
            fn is_same(&self, other: &koel::$Face<T>) -> PyResult<bool> {
                Ok(self.try_to_bytes().or_raise()? == other.try_to_bytes().or_raise()?)
            }
        }
    )*};
}
same_bytes!(ExpiringFilter, Maplet);

/// Runs an expression with the filter, wherever its bytes are.
macro_rules! with_filter {
    ($body:expr, $filter:ident => $work:expr) => {
        match $body {
            $crate::body::Body::Owned($filter) => $work,
            $crate::body::Body::Mapped(mapped) => mapped.with_dependent(|_, $filter| $work),
        }
    };
}
pub(crate) use with_filter;

/// A memory-mapped file.
pub(crate) struct Mapping {
    map: Mmap,
    /// An absolute path, with which a pickle opens it again.
    path: PathBuf,
}

impl Mapping {
    pub(crate) fn open(path: &Path) -> PyResult<Self> {
        let file = File::open(path).map_err(|error| error::of_io(&error, path))?;
        // SAFETY: the map is only read, and a lookup is memory-safe whatever the bytes are. The
        // pages say to users that nobody may cut the file short meanwhile.
        let map = unsafe { Mmap::map(&file) };
        let map = map.map_err(|error| error::of_io(&error, path))?;
        let path = std::path::absolute(path).map_err(|error| error::of_io(&error, path))?;
        Ok(Self { map, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

/// Gives a type of the library its view of a file.
macro_rules! mapped {
    ($Mapped:ident, $View:ident) => {
        use koel::$View;

        self_cell!(
            pub(crate) struct $Mapped {
                owner: Mapping,
                #[not_covariant]
                dependent: $View,
            }
        );

        impl $Mapped {
            pub(crate) fn open(path: &Path) -> PyResult<Self> {
                Self::try_new(Mapping::open(path)?, |bytes| $View::open(bytes))
                    .map_err(|error| error::of_file(error.into(), path))
            }
        }
    };
}

mapped!(MappedFilter, FilterView);
mapped!(MappedCounting, CountingView);
mapped!(MappedExpiring, ExpiringView);
mapped!(MappedMaplet, MapletView);
