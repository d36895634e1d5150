//! The file layer over the file system: a folder of `std::fs`, positions by `pread` and `pwrite`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{File, Folder};
use super::manifest;

/// The name of the file whose lock is that of the folder. It stays, empty.
const LOCK: &str = "LOCK";

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct DiskFolder {
    path: PathBuf,
    /// Files are opened for reading alone.
    only_read: bool,
}

impl DiskFolder {
    /// The folder at `path`, created with those above it where it does not exist, durably.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(path: &Path) -> io::Result<Self> {
        if !path.join(manifest::NAME).exists() {
            create_folders(&std::path::absolute(path)?, sync_folder)?;
        }
        Ok(Self { path: path.to_owned(), only_read: false })
    }

    /// The folder at `path`, of which nothing will be changed: on a disk that takes no writes, too. Its lock keeps writers out, and no other readers.
    #[must_use]
    pub fn only_to_read(path: &Path) -> Self {
        Self { path: path.to_owned(), only_read: true }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Creates a folder and those above it that are missing, and makes each name durable before there is anything in the folder. So is the name of the lowest one that is there already:
/// a process may have created it and ended.
fn create_folders(path: &Path, mut sync: impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let missing = path.ancestors().take_while(|folder| !folder.is_dir()).count();
    let folders: Vec<&Path> = path.ancestors().take(missing + 1).collect();
    for (i, folder) in folders.iter().rev().enumerate() {
        let is_new = i > 0;
        if is_new {
            create_folder(folder)?;
        }
        match folder.parent().map_or(Ok(()), &mut sync) {
            // Who may not look into a folder has not created this one in it, as a rule.
            Err(error) if !is_new && error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Creates a folder, unless another process was faster.
fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path).or_else(|error| if path.is_dir() { Ok(()) } else { Err(error) })
}

/// Makes the names in a folder durable. Windows has no such call, and writes names through.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(path)?.sync_all() } else { Ok(()) }
}

impl Folder for DiskFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(!self.only_read).open(self.at(name))?;
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
        if self.only_read {
            return match fs::File::open(path) {
                Ok(file) => {
                    file.try_lock_shared()?;
                    Ok(Box::new(file))
                }
                // Who opens a store to write creates it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Box::new(())),
                Err(error) => Err(error),
            };
        }
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.try_lock()?;
        Ok(Box::new(file))
    }
}

/// An open file of the file system. `sync_data` makes the length durable too.
#[derive(Debug)]
struct DiskFile(fs::File);

impl DiskFile {
    fn new(file: fs::File) -> Self {
        #[cfg(target_os = "linux")]
        // Anybody but its owner is refused, and reads as ever.
        drop(without_access_times(&file));
        Self(file)
    }
}

/// Has reads of the file not noted in it: to look whether the time of the last one is to be written takes a twentieth of a get.
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

    /// Creates the folder, and says in which folders names were made durable, before that failed if it is to fail.
    fn synced(path: &Path, most: usize) -> (io::Result<()>, Vec<PathBuf>) {
        let mut synced = Vec::new();
        let created = create_folders(path, |folder| {
            assert!(folder.is_dir());
            if synced.len() == most {
                return Err(io::Error::other("failed"));
            }
            synced.push(folder.to_owned());
            Ok(())
        });
        (created, synced)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_owner_of_a_file_does_not_note_when_it_was_read() -> io::Result<()> {
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
    fn each_folder_above_a_store_is_durable_before_there_is_anything_in_it() -> io::Result<()> {
        let temporary = tempfile::tempdir()?;
        let root = temporary.path();
        let above = root.parent().map(Path::to_owned).into_iter();
        let all: Vec<PathBuf> =
            above.chain(["", "a", "a/b", "a/b/c"].map(|name| root.join(name))).collect();
        // Each time it ends behind a creation, and the next time makes up for that.
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
    fn a_folder_in_one_that_may_not_be_read_is_no_failure_unless_it_is_new() -> io::Result<()> {
        let temporary = tempfile::tempdir()?;
        let denied = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        create_folders(temporary.path(), denied)?;
        assert!(create_folders(&temporary.path().join("new"), denied).is_err());
        Ok(())
    }
}
