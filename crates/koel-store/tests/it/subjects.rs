//! Both stores as subjects of the trials.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use koel_store::files::Folder;
use koel_store::{
    Batch, CompactionPolicy, Compression, Damage, Durability, Error, LogOptions, LogStore,
    LsmOptions, LsmStore, Snapshot, TornEnd,
};
use testkit::storage::{MemoryFolder, Op, Program, Random, State};

use crate::lsm::trial::{check_snapshot, collect, step_ordered};
use crate::subject::{Subject, Trial};
use crate::trial::iterate;

/// The methods that both stores have under these names.
macro_rules! same_methods {
    () => {
        fn open_in(options: &Self::LogOptions, folder: Arc<dyn Folder>) -> Result<Self, Error> {
            options.clone().open_in(folder)
        }

        fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
            Self::write(self, batch, durability)
        }

        fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
            Self::get(self, key)
        }

        fn contains(&self, key: &[u8]) -> Result<bool, Error> {
            Self::contains(self, key)
        }

        fn sync(&self) -> Result<(), Error> {
            Self::sync(self)
        }

        fn damages(&self) -> Result<Vec<Damage>, Error> {
            Ok(self.verify(|read, all| assert!(read <= all))?.damages)
        }

        fn is_poisoned(&self) -> bool {
            self.stats().poisoned
        }

        fn torn(&self) -> Option<TornEnd> {
            self.open_report().torn.clone()
        }

        fn was_closed(&self) -> bool {
            self.open_report().was_closed
        }

        fn checkpoint_in(&self, folder: &MemoryFolder) -> Result<(), Error> {
            Self::checkpoint_in(self, folder)
        }

        fn has_removed(&self) -> bool {
            !self.open_report().removed.is_empty()
        }

        fn close(self) -> Result<(), Error> {
            Self::close(self)
        }
    };
}

impl Subject for LogStore {
    type LogOptions = LogOptions;
    type Snapshot = ();
    const PREFIX: &str = "";
    const DATA_SUFFIX: &str = ".log";

    same_methods!();

    /// Small segments, few open files, and an index that grows early, late or never.
    fn small(seed: u64) -> LogOptions {
        let mut random = Random::new(seed);
        let segment = [4096, 8192, 20_000, 65_536][random.below(4)];
        let open_files = [1, 2, 5, 128][random.below(4)];
        let keys = [0, 100, 10_000][random.below(3)];
        let options = LogOptions::default().seed(seed).segment_bytes(segment).expected_keys(keys);
        options.max_open_files(open_files).background_compaction(false)
    }

    fn threaded(seed: u64) -> LogOptions {
        Self::small(seed).background_compaction(true).bytes_per_sync(1024)
    }

    fn read_only(options: &LogOptions) -> LogOptions {
        options.clone().background_compaction(true).read_only(true)
    }

    fn program(seed: u64, keys: usize, longest: usize) -> Program {
        Program::new(seed, keys, longest)
    }

    /// Some values come from a reader, and some replace one that is known.
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error> {
        match value.len() % 16 {
            1 => self.put_reader(key, value.len() as u64, value, durability),
            2..5 => exchange(self, key, Some(value), durability).map(drop),
            _ => Self::put(self, key, value, durability),
        }
    }

    fn delete(&self, key: &[u8], durability: Durability) -> Result<Option<bool>, Error> {
        if key.len() % 4 == 1 {
            return exchange(self, key, None, durability).map(Some);
        }
        Self::delete(self, key, durability).map(Some)
    }

    fn contents(&self) -> Result<State, Error> {
        iterate(self)
    }

    fn compact(&self) -> Result<bool, Error> {
        Self::compact(self).map(|_| false)
    }

