//! An ordered store and the history that it must match.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use koel_store::files::Folder;
use koel_store::{
    Batch, CompactionPolicy, Compression, Durability, Error, LsmOptions, LsmStore, Range, Snapshot,
};
use testkit::storage::{
    History, MemoryFolder, Op, OrderedOp, OrderedProgram, Random, State, Write,
};

use crate::subject::read_all;

/// Bytes of a small memtable: it is full after about 15 to 200 entries.
const SMALL_MEMTABLES: [u64; 3] = [4 << 10, 16 << 10, 60 << 10];

/// Options that reach rare paths: small memtables and blocks, few ids, no guide, no background
/// threads.
pub(crate) fn small(seed: u64) -> LsmOptions {
    let mut random = Random::new(seed);
    let mut of = |choices: &[u64]| choices[random.below(choices.len())];
    let policies =
        [CompactionPolicy::LazyLevelled, CompactionPolicy::Levelled, CompactionPolicy::Tiered];
    let compressions = [Compression::None, Compression::Lz4, Compression::ZstdLast];
    let index = |number: u64| usize::try_from(number).unwrap();
    LsmOptions::default()
        .seed(seed)
        .background(false)
        .memtable_bytes(of(&SMALL_MEMTABLES))
        .block_bytes(index(of(&[128, 300, 4096])))
        .cache_bytes(of(&[0, 10_000, 1 << 20]))
        .max_open_files(index(of(&[1, 3, 128])))
        .policy(policies[index(of(&[0, 1, 2]))])
        .ratio(u32::try_from(of(&[2, 3, 5])).unwrap())
        .compression(compressions[index(of(&[0, 1, 2]))])
        .guide(u32::try_from(of(&[0, 2, 3, 4, 5, 5])).unwrap(), of(&[1, 100, 10_000]))
        .paranoid(of(&[0, 0, 1]))
}

/// Options with background threads, and a limit of waiting that no test reaches.
pub(crate) fn threaded(seed: u64) -> LsmOptions {
    small(seed).background(true).bytes_per_sync(2048).stall_limit(Duration::from_secs(600))
}

/// A store, the history of its writes, and its snapshots with what they must show.
#[derive(Debug)]
pub(crate) struct OrderedTrial {
    pub(crate) store: Option<LsmStore>,
    pub(crate) history: History,
    /// Whether the last write of the history failed and may be in the store nevertheless.
    pub(crate) in_doubt: bool,
    snapshots: VecDeque<(Snapshot, State)>,
    folder: Arc<dyn Folder>,
    options: LsmOptions,
    keys: Vec<Vec<u8>>,
}

