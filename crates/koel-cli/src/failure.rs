//! How a verb ends: an outcome, or a failure with its exit code and its one-line message.
//!
//! The exit codes are those of grep, so that `if koel check ..` works in a shell: 0 found, 1 none
//! found, 2 error. Exit code 3 means that a filter is full: a script can build a larger one.
//! A failure prints one line on standard error: `koel: WHAT FAILED; WHAT TO DO`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use koel::{FullError, ImageError, MergeError};
use koel_store::content::ArchiveError;

use crate::quantity::{counted, grouped};

/// The result of a verb that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1: no line was selected, or a key to remove was not found.
    None,
}

impl Outcome {
    pub(crate) fn some_if(found: bool) -> Self {
        if found { Self::Done } else { Self::None }
    }

    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::None => 1,
        })
    }
}

/// Why an input is refused, and what to do, in one sentence; the payload of an [`io::Error`].
#[derive(Debug)]
pub(crate) struct Refused(String);

impl Refused {
    pub(crate) fn error(sentence: impl Into<String>) -> io::Error {
        io::Error::other(Self(sentence.into()))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Why a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request cannot be carried out; the sentence says what to do instead.
    Usage(String),
    /// A file, or standard input, cannot be read.
    Read { path: PathBuf, error: io::Error },
    /// A file, or standard output, cannot be written.
    Write { path: PathBuf, error: io::Error },
    /// The work is done, but its report cannot be printed.
    Unreported { done: String, error: io::Error },
    /// A file is not a filter, or is a damaged one.
    Image { path: PathBuf, error: ImageError },
    /// Two filters cannot be merged or compared.
    Merge { path: PathBuf, error: MergeError },
    /// The filter is full and holds `keys`; `remedy` says what was written and what to do.
    Full { full: FullError, keys: u64, remedy: String },
    /// A segment of a filter that is built in pieces got more keys than it can take.
    FullSegment { segment: u64, keys: u64 },
    /// An operation on a store failed; the error says what to do.
    Store { db: PathBuf, error: Box<ArchiveError> },
    /// A promise of a tour does not hold, or `koel store verify` found damage.
    Broken(String),
    /// The reader closed the pipe (`koel check .. | head`): not an error, so nothing is printed.
    BrokenPipe,
}

impl Failure {
    /// A request that cannot be carried out as this file is: what it is, and what to do.
    pub(crate) fn about(path: &Path, sentence: impl fmt::Display) -> Self {
        Self::Usage(format!("{} {sentence}", path.display()))
    }

    pub(crate) fn read(path: &Path, error: io::Error) -> Self {
        match error.downcast::<Refused>() {
            Ok(refused) => Self::Usage(format!("cannot read {}: {refused}", path.display())),
            Err(error) => Self::Read { path: path.to_owned(), error },
        }
    }

    pub(crate) fn write(path: &Path, error: io::Error) -> Self {
        Self::Write { path: path.to_owned(), error }
    }

    /// A failed write to standard output. A closed pipe is not an error.
    pub(crate) fn stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::write(Path::new("standard output"), error),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Full { .. }
            | Self::FullSegment { .. }
            | Self::Merge { error: MergeError::Full(_), .. } => 3,
            Self::BrokenPipe => 0,
            _ => 2,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("koel: ")?;
        match self {
            Self::Usage(sentence) | Self::Broken(sentence) => f.write_str(sentence),
            Self::Read { path, error } => {
                let (path, what) = (path.display(), describe(error));
                write!(f, "cannot read {path}: {what}; {}", read_remedy(error))
            }
            Self::Write { path, error } => {
                let (path, what) = (path.display(), describe(error));
                write!(f, "cannot write {path}: {what}; {}", write_remedy(error))
            }
            Self::Unreported { done, error } => {
                write!(f, "{done}, but the report cannot be printed: {}", describe(error))
            }
            Self::Image { path, error } => fmt_image(path, *error, f),
            Self::Merge { path, error } => fmt_merge(path, *error, f),
            Self::Full { full, keys, remedy } => write!(f, "{}; {remedy}", fact(*full, *keys)),
            Self::FullSegment { segment, keys } => write!(
                f,
                "segment {segment} of the filter has no room for its {}; nothing was written; use \
                 --unique or a larger --keys",
                counted(*keys, "key")
            ),
            Self::Store { db, error } => write!(f, "{}: {error}", db.display()),
            Self::BrokenPipe => f.write_str("the reader closed the pipe"),
        }
    }
}