    fn check_value(&self, key: &[u8], expected: Option<&Vec<u8>>) -> Result<(), Error> {
        let mut streamed = None;
        if let Some(mut reader) = self.get_reader(key)? {
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

    fn change(&self) -> Vec<Result<(), Error>> {
        let mut batch = Batch::new();
        batch.put(b"", b"").unwrap();
        vec![
            self.put(b"key", b"value", Durability::Synced),
            self.put_reader(b"key", 1 << 20, io::repeat(0), Durability::None),
            self.delete(b"key", Durability::None).map(drop),
            self.compare_exchange(b"key", None, None, Durability::None).map(drop),
            self.write(&batch, Durability::None),
            self.compact().map(drop),
        ]
    }
}

/// Writes by comparison with the present value, first with a wrong one. Returns whether there was
/// one. A damaged value cannot be compared, so it is replaced unseen.
fn exchange(
    store: &LogStore,
    key: &[u8],
    new: Option<&[u8]>,
    durability: Durability,
) -> Result<bool, Error> {
    let current = match store.get(key) {
        Err(Error::Damaged { .. }) => {
            let refused = store.compare_exchange(key, None, new, durability);
            assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
            return match new {
                Some(new) => store.put(key, new, durability).map(|()| true),
                None => store.delete(key, durability),
            };
        }
        current => current?,
    };
    let wrong = current.as_ref().map_or_else(Vec::new, |value| [&value[..], b"?"].concat());
    let refused = store.compare_exchange(key, Some(&wrong), new, durability)?;
    assert!(refused.is_err_and(|mismatch| mismatch.current == current), "of {key:02x?}");
    if current.is_some() {
        let refused = store.compare_exchange(key, None, new, durability)?;
        assert!(refused.is_err_and(|mismatch| mismatch.current == current), "of {key:02x?}");
    }
    let made = store.compare_exchange(key, current.as_deref(), new, durability)?;
    assert_eq!(made, Ok(()), "{key:02x?}");
    Ok(current.is_some())
}

/// Bytes of a small memtable: it is full after about 15 to 200 entries.
const SMALL_MEMTABLES: [u64; 3] = [4 << 10, 16 << 10, 60 << 10];

impl Subject for LsmStore {
    type LogOptions = LsmOptions;
    type Snapshot = Snapshot;
    const PREFIX: &str = "ordered ";
    const DATA_SUFFIX: &str = ".table";

    same_methods!();

    /// Small memtables and blocks, few ids, or no guide.
    fn small(seed: u64) -> LsmOptions {
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
            .extra_space_percent(u32::try_from(of(&[10, 100, u32::MAX.into()])).unwrap())
            .few_entries(index(of(&[0, 3, 1000])))
            .guide(u32::try_from(of(&[0, 2, 3, 4, 5, 5])).unwrap(), of(&[1, 100, 10_000]))
    }

    fn threaded(seed: u64) -> LsmOptions {
        let options = Self::small(seed).background(true).bytes_per_sync(2048);
        options.stall_limit(Duration::from_secs(600))
    }

    fn read_only(options: &LsmOptions) -> LsmOptions {
        options.clone().background(true).read_only(true)
    }

    fn program(seed: u64, keys: usize, longest: usize) -> Program {
        Program::ordered(seed, keys, longest)
    }

    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error> {
        Self::put(self, key, value, durability)
    }

    fn delete(&self, key: &[u8], durability: Durability) -> Result<Option<bool>, Error> {
        Self::delete(self, key, durability).map(|()| None)
    }

    fn contents(&self) -> Result<State, Error> {
        collect(self.iter()?)
    }

    fn compact(&self) -> Result<bool, Error> {
        Self::compact(self).map(|()| true)
    }

    fn step_ordered(trial: &mut Trial<Self>, op: Op) -> Result<(), Error> {
        step_ordered(trial, op)
    }

    fn check_end(trial: &mut Trial<Self>) -> Result<(), Error> {
        while !trial.snapshots.is_empty() {
            check_snapshot(trial)?;
        }
        Ok(())
    }

    fn change(&self) -> Vec<Result<(), Error>> {
        vec![
            self.put(b"key", b"value", Durability::Synced),
            self.delete(b"key", Durability::None),
            self.ingest([(b"key", b"value")]).map(drop),
            self.flush(),
            self.compact(),
        ]
    }
}
