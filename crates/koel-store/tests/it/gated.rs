//! A folder in memory in which some calls wait until they are let through: a disk that is slow at a
//! chosen place.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use testkit::storage::{Call, Hook, Hooked, MemoryFolder, Verdict};

/// Says of a call, by its verb and the name of the file, whether it waits.
type IsHeld = dyn Fn(&str, &str) -> bool + Send + Sync;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) type GatedFolder = Hooked<MemoryFolder, Gate>;

#[derive(Default)]
pub(crate) struct Gate {
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    is_held: Option<Arc<IsHeld>>,
    waiting: usize,
}

pub(crate) fn gated(inner: MemoryFolder) -> GatedFolder {
    Hooked::with(inner, Gate::default())
}

impl Gate {
    /// Holds calls from now on.
    pub(crate) fn hold(&self, is_held: impl Fn(&str, &str) -> bool + Send + Sync + 'static) {
        self.held.lock().unwrap().is_held = Some(Arc::new(is_held));
    }

    /// Returns when a call is held.
    pub(crate) fn wait_for_held(&self) {
        let held = self.held.lock().unwrap();
        let is_none = |held: &mut Held| held.waiting == 0;
        let (held, _) = self.changed.wait_timeout_while(held, PATIENCE, is_none).unwrap();
        assert!(held.waiting > 0, "no call came");
    }

    /// Lets all calls through.
    pub(crate) fn release(&self) {
        self.held.lock().unwrap().is_held = None;
        self.changed.notify_all();
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

impl Hook for Gate {
    fn before(&self, call: &Call) -> Verdict {
        let mut held = self.held.lock().unwrap();
        if held.is_held.as_ref().is_some_and(|is_held| is_held(call.verb, &call.name)) {
            held.waiting += 1;
            self.changed.notify_all();
            held = self.changed.wait_while(held, |held| held.is_held.is_some()).unwrap();
            held.waiting -= 1;
        }
        Verdict::Pass
    }
}
