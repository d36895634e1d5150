//! How a verb ends: an outcome, or a failure that knows its exit code and its one line of text.
//!
//! Exit codes are those of grep, so that `if koel check ..` works in a shell: 0 some, 1 none, 2 error; and 3 for a full filter, which
//! a script may want to answer by building a larger one. Every failure is one line on standard error, `koel: WHAT; WHAT TO DO`.
#![forbid(unsafe_code)]

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use koel::{Full, ImageError, MergeError};
use koel_store::content::ArchiveError;

/// How a verb ends that did what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1: no line was selected, or a key to remove was not there.
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

/// Why a verb could not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request makes no sense; the sentence says what to ask instead.
    Usage(String),
    /// A file, or standard input, cannot be read.
    Read { path: PathBuf, error: io::Error },
    /// A file, or standard output, cannot be written.
    Write { path: PathBuf, error: io::Error },
    /// All is done, but the report on it cannot be printed.
    Unreported { done: String, error: io::Error },
    /// A file that should be a sound filter is not.
    Image { path: PathBuf, error: ImageError },
    /// Two filters do not go together.
    Merge { path: PathBuf, error: MergeError },
    /// A key found no room; `remedy` says what became of the files and what to do.
    Full { full: Full, remedy: String },
    /// A store could not do what it was asked; the error says what to do.
    Store { db: PathBuf, error: Box<ArchiveError> },
    /// A tour found a promise that does not hold, or `koel store verify` what is not as it was written.
    Broken(String),
    /// Whoever read our output has had enough (`koel check .. | head`): not worth a word.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn read(path: &Path, error: io::Error) -> Self {
        Self::Read { path: path.to_owned(), error }
    }

    pub(crate) fn write(path: &Path, error: io::Error) -> Self {
        Self::Write { path: path.to_owned(), error }
    }

    /// A failed write to standard output, which is no failure where the reader went away.
    pub(crate) fn stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::write(Path::new("standard output"), error),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Full { .. } | Self::Merge { error: MergeError::Full(_), .. } => 3,
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
                write!(f, "cannot read {}: {}; {}", path.display(), fact(error), read_remedy(error))
            }
            Self::Write { path, error } => {
                write!(
                    f,
                    "cannot write {}: {}; {}",
                    path.display(),
                    fact(error),
                    write_remedy(error)
                )
            }
            Self::Unreported { done, error } => {
                write!(
                    f,
                    "{done}; only the report on it cannot be written to standard output: {}",
                    fact(error)
                )
            }
            Self::Image { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Merge { path, error } => {
                write!(f, "{} does not go with the first filter: ", path.display())?;
                match error {
                    MergeError::Incompatible { field } => write!(
                        f,
                        "they differ in {field}; build both with --grow, or both with the same --keys, --fpr, --prefer and --seed"
                    ),
                    error => error.fmt(f),
                }
            }
            Self::Full { full, remedy } => write!(f, "{}; {remedy}", full_fact(*full)),
            Self::Store { db, error } => write!(f, "{}: {error}", db.display()),
            Self::BrokenPipe => f.write_str("the reader of the output went away"),
        }
    }
}

/// The fact alone: the library's own sentence advises a programmer, ours must name options of the command.
fn full_fact(full: Full) -> String {
    match full {
        Full::Slots { in_use, capacity } => {
            format!("the filter is full: {in_use} entries where it was built for {capacity} keys")
        }
        Full::Counters { limit } => format!("all {limit} counters for repeated keys are in use"),
        other => other.to_string(),
    }
}

/// The usual errors in plain words, without the number of the operating system.
pub(crate) fn fact(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::BrokenPipe => "its reader went away".to_owned(),
        _ => error.to_string(),
    }
}

fn read_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the name",
        io::ErrorKind::PermissionDenied => "check who may read it",
        io::ErrorKind::IsADirectory => "name the files in it",
        // The system has no error of kind `Other`: the decoder of zstd has no other.
        io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::Other => "it may be damaged or cut short, get it again",
        io::ErrorKind::Unsupported => "give keys as lines, plain or gzip or zstd",
        _ => "check the file and the disk it is on",
    }
}

fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "create the folder first",
        io::ErrorKind::PermissionDenied => "choose a folder that you may write to",
        io::ErrorKind::IsADirectory => "name a file in it",
        io::ErrorKind::StorageFull => "make room or choose another disk",
        io::ErrorKind::BrokenPipe => "what it read is not all",
        _ => "check the folder and the disk it is on",
    }
}
