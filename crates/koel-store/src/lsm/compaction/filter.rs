//! The compaction filter: code of the caller that says which entries are kept.
//!
//! It may panic. Then the merge that called it ends with an error, and from then on every entry is
//! kept, so that the store goes on: it would meet the same entry again and again.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, OnceLock};

use crate::Error;
use crate::kernel::poison::panic_message;

type IsKept = dyn Fn(&[u8], &[u8]) -> bool + Send + Sync;

/// Whether an entry with this key and value is kept when it is rewritten.
#[derive(Clone)]
pub(in crate::lsm) struct Keep(Arc<IsKept>);

impl Keep {
    pub(in crate::lsm) fn new(keep: impl Fn(&[u8], &[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(keep))
    }
}

impl std::fmt::Debug for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keep")
    }
}

/// A compaction filter, until it panics.
#[derive(Debug)]
pub(in crate::lsm) struct Filter {
    keep: Keep,
    panicked: OnceLock<String>,
}

impl Filter {
    pub(in crate::lsm) fn new(keep: Keep) -> Self {
        Self { keep, panicked: OnceLock::new() }
    }

    /// Returns whether an entry is kept.
    ///
    /// # Errors
    /// [`Error::FilterPanicked`] if the filter panics now.
    pub(super) fn keeps(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        if self.panicked.get().is_some() {
            return Ok(true);
        }
        panic::catch_unwind(AssertUnwindSafe(|| (self.keep.0)(key, value))).map_err(|panic| {
            let reason = panic_message(&*panic).to_owned();
            self.panicked.get_or_init(|| reason.clone());
            Error::FilterPanicked { reason }
        })
    }

    /// Returns what the filter said when it panicked, if it did.
    pub(in crate::lsm) fn panicked(&self) -> Option<&str> {
        self.panicked.get().map(String::as_str)
    }
}
