//! No write after a failed one.
//!
//! After a failed append the end of the log is unknown, and after a failed sync so are the bytes before it: the system may have dropped them and will
//! not say so twice. A store that went on would acknowledge writes behind a hole. So the first failure is kept, and every later write is refused with it; reading goes on.
//! A write that a panic of the caller's code cuts off is such a failure too. A store that is opened for reading alone refuses writes in the same way from the start.

use std::sync::OnceLock;

use crate::Error;

/// Why nothing is written, if so.
#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<Reason>);

#[derive(Debug)]
enum Reason {
    /// The store was opened for reading alone.
    ReadOnly,
    /// The first write that failed, and how.
    Failed(String),
}

/// A write under way: a failure, if it is dropped before it is [`over`](Self::over).
#[derive(Debug)]
pub(crate) struct Attempt<'a>(Option<&'a Poison>);

impl Poison {
    /// That of a store for reading alone.
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

    /// Whether a write has failed.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.0.get(), Some(Reason::Failed(_)))
    }

    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self.0.get(), Some(Reason::ReadOnly))
    }

    /// Keeps an error as the reason, if it is the first, and hands it back.
    pub(crate) fn by(&self, error: Error) -> Error {
        let reason = match &error {
            Error::Io { action, file, error } => format!("cannot {action} {file}: {error}"),
            other => other.to_string(),
        };
        self.0.get_or_init(|| Reason::Failed(reason));
        error
    }

    /// For a write that runs code of the caller, which may panic.
    pub(crate) fn attempt(&self) -> Attempt<'_> {
        Attempt(Some(self))
    }
}

impl Attempt<'_> {
    /// The write has come to its end, whichever.
    pub(crate) fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(poison) = self.0 {
            let reason = "the source of a value panicked".to_owned();
            poison.0.get_or_init(|| Reason::Failed(reason));
        }
    }
}