impl OrderedTrial {
    /// Opens a store that must have the state of `history`.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        options: &LsmOptions,
        program: &OrderedProgram,
        history: History,
    ) -> Result<Self, Error> {
        let store = Some(options.clone().open_in(Arc::clone(&folder))?);
        let (options, keys) = (options.clone(), program.keys().to_vec());
        let (in_doubt, snapshots) = (false, VecDeque::new());
        Ok(Self { store, history, in_doubt, snapshots, folder, options, keys })
    }

    pub(crate) fn store(&self) -> &LsmStore {
        self.store.as_ref().expect("an open store")
    }

    /// Runs one operation and compares its result. After an error that does not exclude that the
    /// write was made, it is in the history, and may be in the store.
    pub(crate) fn step(&mut self, op: OrderedOp) -> Result<(), Error> {
        match op {
            OrderedOp::Common(op) => self.step_common(op),
            OrderedOp::GetMany(keys) => {
                let found = self.store().get_many(&keys)?;
                let expected: Vec<_> =
                    keys.iter().map(|key| self.history.now().get(key).cloned()).collect();
                assert!(found == expected, "several keys: {keys:02x?}");
                Ok(())
            }
            OrderedOp::Range { bounds, steps } => self.check_range(&bounds, &steps),
            OrderedOp::Prefix(prefix) => {
                let found: Result<Vec<_>, _> = self.store().prefix(&prefix)?.collect();
                let all = self.history.now().iter();
                let expected: Vec<_> = all
                    .filter(|(key, _)| key.starts_with(&prefix))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                assert!(found? == expected, "prefix {prefix:02x?}");
                Ok(())
            }
            OrderedOp::Snapshot => {
                let taken = (self.store().snapshot(), self.history.now().clone());
                self.snapshots.push_back(taken);
                Ok(())
            }
            OrderedOp::ReadSnapshot => self.check_snapshot(),
            OrderedOp::Flush => {
                self.store().flush()?;
                self.history.synced();
                Ok(())
            }
            OrderedOp::Ingest(entries) => self.ingest(entries),
            OrderedOp::Checkpoint => self.check_copy(),
        }
    }

    fn step_common(&mut self, op: Op) -> Result<(), Error> {
        match op {
            Op::Write { changes, synced } => self.write(changes, synced),
            Op::Get(key) => self.check_key(&key),
            Op::Sync => {
                self.store().sync()?;
                self.history.synced();
                Ok(())
            }
            Op::Compact => {
                self.store().compact()?;
                self.history.synced();
                Ok(())
            }
            Op::Iterate => {
                self.compare(&collect(self.store().iter()?)?);
                Ok(())
            }
            Op::Reopen => self.reopen(),
        }
    }

    fn write(&mut self, changes: Write, synced: bool) -> Result<(), Error> {
        let durability = if synced { Durability::Synced } else { Durability::None };
        if let Err(error) = self.try_write(&changes, durability) {
            return self.note_failure(changes, error);
        }
        self.history.write(changes);
        if synced {
            self.history.synced();
        }
        Ok(())
    }

    /// Adds a failed write to the history, if it may have been made.
    fn note_failure(&mut self, changes: Write, error: Error) -> Result<(), Error> {
        let is_poisoned = self.store().stats().poisoned;
        assert!(is_poisoned || !matches!(error, Error::InDoubt { .. }), "{error}");
        if is_poisoned {
            self.history.write(changes);
            self.in_doubt = true;
        }
        Err(error)
    }

    /// Copies the store, and compares and changes the copy.
    fn check_copy(&self) -> Result<(), Error> {
        let folder = MemoryFolder::new();
        self.store().checkpoint_in(&folder)?;
        let shared = folder.contents();
        assert!(matches!(self.store().checkpoint_in(&folder), Err(Error::NotEmpty { .. })));
        let copy = self.options.clone().open_in(Arc::new(folder.clone()))?;
        assert!(copy.open_report().was_closed);
        self.compare(&read_all(&copy, &self.keys)?);
        copy.put(b"only in the copy", &[0; 5000], Durability::None)?;
        copy.compact()?;
        let verified = copy.verify(|read, all| assert!(read <= all))?;
        assert_eq!(verified.damages, []);
        // The call that fails may be this one.
        let own: BTreeSet<_> = self.folder.list().unwrap_or_default().into_iter().collect();
        // Files of the original may still be there: a thread removes them.
        let after = folder.contents();
        let is_new = |name: &&String| name.ends_with(".table") && !shared.contains_key(*name);
        let new: Vec<_> = after.keys().filter(is_new).collect();
        assert!(!new.is_empty(), "the copy wrote no table");
        assert!(new.iter().all(|name| !own.contains(*name)), "a number that the original may use");
        Ok(())
    }

    fn try_write(&self, changes: &Write, durability: Durability) -> Result<(), Error> {
        match &changes[..] {
            [(key, Some(value))] => self.store().put(key, value, durability),
            [(key, None)] => self.store().delete(key, durability),
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

    fn ingest(&mut self, entries: State) -> Result<(), Error> {
        let changes = entries.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
        let changes: Write = changes.collect();
        match self.store().ingest(&entries) {
            Err(error) => return self.note_failure(changes, error),
            Ok(count) => assert_eq!(count, entries.len() as u64),
        }
        self.history.write(changes);
        self.history.synced();
        Ok(())
    }

    /// Closes and reopens the store: nothing is lost, and everything is durable.
    pub(crate) fn reopen(&mut self) -> Result<(), Error> {
        self.snapshots.clear();
        self.store.take().map_or(Ok(()), LsmStore::close)?;
        self.history.synced();
        self.store = Some(self.options.clone().open_in(Arc::clone(&self.folder))?);
        Ok(())
    }

    fn check_key(&self, key: &[u8]) -> Result<(), Error> {
        let expected = self.history.now().get(key);
        let found = self.store().get(key)?;
        assert!(found.as_ref() == expected, "get of {key:02x?}: {found:02x?}, not {expected:02x?}");
        assert_eq!(self.store().contains(key)?, expected.is_some(), "contains {key:02x?}");
        Ok(())
    }

    fn check_range(
        &self,
        (from, to): &(Bound<Vec<u8>>, Bound<Vec<u8>>),
        steps: &[bool],
    ) -> Result<(), Error> {
        let mut found = self.store().range::<Vec<u8>>((from.clone(), to.clone()))?;
        let is_within = |key: &&Vec<u8>| {
            (match from {
                Bound::Included(from) => *key >= from,
                Bound::Excluded(from) => *key > from,
                Bound::Unbounded => true,
            }) && match to {
                Bound::Included(to) => *key <= to,
                Bound::Excluded(to) => *key < to,
                Bound::Unbounded => true,
            }
        };
        let all = self.history.now().iter();
        let mut expected = all.filter(|(key, _)| is_within(key));
        for &is_front in steps {
            let found = if is_front { found.next() } else { found.next_back() }.transpose()?;
            let expected = if is_front { expected.next() } else { expected.next_back() };
            assert!(is_same(found.as_ref(), expected), "{from:02x?} to {to:02x?}, {steps:?}");
        }
        let rest: Result<Vec<_>, _> = found.collect();
        let rest = rest?;
        let is_equal = rest.len() == expected.clone().count()
            && rest.iter().zip(expected).all(|(one, other)| is_same(Some(one), Some(other)));
        assert!(is_equal, "{from:02x?} to {to:02x?}, after {steps:?}");
        Ok(())
    }

    /// Reads everything through the oldest snapshot.
    fn check_snapshot(&mut self) -> Result<(), Error> {
        let Some((snapshot, state)) = self.snapshots.pop_front() else { return Ok(()) };
        assert!(collect(snapshot.iter()?)? == state, "a snapshot has changed");
        let backwards: Result<Vec<_>, _> = snapshot.iter()?.rev().collect();
        assert!(backwards?.into_iter().rev().eq(state.clone()), "a snapshot, backwards");
        for key in &self.keys {
            let found = snapshot.get(key)?;
            assert!(found.as_ref() == state.get(key), "{key:02x?} in a snapshot: {found:02x?}");
            assert_eq!(snapshot.contains(key)?, state.contains_key(key));
        }
        Ok(())
    }

    fn compare(&self, found: &State) {
        let mut history = self.history.clone();
        let all = history.later();
        if let Err(complaint) = history.survived(found.clone(), all) {
            panic!("{complaint}");
        }
    }

    /// Compares everything, and verifies every byte.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        self.compare(&read_all(self.store(), &self.keys)?);
        while !self.snapshots.is_empty() {
            self.check_snapshot()?;
        }
        let verified = self.store().verify(|read, all| assert!(read <= all))?;
        assert!(verified.damages.is_empty(), "{:?}", verified.damages);
        assert_eq!(self.store().stats().guide_errors, 0, "the guide missed a key");
        Ok(())
    }
}

fn is_same(found: Option<&(Vec<u8>, Vec<u8>)>, expected: Option<(&Vec<u8>, &Vec<u8>)>) -> bool {
    found.map(|(key, value)| (key, value)) == expected
}

/// Returns what is left of a range, which must be in order.
pub(crate) fn collect(range: Range<'_>) -> Result<State, Error> {
    let entries: Result<Vec<_>, Error> = range.collect();
    let entries = entries?;
    assert!(entries.is_sorted_by(|one, other| one.0 < other.0), "keys out of order");
    Ok(entries.into_iter().collect())
}
