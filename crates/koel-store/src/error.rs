//! What can go wrong, as data and as a sentence that says what to do.

use std::fmt;
use std::io;

use crate::kernel::manifest;

/// Why a store could not do what it was asked. Nothing that was acknowledged is lost by any of these.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused a call.
    Io {
        /// What was being done, such as `read` or `sync`.
        action: &'static str,
        /// The file, or the folder where it is about names.
        file: String,
        /// What the system said.
        error: io::Error,
    },
    /// Another process, or another `LogStore` of this one, has the folder open.
    Locked,
    /// Bytes that are not what was written.
    Damaged {
        /// The file.
        file: String,
        /// Where in it the first record, or part, that is not sound begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// There are segments and no manifest that names them.
    NoManifest,
    /// The manifest is older than the log: it does not name a segment that was written after it. Nothing was changed or removed.
    OldManifest {
        /// The segment.
        file: String,
    },
    /// A segment that belongs to another store than the manifest does. Nothing was changed or removed.
    OtherStore {
        /// The segment.
        file: String,
    },
    /// Written by a later version of the format.
    Newer {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// A write or a sync failed earlier, so nothing is known of the end of the log: no more writes until the store is opened again.
    Poisoned {
        /// The failure.
        reason: String,
    },
    /// The store was opened for reading alone.
    ReadOnly,
    /// A key or a value has more than 4 GiB, 2^32 bytes.
    TooLong {
        /// `key` or `value`.
        what: &'static str,
        /// Its bytes.
        len: u64,
    },
    /// A batch of several records does not fit into one segment.
    BatchTooLarge {
        /// Bytes of its records.
        bytes: u64,
        /// Bytes that a segment has for records.
        most: u64,
    },
    /// The reader of a value failed, or ended before its length. Nothing was written.
    Source {
        /// What it said.
        error: io::Error,
    },
    /// Every location that the index can name is in use.
    Full {
        /// Segments in use.
        segments: u64,
    },
}

impl Error {
    /// For `map_err`: a call that failed on a file.
    pub(crate) fn io(action: &'static str, file: &str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { action, file: file.to_owned(), error }
    }

    pub(crate) fn damaged(file: &str, offset: u64, what: &'static str) -> Self {
        Self::Damaged { file: file.to_owned(), offset, what }
    }
}

/// Whether the process, or the system, has as many files open as it may: EMFILE, ENFILE.
fn is_of_open_files(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// How a damaged file is replaced.
fn from_a_copy(file: &str) -> &'static str {
    if file == manifest::NAME {
        "restore it together with all other files of the same copy"
    } else {
        "restore the file from a copy"
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, file, error } if is_of_open_files(error) => write!(
                f,
                "cannot {action} {file}: {error}; let the process have more files open (`ulimit -n`), or the store fewer \
                 (`Options::open_files`)"
            ),
            Self::Io { action, file, error } => {
                write!(f, "cannot {action} {file}: {error}; see to the disk and try again")
            }
            Self::Locked => f.write_str(
                "the store is open elsewhere; close it there, only those that read alone may have it open at the same time",
            ),
            Self::Damaged { file, offset, what } => write!(
                f,
                "{file} is damaged at byte {offset}: {what}; {}, or salvage what can be read, and look at the disk",
                from_a_copy(file)
            ),
            Self::NoManifest => f.write_str(
                "the folder has segments of a store but no MANIFEST; restore it together with all other files of the same copy, or \
                 salvage what can be read",
            ),
            Self::OldManifest { file } => write!(
                f,
                "MANIFEST is older than {file}, which it does not name and which goes on behind the end of the log; restore MANIFEST \
                 together with all other files of the same copy; or take {file} out of the folder, and go back to what MANIFEST knows"
            ),
            Self::OtherStore { file } => write!(
                f,
                "MANIFEST and {file} belong to two stores; restore MANIFEST together with all other files of the same copy; or take {file} \
                 out of the folder, if it is the one that does not belong there"
            ),
            Self::Newer { file, version } => write!(
                f,
                "{file} is written in format version {version}, which this program does not know; use a newer koel"
            ),
            Self::Poisoned { reason } => write!(
                f,
                "no more writes since an earlier one failed ({reason}); see to the disk, then close and open the store"
            ),
            Self::ReadOnly => f.write_str(
                "the store was opened for reading alone; open it without `Options::read_only` to write",
            ),
            Self::TooLong { what, len } => write!(
                f,
                "a {what} of {len} bytes is too long, the most is 4294967296 (4 GiB); divide it"
            ),
            Self::BatchTooLarge { bytes, most } => write!(
                f,
                "a batch of {bytes} bytes does not fit into a segment, which takes {most}; write smaller batches, or create \
                 the store with larger segments"
            ),
            Self::Source { error } => {
                write!(f, "the value could not be read: {error}; nothing was written")
            }
            Self::Full { segments } => write!(
                f,
                "the index can name no more than {segments} segments; compact the store, or create one with larger segments"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } | Self::Source { error } => Some(error),
            _ => None,
        }
    }
}
