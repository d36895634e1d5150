//! What an operation that failed leaves: a code, and the sentence of the library.

use std::fmt::Display;
use std::io;

use koel::{
    BuildError, FileError, FullError, ImageError, MemoryError, MergeError, PatchError, RefuteError,
};
use koel_lines::{NoHost, UnknownRecipe};

/// What a function of koel.h returns. Below 0 it is the kind of an error, and koel_last_error()
/// has its text. After an error nothing has changed, unless the function says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// It worked.
    Ok = 0,
    /// No room for a key, a counter or a correction.
    Full = -1,
    /// No filter can be built with these settings.
    Settings = -2,
    /// The bytes are not a sound filter or patch.
    Bytes = -3,
    /// The system has no memory.
    Memory = -4,
    /// An error in Koel, which should be reported. Free the filter that was to be changed.
    Internal = -5,
    /// A patch is for another filter, or was applied already.
    Base = -6,
    /// The keys of the filter were made of lines, and this text gives none: it has no host where
    /// keys are hosts, or this version does not know the line options.
    Lines = -7,
    /// More keys that were to be refuted are reported than chance explains.
    Members = -8,
    /// A count would pass 2^64 - 1.
    Range = -9,
    /// Two filters were not built alike.
    Different = -10,
    /// A file cannot be read or written.
    Io = -11,
    /// A pointer is NULL that may not be, or a length is beyond all memory.
    Argument = -12,
    /// The filter was opened with koel_open, so it cannot be changed: use koel_copy.
    ReadOnly = -13,
}

/// An error: its code, and its sentence.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Failure {
    #[cold]
    pub(crate) fn new(status: Status, error: impl Display) -> Self {
        Self { status, text: error.to_string() }
    }

    /// The argument `name` is null.
    #[cold]
    pub(crate) fn null(name: &str) -> Self {
        Self::new(Status::Argument, format_args!("{name} is NULL"))
    }

    #[cold]
    pub(crate) fn no_memory() -> Self {
        Self::new(Status::Memory, "the system has no memory for this; free some memory")
    }
}

/// Gives each error its code: the first pattern that it matches.
macro_rules! statuses {
    ($($Error:ty { $($pattern:pat => $status:expr),+ $(,)? })+) => {$(
        impl From<&$Error> for Status {
            fn from(error: &$Error) -> Self {
                match error {
                    $($pattern => $status,)+
                }
            }
        }

        impl From<$Error> for Failure {
            #[cold]
            fn from(error: $Error) -> Self {
                Self::new(Status::from(&error), error)
            }
        }
    )+};
}

statuses! {
    FullError {
        FullError::NoMemory => Status::Memory,
        FullError::Overflow => Status::Range,
        _ => Status::Full,
    }
    RefuteError {
        RefuteError::Full(full) => full.into(),
        _ => Status::Members,
    }
    BuildError {
        BuildError::NoMemory => Status::Memory,
        _ => Status::Settings,
    }
    ImageError {
        ImageError::NoMemory => Status::Memory,
        _ => Status::Bytes,
    }
    MergeError {
        MergeError::NoMemory => Status::Memory,
        MergeError::Full(full) => full.into(),
        MergeError::Unsound(image) => image.into(),
        _ => Status::Different,
    }
    PatchError {
        PatchError::NoMemory => Status::Memory,
        PatchError::Full(full) => full.into(),
        PatchError::Unsound(image) => image.into(),
        PatchError::Incompatible { .. } | PatchError::Sizes { .. } | PatchError::Sparse { .. } =>
            Status::Different,
        PatchError::OtherSettings | PatchError::WrongBase { .. } | PatchError::Applied =>
            Status::Base,
        _ => Status::Bytes,
    }
    FileError {
        FileError::Image { error, .. } => error.into(),
        FileError::Io { .. } | FileError::Unsynced { .. } => Status::Io,
        _ => Status::Bytes,
    }
    MemoryError { _ => Status::Memory }
    UnknownRecipe { _ => Status::Lines }
    NoHost<'_> { _ => Status::Lines }
    io::Error { _ => Status::Io }
}
