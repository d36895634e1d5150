//! A store and the history that it must match, and the length of a trial.

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Durability, Error, LogStore};
use testkit::storage::{History, Op, Program, State, Write};

use crate::subject::{Subject, batch_of, read_all};

/// Returns the number of trials, from `KOEL_RELIABILITY`.
pub(crate) fn count(slice: u64, full: u64) -> u64 {
    match env::var("KOEL_RELIABILITY").as_deref() {
        Err(_) | Ok("") => slice,
        Ok("full") => full,
        Ok(number) => number.parse().expect("KOEL_RELIABILITY is `full` or a number"),
    }
}

/// Returns the first seed, from `KOEL_SEED`, or 1.
pub(crate) fn first_seed() -> u64 {
    env::var("KOEL_SEED").map_or(1, |seed| seed.parse().expect("KOEL_SEED is a number"))
}

/// Prints the line that `scripts/reliability` looks for.
pub(crate) fn report(name: &str, what: &str) {
    println!("reliability {name}: seed {}, {what}", first_seed());
}

/// Makes a folder and its files read-only, or writable again.
pub(crate) fn set_read_only(folder: &Path, on: bool) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(on);
        fs::set_permissions(path, permissions).unwrap();
    }
}

/// Flips a bit where these bytes first occur in the first log that has them.
pub(crate) fn flip(files: &mut BTreeMap<String, Vec<u8>>, part: &[u8]) {
    let mut logs = files.iter_mut().filter(|(name, _)| name.ends_with(".log"));
    let found = logs.find_map(|(_, log)| {
        let at = log.windows(part.len()).position(|bytes| bytes == part)?;
        Some(&mut log[at])
    });
    *found.expect("bytes of a log") ^= 1;
}

/// A store, the history of its writes, and its snapshots with what they must show.
pub(crate) struct Trial<S: Subject> {
    pub(crate) store: Option<S>,
    pub(crate) history: History,
    /// Whether the last write of the history failed and may be in the store nevertheless.
    pub(crate) in_doubt: bool,
    pub(crate) snapshots: VecDeque<(S::Snapshot, State)>,
    pub(crate) folder: Arc<dyn Folder>,
    pub(crate) options: S::Options,
    pub(crate) keys: Vec<Vec<u8>>,
}

impl<S: Subject> Trial<S> {
    /// Opens a store that must have the state of `history`.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        options: &S::Options,
        program: &Program,
        history: History,
    ) -> Result<Self, Error> {
        let store = Some(S::open_in(options, Arc::clone(&folder))?);
        let (options, keys) = (options.clone(), program.keys().to_vec());
        let (in_doubt, snapshots) = (false, VecDeque::new());
        Ok(Self { store, history, in_doubt, snapshots, folder, options, keys })
    }

    pub(crate) fn store(&self) -> &S {
        self.store.as_ref().expect("an open store")
    }

    /// Runs one operation and compares its result. After an error that does not exclude that the
    /// write was made, it is in the history, and may be in the store.
    pub(crate) fn step(&mut self, op: Op) -> Result<(), Error> {
        match op {
            Op::Write { changes, synced } => self.write(changes, synced),
            Op::Get(key) => self.check_key(&key),
            Op::Sync => {
                self.store().sync()?;
                self.history.synced();
                Ok(())
            }
            Op::Compact => {
                if self.store().compact()? {
                    self.history.synced();
                }
                Ok(())
            }
            Op::Iterate => {
                self.compare(self.store().contents()?);
                Ok(())
            }
            Op::Reopen => self.reopen(),
            op => S::step_ordered(self, op),
        }
    }

    fn write(&mut self, changes: Write, synced: bool) -> Result<(), Error> {
        let durability = if synced { Durability::Synced } else { Durability::None };
        match self.try_write(&changes, durability) {
            // Refused before anything was written.
            Err(Error::BatchTooLarge { .. }) => return Ok(()),
            Err(error) => return self.note_failure(changes, error),
            Ok(()) => self.history.write(changes),
        }
        if synced {
            self.history.synced();
        }
        Ok(())
    }

    fn try_write(&self, changes: &Write, durability: Durability) -> Result<(), Error> {
        match &changes[..] {
            [(key, Some(value))] => self.store().put(key, value, durability),
            [(key, None)] => {
                let there = self.store().delete(key, durability)?;
                let expected = self.history.now().contains_key(key);
                assert!(there.is_none_or(|there| there == expected), "deleting {key:02x?}");
                Ok(())
            }
            _ => self.store().write(&batch_of(changes)?, durability),
        }
    }

    /// Adds a failed write to the history, if it may have been made.
    pub(crate) fn note_failure(&mut self, changes: Write, error: Error) -> Result<(), Error> {
        let is_poisoned = self.store().is_poisoned();
        assert!(is_poisoned || !matches!(error, Error::InDoubt { .. }), "{error}");
        if is_poisoned {
            self.history.write(changes);
            self.in_doubt = true;
        }
        Err(error)
    }

    /// Closes and reopens the store: nothing is lost, and everything is durable.
    fn reopen(&mut self) -> Result<(), Error> {
        self.snapshots.clear();
        self.store.take().map_or(Ok(()), S::close)?;
        self.history.synced();
        self.store = Some(S::open_in(&self.options, Arc::clone(&self.folder))?);
        Ok(())
    }

    fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        let expected = self.history.now().get(key);
        let found = self.store().get(key)?;
        assert!(found.as_ref() == expected, "get of {key:02x?}: {found:02x?}, not {expected:02x?}");
        assert_eq!(self.store().contains(key)?, expected.is_some(), "contains {key:02x?}");
        self.store().check_value(key, expected)
    }

    pub(crate) fn compare(&self, found: State) {
        let mut history = self.history.clone();
        let all = history.later();
        if let Err(complaint) = history.survived(found, all) {
            panic!("{complaint}");
        }
    }

    /// Compares everything, and verifies every byte.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        self.compare(read_all(self.store(), &self.keys)?);
        assert_eq!(self.store().damages()?, []);
        S::check_end(self)
    }
}

/// Returns everything in a store, by iteration.
#[track_caller]
pub(crate) fn iterate(store: &LogStore) -> Result<State, Error> {
    let mut state = State::new();
    for entry in store.iter() {
        let (key, value) = entry?;
        assert_eq!(state.insert(key, value), None, "a key came twice");
    }
    Ok(state)
}
