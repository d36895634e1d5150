//! The behaviours of a store, one per test. Models, crashes and faults are in `tests/`.

mod compaction;

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::*;
use crate::{Batch, Durability, Error};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const NONE: Durability = Durability::None;

fn options() -> LogOptions {
    LogOptions::default().segment_bytes(4096).background_compaction(false).seed(1)
}

fn new_store() -> Result<(tempfile::TempDir, LogStore), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let store = options().open(folder.path())?;
    Ok((folder, store))
}

fn reopened(store: LogStore, folder: &tempfile::TempDir) -> Result<LogStore, Error> {
    store.close()?;
    options().open(folder.path())
}

fn key(i: u32) -> [u8; 4] {
    i.to_le_bytes()
}

fn all(store: &LogStore) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> {
    store.iter().collect()
}

/// Yields this many bytes of zeros, and then fails in its way.
struct Breaks(usize, fn(usize) -> io::Result<usize>);

impl Read for Breaks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = into.len().min(self.0);
        into[..read].fill(0);
        self.0 -= read;
        if read == 0 { (self.1)(into.len()) } else { Ok(read) }
    }
}

fn fails(_: usize) -> io::Result<usize> {
    Err(io::ErrorKind::ConnectionReset.into())
}

#[test]
fn an_iterator_shows_one_moment_despite_writes_and_compactions() -> Outcome {
    let (_folder, store) = new_store()?;
    for i in 0..400 {
        store.put(&key(i), &[1; 50], NONE)?;
    }
    let before = all(&store)?;
    let mut iterator = store.iter();
    let mut seen: BTreeMap<_, _> = iterator.by_ref().take(100).collect::<Result<_, _>>()?;
    for i in 0..500 {
        store.put(&key(i), &[2; 50], NONE)?;
    }
    store.compact()?;
    for i in 0..300 {
        assert!(store.delete(&key(i), NONE)?);
    }
    store.compact()?;
    for pair in iterator {
        let (key, value) = pair?;
        assert_eq!(seen.insert(key, value), None, "a key came twice");
    }
    assert_eq!(seen, before);
    assert_eq!(all(&store)?.len(), 200);
    Ok(())
}

/// Records move all the time, so segments are removed while readers have locations in them.
#[test]
fn a_key_that_moves_is_always_found() -> Outcome {
    let (_folder, store) = new_store()?;
    for i in 0..200 {
        store.put(&key(i), &key(i), NONE)?;
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopping = testkit::threads::SetOnDrop(&done);
        let reader = || {
            let mut i = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                i = (i + 7) % 200;
                assert_eq!(store.get(&key(i)).expect("a read"), Some(key(i).to_vec()), "key {i}");
            }
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        for round in 0..400 {
            for i in (round % 2..200).step_by(2) {
                store.put(&key(i), &key(i), NONE).expect("a write");
            }
            store.compact().expect("a compaction");
        }
        drop(stopping);
        for reader in readers {
            reader.join().expect("no key missing");
        }
    });
    Ok(())
}

#[test]
fn a_failing_source_changes_nothing() -> Outcome {
    let (folder, store) = new_store()?;
    store.put(b"key", b"old", Durability::Synced)?;
    for len in [10_u32, 70_000, 1_000_000] {
        let refused = store.put_reader(b"key", len.into(), Breaks(5, fails), NONE);
        assert!(matches!(refused, Err(Error::Source { .. })), "{refused:?}");
        let refused = store.put_reader(b"key", len.into(), Breaks(len as usize - 1, fails), NONE);
        assert!(matches!(refused, Err(Error::Source { .. })), "{refused:?}");
        assert_eq!(store.get(b"key")?.as_deref(), Some(&b"old"[..]));
    }
    store.put_reader(b"key", 300_000, Breaks(300_000, fails), NONE)?;
    assert_eq!(store.get(b"key")?, Some(vec![0; 300_000]));
    assert!(store.verify(|_, _| {})?.damages.is_empty());
    drop(store);
    let store = options().open(folder.path())?;
    let mut value = Vec::new();
    let mut reader = store.get_reader(b"key")?.ok_or("no value")?;
    assert_eq!(reader.len(), 300_000);
    reader.read_to_end(&mut value)?;
    assert_eq!(value, vec![0; 300_000]);
    Ok(())
}

#[test]
fn a_panicking_source_poisons_the_store_until_it_is_reopened() -> Outcome {
    let (folder, store) = new_store()?;
    store.put(b"key", b"old", Durability::Synced)?;
    let panicking = || Breaks(600_000, |_| panic!("a source that panics"));
    let put = || store.put_reader(b"key", 1_000_000, panicking(), NONE);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(put));
    assert!(panicked.is_err());
    assert_eq!(store.get(b"key")?.as_deref(), Some(&b"old"[..]));
    let refused = store.put(b"key", b"new", NONE);
    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    drop(store);
    let store = options().open(folder.path())?;
    let torn = store.open_report().torn.as_ref().ok_or("a torn end")?;
    assert!(torn.bytes > 500_000, "{torn:?}");
    assert_eq!(store.get(b"key")?.as_deref(), Some(&b"old"[..]));
    store.put(b"key", b"new", NONE)?;
    let store = reopened(store, &folder)?;
    assert_eq!(store.get(b"key")?.as_deref(), Some(&b"new"[..]));
    Ok(())
}

