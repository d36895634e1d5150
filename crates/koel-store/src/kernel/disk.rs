//! The file layer over the file system: a folder of `std::fs`, positions by `pread` and `pwrite`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{File, Folder};

/// The name of the file whose lock is that of the folder. It stays, empty.
const LOCK: &str = "LOCK";

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct DiskFolder {
    path: PathBuf,
}

impl DiskFolder {
    /// The folder at `path`, created with those above it where it does not exist.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            fs::create_dir_all(path)?;
            let absolute = std::path::absolute(path)?;
            absolute.parent().map_or(Ok(()), sync_folder)?;
        }
        Ok(Self { path: path.to_owned() })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Makes the names in a folder durable. Windows has no such call, and writes names through.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(path)?.sync_all() } else { Ok(()) }
}

impl Folder for DiskFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).open(self.at(name))?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file =
            fs::OpenOptions::new().read(true).write(true).create_new(true).open(self.at(name))?;
        Ok(Arc::new(DiskFile(file)))
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
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.try_lock()?;
        Ok(Box::new(file))
    }
}

/// An open file of the file system. `sync_data` makes the length durable too.
#[derive(Debug)]
struct DiskFile(fs::File);

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
