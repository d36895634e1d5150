//! Replaces a file in one step, and leaves nothing behind.
//!
//! A temporary file in the same folder is written, synced and renamed over the target:
//! - Readers see either the old file or the new one. A crash or a full disk leaves the old one.
//! - Only the owner can read the temporary file. At the end it gets the mode and the owner of the
//!   old file, or the mode of any new file.
//! - On Linux the temporary file has no name until it is complete, so a process that is killed
//!   leaves nothing. Other file systems keep a file `.koel-part-*`, which the next run removes.
//!
//! A writer locks its temporary file. [`sweep`] removes only files that nobody has locked.
//!
//! Cost: one fsync of the file and one of its folder.
#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use koel_store::content::allow_usual_readers;
use tempfile::TempPath;

use crate::identity::Identity;

const BUFFER: usize = 128 * 1024;
/// The names of temporary files begin with this.
const PREFIX: &str = ".koel-part-";
/// Folders with more entries are not swept completely: reading more would delay every run.
const MAX_SWEPT: usize = 100_000;

/// Who can read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Whoever could read the replaced file, or can read any new file.
    Usual,
    /// The owner only.
    Owner,
}

/// Replaces the file `target` by what `fill` writes. On an error the old file stays. Returns the
/// new file, which is locked until it is closed.
pub(crate) fn replace(
    target: &Path,
    readers: Readers,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let folder = folder_of(target);
    let temporary = Temporary::create_in(folder)?;
    let mut sink = BufWriter::with_capacity(BUFFER, &temporary.file);
    fill(&mut sink)?;
    sink.into_inner()?;
    match fs::metadata(target) {
        Ok(old) => copy_access(&old, &temporary.file, readers)?,
        Err(_) if readers == Readers::Usual => allow_usual_readers(&temporary.file)?,
        Err(_) => {}
    }
    temporary.file.sync_all()?;
    let file = temporary.rename_to(target, folder)?;
    sync_folder(folder)?;
    Ok(file)
}

/// The folder of a file.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Removes the temporary files in a folder that killed processes of this user have left.
pub(crate) fn sweep(folder: &Path) {
    for entry in folder.read_dir().into_iter().flatten().flatten().take(MAX_SWEPT) {
        let path = entry.path();
        if is_leftover(&entry)
            && let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            drop(fs::remove_file(path));
        }
    }
}

/// Whether this user's koel has made the file.
fn is_leftover(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    let is_ours = rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    is_ours && entry.metadata().is_ok_and(|metadata| metadata.is_file() && is_own(&metadata))
}

/// A file that only its owner can read. It has no name yet, or one that is removed when dropped.
struct Temporary {
    file: File,
    name: Option<TempPath>,
}

impl Temporary {
    fn create_in(folder: &Path) -> io::Result<Self> {
        if let Ok(file) = unnamed_in(folder) {
            lock(&file)?;
            return Ok(Self { file, name: None });
        }
        let (file, name) = named(folder, create_locked)?;
        Ok(Self { file, name: Some(name) })
    }

    fn rename_to(self, target: &Path, folder: &Path) -> io::Result<File> {
        let name = match self.name {
            Some(name) => name,
            None => named(folder, |path| link(&self.file, path))?.1,
        };
        name.persist(target)?;
        Ok(self.file)
    }
}

/// Calls `make` with new names in the folder until one is free.
fn named<T>(folder: &Path, make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, TempPath)> {
    let made = tempfile::Builder::new().prefix(PREFIX).rand_bytes(12).make_in(folder, make);
    // Without the path of the temporary file, which the user has not named.
    Ok(made.map_err(|error| error.kind())?.into_parts())
}

