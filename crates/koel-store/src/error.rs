//! The errors of a store: data for programs, and a sentence that says what to do.

use std::fmt;
use std::io;

use crate::kernel::file_names::MANIFEST;

/// Why an operation of a store failed. None of these errors loses acknowledged data.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    Io {
        /// The action that failed, such as `read` or `sync`.
        action: &'static str,
        /// The file, or the folder for actions on names.
        file: String,
        /// The error of the system.
        error: io::Error,
    },
    /// Another process, or another `LogStore` of this one, has the store open.
    Locked,
    /// Bytes of a file are not what was written.
    Damaged {
        /// The file.
        file: String,
        /// The offset of the first unsound record or part.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// There are segments, but there is no manifest.
    NoManifest,
    /// The manifest is older than the log: it does not name a segment that was written after it.
    /// Nothing was changed or removed.
    OldManifest {
        /// The segment.
        file: String,
    },
    /// A segment and the manifest belong to different stores. Nothing was changed or removed.
    OtherStore {
        /// The segment.
        file: String,
    },
    /// A file has a later version of the format.
    Newer {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// An earlier write or sync failed, so the end of the log is not known. The store takes no more
    /// writes until it is opened again.
    Poisoned {
        /// The failure.
        reason: String,
    },
    /// The store was opened read-only.
    ReadOnly,
    /// A key or a value has more than 4 GiB (2^32 bytes).
    TooLong {
        /// `key` or `value`.
        what: &'static str,
        /// Its length in bytes.
        len: u64,
    },
    /// A batch of several records does not fit into one segment.
    BatchTooLarge {
        /// Bytes of its records.
        bytes: u64,
        /// Bytes that a segment has for records.
        max: u64,
    },
    /// The reader of a value failed, or ended early. Nothing was written.
    Source {
        /// The error of the reader.
        error: io::Error,
    },
    /// The store has as many segments as the index can address.
    Full {
        /// The number of segments.
        segments: u64,
    },
    /// There is not enough memory.
    OutOfMemory {
        /// The size of the allocation that failed.
        bytes: u64,
    },
}

impl Error {
    /// Returns a function for `map_err`, which adds the action and the file to an I/O error.
    pub(crate) fn io(action: &'static str, file: &str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { action, file: file.to_owned(), error }
    }

    pub(crate) fn damaged(file: &str, offset: u64, what: &'static str) -> Self {
        Self::Damaged { file: file.to_owned(), offset, what }
    }
}

/// What to do about a manifest that does not fit the other files.
const RESTORE_MANIFEST: &str = "restore MANIFEST from a backup together with all other files";

/// Returns what to do about an I/O error.
fn io_advice(error: &io::Error) -> &'static str {
    // EMFILE and ENFILE: the process or the system has too many files open.
    if cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24)) {
        "raise the limit of the process (`ulimit -n`), or lower that of the store \
         (`Options::max_open_files`)"
    } else {
        "check the disk and try again"
    }
}

impl Error {
    /// Writes the message of an error about a manifest that is missing or does not fit.
    fn fmt_manifest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OldManifest { file } => write!(
                f,
                "MANIFEST is older than {file}, which continues the log; {RESTORE_MANIFEST}; or move \
                 {file} out of the folder to go back to the state in MANIFEST"
            ),
            Self::OtherStore { file } => write!(
                f,
                "MANIFEST and {file} belong to different stores; {RESTORE_MANIFEST}; or move {file} \
                 out of the folder if it is the wrong one"
            ),
            _ => write!(
                f,
                "the folder has segments of a store but no MANIFEST; {RESTORE_MANIFEST}, or salvage \
                 what can be read"
            ),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, file, error } => {
                write!(f, "cannot {action} {file}: {error}; {}", io_advice(error))
            }
            Self::Locked => f.write_str(
                "the store is open elsewhere; close it there, or open it read-only everywhere",
            ),
            Self::Damaged { file, offset, what } => {
                let is_manifest = file == MANIFEST;
                let advice =
                    if is_manifest { RESTORE_MANIFEST } else { "restore it from a backup" };
                write!(
                    f,
                    "{file} is damaged at byte {offset}: {what}; {advice}, or salvage what can be \
                     read, and check the disk"
                )
            }
            Self::NoManifest | Self::OldManifest { .. } | Self::OtherStore { .. } => {
                self.fmt_manifest(f)
            }
            Self::Newer { file, version } => write!(
                f,
                "{file} has format version {version}, which is too new; use a newer version of koel"
            ),
            Self::Poisoned { reason } => write!(
                f,
                "the store takes no more writes because an earlier one failed ({reason}); check \
                 the disk, then close and open the store"
            ),
            Self::ReadOnly => f.write_str(
                "the store was opened read-only; open it without `Options::read_only` to write",
            ),
            Self::TooLong { what, len } => write!(
                f,
                "a {what} of {len} bytes is too long; the maximum is 4294967296 (4 GiB); split it"
            ),
            Self::BatchTooLarge { bytes, max } => write!(
                f,
                "a batch of {bytes} bytes does not fit into a segment, which has room for {max}; \
                 write smaller batches, or create the store with larger segments"
            ),
            Self::Source { error } => {
                write!(f, "the value could not be read: {error}; nothing was written")
            }
            Self::Full { segments } => write!(
                f,
                "the store has {segments} segments, the maximum; compact it, or create one with \
                 larger segments"
            ),
            Self::OutOfMemory { bytes } => {
                write!(f, "cannot allocate {bytes} bytes of memory; free memory and try again")
            }
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
