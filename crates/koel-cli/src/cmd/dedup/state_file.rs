//! What was seen, in a file, so that a restart forgets nothing.
//!
//! The file is an expiring filter (docs/FORMAT.md). It is replaced in one step: at the start, every
//! two seconds if lines have come, at the end, and at a signal (`signals.rs`). If the process is
//! killed or the machine stops, the lines of the last two seconds are not in it: they may be
//! printed once more after a restart. No line is lost by that.
//!
//! The file is locked while it is used. Each new one is locked before it has the name.
//!
//! Cost: a copy of the filter in memory while it is written, during which lines go on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use koel::file::Readers;
use koel::{ExpiringFilter, FileError, KeyHasher, MemoryError};

use super::seen::Seen;
use super::signals::{Run, lock, print};
use crate::failure::Failure;
use crate::filter::file;
use crate::output;

/// The time between saves.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) struct StateFile {
    path: PathBuf,
    /// Lines that had been read at the last save, and the locked file. Locked while the file is
    /// written. What was seen may be locked before it, but never after.
    saved: Mutex<Saved>,
}

#[derive(Default)]
struct Saved {
    read: Option<u64>,
    /// Locked until closed.
    _file: Option<File>,
}

impl StateFile {
    /// Locks the file, and makes an empty one if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        output::before_replacing(path)?;
        let file = match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => None,
            _ => {
                let file = file::lock_if_free(path)
                    .map_err(|error| Failure::write(path, error))?
                    .ok_or_else(|| Self::in_use(path))?;
                Some(file)
            }
        };
        let saved = Mutex::new(Saved { read: None, _file: file });
        Ok(Self { path: path.to_owned(), saved })
    }

    fn in_use(path: &Path) -> Failure {
        let sentence =
            "is in use by another koel; give each a state of its own, or stop the other one";
        Failure::about(path, sentence)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file holds; `None` if it is empty or not a file.
    pub(super) fn load(&self) -> Result<Option<ExpiringFilter>, Failure> {
        let path = &*self.path;
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
    pub(super) fn save(&self, run: &Mutex<Run<Seen>>) -> Result<(), Failure> {
        let last = lock(&self.saved).read;
        let run = lock(run);
        if last == Some(run.seen.counts.read) {
            return Ok(());
        }
        let copy = copy(&run.seen);
        // Lines go on while the file is written.
        drop(run);
        self.write(copy)
    }

    /// Saves what a process has seen that is about to end. The caller holds the lock of it.
    pub(super) fn save_last(&self, seen: &Seen) {
        if let Err(failure) = self.write(copy(seen)) {
            print(&format!("{failure}\n"));
        }
    }

    /// Writes a copy, unless one of later lines was written meanwhile.
    fn write(&self, (bytes, readers, read): Copied) -> Result<(), Failure> {
        let mut saved = lock(&self.saved);
        if saved.read.is_some_and(|last| last >= read) {
            return Ok(());
        }
        let bytes = bytes.map_err(|error| Failure::Usage(error.to_string()))?;
        let file = output::write(&self.path, readers, |sink| sink.write_all(&bytes))
            .map_err(|error| Failure::write(&self.path, error))?;
        *saved = Saved { read: Some(read), _file: file };
        Ok(())
    }
}

/// The bytes of a filter, who may read them, and the number of lines that were read.
type Copied = (Result<Vec<u8>, MemoryError>, Readers, u64);

fn copy(seen: &Seen) -> Copied {
    let is_keyed = matches!(seen.filter.hasher(), KeyHasher::Sip13 { .. });
    let readers = if is_keyed { Readers::Owner } else { Readers::Usual };
    (seen.filter.try_to_bytes(), readers, seen.counts.read)
}

/// Saves at regular intervals until the process ends. The first failure is reported; the next save
/// may succeed.
pub(super) fn save_regularly(state: &Arc<StateFile>, run: &Arc<Mutex<Run<Seen>>>) {
    let (state, run) = (Arc::clone(state), Arc::clone(run));
    thread::spawn(move || {
        let mut is_reported = false;
        loop {
            thread::sleep(PAUSE);
            if let Err(failure) = state.save(&run)
                && !std::mem::replace(&mut is_reported, true)
            {
                print(&format!("{failure}; the next save may succeed\n"));
            }
        }
    });
}
