//! What an operation that failed leaves: a number, and the sentence of the library.

use alloc::string::{String, ToString};
use core::fmt::Display;

use koel::{
    BuildError, FullError, ImageError, MemoryError, MergeError, PatchError, RefuteError,
    RemoteError,
};

/// The kind of an error, which becomes the property `code` of the exception. 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// No room for a key or a correction.
    Full = -1,
    /// A filter cannot be built with these settings, or two filters were not built alike.
    Settings = -2,
    /// Bytes are not a sound filter or patch.
    Bytes = -3,
    /// The system has no memory.
    Memory = -4,
    /// A handle or a batch that filter.js would not pass.
    Internal = -5,
    /// A patch is for another filter, or was applied already.
    Base = -6,
    /// A text that is no key of a filter that was built from lines.
    Lines = -7,
    /// More keys that were to be refuted are reported than chance explains.
    Members = -8,
    /// A count beyond 2^64 - 1.
    Range = -9,
}

impl From<FullError> for Code {
    fn from(error: FullError) -> Self {
        match error {
            FullError::NoMemory => Self::Memory,
            FullError::Overflow => Self::Range,
            _ => Self::Full,
        }
    }
}

/// An error: its kind, and its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub code: Code,
    /// The sentence of the library.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(code: Code, error: impl Display) -> Self {
        Self { code, message: error.to_string() }
    }

    pub(crate) fn internal(what: &str) -> Self {
        Self::new(Code::Internal, what)
    }

    pub(crate) fn no_memory() -> Self {
        Self::new(Code::Memory, "the system has no memory for this; free some memory")
    }
}

impl From<FullError> for Failure {
    fn from(error: FullError) -> Self {
        Self::new(error.into(), error)
    }
}

impl From<RefuteError> for Failure {
    fn from(error: RefuteError) -> Self {
        match error {
            RefuteError::Full(full) => full.into(),
            error => Self::new(Code::Members, error),
        }
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let code = if error == BuildError::NoMemory { Code::Memory } else { Code::Settings };
        Self::new(code, error)
    }
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        let code = if error == ImageError::NoMemory { Code::Memory } else { Code::Bytes };
        Self::new(code, error)
    }
}

impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Full(full) => full.into(),
            MergeError::NoMemory => Self::new(Code::Memory, error),
            _ => Self::new(Code::Settings, error),
        }
    }
}

impl From<PatchError> for Failure {
    fn from(error: PatchError) -> Self {
        let code = match error {
            PatchError::NoMemory => Code::Memory,
            PatchError::Full(full) => full.into(),
            PatchError::Incompatible { .. }
            | PatchError::Sizes { .. }
            | PatchError::Sparse { .. } => Code::Settings,
            PatchError::OtherSettings | PatchError::WrongBase { .. } | PatchError::Applied => {
                Code::Base
            }
            _ => Code::Bytes,
        };
        Self::new(code, error)
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        Self::new(Code::Bytes, error)
    }
}

impl From<MemoryError> for Failure {
    fn from(error: MemoryError) -> Self {
        Self::new(Code::Memory, error)
    }
}
