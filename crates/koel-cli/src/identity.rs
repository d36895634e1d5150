//! Tells what a path names: the same file as another path, a pipe, an open descriptor.
//!
//! - `list`, `./list`, hard links and `/dev/stdout` may name the same file. A file is identified by
//!   its device and inode number. On systems without them no two paths count as the same file.
//! - A path such as `/dev/fd/5`, which the `<(..)` and `>(..)` of a shell give, names an open
//!   descriptor.
//!
//! Nothing is opened, so a pipe without a reader does not block.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// The longest chain of symbolic links that is followed.
const MAX_LINKS: usize = 40;

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

    /// The number of names that a file has. 0 if there is no such file or it cannot be told.
    pub(crate) fn names_of(path: &Path) -> u64 {
        #[cfg(unix)]
        return fs::metadata(path).map_or(0, |file| std::os::unix::fs::MetadataExt::nlink(&file));
        #[cfg(not(unix))]
        return fs::metadata(path).map_or(0, |_| 1);
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

/// The paths of a chain of symbolic links, from `path` to the first path that is not a link.
pub(crate) fn chain(path: &Path) -> impl Iterator<Item = PathBuf> {
    let next = |link: &PathBuf| {
        let target = fs::read_link(link).ok()?;
        Some(link.parent().unwrap_or(Path::new("")).join(target))
    };
    std::iter::successors(Some(path.to_owned()), next).take(MAX_LINKS)
}

/// Whether a path names an open descriptor of a process.
pub(crate) fn is_descriptor(path: &Path) -> bool {
    let folder = |path: PathBuf| path.parent()?.canonicalize().ok();
    chain(path).filter_map(folder).any(|folder| {
        folder == Path::new("/dev/fd") || folder.starts_with("/proc") && folder.ends_with("fd")
    })
}

/// What a file is that is neither a regular file nor a folder, with an article.
#[cfg(unix)]
pub(crate) fn special_kind(metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;

    let kind = metadata.file_type();
    match () {
        () if kind.is_fifo() => Some("a named pipe"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_block_device() => Some("a block device"),
        () if kind.is_char_device() => Some("a device"),
        () => None,
    }
}

#[cfg(not(unix))]
pub(crate) fn special_kind(metadata: &Metadata) -> Option<&'static str> {
    (!metadata.is_file() && !metadata.is_dir()).then_some("a device")
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
