//! File descriptors: a limited resource that all stores of a process share with its other code.
//!
//! A store keeps files open only to save time ([`Pool`](super::pool::Pool)). So when the system
//! refuses another file, the pools of the process close files, and the call is made again. It only
//! fails if none of the files in a pool can be closed.
//!
//! A store that was just opened is also modest: it keeps at most half as many files open as the
//! process may have, so that the rest of the program gets some without any of this.
//!
//! Cost: nothing, unless a call fails.

use std::io;
use std::sync::{Mutex, Weak};
use std::thread;
use std::time::Duration;

use super::threads::lock;

/// What keeps files open that it can open again.
pub(super) trait Closes: Send + Sync {
    /// Closes about half of the files that are open, and one at least if possible.
    fn close_some(&self) -> Closed;
}

/// What became of a request to close files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Closed {
    /// There is nothing to close.
    Nothing,
    /// All files are being read or opened. Soon they are not.
    Busy,
    /// At least one file was closed.
    Some,
}

/// Everything in the process that keeps files open.
static HOLDERS: Mutex<Vec<Weak<dyn Closes>>> = Mutex::new(Vec::new());

/// How long a call waits while all files are busy: this many times a millisecond.
const PATIENCE: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// Lets others make `holder` close files, for as long as it is there.
pub(super) fn register(holder: Weak<dyn Closes>) {
    let mut holders = lock(&HOLDERS);
    holders.retain(|holder| holder.strong_count() > 0);
    holders.push(holder);
}

/// Calls `call`, which opens a file. If there are too many open files, closes some and calls again.
pub(crate) fn with_room<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    let mut left = PATIENCE;
    loop {
        match call() {
            Err(error) if is_too_many_files(&error) => match close_some() {
                Closed::Some => {}
                Closed::Busy if left > 0 => {
                    left -= 1;
                    thread::sleep(PAUSE);
                }
                Closed::Busy | Closed::Nothing => return Err(error),
            },
            result => return result,
        }
    }
}

/// Makes every holder close files: whoever has many gives back many.
fn close_some() -> Closed {
    // Not under the lock: the last handle of a holder may be dropped here.
    let holders: Vec<_> = lock(&HOLDERS).iter().filter_map(Weak::upgrade).collect();
    holders.iter().map(|holder| holder.close_some()).max().unwrap_or(Closed::Nothing)
}

/// Returns whether the process or the system has too many open files.
pub(crate) fn is_too_many_files(error: &io::Error) -> bool {
    // ENFILE and EMFILE, the same numbers on every Unix.
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// Returns how many files a store that would keep `max` of them open may keep.
pub(super) fn share_of_limit(max: usize) -> usize {
    process_limit().map_or(max, |limit| max.min(usize::try_from(limit / 2).unwrap_or(max)))
}

/// Returns how many files the process may have open, if there is a limit.
#[cfg(unix)]
fn process_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn process_limit() -> Option<u64> {
    None
}
