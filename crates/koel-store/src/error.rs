//! The errors of a store: data for programs, and a sentence that says what to do.

use std::fmt;
use std::io;
use std::path::Path;

use thiserror::Error as Described;

use crate::kernel::descriptors::is_too_many_files;
use crate::kernel::store_files::{MANIFEST, StoreKind};

/// Why an operation of a store failed. None of these errors loses acknowledged data.
#[derive(Debug, Described)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot {action} {file}: {error}; {}", io_advice(.error))]
    Io {
        /// The action that failed, such as `read` or `sync`.
        action: &'static str,
        /// The file, or the folder for actions on names.
        file: String,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// Another process, or another handle of this one, has the store open.
    #[error("the store is open elsewhere; close it there, or open it read-only everywhere")]
    Locked,
    /// Bytes of a file are not what was written.
    #[error(
        "{file} is damaged at byte {offset}: {what}; {}, or salvage what can be read, and check the disk",
        restore_advice(.file)
    )]
    Damaged {
        /// The file.
        file: String,
        /// The offset of the first unsound record or part.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// There is no store to read.
    #[error(
        "there is no store in {folder}: it has no file MANIFEST; check the name, or open it for \
         writing to create it"
    )]
    NoStore {
        /// The folder.
        folder: String,
    },
    /// There are files of a store, but there is no manifest.
    #[error(
        "the folder has files of a store but no MANIFEST; {RESTORE_MANIFEST}, or salvage what can be \
         read"
    )]
    NoManifest,
    /// The manifest is older than the log: it does not name a segment that was written after it.
    /// Nothing was changed or removed.
    #[error(
        "MANIFEST is older than {file}, which continues the log; {RESTORE_MANIFEST}; or move {file} \
         out of the folder to go back to the state in MANIFEST"
    )]
    OldManifest {
        /// The segment.
        file: String,
    },
    /// A segment and the manifest belong to different stores. Nothing was changed or removed.
    #[error(
        "MANIFEST and {file} belong to different stores; {RESTORE_MANIFEST}; or move {file} out of \
         the folder if it is the wrong one"
    )]
    OtherStore {
        /// The segment.
        file: String,
    },
    /// The folder has a store of another kind.
    #[error("the folder has {}, or use another folder", open_advice(*.found))]
    WrongKind {
        /// Its kind.
        found: StoreKind,
    },
    /// A file has a later version of the format.
    #[error("{file} has format version {version}, which is too new; use a newer version of koel")]
    Newer {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// An earlier write or sync failed, and it is not known what it left of the log. The store
    /// takes no more writes until it is opened again.
    #[error(
        "the store takes no more writes because an earlier one failed ({reason}); check the disk, \
         then close and open the store"
    )]
    Poisoned {
        /// The failure.
        reason: String,
    },
    /// The write was made, but not durably, and a reader may have seen it. Opening the store again
    /// shows whether it stayed. All other errors of a write say that it was not made.
    #[error(
        "the write may not be durable ({reason}); check the disk, then open the store again to see if \
         the write is there"
    )]
    InDoubt {
        /// What failed.
        reason: String,
    },
    /// The store was opened read-only.
    #[error("the store was opened read-only; open it without `LogOptions::read_only` to write")]
    ReadOnly,
    /// A key or a value is longer than the store takes.
    #[error("a {what} of {len} bytes is too long; the maximum is {max} bytes; split it")]
    TooLong {
        /// `key` or `value`.
        what: &'static str,
        /// Its length in bytes.
        len: u64,
        /// The greatest length that the store takes.
        max: u64,
    },
    /// A batch has more bytes than the store takes at once: than fit into one segment of a log
    /// store, or than the options of an ordered store allow.
    #[error(
        "a batch of {bytes} bytes is too large; the maximum of this store is {max} bytes; write \
         smaller batches, or raise the maximum: `LsmOptions::max_batch_bytes`, or \
         `LogOptions::segment_bytes` when a log store is created"
    )]
    BatchTooLarge {
        /// Bytes of its records.
        bytes: u64,
        /// The most bytes that the store takes.
        max: u64,
    },
    /// The reader of a value failed, or ended early. Nothing was written.
    #[error("the value could not be read: {error}; nothing was written")]
    Source {
        /// The error of the reader.
        #[source]
        error: io::Error,
    },
    /// The store has as many segments as the index can address.
    #[error(
        "the store has {segments} segments, the maximum; compact it, or create one with larger \
         segments"
    )]
    Full {
        /// The number of segments.
        segments: u64,
    },
    /// Writes come faster than they can be merged, or merging fails. The write was not made.
    #[error("the write was not made: it waited {waited} ms for {}", stall_advice(.reason.as_deref()))]
    Stalled {
        /// How long the write waited, in milliseconds.
        waited: u64,
        /// Why the last flush or merge failed, if it did.
        reason: Option<String>,
    },
    /// Live snapshots keep the range deletions of the store from being merged away, and they take
    /// as much memory as they may. The write was not made.
    #[error(
        "the write was not made: live snapshots keep range deletions of {bytes} bytes, above {max}; \
         drop snapshots and transactions, and try again"
    )]
    RangesHeld {
        /// Bytes of memory that they take.
        bytes: u64,
        /// The most that they may take.
        max: u64,
    },
    /// Something that a transaction has read was written by others since. Nothing was written.
    #[error(
        "another write has changed what the transaction read; begin again with a new transaction; \
         nothing was written"
    )]
    Conflict,
    /// A key of an ingestion does not come after the one before it. Nothing was ingested.
    #[error(
        "the key of entry {entry} (counted from 0) does not come after the one before it; sort the \
         entries by key, without duplicates; nothing was ingested"
    )]
    NotSorted {
        /// The number of keys before it.
        entry: u64,
    },
    /// The compaction filter panicked. The merge was not made, and the filter is not called again
    /// until the store is opened again.
    #[error(
        "the compaction filter panicked ({reason}); the store goes on and keeps every entry; mend the \
         filter and open the store again"
    )]
    FilterPanicked {
        /// What the panic says.
        reason: String,
    },
    /// The folder for a checkpoint has files already.
    #[error("{folder} is not empty; give the checkpoint a folder that is empty or does not exist")]
    NotEmpty {
        /// The folder.
        folder: String,
    },
    /// There is not enough memory for an allocation whose size depends on data or settings: keys,
    /// values, blocks, batches, the index or the guide.
    ///
    /// Small allocations of fixed size, and those of other crates, abort the process instead, as
    /// std's do: the nodes of a memtable, the tables of the block cache, the state of threads and
    /// of compression.
    #[error("cannot allocate {bytes} bytes of memory; free memory and try again")]
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

    /// The error of opening the folder of a store.
    pub(crate) fn no_folder(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NoStore { folder: FOLDER.to_owned() },
            _ => Self::io("open", FOLDER)(error),
        }
    }

    /// The error of a write that was made, but perhaps not durably.
    pub(crate) fn in_doubt(self) -> Self {
        Self::InDoubt { reason: self.reason() }
    }

    /// Returns what failed, without what to do.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Io { action, file, error } => format!("cannot {action} {file}: {error}"),
            Self::InDoubt { reason } | Self::Poisoned { reason } => reason.clone(),
            other => other.to_string(),
        }
    }

    /// Names the folder of the store in the error.
    pub(crate) fn at(mut self, path: &Path) -> Self {
        if let Self::Io { file: name, .. }
        | Self::NoStore { folder: name }
        | Self::NotEmpty { folder: name } = &mut self
            && name == FOLDER
        {
            *name = path.display().to_string();
        }
        self
    }

    pub(crate) fn damaged(file: &str, offset: u64, what: &'static str) -> Self {
        Self::Damaged { file: file.to_owned(), offset, what }
    }
}

