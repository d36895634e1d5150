//! Whether two names are one file: `list` and `./list`, a hard link, `/dev/stdout` and what the shell opened for it.
//!
//! A file is its device and its number there. Asking opens nothing, so a pipe that nobody reads does not wait. Where the system has no such numbers every answer is no, and
//! a verb does as it is told.
#![forbid(unsafe_code)]

use std::fs::{self, Metadata};
use std::path::Path;

/// What makes a file this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    /// Of the file under a name, at the end of all symbolic links.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::in_metadata(&fs::metadata(path).ok()?)
    }

    #[cfg(unix)]
    pub(crate) fn in_metadata(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;

        Some(Self(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    pub(crate) fn in_metadata(_metadata: &Metadata) -> Option<Self> {
        None
    }

    /// Of what standard output goes to.
    pub(crate) fn of_stdout() -> Option<Self> {
        Self::in_metadata(&stdout_metadata()?)
    }

    /// Of the regular file that standard output goes to.
    pub(crate) fn of_stdout_file() -> Option<Self> {
        let metadata = stdout_metadata()?;
        if metadata.is_file() { Self::in_metadata(&metadata) } else { None }
    }
}

#[cfg(unix)]
fn stdout_metadata() -> Option<Metadata> {
    use std::os::fd::AsFd;

    fs::File::from(std::io::stdout().as_fd().try_clone_to_owned().ok()?).metadata().ok()
}

#[cfg(not(unix))]
fn stdout_metadata() -> Option<Metadata> {
    None
}
