//! The file layer over the file system: files of an open folder, with `pread` and `pwrite` for
//! offsets.
//!
//! Two locks keep writers apart. That of the folder holds whatever happens to the files in it. That
//! of the file LOCK is also seen by other computers, if the folder is on NFS, and by systems that
//! cannot lock folders.

use std::any::Any;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::descriptors::with_room;
use super::files::{File, Folder};
use super::open_folder::OpenFolder;
use super::store_files::{LOCK, MANIFEST};
use crate::Error;

/// A folder of the file system.
///
/// It stays open, so it is the same folder after it was moved. New files may be read by those who
/// may read the folder and MANIFEST, as far as the umask allows. Files that are not regular, such
/// as symbolic links, are not opened.
#[derive(Clone, Debug)]
pub struct DiskFolder {
    folder: OpenFolder,
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
        Ok(Self { folder: OpenFolder::open(path)?, read_only: false })
    }

    /// Opens the folder at `path` read-only; the file system may be read-only too. The lock of the
    /// folder then keeps writers out, but not other readers.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such folder, and I/O errors.
    pub fn read_only(path: &Path) -> io::Result<Self> {
        Ok(Self { folder: OpenFolder::open(path)?, read_only: true })
    }

    /// Calls `call` with the folder at `path`, opened read-only or created if it does not exist. An
    /// error names the path.
    pub(crate) fn with<R>(
        path: &Path,
        read_only: bool,
        call: impl FnOnce(Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let folder = with_room(|| if read_only { Self::read_only(path) } else { Self::new(path) });
        folder.map_err(Error::no_folder).and_then(call).map_err(|error| error.at(path))
    }

    /// Opens the file LOCK. A writer creates it if it is missing.
    fn lock_file(&self) -> io::Result<Option<fs::File>> {
        match self.folder.open_file(LOCK, !self.read_only) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Err(_) if self.read_only => Ok(None),
            Err(_) => match self.folder.create_file(LOCK) {
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.lock_file(),
                created => created.map(Some),
            },
            Ok(file) => Ok(Some(file)),
        }
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
        Ok(Arc::new(DiskFile::new(self.folder.open_file(name, !self.read_only)?)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(DiskFile::new(self.folder.create_file(name)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    /// A hard link, if both folders are on one file system that has them.
    fn link(&self, name: &str, to: &(dyn Folder + 'static)) -> io::Result<()> {
        let to: &dyn Any = to;
        let to: &Self = to.downcast_ref().ok_or(io::ErrorKind::Unsupported)?;
        self.folder.link(name, &to.folder).map_err(|error| match error.kind() {
            // Also what file systems without hard links say, and what says who may not make one.
            io::ErrorKind::CrossesDevices
            | io::ErrorKind::TooManyLinks
            | io::ErrorKind::PermissionDenied => io::ErrorKind::Unsupported.into(),
            _ => error,
        })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.folder.list()?;
        names.retain(|name| ![LOCK, ".", ".."].contains(&name.as_str()));
        Ok(names)
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        let folder = self.folder.lock(self.read_only)?;
        let file = self.lock_file()?;
        if let Some(file) = &file {
            if self.read_only { file.try_lock_shared()? } else { file.try_lock()? }
        }
        Ok(Box::new((folder, file)))
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

    #[cfg(target_os = "linux")]
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(&self.0, rustix::fs::SeekFrom::Data(offset)) {
            Ok(data) => Ok(Some(data)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            // The file system does not know of holes.
            Err(rustix::io::Errno::INVAL) => Ok(Some(offset)),
            Err(error) => Err(error.into()),
        }
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
    use std::path::PathBuf;

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

    #[test]
    fn a_linked_file_is_in_both_folders_until_it_is_removed_from_both() -> io::Result<()> {
        let temporary = tempfile::tempdir()?;
        let folders = ["one", "other"].map(|name| DiskFolder::new(&temporary.path().join(name)));
        let [one, other] = folders;
        let (one, other) = (one?, other?);
        one.create("a")?.write_at(b"bytes", 0)?;
        one.link("a", &other)?;
        assert_eq!(one.link("a", &other).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(one.link("b", &other).unwrap_err().kind(), io::ErrorKind::NotFound);
        one.remove("a")?;
        let mut bytes = [0; 5];
        other.open("a")?.read_at(&mut bytes, 0)?;
        assert_eq!(&bytes, b"bytes");
        Ok(())
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