/// Creates a file, unless the sweep of another process removes it before it is locked.
fn create_locked(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    lock(&file)?;
    if Identity::of(path) == Identity::from_metadata(&file.metadata()?) {
        Ok(file)
    } else {
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Keeps other processes from sweeping the file.
fn lock(file: &File) -> io::Result<()> {
    match file.lock() {
        // The file system has no locks, so nothing is swept there.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        locked => locked,
    }
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

#[cfg(unix)]
fn is_own(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    file.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_file: &fs::Metadata) -> bool {
    true
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
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::PathBuf;

    /// The modes of all open or named temporary files in a folder.
    fn modes_of_temporary_files(folder: &Path) -> Vec<u32> {
        let is_open_here = |path: &PathBuf| {
            let file = fs::read_link(path).unwrap_or_default();
            file.starts_with(folder) && file != folder
        };
        let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let open = open.map(|entry| entry.path()).filter(is_open_here);
        let named = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let named = named.filter(|path| path.file_name().unwrap().to_str().unwrap() != "target");
        open.chain(named).filter_map(|path| Some(fs::metadata(path).ok()?.mode() & 0o777)).collect()
    }

    /// Regression: the temporary file had the mode of any new file until it was complete.
    #[test]
    fn a_file_is_never_readable_by_others_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let target = folder.join("target");
        for old_mode in [None, Some(0o600), Some(0o640), Some(0o666)] {
            if let Some(mode) = old_mode {
                fs::write(&target, "old").unwrap();
                fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
            }
            replace(&target, Readers::Usual, |sink| {
                sink.write_all(&[7; 1 << 20])?;
                let modes = modes_of_temporary_files(&folder);
                assert!(modes.contains(&0o600), "{modes:?}");
                assert!(modes.iter().all(|mode| mode & 0o77 == 0), "{modes:?}");
                Ok(())
            })
            .unwrap();
            let mode = fs::metadata(&target).unwrap().mode() & 0o777;
            assert_eq!(mode, old_mode.unwrap_or(usual_mode(&folder)));
        }
        let (file, _name) = named(&folder, create_locked).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    }

    /// The mode of a new file, as the system gives it.
    fn usual_mode(folder: &Path) -> u32 {
        let path = folder.join("usual");
        let mode = File::create(&path).unwrap().metadata().unwrap().mode() & 0o777;
        fs::remove_file(path).unwrap();
        mode
    }

    #[test]
    fn a_private_file_is_for_its_owner_whatever_it_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        for _ in 0..2 {
            replace(&target, Readers::Owner, |sink| sink.write_all(b"new")).unwrap();
            assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o600);
            fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::write(&target, "old").unwrap();
        let failed = replace(&target, Readers::Usual, |sink| {
            sink.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    /// Without unnamed files, as on other systems.
    #[test]
    fn a_named_temporary_file_is_renamed_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        for completes in [false, true] {
            let (mut file, name) = named(folder.path(), create_locked).unwrap();
            file.write_all(b"new").unwrap();
            let temporary = Temporary { file, name: Some(name) };
            sweep(folder.path());
            if completes {
                temporary.rename_to(&target, folder.path()).unwrap();
            } else {
                drop(temporary);
            }
            assert_eq!(folder.path().read_dir().unwrap().count(), usize::from(completes));
        }
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn the_sweep_removes_only_leftovers_of_koel_that_no_process_holds() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let kept = ["list", ".koel-key", ".koel-part-mine.txt", "koel-part-abc", ".koel-part-held"];
        for name in kept.iter().chain(&[".koel-part-Ab3", ".koel-part-x"]) {
            fs::write(at(name), "1").unwrap();
        }
        fs::create_dir(at(".koel-part-folder")).unwrap();
        std::os::unix::fs::symlink("list", at(".koel-part-link")).unwrap();
        let holder = File::open(at(".koel-part-held")).unwrap();
        holder.lock().unwrap();
        sweep(folder.path());
        assert!(kept.iter().all(|name| at(name).exists()));
        assert!(at(".koel-part-folder").exists() && at(".koel-part-link").is_symlink());
        assert!(!at(".koel-part-Ab3").exists() && !at(".koel-part-x").exists());
        drop(holder);
        sweep(folder.path());
        assert!(!at(".koel-part-held").exists());
    }
}
