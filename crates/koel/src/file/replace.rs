//! Replaces a file in one step: the only code of the workspace that does.
//!
//! A temporary file in the same folder is written, synced and renamed over the target:
//! - Readers see either the old file or the new one. A crash or a full disk leaves the old one.
//! - Only its owner can read the temporary file. At the end it gets the mode and the owner of the
//!   old file, or those that [`Readers`] says.
//! - Its name is `.koel-PROCESS-NUMBER`, and its writer has locked it. A process that is killed
//!   leaves it, and whoever finds it without a lock, of a process that has ended, may remove it.
//!
//! Cost: one sync of the file and one of its folder.

extern crate std;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::format;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER: usize = 128 << 10;

/// Who can read a file that replaces another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Whoever could read the replaced file, or can read any new file.
    Usual,
    /// Whoever could read the replaced file; the owner only if there was none.
    Kept,
    /// The owner only.
    Owner,
}

/// A file that replaces another one once it is complete. If it is dropped before, nothing happens.
///
/// ```
/// use std::io::Write;
/// use koel::file::{Readers, Replacement};
///
/// # let path = &std::env::temp_dir().join(format!("replaced-{}", std::process::id()));
/// let mut new = Replacement::of(path)?;
/// new.write_all(b"new")?;
/// new.finish(Readers::Usual)?;
/// assert_eq!(std::fs::read(path)?, b"new");
/// # std::fs::remove_file(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Replacement {
    sink: BufWriter<File>,
    /// Dropped after the file was closed.
    temporary: Temporary,
    target: PathBuf,
}

/// The path of a file that is removed with this.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // An error of the write says more than one of the removal would.
        drop(fs::remove_file(&self.0));
    }
}

impl Replacement {
    /// Creates an empty file beside `target` that only its owner can read, and locks it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of(target: &Path) -> io::Result<Self> {
        let options = OpenOptions::new();
        #[cfg(unix)]
        let options = std::os::unix::fs::OpenOptionsExt::mode(&mut options.clone(), 0o600).clone();
        let (file, temporary) = create_in(folder_of(target), options)?;
        match file.lock() {
            // The file system has no locks.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        let sink = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { sink, temporary, target: PathBuf::from(target) })
    }

    /// The file, if nothing was written through this.
    pub(super) fn file(&mut self) -> &mut File {
        self.sink.get_mut()
    }

    /// Makes the bytes durable, replaces the target, and makes its name durable. Returns the new
    /// file, which is locked until it is closed.
    ///
    /// # Errors
    /// Those of the system. The old file is there, unless it is the last step that failed.
    pub fn finish(self, readers: Readers) -> io::Result<File> {
        let target = self.target.clone();
        let file = self.rename(readers)?;
        sync_folder(folder_of(&target)).map(|()| file)
    }

    /// [`finish`](Self::finish) without the last step, [`sync_folder`].
    pub(super) fn rename(self, readers: Readers) -> io::Result<File> {
        let Self { sink, mut temporary, target } = self;
        let file = sink.into_inner()?;
        match fs::metadata(&target) {
            Ok(old) => copy_access(&old, &file, readers)?,
            Err(_) if readers == Readers::Usual => {
                // The only way to ask for the umask without changing it.
                let (usual, _removed) = create_in(folder_of(&target), OpenOptions::new())?;
                file.set_permissions(usual.metadata()?.permissions())?;
            }
            Err(_) => {}
        }
        file.sync_all()?;
        fs::rename(&temporary.0, &target)?;
        // It is the target now: nothing is to be removed.
        temporary.0.clear();
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
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a file with a new name.
fn create_in(folder: &Path, mut options: OpenOptions) -> io::Result<(File, Temporary)> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    options.read(true).write(true).create_new(true);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".koel-{}-{number}", std::process::id()));
        match options.open(&path) {
            // Left by a process of this number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, Temporary(path))),
        }
    }
}

/// Gives the new file the owner and the mode of the old one, as far as this process has the right
/// to. Without the group of the old one, its mode would let another group read the file.
#[cfg(unix)]
fn copy_access(old: &fs::Metadata, new: &File, readers: Readers) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let has_group = fchown(new, Some(old.uid()), Some(old.gid())).is_ok()
        || fchown(new, None, Some(old.gid())).is_ok();
    let kept = if has_group { 0o7777 } else { 0o707 };
    if readers == Readers::Owner {
        return Ok(());
    }
    new.set_permissions(fs::Permissions::from_mode(old.mode() & kept))
}

#[cfg(not(unix))]
fn copy_access(old: &fs::Metadata, new: &File, readers: Readers) -> io::Result<()> {
    if readers == Readers::Owner { Ok(()) } else { new.set_permissions(old.permissions()) }
}

/// Makes a rename durable, unless this process may not read the folder: one of mode 0300 takes new
/// files, and cannot be opened.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}
