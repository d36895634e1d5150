//! The length of a trial, its line in a report, and what several trials do with files.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;

use koel_store::{Error, LogStore};
use testkit::storage::State;

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
