//! A store with many segments and few open files, in a folder that counts them: nothing is lost or
//! found twice, whatever is compacted and removed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use koel_store::files::Folder;
use koel_store::{CompactionPolicy, Durability, Error, LogOptions, LogStore, LsmOptions};
use testkit::storage::{Call, Hook, Hooked, MemoryFolder, Verdict};

const OPEN: usize = 8;
/// Additional open files: a manifest and a hint being written, and the active segment.
const BESIDES: usize = 3;
const KEYS: u32 = 1500;

/// Counts open files.
#[derive(Debug, Default)]
struct Open {
    now: AtomicUsize,
    most: AtomicUsize,
}

type Counting = Hooked<MemoryFolder, Open>;

impl Hook for Open {
    fn before(&self, call: &Call) -> Verdict {
        match call.verb {
            "opened" => {
                let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(now, Ordering::Relaxed);
            }
            "closed" => drop(self.now.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        Verdict::Pass
    }
}

fn counting() -> Counting {
    Hooked::with(MemoryFolder::new(), Open::default())
}

fn open(folder: &Counting) -> LogStore {
    let options = LogOptions::default().segment_bytes(4096).max_open_files(OPEN).seed(1);
    options.background_compaction(false).open_in(Arc::new(folder.clone())).unwrap()
}

fn value(key: u32, round: u8) -> Vec<u8> {
    let len = 500 + usize::try_from(key % 7).unwrap();
    vec![round; len]
}

fn write(store: &LogStore, keys: impl Iterator<Item = u32>, round: u8) {
    for key in keys {
        store.put(&key.to_le_bytes(), &value(key, round), Durability::None).unwrap();
    }
}

/// A store of many segments, all of whose keys were put in round 1.
fn written() -> (Counting, LogStore) {
    let folder = counting();
    let store = open(&folder);
    write(&store, 0..KEYS, 1);
    (folder, store)
}

fn check(store: &LogStore, round: impl Fn(u32) -> u8) {
    // Reads in an order in which neighbours are in different segments.
    for i in 0..KEYS {
        let key = i.wrapping_mul(677) % KEYS;
        let found = store.get(&key.to_le_bytes()).unwrap();
        assert_eq!(found, Some(value(key, round(key))), "{key}");
    }
}

#[test]
fn a_store_of_many_segments_has_few_files_open() {
    let (folder, store) = written();
    assert!(store.stats().segments > 200);
    check(&store, |_| 1);
    store.close().unwrap();
    let store = open(&folder);
    check(&store, |_| 1);
    assert!(store.verify(|_, _| ()).unwrap().damages.is_empty());
    let most = folder.hook().most.load(Ordering::Relaxed);
    assert!((OPEN..=OPEN + BESIDES).contains(&most), "{most}");
    store.close().unwrap();
    assert_eq!(folder.hook().now.load(Ordering::Relaxed), 0);
}

#[test]
fn readers_of_compacted_segments_can_read_to_the_end() {
    let (folder, store) = written();
    let before = store.stats().segments;
    let mut iterator = store.iter();
    let first = iterator.next().unwrap().unwrap();
    write(&store, (0..KEYS).filter(|key| key % 3 > 0), 2);
    assert!(store.compact().unwrap().segments >= before / 2);
    check(&store, |key| if key % 3 > 0 { 2 } else { 1 });
    let mut seen: Vec<u32> = Vec::new();
    for entry in std::iter::once(Ok(first)).chain(iterator) {
        let (key, found) = entry.unwrap();
        let key = u32::from_le_bytes(key.try_into().unwrap());
        assert_eq!(found, value(key, 1));
        seen.push(key);
    }
    assert_eq!(seen, Vec::from_iter(0..KEYS));
    check(&store, |key| if key % 3 > 0 { 2 } else { 1 });
    assert!(folder.hook().now.load(Ordering::Relaxed) <= OPEN + BESIDES, "removed ones are closed");
    let names = folder.list().unwrap();
    let logs = names.iter().filter(|name| name.ends_with(".log")).count();
    assert_eq!(logs as u64, store.stats().segments);
}

/// Once a compaction reopened each file of its run to remove it, and kept all of them open.
#[test]
fn a_compaction_of_many_segments_has_few_files_open() {
    let (folder, store) = written();
    write(&store, 0..KEYS, 2);
    folder.hook().most.store(0, Ordering::Relaxed);
    assert!(store.compact().unwrap().segments > 200);
    let most = folder.hook().most.load(Ordering::Relaxed);
    assert!(most <= OPEN + BESIDES, "{most}");
    check(&store, |_| 2);
}

/// Once a table that was merged while a range read it stayed open as long as the range.
#[test]
fn ranges_over_merged_tables_have_few_files_open() {
    let folder = counting();
    let options = LsmOptions::default().memtable_bytes(1 << 20).background(false).cache_bytes(0);
    let options = options.policy(CompactionPolicy::Tiered).ratio(32).max_open_files(OPEN).seed(1);
    let store = options.open_in(Arc::new(folder.clone())).unwrap();
    let name = |key: u32| format!("{key:06}").into_bytes();
    let mut ranges = Vec::new();
    for round in 0..5 {
        for table in 0..10 {
            for key in (table..KEYS).step_by(10) {
                store.put(&name(key), &value(key, round), Durability::None).unwrap();
            }
            store.flush().unwrap();
        }
        ranges.push((round, store.iter().unwrap()));
        store.compact().unwrap();
    }
    let tables = || {
        let names = folder.list().unwrap();
        names.iter().filter(|name| name.ends_with(".table")).count()
    };
    assert!(tables() > 40, "the ranges need them: {}", tables());
    for (round, range) in ranges {
        let found: Vec<_> = range.map(Result::unwrap).collect();
        let expected = (0..KEYS).map(|key| (name(key), value(key, round)));
        assert!(expected.eq(found), "the state of round {round}");
        let open = folder.hook().now.load(Ordering::Relaxed);
        assert!(open <= OPEN + BESIDES, "{open} files are open");
    }
    assert_eq!(tables(), 1, "nobody reads them any more");
}

#[test]
fn threads_that_open_and_close_each_others_files_read_the_written_values() {
    let (_, store) = written();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..3).for_each(|_| check(&store, |_| 1)));
        }
        scope.spawn(|| {
            write(&store, KEYS..2 * KEYS, 3);
            write(&store, KEYS..2 * KEYS, 4);
            store.compact().unwrap();
        });
    });
    check(&store, |_| 1);
}

#[cfg(unix)]
#[test]
fn the_error_of_too_many_open_files_names_the_limit() {
    let text = |code| {
        let error = std::io::Error::from_raw_os_error(code);
        Error::Io { action: "open", file: "1.log".to_owned(), error }.to_string()
    };
    assert!(text(24).contains("ulimit -n") && !text(24).contains("disk"), "{}", text(24));
    assert!(text(28).contains("disk"), "{}", text(28));
}
