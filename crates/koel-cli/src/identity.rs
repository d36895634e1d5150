//! Tells whether two paths name the same file: `list` and `./list`, hard links, `/dev/stdout`.
//!
//! A file is identified by its device and inode number. Nothing is opened, so a pipe without a
//! reader does not block. On systems without inode numbers no two paths count as the same file.
#![forbid(unsafe_code)]

use std::fs::{self, Metadata};
use std::path::Path;

/// The device and inode number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    /// The identity of the file at the end of all symbolic links.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::from_metadata(&fs::metadata(path).ok()?)
    }

    #[cfg(unix)]
    pub(crate) fn from_metadata(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;

        Some(Self(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    pub(crate) fn from_metadata(_metadata: &Metadata) -> Option<Self> {
        None
    }

    /// The identity of standard output, whatever it is connected to.
    pub(crate) fn of_stdout() -> Option<Self> {
        Self::from_metadata(&stdout_metadata()?)
    }

    /// The identity of standard output, if it is a regular file.
    pub(crate) fn of_stdout_file() -> Option<Self> {
        let metadata = stdout_metadata()?;
        if metadata.is_file() { Self::from_metadata(&metadata) } else { None }
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
