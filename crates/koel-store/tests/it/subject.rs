//! What the trials need of a store, so that one harness tests both kinds, and a store beside the
//! history that it must match.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Batch, Damage, Durability, Error, TornEnd};
use testkit::storage::{History, MemoryFolder, Op, Program, State, Write};

/// A store under trial.
pub(crate) trait Subject: Sized {
    type LogOptions: Clone;
    type Snapshot;
    /// Before the names of its trials in reports.
    const PREFIX: &str;
    /// The end of the names of its largest files.
    const DATA_SUFFIX: &str;

    /// Returns options that reach rare paths, without background threads.
    fn small(seed: u64) -> Self::LogOptions;
    /// Returns the same with background threads, and without a limit of waiting that a test
    /// reaches.
    fn threaded(seed: u64) -> Self::LogOptions;
    /// Returns options that open a store read-only, though with its threads.
    fn read_only(options: &Self::LogOptions) -> Self::LogOptions;
    /// Returns a program of the operations that it has.
    fn program(seed: u64, keys: usize, longest: usize) -> Program;

    fn open_in(options: &Self::LogOptions, folder: Arc<dyn Folder>) -> Result<Self, Error>;
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error>;
    /// Deletes a key. Returns whether it was there, if the store finds out.
    fn delete(&self, key: &[u8], durability: Durability) -> Result<Option<bool>, Error>;
    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error>;
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;
    fn contains(&self, key: &[u8]) -> Result<bool, Error>;
    /// Returns everything in it, by iteration.
    fn contents(&self) -> Result<State, Error>;
    fn sync(&self) -> Result<(), Error>;
    /// Compacts. Returns whether that makes everything durable.
    fn compact(&self) -> Result<bool, Error>;
    /// Verifies every byte.
    fn damages(&self) -> Result<Vec<Damage>, Error>;
    fn is_poisoned(&self) -> bool;
    fn torn(&self) -> Option<TornEnd>;
    /// Returns whether it was closed before it was opened.
    fn was_closed(&self) -> bool;
    /// Copies it into another folder.
    fn checkpoint_in(&self, folder: &MemoryFolder) -> Result<(), Error>;
    /// Returns whether opening removed files that no manifest names.
    fn has_removed(&self) -> bool;
    fn close(self) -> Result<(), Error>;

    /// Checks a value in the ways to read it that only this kind of store has.
    fn check_value(&self, _key: &[u8], _expected: Option<&Vec<u8>>) -> Result<(), Error> {
        Ok(())
    }

    /// Runs an operation that only a store with keys in order has, and compares its result.
    fn step_ordered(_trial: &mut Trial<Self>, op: Op) -> Result<(), Error> {
        unreachable!("{op:?} is not in the programs of this store")
    }

    /// Checks what else must be so at the end of a trial.
    fn check_end(_trial: &mut Trial<Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Calls each method that changes the store.
    fn change(&self) -> Vec<Result<(), Error>>;
}

/// A store, the history of its writes, and its snapshots with what they must show.
pub(crate) struct Trial<S: Subject> {
    pub(crate) store: Option<S>,
    pub(crate) history: History,
    /// Whether the last write of the history failed and may be in the store nevertheless.
    pub(crate) in_doubt: bool,
    pub(crate) snapshots: VecDeque<(S::Snapshot, State)>,
    pub(crate) folder: Arc<dyn Folder>,
    pub(crate) options: S::LogOptions,
    pub(crate) keys: Vec<Vec<u8>>,
}

impl<S: Subject> Trial<S> {
    /// Opens a store that must have the state of `history`.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        options: &S::LogOptions,
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
            Op::Checkpoint => self.check_copy(),
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

    /// Copies the store, and compares and changes the copy.
    fn check_copy(&self) -> Result<(), Error> {
        let folder = MemoryFolder::new();
        self.store().checkpoint_in(&folder)?;
        let shared = folder.contents();
        assert!(matches!(self.store().checkpoint_in(&folder), Err(Error::NotEmpty { .. })));
        let copy = S::open_in(&self.options, Arc::new(folder.clone()))?;
        assert!(copy.was_closed());
        self.compare(read_all(&copy, &self.keys)?);
        // More than one segment or memtable.
        for _ in 0..2 {
            copy.put(b"only in the copy", &[0; 70_000], Durability::None)?;
        }
        copy.compact()?;
        assert_eq!(copy.damages()?, []);
        // The call that fails may be this one.
        let own: BTreeSet<_> = self.folder.list().unwrap_or_default().into_iter().collect();
        // Files of the original may still be there: a thread removes them.
        let after = folder.contents();
        let is_new = |name: &&String| name.ends_with(S::DATA_SUFFIX) && !shared.contains_key(*name);
        let new: Vec<_> = after.keys().filter(is_new).collect();
        assert!(!new.is_empty(), "the copy wrote no file");
        assert!(new.iter().all(|name| !own.contains(*name)), "a number that the original may use");
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

/// Returns everything in a store, by iteration and by single gets, which must agree.
pub(crate) fn read_all<S: Subject>(store: &S, keys: &[Vec<u8>]) -> Result<State, Error> {
    let state = store.contents()?;
    for key in keys {
        let found = store.get(key)?;
        assert!(found.as_ref() == state.get(key), "get and iter differ, {key:02x?}: {found:02x?}");
    }
    assert!(state.keys().all(|key| keys.contains(key)), "a key that no one wrote");
    Ok(state)
}

/// Returns a batch of these changes.
pub(crate) fn batch_of(changes: &Write) -> Result<Batch, Error> {
    let mut batch = Batch::new();
    for (key, value) in changes {
        match value {
            Some(value) => batch.put(key, value)?,
            None => batch.delete(key)?,
        };
    }
    Ok(batch)
}
