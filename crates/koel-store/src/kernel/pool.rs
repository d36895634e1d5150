//! A folder that keeps a limited number of files open, so that a store of thousands of segments
//! does not run out of file descriptors.
//!
//! Files are closed in second-chance (CLOCK) order, and reopened on the next call. Two kinds of
//! file stay open:
//!
//! * A file with unsynced changes: if it were reopened, the system might not report that it lost
//!   them.
//! * A file that is removed or replaced while a handle exists: it is opened before that happens.
//!
//! So more files than the limit may be open when none of them can be closed.
//!
//! Cost: one lock per call, shared with other calls of the same file; a few microseconds if the
//! file was closed. Lock order: the state of a file, `open`, `handles`. A second file's state is
//! only locked if that does not block.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

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
}

#[derive(Debug)]
struct State {
    file: Option<Arc<dyn File>>,
    /// The name no longer leads to this file, so it cannot be reopened.
    pinned: bool,
}

impl Pool {
    /// Wraps `folder` and keeps at most `max_open` files open.
    pub(crate) fn new(folder: Arc<dyn Folder>, max_open: usize) -> Self {
        let (open, handles) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { folder, max_open, open, handles }))
    }

    /// Opens a file for good, before its name is removed or given to another file.
    fn pin(&self, name: &str) -> io::Result<()> {
        self.0.find(name).map_or(Ok(()), |file| {
            let mut state = file.state.write().unwrap_or_else(PoisonError::into_inner);
            file.open(&mut state)?;
            state.pinned = true;
            Ok(())
        })
    }
}

impl Shared {
    fn find(&self, name: &str) -> Option<Arc<PooledFile>> {
        lock(&self.handles).get(name).and_then(Weak::upgrade)
    }

    /// Closes a file if the limit leaves no room for another.
    fn make_room(&self) {
        let mut open = lock(&self.open);
        if open.len() < self.max_open {
            return;
        }
        open.retain(|file| file.strong_count() > 0);
        // Each used file gets one second chance.
        for _ in 0..2 * open.len() {
            if open.len() < self.max_open {
                return;
            }
            let Some(file) = open.pop_front() else { return };
            if file.upgrade().is_some_and(|file| !file.close()) {
                open.push_back(file);
            }
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
        });
        lock(&self.open).push_back(Arc::downgrade(&pooled));
        lock(&self.handles).insert(name.to_owned(), Arc::downgrade(&pooled));
        pooled
    }
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
        let file = self.shared.folder.open(&self.name)?;
        state.file = Some(file.clone());
        self.used.store(true, Ordering::Relaxed);
        lock(&self.shared.open).push_back(self.me.clone());
        Ok(file)
    }

    /// Closes the file, unless it was used, is in use, or has to stay open. Returns whether it did.
    fn close(&self) -> bool {
        if self.used.swap(false, Ordering::Relaxed) {
            return false;
        }
        let Ok(mut state) = self.state.try_write() else { return false };
        let may_close = !state.pinned && !self.changed.load(Ordering::Relaxed);
        if may_close {
            state.file = None;
        }
        may_close
    }
}

impl Drop for PooledFile {
    fn drop(&mut self) {
        let mut handles = lock(&self.shared.handles);
        if handles.get(&self.name).is_some_and(|file| file.strong_count() == 0) {
            handles.remove(&self.name);
        }
    }
}

impl Folder for Pool {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        if let Some(file) = self.0.find(name) {
            return Ok(file);
        }
        self.0.make_room();
        Ok(self.0.add(name, self.0.folder.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.0.make_room();
        Ok(self.0.add(name, self.0.folder.create(name)?))
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
        self.pin(name)?;
        self.0.folder.remove(name)?;
        lock(&self.0.handles).remove(name);
        Ok(())
    }

    fn link(&self, name: &str, to: &(dyn Folder + 'static)) -> io::Result<()> {
        self.0.folder.link(name, to)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.folder.list()
    }

    fn sync(&self) -> io::Result<()> {
        self.0.folder.sync()
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        self.0.folder.lock()
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
