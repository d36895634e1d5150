//! A folder of the disk to restore in. It is created when something is restored in it.

use std::cell::{Cell, OnceCell};
use std::fs as disk;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::status::{self, Status};
use crate::content::entry::Attributes;
use crate::content::temporary;

/// The permissions in a mode, and the three bits before them.
const ALL_BITS: Mode = Mode::from_bits_retain(0o7777);

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
    /// The mode of a folder that was not writable before.
    former_mode: Cell<Option<Mode>>,
}

impl Opened {
    /// Lets the owner write into a folder that is there, until this is dropped.
    fn existing(folder: OwnedFd) -> io::Result<Self> {
        let mode = Mode::from_raw_mode(fs::fstat(&folder)?.st_mode) & ALL_BITS;
        let former_mode = (!mode.contains(Mode::WUSR | Mode::XUSR)).then_some(mode);
        if former_mode.is_some() {
            // Others cannot change the mode, and learn of it when they write.
            fs::fchmod(&folder, mode | Mode::RWXU).unwrap_or_default();
        }
        Ok(Self { folder, is_new: false, former_mode: Cell::new(former_mode) })
    }

    fn new(folder: OwnedFd) -> Self {
        Self { folder, is_new: true, former_mode: Cell::new(None) }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(mode) = self.former_mode.get() {
            fs::fchmod(&self.folder, mode).unwrap_or_default();
        }
    }
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
            temporary::sweep_open(&opened.folder);
        }
        Ok(self.opened.get_or_init(|| opened).folder.as_fd())
    }

    /// Gives the folder, if it was opened, the attributes of its entry. One that the user gave and
    /// that was there before gets the time only.
    pub(super) fn finish(&self, attributes: &Attributes, owners: bool) -> io::Result<()> {
        let Some(opened) = self.opened.get() else { return Ok(()) };
        if !opened.is_new && matches!(self.path, PlacePath::Given(_)) {
            return status::apply_time(opened.folder.as_fd(), attributes);
        }
        status::apply(opened.folder.as_fd(), attributes, owners, true)?;
        opened.former_mode.set(None);
        Ok(())
    }

    /// Returns the folder if it was opened.
    pub(super) fn opened(&self) -> Option<BorrowedFd<'_>> {
        Some(self.opened.get()?.folder.as_fd())
    }
}

fn open_given(path: &Path) -> io::Result<Opened> {
    let open = || fs::open(path, FOLDER, Mode::empty());
    match disk::create_dir(path) {
        Ok(()) => Ok(Opened::new(open()?)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Opened::existing(open()?),
        Err(error) => Err(error),
    }
}

fn open_inside(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<Opened> {
    match fs::mkdirat(folder, name, Mode::RWXU) {
        Ok(()) => Ok(Opened::new(open_folder(folder, name)?)),
        Err(Errno::EXIST) => Opened::existing(open_folder(folder, name)?),
        Err(error) => Err(error.into()),
    }
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
