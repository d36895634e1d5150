//! An in-memory disk of limited size. As in POSIX, a removed file takes space until its last handle
//! is closed.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use koel_store::files::{File, Folder};

/// A folder on such a disk. Clones share the folder.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    room: Arc<Room>,
    names: Arc<Mutex<BTreeMap<String, Arc<Inode>>>>,
}

#[derive(Debug)]
struct Room {
    used: AtomicU64,
    limit: AtomicU64,
}

#[derive(Debug)]
struct Inode {
    bytes: Mutex<Vec<u8>>,
    room: Arc<Room>,
}

impl Disk {
    /// Returns an empty folder without a limit.
    pub(crate) fn new() -> Self {
        let room = Room { used: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX) };
        Self { room: Arc::new(room), names: Arc::default() }
    }

    /// Returns the bytes of all files that have a name or are open.
    pub(crate) fn used(&self) -> u64 {
        self.room.used.load(Ordering::SeqCst)
    }

    /// Limits the bytes of the disk from now on.
    pub(crate) fn limit(&self, bytes: u64) {
        self.room.limit.store(bytes, Ordering::SeqCst);
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Inode>>> {
        self.names.lock().unwrap()
    }
}

impl Inode {
    fn resize(&self, bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
        let (old, new) = (bytes.len() as u64, len as u64);
        let used = self.room.used.load(Ordering::SeqCst) - old + new;
        if new > old && used > self.room.limit.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room.used.fetch_add(new, Ordering::SeqCst);
        self.room.used.fetch_sub(old, Ordering::SeqCst);
        bytes.resize(len, 0);
        Ok(())
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        let len = self.bytes.lock().unwrap().len() as u64;
        self.room.used.fetch_sub(len, Ordering::SeqCst);
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

impl Folder for Disk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let inode = self.names().get(name).cloned().ok_or_else(not_found)?;
        Ok(inode)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut names = self.names();
        if names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = Arc::new(Inode { bytes: Mutex::default(), room: Arc::clone(&self.room) });
        names.insert(name.to_owned(), Arc::clone(&inode));
        Ok(inode)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut names = self.names();
        let inode = names.remove(from).ok_or_else(not_found)?;
        names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.names().remove(name).map(drop).ok_or_else(not_found)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names().keys().cloned().collect())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }
}

impl File for Inode {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes.lock().unwrap();
        let rest = bytes.get(position(offset)..).unwrap_or_default();
        let count = into.len().min(rest.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut own = self.bytes.lock().unwrap();
        let start = position(offset);
        let end = start + bytes.len();
        if end > own.len() {
            self.resize(&mut own, end)?;
        }
        own[start..end].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.resize(&mut self.bytes.lock().unwrap(), position(len))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
