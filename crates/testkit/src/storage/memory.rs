//! An in-memory folder that simulates power failures and a full disk.
//!
//! [`MemoryFolder::crash_clone`] returns a possible state of the disk after a power failure. It is
//! a separate folder, so that no late write of a background thread reaches it. It has everything
//! that was synced, and keeps the rest at random:
//!
//! * each 512-byte sector written since a file's last sync is independently new or old;
//! * a file's length is the synced one, the current one, or between;
//! * each creation, renaming or removal of a name since the folder's last sync is independently
//!   kept or lost; a rename is never half done.
//!
//! That is all that POSIX allows, and more than most file systems do. A clone locks the names and
//! then all files before it reads any of them, so it is a consistent snapshot of the whole folder:
//! a call that it does not see waits for it, and so does all that comes after that call. It copies
//! the bytes of all files.
//!
//! The disk may have a limit. A removed file takes space until its last handle is closed.
//!
//! Source: the crash clones of Pebble's in-memory file system.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use koel_store::files::{File, Folder};

use super::Random;

const SECTOR: usize = 512;

/// An in-memory folder. Clones share the folder.
#[derive(Clone, Default)]
pub struct MemoryFolder {
    names: Arc<Mutex<Names>>,
    locked: Arc<AtomicBool>,
    disk: Arc<Disk>,
}

#[derive(Default)]
struct Disk {
    used: AtomicU64,
    limit: Mutex<Option<u64>>,
}

type Tree = BTreeMap<String, Arc<MemoryFile>>;

#[derive(Default)]
struct Names {
    now: Tree,
    synced: Tree,
    /// Since the last sync, oldest first.
    changes: Vec<Change>,
}

/// A file has a name from now on, and no other one, or has it no longer.
struct Change {
    name: String,
    file: Arc<MemoryFile>,
    is_removal: bool,
}

struct MemoryFile {
    data: Mutex<Data>,
    /// Its names and open handles. The space of a file without any is free.
    links: AtomicUsize,
    disk: Arc<Disk>,
}

/// An open file.
#[derive(Debug)]
struct Handle(Arc<MemoryFile>);

#[derive(Clone, Default)]
struct Data {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Sectors that may differ between the two.
    unsynced: BTreeSet<usize>,
}

impl MemoryFolder {
    /// Returns an empty folder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a folder with these files, all durable.
    #[must_use]
    pub fn with(contents: BTreeMap<String, Vec<u8>>) -> Self {
        let folder = Self::new();
        let file = |bytes: Vec<u8>| {
            folder.disk.used.fetch_add(bytes.len() as u64, Ordering::SeqCst);
            let file = folder.file(Data::durable(bytes));
            file.link();
            file
        };
        let tree: Tree = contents.into_iter().map(|(name, bytes)| (name, file(bytes))).collect();
        *lock(&folder.names) = Names { now: tree.clone(), synced: tree, changes: Vec::new() };
        folder
    }

    /// Returns the bytes of all files as a reader sees them now.
    #[must_use]
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let names = lock(&self.names);
        still(&names.now).into_iter().map(|(name, data)| (name.clone(), data.now.clone())).collect()
    }

    /// Returns a possible state of the disk if the power failed now. Each unsynced sector and each
    /// unsynced change of a name is kept in `unsynced_kept` of 100 cases. The clone is not locked.
    #[must_use]
    pub fn crash_clone(&self, unsynced_kept: u32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let names = lock(&self.names);
        let mut survivors = names.synced.clone();
        for change in &names.changes {
            if random.chance(unsynced_kept) {
                change.apply(&mut survivors);
            }
        }
        let crashed = still(&survivors).into_iter();
        let mut bytes = |data: &Data| data.after_crash(unsynced_kept, &mut random);
        Self::with(crashed.map(|(name, data)| (name.clone(), bytes(&data))).collect())
    }

    /// Returns the bytes of all files that have a name or are open.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.disk.used.load(Ordering::SeqCst)
    }

    /// Limits the bytes of the disk from now on.
    pub fn limit(&self, bytes: u64) {
        *lock(&self.disk.limit) = Some(bytes);
    }

    fn file(&self, data: Data) -> Arc<MemoryFile> {
        let (data, disk) = (Mutex::new(data), Arc::clone(&self.disk));
        Arc::new(MemoryFile { data, links: AtomicUsize::new(0), disk })
    }
}

impl Change {
    fn apply(&self, tree: &mut Tree) {
        let is_it = |other: &Arc<MemoryFile>| Arc::ptr_eq(other, &self.file);
        if !self.is_removal {
            // Whichever of its earlier names was on the disk.
            tree.retain(|_, other| !is_it(other));
            tree.insert(self.name.clone(), Arc::clone(&self.file));
        } else if tree.get(&self.name).is_some_and(is_it) {
            tree.remove(&self.name);
        }
    }
}

impl Names {
    fn change(&mut self, name: &str, file: Arc<MemoryFile>, is_removal: bool) {
        let change = Change { name: name.to_owned(), file, is_removal };
        let before = self.now.clone();
        change.apply(&mut self.now);
        self.now.values().for_each(|file| file.link());
        before.values().for_each(|file| file.unlink());
        self.changes.push(change);
    }

    /// Gives a file a name that no file has.
    fn add(&mut self, name: &str, file: Arc<MemoryFile>) -> io::Result<()> {
        if self.now.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(name, file, false);
        Ok(())
    }

