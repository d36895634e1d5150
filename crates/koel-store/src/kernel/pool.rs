//! A folder of which only so many files are open at once, so that a store of thousands of segments is no matter of descriptors.
//!
//! What was not used for longest is closed, and opened again when it is asked for something. A file with changes that no sync has made durable stays open, since one that is opened anew
//! might not be told that the system lost them. So does a file that is removed, or whose name another one gets, as long as someone has it: it is opened before that.
//! There may be more open files than asked for where none can be closed.
//!
//! Cost: a lock for each call, shared with other calls of the same file; a few microseconds where the file was closed. Locks are taken in this order: the state of a file, `open`, `named`; of another file's state only if it is free.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use super::files::{File, Folder};

/// A folder around another one.
#[derive(Debug)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: Arc<dyn Folder>,
    most: usize,
    /// Files that are open; the first was opened, or spared, longest ago.
    open: Mutex<VecDeque<Weak<Pooled>>>,
    /// Files that someone has, open or not.
    named: Mutex<HashMap<String, Weak<Pooled>>>,
}

/// A file that is open or will be.
#[derive(Debug)]
struct Pooled {
    me: Weak<Pooled>,
    shared: Arc<Shared>,
    name: String,
    state: RwLock<State>,
    /// Since it was last spared.
    used: AtomicBool,
    /// Since the last sync.
    changed: AtomicBool,
}

#[derive(Debug)]
struct State {
    file: Option<Arc<dyn File>>,
    /// The name does not lead to it any more.
    stays: bool,
}

impl Pool {
    /// The same folder, with at most so many files open.
    pub(crate) fn new(folder: Arc<dyn Folder>, most: usize) -> Self {
        let (open, named) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { folder, most, open, named }))
    }

    /// Before the name of a file leads nowhere or elsewhere.
    fn keep_open(&self, name: &str) -> io::Result<()> {
        self.0.find(name).map_or(Ok(()), |file| {
            let mut state = file.state.write().unwrap_or_else(PoisonError::into_inner);
            file.open(&mut state)?;
            state.stays = true;
            Ok(())
        })
    }
}

impl Shared {
    fn find(&self, name: &str) -> Option<Arc<Pooled>> {
        lock(&self.named).get(name).and_then(Weak::upgrade)
    }

    /// Closes a file if there are too many for one more.
    fn make_room(&self) {
        let mut open = lock(&self.open);
        if open.len() < self.most {
            return;
        }
        open.retain(|file| file.strong_count() > 0);
        // Each is spared once for having been used.
        for _ in 0..2 * open.len() {
            if open.len() < self.most {
                return;
            }
            let Some(file) = open.pop_front() else { return };
            if file.upgrade().is_some_and(|file| !file.close()) {
                open.push_back(file);
            }
        }
    }

    /// A file that was opened or created just now.
    fn take_in(self: &Arc<Self>, name: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        let pooled = Arc::new_cyclic(|me| Pooled {
            me: me.clone(),
            shared: self.clone(),
            name: name.to_owned(),
            state: RwLock::new(State { file: Some(file), stays: false }),
            used: AtomicBool::new(true),
            changed: AtomicBool::new(false),
        });
        lock(&self.open).push_back(Arc::downgrade(&pooled));
        lock(&self.named).insert(name.to_owned(), Arc::downgrade(&pooled));
        pooled
    }
}

impl Pooled {
    /// Calls the file, which is opened if it is closed.
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

    /// Calls the file, which may not be as durable afterwards as it was.
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

    /// Closes the file, unless it was used, is in use, or has to stay open.
    fn close(&self) -> bool {
        if self.used.swap(false, Ordering::Relaxed) {
            return false;
        }
        let Ok(mut state) = self.state.try_write() else { return false };
        let may_close = !state.stays && !self.changed.load(Ordering::Relaxed);
        if may_close {
            state.file = None;
        }
        may_close
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut named = lock(&self.shared.named);
        if named.get(&self.name).is_some_and(|file| file.strong_count() == 0) {
            named.remove(&self.name);
        }
    }
}

impl Folder for Pool {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        if let Some(file) = self.0.find(name) {
            return Ok(file);
        }
        self.0.make_room();
        Ok(self.0.take_in(name, self.0.folder.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.0.make_room();
        Ok(self.0.take_in(name, self.0.folder.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.keep_open(from)?;
        self.keep_open(to)?;
        self.0.folder.rename(from, to)?;
        let mut named = lock(&self.0.named);
        named.remove(from);
        named.remove(to);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.keep_open(name)?;
        self.0.folder.remove(name)?;
        lock(&self.0.named).remove(name);
        Ok(())
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

impl File for Pooled {
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

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|file| file.set_len(len))
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|file| {
            // Before: what is written meanwhile may not be in.
            self.changed.store(false, Ordering::Relaxed);
            file.sync().inspect_err(|_| self.changed.store(true, Ordering::Relaxed))
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
