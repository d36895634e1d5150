//! Replaces a file in one step, and leaves nothing behind.
//!
//! A temporary file in the same folder is written, synced and renamed over the target:
//! - Readers see either the old file or the new one. A crash or a full disk leaves the old one.
//! - Only the owner can read the temporary file. At the end it gets the mode and the owner of the
//!   old file, or the mode of any new file.
//! - On Linux the temporary file has no name until it is complete, so a process that is killed
//!   leaves nothing. Other file systems keep a file `.koel-*`, which [`sweep`] removes on Unix.
//!
//! Cost: one fsync of the file and one of its folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::temporary;

const BUFFER: usize = 128 * 1024;

/// Who can read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Whoever could read the replaced file, or can read any new file.
    Usual,
    /// The owner only.
    Owner,
}

/// A file that replaces another one once it is complete. If it is dropped before, nothing happens.
#[derive(Debug)]
pub struct Replacement {
    sink: BufWriter<File>,
    target: PathBuf,
    /// A file without a name disappears with the process.
    name: Option<TempPath>,
}

impl Replacement {
    /// Creates an empty file that only its owner can read, and locks it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of(target: &Path) -> io::Result<Self> {
        let folder = folder_of(target);
        let (file, name) = match unnamed_in(folder) {
            Ok(file) => (file, None),
            Err(_) => named(folder, create).map(|(file, name)| (file, Some(name)))?,
        };
        temporary::lock(&file)?;
        Ok(Self { sink: BufWriter::with_capacity(BUFFER, file), target: target.to_owned(), name })
    }

    /// Makes the bytes durable, then replaces the target. Returns the new file, which is locked
    /// until it is closed.
    ///
    /// # Errors
    /// Those of the system. The old file is there, unless it is the last step that failed: to make
    /// the new name durable.
    pub fn finish(self, readers: Readers) -> io::Result<File> {
        let (target, folder) = (&self.target, folder_of(&self.target));
        let file = self.sink.into_inner()?;
        match fs::metadata(target) {
            Ok(old) => copy_access(&old, &file, readers)?,
            Err(_) if readers == Readers::Usual => temporary::allow_usual_readers(&file)?,
            Err(_) => {}
        }
        file.sync_all()?;
        let name = match self.name {
            Some(name) => name,
            None => named(folder, |path| link(&file, path))?.1,
        };
        name.persist(target)?;
        sync_folder(folder)?;
        Ok(file)
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Returns the folder of a file.
#[must_use]
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Removes the temporary files in a folder that killed processes of this user have left: files that
/// nobody has locked. Does nothing on other systems than Unix.
pub fn sweep(folder: &Path) {
    #[cfg(unix)]
    File::open(folder).into_iter().for_each(temporary::sweep);
    #[cfg(not(unix))]
    let _ = folder;
}

/// Calls `make` with new names in the folder until one is free.
fn named<T>(folder: &Path, make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, TempPath)> {
    let prefix = temporary::prefix();
    let made = tempfile::Builder::new().prefix(&prefix).rand_bytes(12).make_in(folder, make);
    // Without the path of the temporary file, which the user has not named.
    Ok(made.map_err(|error| error.kind())?.into_parts())
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A file that disappears with the process, until [`link`] names it.
#[cfg(target_os = "linux")]
fn unnamed_in(folder: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let flags = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).map_err(io::Error::other)?;
    if !Path::new(DESCRIPTORS).exists() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    OpenOptions::new().write(true).mode(0o600).custom_flags(flags).open(folder)
}

#[cfg(target_os = "linux")]
const DESCRIPTORS: &str = "/proc/self/fd";

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd;

    let from = Path::new(DESCRIPTORS).join(file.as_raw_fd().to_string());
    Ok(linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn unnamed_in(_folder: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives the new file the owner and the mode of the old one, as far as this process has the right
/// to. Without the group of the old one, its mode would let another group read the file.
#[cfg(unix)]
fn copy_access(old: &fs::Metadata, new: &File, readers: Readers) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let has_group = fchown(new, Some(old.uid()), Some(old.gid())).is_ok()
        || fchown(new, None, Some(old.gid())).is_ok();
    let kept = match readers {
        Readers::Owner => return Ok(()),
        Readers::Usual if has_group => 0o7777,
        Readers::Usual => 0o707,
    };
    new.set_permissions(fs::Permissions::from_mode(old.mode() & kept))
}

#[cfg(not(unix))]
fn copy_access(old: &fs::Metadata, new: &File, readers: Readers) -> io::Result<()> {
    match readers {
        Readers::Usual => new.set_permissions(old.permissions()),
        Readers::Owner => Ok(()),
    }
}

/// Makes the rename durable. A folder that this process may not read cannot be synced.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder) {
        Ok(folder) if cfg!(unix) => folder.sync_all(),
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied && cfg!(unix) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
