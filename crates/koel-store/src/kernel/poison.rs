//! No write after one of which it is not known what it left.
//!
//! After a failed append that cannot be cut off, the end of the log is unknown (`log_end.rs`).
//! After a failed sync so are the bytes before it: the system may have dropped them, and does not
//! report that twice. A store that went on would acknowledge writes that follow a hole. So the
//! first failure is stored, and every later write is refused with it; reads go on.
//!
//! A write cut off by a panic in the caller's code is a failure too, and so is a panic in a thread
//! of the store. A read-only store refuses writes in the same way from the start.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::OnceLock;

use super::events::tell;
use crate::Error;

/// Why writes are refused, if they are.
#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<Reason>);

#[derive(Debug)]
enum Reason {
    /// The store was opened read-only.
    ReadOnly,
    /// The first write that failed, and how.
    Failed(String),
}

/// A write in progress. Dropping it before [`finish`](Self::finish) counts as a failure.
#[derive(Debug)]
pub(crate) struct Attempt<'a>(Option<&'a Poison>);

impl Poison {
    /// Returns the poison of a read-only store.
    pub(crate) fn read_only() -> Self {
        Self(OnceLock::from(Reason::ReadOnly))
    }

    /// # Errors
    /// [`Error::Poisoned`] after a failure, [`Error::ReadOnly`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.0.get() {
            None => Ok(()),
            Some(Reason::ReadOnly) => Err(Error::ReadOnly),
            Some(Reason::Failed(reason)) => Err(Error::Poisoned { reason: reason.clone() }),
        }
    }

    /// Returns whether a write has failed.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.0.get(), Some(Reason::Failed(_)))
    }

    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self.0.get(), Some(Reason::ReadOnly))
    }

    /// Stores `error` as the reason, if it is the first one, and returns it.
    pub(crate) fn set(&self, error: Error) -> Error {
        self.fail(|| error.reason());
        error
    }

    fn fail(&self, reason: impl FnOnce() -> String) {
        self.0.get_or_init(|| {
            let reason = reason();
            tell!(error, "the store takes no more writes", reason = reason.as_str());
            Reason::Failed(reason)
        });
    }

    /// Runs a thread of a store. A panic in it is a failure, and ends here.
    pub(crate) fn unless_panicked(&self, run: impl FnOnce()) {
        if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(run)) {
            self.fail(|| format!("a thread of the store panicked: {}", panic_message(&*panic)));
        }
    }

    /// Starts a write that runs code of the caller, which may panic.
    pub(crate) fn attempt(&self) -> Attempt<'_> {
        Attempt(Some(self))
    }
}

/// Returns what a panic says.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl Attempt<'_> {
    /// Ends the write, whether it succeeded or returned an error.
    pub(crate) fn finish(mut self) {
        self.0 = None;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(poison) = self.0 {
            poison.fail(|| "the source of a value panicked".to_owned());
        }
    }
}
