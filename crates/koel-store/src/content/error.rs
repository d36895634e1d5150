//! The errors of an archive.

use std::io;

use thiserror::Error;

use super::chunks::Chunking;
use super::names::escape;

/// Why an operation of an archive failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] crate::Error),
    /// Nothing has this name.
    #[error("nothing is named `{}`; list the names to see which exist", escape(.name))]
    NoSuchName {
        /// The name.
        name: Vec<u8>,
    },
    /// No version has this number.
    #[error("there is no version {number}; list the versions to see which exist")]
    NoSuchVersion {
        /// The number.
        number: u64,
    },
    /// A name is not a relative path, or has more than 4,096 bytes.
    #[error(
        "`{}` cannot be a name; use a relative path of at most 4096 bytes, without `..`",
        escape(.name)
    )]
    BadName {
        /// The name.
        name: Vec<u8>,
    },
    /// A new name is inside another one, or another one is inside it.
    #[error(
        "`{}` and `{}` are inside one another; use another name, or remove the stored one",
        escape(.name),
        escape(.other)
    )]
    Overlap {
        /// The new name.
        name: Vec<u8>,
        /// The other name.
        other: Vec<u8>,
    },
    /// What is to be removed is a part of an imported folder, with all versions of it.
    #[error(
        "`{}` is a part of the imported `{}`; removing it changes all versions of that",
        escape(.name),
        escape(.top)
    )]
    Inside {
        /// The path.
        name: Vec<u8>,
        /// The name of the imported folder.
        top: Vec<u8>,
    },
    /// A folder cannot be exported as a file.
    #[error("`{}` is a folder or a link, not a file; restore it", escape(.name))]
    IsFolder {
        /// The name.
        name: Vec<u8>,
    },
    /// A chunk size is outside the limits of [`Chunking`].
    #[error(
        "{0:?} is outside the limits; use 512 B to 16 MiB for fixed chunks, 1 KiB to 4 MiB by content"
    )]
    BadChunking(Chunking),
    /// A part of a file is missing, or is not what was imported.
    #[error(
        "`{}` is not what was imported: {what}; verify the store, and import the file again so that \
         all of it is read",
        escape(.name)
    )]
    Broken {
        /// The name of the file.
        name: Vec<u8>,
        /// The part, and what is wrong with it.
        what: String,
    },
    /// A record is not one of an archive.
    #[error(
        "the record of {what} is not one of an archive; was it written by another program or a later \
         version?"
    )]
    Record {
        /// What the record should describe.
        what: &'static str,
    },
    /// The source of an import cannot be read.
    #[error("cannot read the source of the import: {0}")]
    Read(#[source] io::Error),
    /// The target of an export cannot be written.
    #[error("cannot write the target of the export: {0}")]
    Write(#[source] io::Error),
}

impl ArchiveError {
    /// Says of an error with the entries of a folder how many entries are missing.
    pub(super) fn with_missing(self, folder: &[u8], missing: u64) -> Self {
        if missing == 0 || !self.is_loss() {
            return self;
        }
        let what = match self {
            Self::Broken { what, .. } => what,
            error => error.to_string(),
        };
        let what = format!("{what}; {missing} files, folders and links in it are missing");
        Self::Broken { name: folder.to_owned(), what }
    }

    /// Returns whether a part of a file cannot be read: it is damaged, missing, or another one.
    pub(super) fn is_loss(&self) -> bool {
        matches!(self, Self::Broken { .. }) || self.is_damage()
    }

    /// Returns whether a record is damaged, or is not what it should be.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Store(crate::Error::Damaged { .. }) | Self::Record { .. })
    }
}