/// The library advises programmers; here the advice names a command.
fn fmt_image(path: &Path, error: ImageError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error {
        ImageError::NotAFilter => {
            write!(f, "{} is not a Koel filter; build one with `koel build`", path.display())
        }
        ImageError::Kind { found: found @ "expiring filter", .. } => write!(
            f,
            "{} is an {found}, which `koel dedup --window --state` reads and no other verb",
            path.display()
        ),
        error => write!(f, "{}: {error}", path.display()),
    }
}

/// The library advises programmers; here the advice names options of the command.
fn fmt_merge(path: &Path, error: MergeError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let path = path.display();
    match error {
        MergeError::Incompatible { field: "hash" } => write!(
            f,
            "{path} and the first filter have different hashes; build both with the same --seed or \
             --secret=FILE"
        ),
        MergeError::Incompatible { field: "application bytes" } => write!(
            f,
            "{path} and the first filter made keys of lines in different ways (see koel info); \
             build both with the same --ignore-case, --trim and --keep-cr, and both from lists of \
             hosts (--format hosts or adblock) or both not"
        ),
        MergeError::Incompatible { field } => write!(
            f,
            "{path} and the first filter differ in {field}; build both with the same --fpr, \
             --prefer and --seed, and with --grow or the same --keys"
        ),
        MergeError::Sizes { ours, theirs } => write!(
            f,
            "{path} and the first filter differ in size, for {theirs} and {ours} keys; build both \
             with --grow, or with the same --keys and --fpr"
        ),
        MergeError::Full(FullError::Slots { .. } | FullError::Counters { .. }) => write!(
            f,
            "{path} cannot be merged: the first filter would be full; make it growable with \
             `koel grow`, or build both with --grow"
        ),
        error => write!(f, "{path} cannot be merged: {error}"),
    }
}

/// What is full, without the library's advice to programmers.
fn fact(full: FullError, keys: u64) -> String {
    match full {
        FullError::Slots { capacity, .. } => {
            let (keys, capacity) = (counted(keys, "key"), grouped(capacity));
            format!("filter is full after {keys} (built for {capacity})")
        }
        FullError::Counters { limit } => {
            format!("all {} counters for repeated keys are in use", grouped(limit))
        }
        FullError::Corrections { limit } => {
            format!("the filter may have {} corrections, one for each slot", grouped(limit))
        }
        FullError::NoMemory => "no memory for the filter to grow".to_owned(),
        other => other.to_string(),
    }
}

/// Common errors in plain words, without the error number of the operating system.
pub(crate) fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the quota of the user is used up".to_owned(),
        io::ErrorKind::FileTooLarge => "the file would be larger than the limit allows".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::OutOfMemory => "not enough memory".to_owned(),
        io::ErrorKind::BrokenPipe => "the reader closed the pipe".to_owned(),
        _ => error.to_string(),
    }
}

fn read_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the name",
        io::ErrorKind::PermissionDenied => "check its permissions",
        io::ErrorKind::IsADirectory => "name the files in it",
        // `Other` comes only from the zstd decoder, never from the operating system.
        io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::Other => "it may be damaged or truncated; get a new copy",
        io::ErrorKind::Unsupported => "give keys as lines of plain text, gzip or zstd",
        io::ErrorKind::OutOfMemory => {
            "free some memory, raise the limit (ulimit -v), or give a smaller --max-line"
        }
        io::ErrorKind::NotConnected => "name a file, or redirect it from /dev/null for no input",
        _ => "check the file and the disk it is on",
    }
}

fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "create the folder first",
        io::ErrorKind::PermissionDenied => "choose a folder with write permission",
        io::ErrorKind::IsADirectory => "name a file in it",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space or choose another disk"
        }
        io::ErrorKind::FileTooLarge => "raise the limit (ulimit -f)",
        io::ErrorKind::ReadOnlyFilesystem => "choose another disk",
        io::ErrorKind::BrokenPipe => "the output is incomplete",
        io::ErrorKind::NotConnected => "redirect it to a file or to /dev/null",
        _ => "check the folder and the disk it is on",
    }
}