/// It was a panic.
#[test]
fn a_source_that_says_it_read_too_much_is_refused_and_leaves_nothing() -> Outcome {
    let (folder, store) = new_store()?;
    store.put(b"key", b"old", Durability::Synced)?;
    let lying = Breaks(600_000, |room| Ok(room + 1));
    let refused = store.put_reader(b"key", 1_000_000, lying, Durability::Synced);
    assert!(matches!(refused, Err(Error::Source { .. })), "{refused:?}");
    store.put(b"other", b"new", NONE)?;
    let store = reopened(store, &folder)?;
    assert_eq!(store.get(b"key")?.as_deref(), Some(&b"old"[..]));
    assert_eq!(store.get(b"other")?.as_deref(), Some(&b"new"[..]));
    assert!(store.stats().log_bytes < 1_000, "{:?}", store.stats());
    Ok(())
}

#[test]
fn the_last_write_of_a_key_in_a_batch_wins() -> Outcome {
    let (folder, store) = new_store()?;
    store.put(b"a", b"old", NONE)?;
    let mut batch = Batch::new();
    batch.put(b"a", b"1")?.delete(b"a")?.put(b"a", b"2")?;
    batch.delete(b"b")?.put(b"b", b"3")?.put(b"c", b"4")?.delete(b"c")?;
    store.write(&batch, NONE)?;
    let expected = BTreeMap::from([(b"a".to_vec(), b"2".to_vec()), (b"b".to_vec(), b"3".to_vec())]);
    assert_eq!(all(&store)?, expected);
    let store = reopened(store, &folder)?;
    assert_eq!(all(&store)?, expected);
    assert!(store.verify(|_, _| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn a_batch_larger_than_a_segment_is_refused_but_a_larger_record_is_not() -> Outcome {
    let (folder, store) = new_store()?;
    let mut batch = Batch::new();
    batch.put(b"a", &[0; 3000])?.put(b"b", &[0; 3000])?;
    let refused = store.write(&batch, NONE);
    assert!(matches!(refused, Err(Error::BatchTooLarge { max: 4024, .. })), "{refused:?}");
    store.put(b"a", &[1; 50_000], NONE)?;
    store.put(&[7; 9000], &[1; 500_000], NONE)?;
    store.put(b"b", b"", NONE)?;
    store.put(b"", b"empty", NONE)?;
    let before = all(&store)?;
    assert_eq!(before.len(), 4);
    store.close()?;
    assert_eq!(all(&options().open(folder.path())?)?, before);
    Ok(())
}

#[test]
fn all_threads_that_wait_for_a_sync_return() -> Outcome {
    let (_folder, store) = new_store()?;
    std::thread::scope(|scope| {
        let write = |thread: u32| {
            let store = &store;
            move || {
                (0..100).try_for_each(|i| {
                    store.put(&key(thread * 100 + i), &key(i), Durability::Synced)
                })
            }
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(write(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    assert_eq!(store.stats().keys, 400);
    assert!(store.verify(|_, _| {})?.damages.is_empty());
    Ok(())
}

#[test]
fn threads_can_share_a_store() {
    fn shared<T: Send + Sync + std::fmt::Debug>() {}
    shared::<LogStore>();
    shared::<Iter<'_>>();
    shared::<Error>();
}

#[test]
fn opening_finds_equal_contents_with_and_without_hints() -> Outcome {
    let folder = tempfile::tempdir()?;
    let options = || options().segment_bytes(1 << 20);
    let store = options().open(folder.path())?;
    for i in 0..60_000 {
        store.put(&key(i % 40_000), &key(i), NONE)?;
        if i % 7 == 0 {
            store.delete(&key(i / 2), NONE)?;
        }
    }
    let before = all(&store)?;
    let dead = store.stats().dead_bytes;
    let store = reopened(store, &folder)?;
    assert_eq!(store.open_report().replayed, 0);
    assert_eq!((all(&store)? == before, store.stats().dead_bytes), (true, dead));
    store.close()?;
    for entry in std::fs::read_dir(folder.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "hint") {
            std::fs::remove_file(path)?;
        }
    }
    let store = options().open(folder.path())?;
    assert_eq!(store.open_report().hinted, 0);
    assert_eq!((all(&store)? == before, store.stats().dead_bytes), (true, dead));
    Ok(())
}

/// Once the watch of a dropped iterator stayed in memory until the next record was overwritten.
#[test]
fn dropped_iterators_leave_nothing_in_memory() -> Outcome {
    let (_folder, store) = new_store()?;
    store.put(b"key", b"value", NONE)?;
    for _ in 0..100 {
        assert_eq!(store.iter().count(), 1);
    }
    assert!(store.store().log.end().own.watches.len() <= 1);
    Ok(())
}
