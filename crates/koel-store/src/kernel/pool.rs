//! A folder that keeps a limited number of files open, so that a store of thousands of segments
//! does not run out of file descriptors.
//!
//! Files are closed in second-chance (CLOCK) order, and reopened on the next call. Two kinds of
//! file stay open:
//!
//! * A file with unsynced changes: if it were reopened, the system might not report that it lost
//!   them.
//! * A file that is renamed or replaced while a handle exists: it is opened before that happens.
//!
//! A file that is removed while a handle exists stays in the folder until the last handle is
//! dropped, or the pool is. So readers of removed files need no descriptors either. After a crash,
//! opening the store removes it.
//!
//! More files than the limit may be open when none of them can be closed. These have unsynced
//! changes, and are few:
//!
//! * **Log store**: the active segment; an output of compaction; the next segment, a manifest or a
//!   hint while it is written.
//! * **Ordered store**: the last file of the log; a table for each flush and merge that runs; the
//!   next file of the log or a manifest while it is written.
//!
//! Beside its files a store has three descriptors: the folder, its lock, and the file LOCK.
//!
//! The process may have fewer descriptors than the limit (`ulimit -n`), or other code may use them
//! up: then files are closed, here and in the pools of other stores (`descriptors.rs`).
//!
//! Cost: one lock per call, shared with other calls of the same file; a few microseconds if the
//! file was closed. Lock order: the state of a file, `open`, `handles`. A second file's state is
//! only locked if that does not block.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use super::descriptors::{self, Closed, Closes, with_room};
use super::files::{File, Folder};
use super::threads::lock;

/// Wraps another folder.
#[derive(Debug)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: Arc<dyn Folder>,
    max_open: usize,
    /// Open files. The first one was opened, or given its second chance, longest ago.
    open: Mutex<VecDeque<Weak<PooledFile>>>,
    /// All files that have handles, open or not, by name.
    handles: Mutex<HashMap<String, Weak<PooledFile>>>,
    /// Files that were removed while they had handles.
    removed: Mutex<Vec<Weak<PooledFile>>>,
}

/// A file, which is opened when it is used.
#[derive(Debug)]
struct PooledFile {
    me: Weak<PooledFile>,
    shared: Arc<Shared>,
    name: String,
    state: RwLock<State>,
    /// Used since it was last given its second chance.
    used: AtomicBool,
    /// Changed since the last sync.
    changed: AtomicBool,
    /// To be removed from the folder with the last handle.
    removed: AtomicBool,
}

#[derive(Debug)]
struct State {
    file: Option<Arc<dyn File>>,
    /// The name no longer leads to this file, so it cannot be reopened.
    pinned: bool,
}

impl Pool {
    /// Wraps `folder` and keeps at most `max_open` files open, and at most half of what the process
    /// may have.
    pub(crate) fn new(folder: Arc<dyn Folder>, max_open: usize) -> Self {
        let max_open = descriptors::share_of_limit(max_open);
        let (open, handles, removed) = (Mutex::default(), Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { folder, max_open, open, handles, removed });
        let holder: Weak<dyn Closes> = Arc::downgrade(&shared) as _;
        descriptors::register(holder);
        Self(shared)
    }

    /// Opens a file for good, before its name is given up or given to another file.
    fn pin(&self, name: &str) -> io::Result<()> {
        self.0.find(name).map_or(Ok(()), |file| file.pin())
    }
}

/// A store is about to be closed. Readers may still have files that it removed.
impl Drop for Pool {
    fn drop(&mut self) {
        let removed = std::mem::take(&mut *lock(&self.0.removed));
        for file in removed.iter().filter_map(Weak::upgrade) {
            if file.pin().is_ok() {
                file.remove();
            }
        }
    }
}

impl Shared {
    fn find(&self, name: &str) -> Option<Arc<PooledFile>> {
        lock(&self.handles).get(name).and_then(Weak::upgrade)
    }

    /// Closes a file if the limit leaves no room for another.
    fn make_room(&self) {
        let mut open = lock(&self.open);
        if open.len() >= self.max_open {
            open.retain(has_handles);
            close_down_to(&mut open, self.max_open.saturating_sub(1));
        }
    }

    /// Adds a file that was just opened or created.
    fn add(self: &Arc<Self>, name: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        let pooled = Arc::new_cyclic(|me| PooledFile {
            me: me.clone(),
            shared: self.clone(),
            name: name.to_owned(),
            state: RwLock::new(State { file: Some(file), pinned: false }),
            used: AtomicBool::new(true),
            changed: AtomicBool::new(false),
            removed: AtomicBool::new(false),
        });
        lock(&self.open).push_back(Arc::downgrade(&pooled));
        lock(&self.handles).insert(name.to_owned(), Arc::downgrade(&pooled));
        pooled
    }
}

