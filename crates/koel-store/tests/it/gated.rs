//! A folder in memory in which some calls wait until they are let through: a disk that is slow at a
//! chosen place.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use koel_store::files::{File, Folder};
use testkit::storage::MemoryFolder;

/// Says of a call, by its verb and the name of the file, whether it waits.
type IsHeld = dyn Fn(&str, &str) -> bool + Send + Sync;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Debug)]
pub(crate) struct GatedFolder {
    inner: MemoryFolder,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    is_held: Option<Arc<IsHeld>>,
    waiting: usize,
}

#[derive(Debug)]
struct GatedFile {
    inner: Arc<dyn File>,
    name: String,
    gate: Arc<Gate>,
}

impl GatedFolder {
    pub(crate) fn new(inner: MemoryFolder) -> Self {
        Self { inner, gate: Arc::default() }
    }

    /// Holds calls from now on.
    pub(crate) fn hold(&self, is_held: impl Fn(&str, &str) -> bool + Send + Sync + 'static) {
        self.gate.held.lock().unwrap().is_held = Some(Arc::new(is_held));
    }

    /// Returns when a call is held.
    pub(crate) fn wait_for_held(&self) {
        let held = self.gate.held.lock().unwrap();
        let is_none = |held: &mut Held| held.waiting == 0;
        let (held, _) = self.gate.changed.wait_timeout_while(held, PATIENCE, is_none).unwrap();
        assert!(held.waiting > 0, "no call came");
    }

    /// Lets all calls through.
    pub(crate) fn release(&self) {
        self.gate.held.lock().unwrap().is_held = None;
        self.gate.changed.notify_all();
    }
}

/// Returns when something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Gate {
    fn pass(&self, verb: &str, name: &str) {
        let mut held = self.held.lock().unwrap();
        if !held.is_held.as_ref().is_some_and(|is_held| is_held(verb, name)) {
            return;
        }
        held.waiting += 1;
        self.changed.notify_all();
        let mut held = self.changed.wait_while(held, |held| held.is_held.is_some()).unwrap();
        held.waiting -= 1;
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl Folder for GatedFolder {
    testkit::forward!(inner: rename, remove, list, sync, lock);

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let (inner, gate) = (self.inner.open(name)?, self.gate.clone());
        Ok(Arc::new(GatedFile { inner, name: name.to_owned(), gate }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.gate.pass("create", name);
        let (inner, gate) = (self.inner.create(name)?, self.gate.clone());
        Ok(Arc::new(GatedFile { inner, name: name.to_owned(), gate }))
    }
}

impl File for GatedFile {
    testkit::forward!(inner: len, set_len, sync);

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.gate.pass("read", &self.name);
        self.inner.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.gate.pass("write", &self.name);
        self.inner.write_at(bytes, offset)
    }
}