    fn find(&self, name: &str) -> io::Result<Arc<MemoryFile>> {
        self.now.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Folder for MemoryFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Handle::of(lock(&self.names).find(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = self.file(Data::default());
        lock(&self.names).add(name, Arc::clone(&file))?;
        Ok(Handle::of(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut names = lock(&self.names);
        let file = names.find(from)?;
        names.change(to, file, false);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut names = lock(&self.names);
        let file = names.find(name)?;
        names.change(name, file, true);
        Ok(())
    }

    fn link(&self, name: &str, to: &(dyn Folder + 'static)) -> io::Result<()> {
        let to: &dyn Any = to;
        let to: &Self = to.downcast_ref().ok_or(io::ErrorKind::Unsupported)?;
        // The handle keeps the space of a file whose name is removed before it has the other one.
        let file = Handle::of(lock(&self.names).find(name)?);
        lock(&to.names).add(name, Arc::clone(&file.0))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.names).now.keys().cloned().collect())
    }

    fn sync(&self) -> io::Result<()> {
        let mut names = lock(&self.names);
        names.synced = names.now.clone();
        names.changes.clear();
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        if self.locked.swap(true, Ordering::SeqCst) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Unlock(Arc::clone(&self.locked))))
    }
}

struct Unlock(Arc<AtomicBool>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Handle {
    fn of(file: Arc<MemoryFile>) -> Arc<Self> {
        file.link();
        Arc::new(Self(file))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.unlink();
    }
}

impl MemoryFile {
    fn link(&self) {
        self.links.fetch_add(1, Ordering::SeqCst);
    }

    fn unlink(&self) {
        if self.links.fetch_sub(1, Ordering::SeqCst) == 1 {
            let len = lock(&self.data).now.len() as u64;
            self.disk.used.fetch_sub(len, Ordering::SeqCst);
        }
    }

    /// Takes the space for another length, or gives it back.
    fn take(&self, old: usize, new: usize) -> io::Result<()> {
        let used = &self.disk.used;
        let (old, new) = (old as u64, new as u64);
        let after = used.load(Ordering::SeqCst) - old + new;
        if new > old && lock(&self.disk.limit).is_some_and(|limit| after > limit) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        used.fetch_add(new, Ordering::SeqCst);
        used.fetch_sub(old, Ordering::SeqCst);
        Ok(())
    }
}

impl File for Handle {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let data = lock(&self.0.data);
        let start = position(offset)?.min(data.now.len());
        let count = into.len().min(data.now.len() - start);
        into[..count].copy_from_slice(&data.now[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (mut data, start) = (lock(&self.0.data), position(offset)?);
        let len = data.now.len();
        if !bytes.is_empty() && start + bytes.len() > len {
            self.0.take(len, start + bytes.len())?;
        }
        data.write(bytes, start);
        Ok(bytes.len())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.0.data).now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (mut data, len) = (lock(&self.0.data), position(len)?);
        self.0.take(data.now.len(), len)?;
        data.set_len(len);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        lock(&self.0.data).sync();
        Ok(())
    }
}

impl Data {
    fn durable(bytes: Vec<u8>) -> Self {
        Self { now: bytes.clone(), synced: bytes, unsynced: BTreeSet::new() }
    }

    fn write(&mut self, bytes: &[u8], start: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = start + bytes.len();
        if end > self.now.len() {
            self.set_len(end);
        }
        self.now[start..end].copy_from_slice(bytes);
        self.mark(start..end);
    }

    fn set_len(&mut self, len: usize) {
        let old = self.now.len();
        self.now.resize(len, 0);
        self.mark(old.min(len)..old.max(len));
    }

    fn mark(&mut self, bytes: Range<usize>) {
        self.unsynced.extend(bytes.start / SECTOR..bytes.end.div_ceil(SECTOR));
    }

    fn sync(&mut self) {
        self.synced.resize(self.now.len(), 0);
        for sector in std::mem::take(&mut self.unsynced) {
            copy_sector(&self.now, &mut self.synced, sector);
        }
    }

    fn after_crash(&self, kept: u32, random: &mut Random) -> Vec<u8> {
        let (old, new) = (self.synced.len(), self.now.len());
        let len = match random.chance(kept) {
            true => new,
            false if kept == 0 => old,
            false => old.min(new) + random.below(old.abs_diff(new) + 1),
        };
        let mut bytes = self.synced.clone();
        bytes.resize(old.max(new), 0);
        for &sector in &self.unsynced {
            if random.chance(kept) {
                copy_sector(&self.now, &mut bytes, sector);
            }
        }
        bytes.truncate(len);
        bytes
    }
}

/// Copies the part of the sector that both have.
fn copy_sector(from: &[u8], to: &mut [u8], sector: usize) {
    let end = (sector * SECTOR + SECTOR).min(from.len()).min(to.len());
    let start = (sector * SECTOR).min(end);
    to[start..end].copy_from_slice(&from[start..end]);
}

fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

/// The files of a tree, all locked.
fn still(tree: &Tree) -> Vec<(&String, MutexGuard<'_, Data>)> {
    tree.iter().map(|(name, file)| (name, lock(&file.data))).collect()
}

/// Locks, even if another test panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for MemoryFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(lock(&self.names).now.iter()).finish()
    }
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = lock(&self.data);
        write!(f, "{} bytes, {} sectors not synced", data.now.len(), data.unsynced.len())
    }
}

#[cfg(test)]
mod tests;
