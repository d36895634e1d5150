//! Damage that was found, as a list instead of an error.

use std::fmt;

use crate::Error;

/// Bytes of a file that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The offset at which the damage starts.
    pub offset: u64,
    /// What is wrong there.
    pub what: &'static str,
}

impl Damage {
    pub(crate) fn new(file: &str, offset: u64, what: &'static str) -> Self {
        Self { file: file.to_owned(), offset, what }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at byte {}: {}", self.file, self.offset, self.what)
    }
}

/// Returns the value of `result`, or adds its damage to the list and returns `None`.
///
/// # Errors
/// Any error that is not damage.
pub(crate) fn collect_damage<T>(
    damages: &mut Vec<Damage>,
    result: Result<T, Error>,
) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Damaged { file, offset, what }) => {
            damages.push(Damage { file, offset, what });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
