//! No write after a failed one.
//!
//! After a failed append the end of the log is unknown, and after a failed sync so are the bytes before it: the system may have dropped them and will
//! not say so twice. A store that went on would acknowledge writes behind a hole. So the first failure is kept, and every later write is refused with it; reading goes on.

use std::sync::OnceLock;

use crate::Error;

/// The first failure of a write, if there was one.
#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// # Errors
    /// [`Error::Poisoned`] after a failure.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.0.get() {
            None => Ok(()),
            Some(reason) => Err(Error::Poisoned { reason: reason.clone() }),
        }
    }

    /// Whether a write has failed.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Keeps an error as the reason, if it is the first, and hands it back.
    pub(crate) fn by(&self, error: Error) -> Error {
        let reason = match &error {
            Error::Io { action, file, error } => format!("cannot {action} {file}: {error}"),
            other => other.to_string(),
        };
        self.0.get_or_init(|| reason);
        error
    }
}
