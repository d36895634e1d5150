//! The attributes of a file on disk, and what identifies its state.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{self, AtFlags, FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid};

use crate::content::entry::{Attributes, Stamp, Time};

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
