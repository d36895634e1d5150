//! A store and the history that it must match, and the length of a trial.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Batch, Durability, Error, LogStore, Options};
use testkit::storage::{History, Op, Program, Random, State, Write};

use crate::subject::read_all;

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

/// Options that reach rare paths: small segments, few open files, no background threads.
pub(crate) fn small(seed: u64) -> Options {
    let mut random = Random::new(seed);
    let segment = [4096, 8192, 20_000, 65_536][random.below(4)];
    let open_files = [1, 2, 5, 128][random.below(4)];
    let options = Options::default().seed(seed).segment_bytes(segment).max_open_files(open_files);
    options.background_compaction(false)
}

/// A store, the history of its writes, and the program that runs on it.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) store: Option<LogStore>,
    pub(crate) history: History,
    /// Whether the last write of the history failed and may be in the store nevertheless.
    pub(crate) in_doubt: bool,
    folder: Arc<dyn Folder>,
    options: Options,
    keys: Vec<Vec<u8>>,
}

impl Trial {
    /// Opens a store that must have the state of `history`.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        options: &Options,
        program: &Program,
        history: History,
    ) -> Result<Self, Error> {
        let store = Some(options.clone().open_in(Arc::clone(&folder))?);
        let keys = program.keys().to_vec();
        Ok(Self { store, history, in_doubt: false, folder, options: options.clone(), keys })
    }

    pub(crate) fn store(&self) -> &LogStore {
        self.store.as_ref().expect("an open store")
    }

    /// Runs one operation and compares its result. After an error the interrupted write is in the
    /// history, and may be in the store.
    pub(crate) fn step(&mut self, op: Op) -> Result<(), Error> {
        match op {
            Op::Write { changes, synced } => self.write(changes, synced),
            Op::Get(key) => self.check_key(&key),
            Op::Sync => {
                self.store().sync()?;
                self.history.synced();
                Ok(())
            }
            Op::Compact => self.store().compact().map(drop),
            Op::Iterate => {
                self.compare(iterate(self.store())?);
                Ok(())
            }
            Op::Reopen => self.reopen(),
        }
    }

    fn write(&mut self, changes: Write, synced: bool) -> Result<(), Error> {
        let durability = if synced { Durability::Synced } else { Durability::None };
        match self.try_write(&changes, durability) {
            // Refused before anything was written.
            Err(Error::BatchTooLarge { .. }) => return Ok(()),
            Err(error) => {
                self.history.write(changes);
                self.in_doubt = true;
                return Err(error);
            }
            Ok(()) => self.history.write(changes),
        }
        if synced {
            self.history.synced();
        }
        Ok(())
    }

    fn try_write(&self, changes: &Write, durability: Durability) -> Result<(), Error> {
        match &changes[..] {
            [(key, Some(value))] if value.len() % 16 == 1 => {
                let len = value.len() as u64;
                self.store().put_reader(key, len, &value[..], durability)
            }
            [(key, Some(value))] => self.store().put(key, value, durability),
            [(key, None)] => {
                let there = self.store().delete(key, durability)?;
                assert_eq!(there, self.history.now().contains_key(key), "deleting {key:02x?}");
                Ok(())
            }
            _ => {
                let mut batch = Batch::new();
                for (key, value) in changes {
                    match value {
                        Some(value) => batch.put(key, value)?,
                        None => batch.delete(key)?,
                    };
                }
                self.store().write(&batch, durability)
            }
        }
    }

    /// Closes and reopens the store: nothing is lost, and everything is durable.
    pub(crate) fn reopen(&mut self) -> Result<(), Error> {
        self.store.take().map_or(Ok(()), LogStore::close)?;
        self.history.synced();
        self.store = Some(self.options.clone().open_in(Arc::clone(&self.folder))?);
        Ok(())
    }

    fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        let expected = self.history.now().get(key);
        let found = self.store().get(key)?;
        assert!(found.as_ref() == expected, "get of {key:02x?}: {found:02x?}");
        assert_eq!(self.store().contains(key)?, expected.is_some(), "contains {key:02x?}");
        let mut streamed = None;
        if let Some(mut reader) = self.store().get_reader(key)? {
            let mut bytes = Vec::new();
            assert_eq!(Some(reader.len()), expected.map(|value| value.len() as u64));
            // The reader returns an `io::Error`.
            match reader.read_to_end(&mut bytes) {
                Ok(_) => streamed = Some(bytes),
                Err(_) => return Ok(()),
            }
        }
        assert!(streamed.as_ref() == expected, "reader of {key:02x?}");
        Ok(())
    }

    fn compare(&self, found: State) {
        let mut history = self.history.clone();
        let all = history.later();
        if let Err(complaint) = history.survived(found, all) {
            panic!("{complaint}");
        }
    }

    /// Compares everything, and verifies every byte.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.compare(read_all(self.store(), &self.keys)?);
        let verified = self.store().verify(|_, _| ())?;
        assert!(verified.damages.is_empty(), "{:?}", verified.damages);
        Ok(())
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
