//! A folder of the disk to restore in. It is created when something is restored in it.

use std::cell::OnceCell;
use std::fs as disk;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::status::Status;
use crate::content::temporary;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);

/// A folder that is opened, and created if need be, when it is first used.
#[derive(Debug)]
pub(super) struct Place<'a> {
    path: PlacePath<'a>,
    /// The device and the inode of the folder that nothing is restored in.
    skipped: Option<(u64, u64)>,
    opened: OnceCell<Opened>,
}

#[derive(Debug)]
enum PlacePath<'a> {
    /// A path that the user gave: links in it are followed.
    Given(&'a Path),
    /// A name in another place: never a link.
    In(&'a Place<'a>, &'a [u8]),
}

#[derive(Debug)]
struct Opened {
    folder: OwnedFd,
    is_new: bool,
}

impl<'a> Place<'a> {
    pub(super) fn given(path: &'a Path, skipped: Option<&Path>) -> Self {
        let skipped = skipped.and_then(|folder| fs::stat(folder).ok());
        let skipped = skipped.map(|stat| Status::from(stat).identity);
        Self { path: PlacePath::Given(path), skipped, opened: OnceCell::new() }
    }

    pub(super) fn inside(place: &'a Place<'a>, name: &'a [u8]) -> Self {
        let skipped = place.skipped;
        Self { path: PlacePath::In(place, name), skipped, opened: OnceCell::new() }
    }

    /// Returns the folder, which is created with rights for its owner only.
    pub(super) fn open(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened.folder.as_fd());
        }
        let opened = match self.path {
            PlacePath::Given(path) => open_given(path)?,
            PlacePath::In(place, name) => open_inside(place.open()?, name)?,
        };
        if self.skipped.is_some()
            && self.skipped == Some(Status::of(opened.folder.as_fd())?.identity)
        {
            return Err(io::Error::other("it is the folder of the store"));
        }
        if !opened.is_new {
            temporary::sweep(&opened.folder);
        }
        Ok(self.opened.get_or_init(|| opened).folder.as_fd())
    }

    /// Returns the folder if it was opened, and is to get the attributes of an entry: every folder
    /// but one that the user gave and that was there before.
    pub(super) fn to_finish(&self) -> Option<BorrowedFd<'_>> {
        let opened = self.opened.get()?;
        let is_ours = opened.is_new || matches!(self.path, PlacePath::In(..));
        is_ours.then(|| opened.folder.as_fd())
    }

    /// Returns the folder if it was opened.
    pub(super) fn opened(&self) -> Option<BorrowedFd<'_>> {
        Some(self.opened.get()?.folder.as_fd())
    }
}

fn open_given(path: &Path) -> io::Result<Opened> {
    let is_new = match disk::create_dir(path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    Ok(Opened { folder: fs::open(path, FOLDER, Mode::empty())?, is_new })
}

fn open_inside(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<Opened> {
    let is_new = match fs::mkdirat(folder, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    Ok(Opened { folder: open_folder(folder, name)?, is_new })
}

/// Opens a folder in a folder. A link is refused.
pub(super) fn open_folder(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(
        |error| match error {
            Errno::NOTDIR | Errno::LOOP => {
                io::Error::other("a file or a symbolic link is in the place of a folder")
            }
            error => error.into(),
        },
    )
}
