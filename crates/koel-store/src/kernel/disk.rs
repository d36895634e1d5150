//! The file layer over the file system: `std::fs`, with `pread` and `pwrite` for offsets.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file_names::{LOCK, MANIFEST};
use super::files::{File, Folder};

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct DiskFolder {
    path: PathBuf,
    read_only: bool,
}

impl DiskFolder {
    /// Opens the folder at `path`. If it does not exist, it is created durably, with its parents.
    ///
    /// # Errors
    /// I/O errors.
    pub fn new(path: &Path) -> io::Result<Self> {
        if !path.join(MANIFEST).exists() {
            create_folders(&std::path::absolute(path)?, sync_folder)?;
        }
        Ok(Self { path: path.to_owned(), read_only: false })
    }

    /// Opens the folder at `path` read-only; the file system may be read-only too. The lock of the
    /// folder then keeps writers out, but not other readers.
    #[must_use]
    pub fn read_only(path: &Path) -> Self {
        Self { path: path.to_owned(), read_only: true }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Creates a folder and its missing parents. Each name is made durable before anything is put into
/// that folder.
///
/// The name of the lowest existing folder is made durable too: a process may have created it and
/// crashed.
fn create_folders(path: &Path, mut sync: impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let missing = path.ancestors().take_while(|folder| !folder.is_dir()).count();
    let folders: Vec<&Path> = path.ancestors().take(missing + 1).collect();
    for (i, folder) in folders.iter().rev().enumerate() {
        let is_new = i > 0;
        if is_new {
            create_folder(folder)?;
        }
        match folder.parent().map_or(Ok(()), &mut sync) {
            // A process that may not read the parent has most likely not created this folder in it.
            Err(error) if !is_new && error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Creates a folder, unless another process does so first.
fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path).or_else(|error| if path.is_dir() { Ok(()) } else { Err(error) })
}

/// Makes the names in a folder durable. Windows has no such call and writes names through.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(path)?.sync_all() } else { Ok(()) }
}

impl Folder for DiskFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(!self.read_only).open(self.at(name))?;
        Ok(Arc::new(DiskFile::new(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file =
            fs::OpenOptions::new().read(true).write(true).create_new(true).open(self.at(name))?;
        Ok(Arc::new(DiskFile::new(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.at(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string().ok().filter(|name| name != LOCK));
        }
        Ok(names)
    }

    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        let path = self.at(LOCK);
        if self.read_only {
            return match fs::File::open(path) {
                Ok(file) => {
                    file.try_lock_shared()?;
                    Ok(Box::new(file))
                }
                // Only a writer creates the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Box::new(())),
                Err(error) => Err(error),
            };
        }
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.try_lock()?;
        Ok(Box::new(file))
    }
}

/// An open file. `sync_data` makes its length durable too.
#[derive(Debug)]
struct DiskFile(fs::File);

impl DiskFile {
    fn new(file: fs::File) -> Self {
        #[cfg(target_os = "linux")]
        // Only the owner of the file may do this. For others reads work as before.
        drop(without_access_times(&file));
        Self(file)
    }
}

/// Turns off access times for the file: checking whether one is due takes 5 % of a get.
#[cfg(target_os = "linux")]
fn without_access_times(file: &fs::File) -> io::Result<()> {
    Ok(rustix::fs::fcntl_setfl(file, rustix::fs::OFlags::NOATIME)?)
}

impl File for DiskFile {
    #[cfg(unix)]
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, into, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.0, into, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(&self.0, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(&self.0, bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the folder with syncs that fail after `max` successes. Returns the synced folders.
    fn synced(path: &Path, max: usize) -> (io::Result<()>, Vec<PathBuf>) {
        let mut synced = Vec::new();
        let created = create_folders(path, |folder| {
            assert!(folder.is_dir());
            if synced.len() == max {
                return Err(io::Error::other("failed"));
            }
            synced.push(folder.to_owned());
            Ok(())
        });
        (created, synced)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn access_times_are_off_for_the_owner_of_a_file() -> io::Result<()> {
        let temporary = tempfile::tempdir()?;
        let path = temporary.path().join("a");
        let created = fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
        for file in [created, fs::File::open(&path)?] {
            let flags = rustix::fs::fcntl_getfl(&DiskFile::new(file).0)?;
            assert!(flags.contains(rustix::fs::OFlags::NOATIME), "{flags:?}");
        }
        Ok(())
    }

    #[test]
    fn each_folder_is_durable_before_its_first_entry() -> io::Result<()> {
        let temporary = tempfile::tempdir()?;
        let root = temporary.path();
        let above = root.parent().map(Path::to_owned).into_iter();
        let all: Vec<PathBuf> =
            above.chain(["", "a", "a/b", "a/b/c"].map(|name| root.join(name))).collect();
        // Each call fails after it created a folder; the next call makes that folder durable.
        for i in 0..3 {
            let (created, synced) = synced(&all[4], 1);
            assert!(created.is_err());
            assert_eq!(synced, all[i..=i]);
            assert!(all[i + 2].is_dir() && all.get(i + 3).is_none_or(|next| !next.exists()));
        }
        let (created, last) = synced(&all[4], 1);
        created?;
        assert_eq!(last, all[3..4]);
        let (created, new) = synced(&all[4].join("d/e"), 3);
        created?;
        assert_eq!(new, [all[3].clone(), all[4].clone(), all[4].join("d")]);
        Ok(())
    }

    #[test]
    fn an_unreadable_parent_is_an_error_only_for_a_new_folder() -> io::Result<()> {
        let temporary = tempfile::tempdir()?;
        let denied = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        create_folders(temporary.path(), denied)?;
        assert!(create_folders(&temporary.path().join("new"), denied).is_err());
        Ok(())
    }
}
