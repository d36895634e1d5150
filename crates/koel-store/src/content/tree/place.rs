//! A file on disk: its attributes, and what identifies its state. And a folder to restore in, which
//! is created when something is restored in it.

use std::cell::{Cell, OnceCell};
use std::fs as disk;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use crate::content::entry::{Attributes, Stamp, Time};
use crate::content::temporary;
use crate::kernel::descriptors::with_room;

/// The bits of a mode that give a file the rights of its owner or its group.
pub(super) const SET_ID: u16 = 0o6000;

/// What the system says of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub(super) kind: FileType,
    pub(super) length: u64,
    pub(super) attributes: Attributes,
    pub(super) stamp: Stamp,
    /// The device and the inode.
    pub(super) identity: (u64, u64),
    pub(super) has_other_names: bool,
    /// Whether it takes less space on disk than its length: it has holes.
    pub(super) has_holes: bool,
}

impl From<Stat> for Status {
    fn from(stat: Stat) -> Self {
        let inode = number(stat.st_ino);
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            length: number(stat.st_size),
            attributes: Attributes {
                mode: u16::try_from(number(stat.st_mode) & 0o7777).unwrap_or_default(),
                uid: stat.st_uid,
                gid: stat.st_gid,
                modified: time(stat.st_mtime, stat.st_mtime_nsec),
            },
            stamp: Stamp { inode, changed: time(stat.st_ctime, stat.st_ctime_nsec) },
            identity: (number(stat.st_dev), inode),
            has_other_names: number(stat.st_nlink) > 1,
            has_holes: number(stat.st_blocks) * 512 < number(stat.st_size),
        }
    }
}

impl Status {
    pub(super) fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(fs::fstat(file)?.into())
    }

    /// Returns the status of a name in a folder, without following a link.
    pub(super) fn at(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<Self> {
        Ok(fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
    }

    /// Returns the stamp, if a later change of the file is sure to change it.
    ///
    /// File systems give times in steps: of some milliseconds, or of 1 or 2 seconds where there are
    /// no nanoseconds. A second change within a step does not change the time.
    pub(super) fn lasting_stamp(&self) -> Stamp {
        let changed = self.stamp.changed;
        let step = if changed.nanos == 0 { 2_000_000_000 } else { 50_000_000 };
        let nanos = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
        let is_over = nanos(Time::now()) - nanos(changed) > step;
        if is_over { self.stamp } else { Stamp::default() }
    }
}

/// Returns whether an open file has extended attributes that are its own: those of security modules
/// are given by the system.
pub(super) fn has_extended(file: BorrowedFd<'_>) -> bool {
    let mut names = Vec::with_capacity(1024);
    match fs::flistxattr(file, rustix::buffer::spare_capacity(&mut names)) {
        Ok(0) => false,
        Ok(_) => names.split(|byte| *byte == 0).any(|name| {
            !name.is_empty() && (!name.starts_with(b"security.") || name == b"security.capability")
        }),
        // The names do not fit: the file has many.
        Err(error) => error == rustix::io::Errno::RANGE,
    }
}

/// Gives an open file or folder its attributes. The owner comes first, because changing it clears
/// bits of the mode. A file gets set-user-ID and set-group-ID only with its owner.
pub(super) fn apply(
    file: BorrowedFd<'_>,
    attributes: &Attributes,
    owners: bool,
    is_folder: bool,
) -> io::Result<()> {
    let owned = if owners { apply_owner(file, attributes) } else { Ok(()) };
    let keep_all = is_folder || (owners && owned.is_ok());
    let mode = if keep_all { attributes.mode } else { attributes.mode & !SET_ID };
    fs::fchmod(file, Mode::from_raw_mode(mode.into()))?;
    apply_time(file, attributes)?;
    owned
}

/// Gives an open file or folder its time.
pub(super) fn apply_time(file: BorrowedFd<'_>, attributes: &Attributes) -> io::Result<()> {
    Ok(fs::futimens(file, &times(attributes.modified))?)
}

fn apply_owner(file: BorrowedFd<'_>, attributes: &Attributes) -> io::Result<()> {
    let (uid, gid) = owner(attributes)?;
    Ok(fs::fchown(file, Some(uid), Some(gid))?)
}

/// Gives a symbolic link its attributes; it has no mode of its own.
pub(super) fn apply_to_link(
    folder: BorrowedFd<'_>,
    name: &[u8],
    attributes: &Attributes,
    owners: bool,
) -> io::Result<()> {
    if owners {
        let (uid, gid) = owner(attributes)?;
        fs::chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    let times = times(attributes.modified);
    Ok(fs::utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns owner and group. The number -1 is no owner: the system would ignore it.
fn owner(attributes: &Attributes) -> io::Result<(Uid, Gid)> {
    if attributes.uid == u32::MAX || attributes.gid == u32::MAX {
        return Err(io::Error::other("its owner is not valid"));
    }
    Ok((Uid::from_raw(attributes.uid), Gid::from_raw(attributes.gid)))
}

fn times(modified: Time) -> Timestamps {
    let omitted = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };
    let modified = Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanos.into() };
    Timestamps { last_access: omitted, last_modification: modified }
}

/// Returns a number of the system, whose type differs between systems.
fn number(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or_default()
}

fn time(seconds: impl TryInto<i64>, nanos: impl TryInto<u32>) -> Time {
    let seconds = seconds.try_into().unwrap_or_default();
    Time { seconds, nanos: nanos.try_into().unwrap_or_default() }
}

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
        if self.keeps_attributes(opened) {
            return apply_time(opened.folder.as_fd(), attributes);
        }
        apply(opened.folder.as_fd(), attributes, owners, true)?;
        opened.former_mode.set(None);
        Ok(())
    }

    /// Returns whether the user gave the folder, and it was there before.
    fn keeps_attributes(&self, opened: &Opened) -> bool {
        !opened.is_new && matches!(self.path, PlacePath::Given(_))
    }

    /// Returns the status of the folder if it was opened and gets all attributes of its entry.
    pub(super) fn new_status(&self) -> io::Result<Option<Status>> {
        let opened = self.opened.get().filter(|it| !self.keeps_attributes(it));
        opened.map(|it| Status::of(it.folder.as_fd())).transpose()
    }

    /// Returns the folder if it was opened.
    pub(super) fn opened(&self) -> Option<BorrowedFd<'_>> {
        Some(self.opened.get()?.folder.as_fd())
    }
}

fn open_given(path: &Path) -> io::Result<Opened> {
    let open = || with_room(|| Ok(fs::open(path, FOLDER, Mode::empty())?));
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
    let open = || fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
    with_room(|| {
        open().map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => {
                io::Error::other("a file or a symbolic link is in the place of a folder")
            }
            error => error.into(),
        })
    })
}