/// Stands for the folder of the store, where its path is not known.
pub(crate) const FOLDER: &str = "the folder";

/// What to do about a manifest that does not fit the other files.
const RESTORE_MANIFEST: &str = "restore MANIFEST from a backup together with all other files";

/// Returns what to do about an I/O error.
fn io_advice(error: &io::Error) -> &'static str {
    if is_too_many_files(error) {
        return "the store has closed what it can; raise the limit of the process (`ulimit -n`), or \
                find what keeps so many files open";
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space on the disk and try again"
        }
        io::ErrorKind::FileTooLarge => "raise the limit of file sizes and try again",
        io::ErrorKind::PermissionDenied => "check the permissions of the folder and its files",
        io::ErrorKind::ReadOnlyFilesystem => "open the store read-only",
        io::ErrorKind::NotADirectory => "name the folder of a store, not a file",
        io::ErrorKind::InvalidInput => "remove it, or restore it from a backup",
        _ => "check the disk and try again",
    }
}

/// Returns what to do about a damaged file.
fn restore_advice(file: &str) -> &'static str {
    if file == MANIFEST { RESTORE_MANIFEST } else { "restore it from a backup" }
}

/// Returns what a folder has, and how it is opened.
fn open_advice(found: StoreKind) -> &'static str {
    match found {
        StoreKind::Log => "a log store; open it as LogStore",
        StoreKind::Lsm => "an ordered store; open it as LsmStore",
    }
}

/// Returns what a write waited for, and what to do about that.
fn stall_advice(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("room, and merging fails ({reason}); solve that and try again"),
        None => "merges; write more slowly, or raise `LsmOptions::stall_limit`".to_owned(),
    }
}

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
