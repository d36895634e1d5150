//! The errors of an archive.

use std::error::Error;
use std::fmt;
use std::io;

use super::chunks::Chunking;

/// Why an operation of an archive failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The store failed.
    Store(crate::Error),
    /// No file has this name.
    NoSuchName {
        /// The name.
        name: String,
    },
    /// A name has no bytes, or more than 4,096.
    BadName {
        /// Bytes of the name.
        bytes: usize,
    },
    /// A chunk size is outside the limits of [`Chunking`].
    BadChunking(Chunking),
    /// A part of a file is missing, or is not what was imported.
    Broken {
        /// The name of the file.
        name: String,
        /// The part, and what is wrong with it.
        what: String,
    },
    /// A record is not one of an archive.
    Record {
        /// What the record should describe.
        what: &'static str,
    },
    /// The source of an import cannot be read.
    Read(io::Error),
    /// The target of an export cannot be written.
    Write(io::Error),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::NoSuchName { name } => {
                write!(f, "no file is named `{name}`; list the names to see which exist")
            }
            Self::BadName { bytes } => {
                write!(f, "a name of {bytes} bytes is not allowed; use 1 to 4096")
            }
            Self::BadChunking(chunking) => write!(
                f,
                "{chunking:?} is outside the limits; use 512 B to 16 MiB for fixed chunks, 1 KiB to \
                 4 MiB by content"
            ),
            Self::Broken { name, what } => write!(
                f,
                "`{name}` is not what was imported: {what}; verify the store, and import the file \
                 again"
            ),
            Self::Record { what } => write!(
                f,
                "the record of {what} is not one of an archive; was it written by another program \
                 or a later version?"
            ),
            Self::Read(error) => write!(f, "cannot read the source of the import: {error}"),
            Self::Write(error) => write!(f, "cannot write the target of the export: {error}"),
        }
    }
}

impl Error for ArchiveError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Read(error) | Self::Write(error) => Some(error),
            _ => None,
        }
    }
}

impl From<crate::Error> for ArchiveError {
    fn from(error: crate::Error) -> Self {
        Self::Store(error)
    }
}
