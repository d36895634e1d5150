//! The compaction filter: code of the caller that says which entries are kept.
//!
//! It may panic. Then the merge that called it ends with an error, and from then on every entry is
//! kept, so that the store goes on: it would meet the same entry again and again.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, OnceLock};

use crate::Error;
use crate::kernel::poison::panic_message;

/// Whether an entry with this key and value is kept when it is rewritten.
pub(in crate::lsm) type Keep = dyn Fn(&[u8], &[u8]) -> bool + Send + Sync;

/// A compaction filter, until it panics.
pub(in crate::lsm) struct Filter {
    keep: Arc<Keep>,
    panicked: OnceLock<String>,
}

impl Filter {
    pub(in crate::lsm) fn new(keep: Arc<Keep>) -> Self {
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
        panic::catch_unwind(AssertUnwindSafe(|| (self.keep)(key, value))).map_err(|panic| {
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

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").field("panicked", &self.panicked).finish_non_exhaustive()
    }
}