impl Closes for Shared {
    fn close_some(&self) -> Closed {
        let mut open = lock(&self.open);
        open.retain(has_handles);
        let half = open.len() / 2;
        close_down_to(&mut open, half)
    }
}

/// Returns whether the file is open: the last handle closes it.
fn has_handles(file: &Weak<PooledFile>) -> bool {
    file.strong_count() > 0
}

/// Closes files until at most `target` of them are open, or none can be closed.
fn close_down_to(open: &mut VecDeque<Weak<PooledFile>>, target: usize) -> Closed {
    let mut all = Closed::Nothing;
    // Each used file gets one second chance.
    for _ in 0..2 * open.len() {
        if open.len() <= target {
            break;
        }
        let Some(file) = open.pop_front() else { break };
        let closed = file.upgrade().map_or(Closed::Some, |file| file.close());
        if closed != Closed::Some {
            open.push_back(file);
        }
        all = all.max(closed);
    }
    all
}

impl PooledFile {
    /// Calls `call` with the file, after opening it if it is closed.
    #[inline]
    fn with<R>(&self, call: impl FnOnce(&dyn File) -> io::Result<R>) -> io::Result<R> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &state.file {
            if !self.used.load(Ordering::Relaxed) {
                self.used.store(true, Ordering::Relaxed);
            }
            return call(&**file);
        }
        drop(state);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        call(&*self.open(&mut state)?)
    }

    /// Calls `call`, which changes the file.
    fn change<R>(&self, call: impl FnOnce(&dyn File) -> io::Result<R>) -> io::Result<R> {
        self.with(|file| {
            let done = call(file);
            self.changed.store(true, Ordering::Relaxed);
            done
        })
    }

    fn open(&self, state: &mut State) -> io::Result<Arc<dyn File>> {
        if let Some(file) = &state.file {
            return Ok(file.clone());
        }
        self.shared.make_room();
        let file = with_room(|| self.shared.folder.open(&self.name))?;
        state.file = Some(file.clone());
        self.used.store(true, Ordering::Relaxed);
        lock(&self.shared.open).push_back(self.me.clone());
        Ok(file)
    }

    /// Opens the file for good.
    fn pin(&self) -> io::Result<()> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        self.open(&mut state)?;
        state.pinned = true;
        Ok(())
    }

    /// Removes the file from the folder if it is to be removed. If that fails, it is removed when
    /// the store is next opened.
    fn remove(&self) {
        if self.removed.swap(false, Ordering::Relaxed) {
            drop(self.shared.folder.remove(&self.name));
        }
    }

    /// Closes the file, unless it was used, is in use, or has to stay open.
    fn close(&self) -> Closed {
        if self.used.swap(false, Ordering::Relaxed) {
            return Closed::Busy;
        }
        let Ok(mut state) = self.state.try_write() else { return Closed::Busy };
        if state.pinned || self.changed.load(Ordering::Relaxed) {
            return Closed::Nothing;
        }
        state.file = None;
        Closed::Some
    }
}

impl Drop for PooledFile {
    fn drop(&mut self) {
        let mut handles = lock(&self.shared.handles);
        if handles.get(&self.name).is_some_and(|file| file.strong_count() == 0) {
            handles.remove(&self.name);
        }
        drop(handles);
        self.remove();
    }
}

impl Folder for Pool {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        if let Some(file) = self.0.find(name) {
            return Ok(file);
        }
        self.0.make_room();
        Ok(self.0.add(name, with_room(|| self.0.folder.open(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.0.make_room();
        Ok(self.0.add(name, with_room(|| self.0.folder.create(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.pin(from)?;
        self.pin(to)?;
        self.0.folder.rename(from, to)?;
        let mut handles = lock(&self.0.handles);
        handles.remove(from);
        handles.remove(to);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let Some(file) = self.0.find(name) else { return self.0.folder.remove(name) };
        lock(&self.0.handles).remove(name);
        let mut removed = lock(&self.0.removed);
        removed.retain(has_handles);
        removed.push(file.me.clone());
        drop(removed);
        file.removed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn link(&self, name: &str, to: &(dyn Folder + 'static)) -> io::Result<()> {
        self.0.folder.link(name, to)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        with_room(|| self.0.folder.list())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.folder.sync()
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        with_room(|| self.0.folder.lock())
    }
}

impl File for PooledFile {
    #[inline]
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|file| file.read_at(into, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.change(|file| file.write_at(bytes, offset))
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|file| file.len())
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.with(|file| file.next_data(offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|file| file.set_len(len))
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|file| {
            // Before the sync: it may not include what is written meanwhile.
            self.changed.store(false, Ordering::Relaxed);
            file.sync().inspect_err(|_| self.changed.store(true, Ordering::Relaxed))
        })
    }
}
