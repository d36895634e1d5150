//! The errors of an archive.

use std::error::Error;
use std::fmt;
use std::io;

use super::chunks::Chunking;
use super::names::escape;

/// Why an operation of an archive failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The store failed.
    Store(crate::Error),
    /// Nothing has this name.
    NoSuchName {
        /// The name.
        name: Vec<u8>,
    },
    /// No version has this number.
    NoSuchVersion {
        /// The number.
        number: u64,
    },
    /// A name is not a relative path, or has more than 4,096 bytes.
    BadName {
        /// The name.
        name: Vec<u8>,
    },
    /// A new name is inside another one, or another one is inside it.
    Overlap {
        /// The new name.
        name: Vec<u8>,
        /// The other name.
        other: Vec<u8>,
    },
    /// What is to be removed is a part of an imported folder, with all versions of it.
    Inside {
        /// The path.
        name: Vec<u8>,
        /// The name of the imported folder.
        top: Vec<u8>,
    },
    /// A folder cannot be exported as a file.
    IsFolder {
        /// The name.
        name: Vec<u8>,
    },
    /// A chunk size is outside the limits of [`Chunking`].
    BadChunking(Chunking),
    /// A part of a file is missing, or is not what was imported.
    Broken {
        /// The name of the file.
        name: Vec<u8>,
        /// The part, and what is wrong with it.
        what: String,
    },
    /// The archive was written before there were versions.
    OldFormat,
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
                let name = escape(name);
                write!(f, "nothing is named `{name}`; list the names to see which exist")
            }
            Self::NoSuchVersion { number } => {
                write!(f, "there is no version {number}; list the versions to see which exist")
            }
            Self::BadName { name } => write!(
                f,
                "`{}` cannot be a name; use a relative path of at most 4096 bytes, without `..`",
                escape(name)
            ),
            Self::Overlap { name, other } => write!(
                f,
                "`{}` and `{}` are inside one another; use another name, or remove the stored one",
                escape(name),
                escape(other)
            ),
            Self::Inside { name, top } => write!(
                f,
                "`{}` is a part of the imported `{}`; removing it changes all versions of that",
                escape(name),
                escape(top)
            ),
            Self::IsFolder { name } => {
                write!(f, "`{}` is a folder or a link, not a file; restore it", escape(name))
            }
            Self::BadChunking(chunking) => write!(
                f,
                "{chunking:?} is outside the limits; use 512 B to 16 MiB for fixed chunks, 1 KiB to \
                 4 MiB by content"
            ),
            Self::Broken { name, what } => write!(
                f,
                "`{}` is not what was imported: {what}; verify the store, and import the file \
                 again",
                escape(name)
            ),
            Self::OldFormat => f.write_str(
                "the files were imported by an earlier version of koel, in a format that this one \
                 does not read; import them again into a new store",
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

impl ArchiveError {
    /// Returns whether a record is damaged, or is not what it should be.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Store(crate::Error::Damaged { .. }) | Self::Record { .. })
    }
}

impl From<crate::Error> for ArchiveError {
    fn from(error: crate::Error) -> Self {
        Self::Store(error)
    }
}
