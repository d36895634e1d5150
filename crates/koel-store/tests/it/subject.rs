//! What the trials need of a store, so that one harness tests both kinds.

use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Batch, Durability, Error, TornEnd};
use testkit::storage::{History, Op, State, Write};

/// A store under trial.
pub(crate) trait Subject: Sized {
    type Options: Clone;
    /// Before the names of its trials in reports.
    const PREFIX: &str;

    fn open_in(options: &Self::Options, folder: Arc<dyn Folder>) -> Result<Self, Error>;
    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error>;
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;
    /// Returns everything in it, by iteration.
    fn contents(&self) -> Result<State, Error>;
    fn torn(&self) -> Option<TornEnd>;
    /// Returns whether opening removed files that no manifest names.
    fn has_removed(&self) -> bool;
    fn close(self) -> Result<(), Error>;
}

/// A store with a program that runs on it, beside the history that it must match.
pub(crate) trait Programmed: Subject {
    type Op;
    type Program: Iterator<Item = Self::Op>;
    type Trial;

    /// Returns options that reach rare paths.
    fn small(seed: u64) -> Self::Options;
    fn program(seed: u64, keys: usize, longest: usize) -> Self::Program;
    fn keys(program: &Self::Program) -> &[Vec<u8>];
    fn op(op: Op) -> Self::Op;
    /// Returns what an operation writes.
    fn changes(op: &Self::Op) -> Write;

    fn start(
        folder: Arc<dyn Folder>,
        options: &Self::Options,
        program: &Self::Program,
        history: History,
    ) -> Result<Self::Trial, Error>;
    fn step(trial: &mut Self::Trial, op: Self::Op) -> Result<(), Error>;
    fn history(trial: &Self::Trial) -> &History;
    /// Whether the last write of the history failed and may be in the store nevertheless.
    fn in_doubt(trial: &Self::Trial) -> bool;
    fn take(trial: Self::Trial) -> Self;

    /// Returns options that open a store read-only, though with its threads.
    fn read_only(options: &Self::Options) -> Self::Options;
    /// Calls each method that changes the store.
    fn change(&self) -> Vec<Result<(), Error>>;
    /// Checks every byte.
    fn check_sound(&self);
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
