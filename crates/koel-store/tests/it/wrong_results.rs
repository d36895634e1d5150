//! Folders, files and readers of the user that return what they must not: lengths that change,
//! counts beyond the buffer, names that are not there. Every call ends with a result, without a
//! panic and without taking memory for what is not there.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use koel_store::{Durability, Error, LogOptions, LogStore};
use testkit::storage::{Call, Hook, Hooked, MemoryFolder, Random, Verdict};

use crate::trial::{count, first_seed, report};

/// Lies about one in `rarity` calls.
#[derive(Clone, Debug)]
struct Liar {
    random: Arc<Mutex<Random>>,
    rarity: usize,
}

impl Liar {
    /// Returns a wrong number, if this call lies.
    fn lie(&self) -> Option<u64> {
        let mut random = self.random.lock().unwrap();
        if random.below(self.rarity) > 0 {
            return None;
        }
        let number = random.next_u64();
        // Small numbers, sizes of files, and all others.
        Some(number >> [0, 1, 20, 30, 50, 56, 63][random.below(7)])
    }
}

impl Hook for Liar {
    fn before(&self, call: &Call) -> Verdict {
        match call.verb {
            "create" | "sync" | "opened" | "closed" => Verdict::Pass,
            // The salvage opens the folder of a store that is open.
            "lock" => Verdict::Wrong(0),
            _ => self.lie().map_or(Verdict::Pass, Verdict::Wrong),
        }
    }
}

/// Bytes without end.
impl Read for Liar {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.lie() {
            Some(lie) => Ok(usize::try_from(lie).unwrap()),
            None => io::repeat(1).read(into),
        }
    }
}

fn options(seed: u64) -> LogOptions {
    LogOptions::default()
        .seed(seed)
        .segment_bytes(4096)
        .background_compaction(false)
        .max_open_files(2)
}

/// A store with several segments, large values and dead records, that was not closed.
fn store(seed: u64) -> MemoryFolder {
    let folder = MemoryFolder::new();
    let store = options(seed).open_in(Arc::new(folder.clone())).unwrap();
    for i in 0..40_u8 {
        store.put(&[i % 13], &vec![i; usize::from(i) * 50], Durability::None).unwrap();
    }
    store.put(b"large", &[7; 100_000], Durability::Synced).unwrap();
    store.put(b"last", b"", Durability::Synced).unwrap();
    folder.crash_clone(100, seed)
}

/// Calls everything. What is returned does not matter.
fn use_all(store: &LogStore, liar: &Liar) -> Result<(), Error> {
    let reader = || liar.clone();
    for i in 0..15_u8 {
        drop(store.get(&[i]));
        drop(store.put(&[i], &[i; 900], Durability::Synced));
        drop(store.put_reader(&[i + 1], 80_000, reader(), Durability::None));
        drop(store.put_reader(&[i + 2], 800, reader(), Durability::None));
        drop(store.delete(&[i + 3], Durability::Synced));
        drop(store.compare_exchange(&[i], Some(&[1; 800]), Some(&[i; 700]), Durability::None));
    }
    if let Some(mut value) = store.get_reader(b"large")? {
        drop(io::copy(&mut value, &mut io::sink()));
    }
    let keys = store.keys().take(1_000).filter(Result::is_ok).count();
    assert!(keys < 100, "{keys} keys");
    assert!(store.iter().take(1_000).count() < 1_000);
    drop(store.checkpoint_in(&MemoryFolder::new()));
    store.verify(|_, _| ())?;
    store.compact()?;
    store.sync()
}

#[test]
fn no_lie_of_a_folder_or_a_reader_is_a_panic() {
    let stores = count(300, 20_000);
    let mut opened = 0;
    for seed in (first_seed()..).take(usize::try_from(stores).unwrap()) {
        let random = Arc::new(Mutex::new(Random::new(seed)));
        let rarity = [5, 30, 200][usize::try_from(seed % 3).unwrap()];
        let liar = Liar { random, rarity };
        let folder = Hooked::with(store(seed), liar.clone());
        if let Ok(store) = options(seed).open_in(Arc::new(folder.clone())) {
            opened += 1;
            drop(use_all(&store, &liar));
        }
        let rescued = options(seed).open_in(Arc::new(MemoryFolder::new())).unwrap();
        drop(rescued.salvage_in(&folder, |_, _| ()));
    }
    assert!(opened > stores / 10, "{opened} opened");
    report("lies", &format!("{stores} folders that lie, {opened} opened: 0 panics"));
}
