//! What was seen, in a file, so that a restart forgets nothing.
//!
//! The file is an expiring filter (docs/FORMAT.md). It is replaced in one step: at the start, every
//! two seconds if lines have come, at the end, and at SIGINT, SIGTERM and SIGHUP. If the process is
//! killed or the machine stops, the lines of the last two seconds are not in it: they may be
//! printed once more after a restart. No line is lost by that.
//!
//! A thread waits for the signals, because the main thread mostly waits for input. SIGUSR1 prints
//! the report.
//!
//! Cost: a copy of the filter in memory while it is written, during which lines go on.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use koel::{ExpiringFilter, FileError, KeyHasher, MemoryError};

use super::seen::{Seen, lock};
use crate::failure::Failure;
use crate::output;
use crate::replace::Readers;

/// The time between saves.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) struct StateFile {
    path: PathBuf,
    /// Lines that had been read at the last save. Locked while the file is written, before what
    /// was seen is.
    saved: Mutex<Option<u64>>,
}

impl StateFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, saved: Mutex::new(None) }
    }

    /// What a file holds; `None` if there is no file, or an empty one.
    pub(super) fn load(path: &Path) -> Result<Option<ExpiringFilter>, Failure> {
        output::before_replacing(path)?;
        if fs::metadata(path).map_or(true, |file| file.is_file() && file.len() == 0) {
            return Ok(None);
        }
        match ExpiringFilter::load(path) {
            Ok(filter) => Ok(Some(filter)),
            Err(FileError::Image { error, .. }) => {
                Err(Failure::Image { path: path.to_owned(), error })
            }
            Err(FileError::Io { error, .. }) => Err(Failure::read(path, error)),
            Err(error) => Err(Failure::Usage(error.to_string())),
        }
    }

    /// Saves what was seen, unless nothing was since the last save.
    pub(super) fn save(&self, seen: &Mutex<Seen>) -> Result<(), Failure> {
        let mut saved = lock(&self.saved);
        let seen = lock(seen);
        let read = seen.counts.read;
        if *saved == Some(read) {
            return Ok(());
        }
        let copy = Copied::of(&seen);
        drop(seen);
        self.write(copy)?;
        *saved = Some(read);
        Ok(())
    }

    fn write(&self, copy: Copied) -> Result<(), Failure> {
        let Copied { bytes, readers } = copy;
        let bytes = bytes.map_err(|error| Failure::Usage(error.to_string()))?;
        output::write(&self.path, readers, |sink| sink.write_all(&bytes))
            .map_err(|error| Failure::write(&self.path, error))
    }
}

/// The bytes of a filter, and who may read them.
struct Copied {
    bytes: Result<Vec<u8>, MemoryError>,
    readers: Readers,
}

impl Copied {
    fn of(seen: &Seen) -> Self {
        let is_keyed = matches!(seen.filter.hasher(), KeyHasher::Sip13 { .. });
        let readers = if is_keyed { Readers::Owner } else { Readers::Usual };
        Self { bytes: seen.filter.try_to_bytes(), readers }
    }
}

/// Saves at regular intervals until the process ends. The first failure is reported; the next save
/// may succeed.
pub(super) fn save_regularly(state: &Arc<StateFile>, seen: &Arc<Mutex<Seen>>) {
    let (state, seen) = (Arc::clone(state), Arc::clone(seen));
    thread::spawn(move || {
        let mut is_reported = false;
        loop {
            thread::sleep(PAUSE);
            if let Err(failure) = state.save(&seen)
                && !std::mem::replace(&mut is_reported, true)
            {
                print(&format!("{failure}; the next save may succeed\n"));
            }
        }
    });
}

/// Prints on standard error. If that is closed, nobody reads it.
fn print(text: &str) {
    drop(output::print_to_stderr(text));
}

#[cfg(not(unix))]
pub(super) fn handle_signals(
    _state: Option<Arc<StateFile>>,
    _seen: &Arc<Mutex<Seen>>,
    _as_json: bool,
) -> Result<(), Failure> {
    Ok(())
}

#[cfg(unix)]
pub(super) use signals::handle_signals;

#[cfg(unix)]
mod signals {
    use std::time::Instant;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    use super::{Arc, Copied, Duration, Failure, Mutex, Seen, StateFile, lock, print, thread};

    /// The longest time that a signal waits for lines to be written. A reader that has stopped to
    /// read must not keep the process from ending.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// Reports at SIGUSR1. At a signal that ends the process, saves and reports first.
    pub(in super::super) fn handle_signals(
        state: Option<Arc<StateFile>>,
        seen: &Arc<Mutex<Seen>>,
        as_json: bool,
    ) -> Result<(), Failure> {
        let cannot = |error| Failure::Usage(format!("cannot wait for signals: {error}"));
        let mut signals = Signals::new([SIGUSR1, SIGINT, SIGTERM, SIGHUP]).map_err(cannot)?;
        let seen = Arc::clone(seen);
        thread::spawn(move || {
            for signal in &mut signals {
                if !is_free(&seen) {
                    print("koel: the output is not being read; not reported and not saved\n");
                } else if signal == SIGUSR1 {
                    print(&lock(&seen).report(as_json));
                } else {
                    finish(state.as_deref(), &seen, as_json, signal);
                }
                if signal != SIGUSR1 {
                    drop(emulate_default_handler(signal));
                }
            }
        });
        Ok(())
    }

    /// Saves, reports, and ends the process. Holds all locks meanwhile, so that no line is written
    /// that is not in the file.
    fn finish(state: Option<&StateFile>, seen: &Mutex<Seen>, as_json: bool, signal: i32) {
        let _saved = state.map(|state| lock(&state.saved));
        let mut seen = lock(seen);
        if let Some(Err(failure)) = state.map(|state| state.write(Copied::of(&seen))) {
            print(&format!("{failure}\n"));
        }
        print(&seen.report(as_json));
        drop(emulate_default_handler(signal));
    }

    /// Whether the lock can be taken before long.
    fn is_free(seen: &Mutex<Seen>) -> bool {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            match seen.try_lock() {
                Err(std::sync::TryLockError::WouldBlock) => {
                    thread::sleep(Duration::from_millis(5));
                }
                _ => return true,
            }
        }
        false
    }
}
