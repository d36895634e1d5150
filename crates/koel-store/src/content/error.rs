//! What can go wrong with an archive.

use std::error::Error;
use std::fmt;
use std::io;

/// Why an archive could not do what it was asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The store below failed.
    Store(crate::Error),
    /// No file has this name.
    NoSuchName {
        /// The name asked for.
        name: String,
    },
    /// A name of no bytes, or of more than 4,096.
    BadName {
        /// Bytes of the name.
        bytes: usize,
    },
    /// A chunk size outside the limits of [`Chunking`](super::Chunking).
    BadChunking(super::Chunking),
    /// A file cannot be put together again: a part is not in the store, or is not what was imported.
    Broken {
        /// The name of the file.
        name: String,
        /// Which part, and what is wrong with it.
        what: String,
    },
    /// A record that lists names is not one.
    Record {
        /// Which one.
        what: &'static str,
    },
    /// What is imported cannot be read.
    Read(io::Error),
    /// What is exported cannot be written.
    Write(io::Error),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::NoSuchName { name } => {
                write!(f, "no file is named `{name}`; list the names to see which there are")
            }
            Self::BadName { bytes } => {
                write!(f, "a name of {bytes} bytes; give it 1 to 4096")
            }
            Self::BadChunking(chunking) => write!(
                f,
                "{chunking:?} is outside the limits; choose 512 B to 16 MiB, by content 1 KiB to 4 MiB"
            ),
            Self::Broken { name, what } => write!(
                f,
                "`{name}` is not what was imported: {what}; verify the store, and import the file again"
            ),
            Self::Record { what } => write!(
                f,
                "the record of {what} is not one of an archive; was it written by another program or a later version?"
            ),
            Self::Read(error) => write!(f, "cannot read what is imported: {error}"),
            Self::Write(error) => write!(f, "cannot write what is exported: {error}"),
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
