//! What the trials need of a store, so that one harness tests both kinds.

use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Batch, Damage, Durability, Error, TornEnd};
use testkit::storage::{Op, Program, State, Write};

use crate::trial::Trial;

/// A store under trial.
pub(crate) trait Subject: Sized {
    type Options: Clone;
    type Snapshot;
    /// Before the names of its trials in reports.
    const PREFIX: &str;

    /// Returns options that reach rare paths, without background threads.
    fn small(seed: u64) -> Self::Options;
    /// Returns the same with background threads, and without a limit of waiting that a test
    /// reaches.
    fn threaded(seed: u64) -> Self::Options;
    /// Returns options that open a store read-only, though with its threads.
    fn read_only(options: &Self::Options) -> Self::Options;
    /// Returns a program of the operations that it has.
    fn program(seed: u64, keys: usize, longest: usize) -> Program;

    fn open_in(options: &Self::Options, folder: Arc<dyn Folder>) -> Result<Self, Error>;
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
