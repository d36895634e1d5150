//! Compare-exchange in a log store, from many threads at once, while compaction moves the records.
//! Programs make exchanges too (`subjects.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use koel_store::{Durability, Error, LogOptions, LogStore};
use testkit::storage::MemoryFolder;
use testkit::threads::SetOnDrop;

use crate::trial::{count, report};

const THREADS: u64 = 4;
const KEYS: [&[u8]; 3] = [b"one", b"two", b"three"];
const NONE: Durability = Durability::None;

fn number(bytes: Option<&[u8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(bytes[..8].try_into().unwrap()))
}

/// Increments a counter once, starting from `known`. Returns its value.
fn increment(store: &LogStore, key: &[u8], known: &mut Option<Vec<u8>>) -> u64 {
    loop {
        let next = number(known.as_deref()) + 1;
        // Long enough to fill segments; large values have blocks.
        let mut value = next.to_le_bytes().to_vec();
        value.resize(if next.is_multiple_of(50) { 70_000 } else { 200 }, 0);
        match store.compare_exchange(key, known.as_deref(), Some(&value), NONE).unwrap() {
            Ok(()) => {
                *known = Some(value);
                return next;
            }
            Err(mismatch) => *known = mismatch.current,
        }
    }
}

#[test]
fn no_increment_is_lost_while_records_move() {
    let increments = usize::try_from(count(2_000, 100_000)).unwrap();
    let folder = MemoryFolder::new();
    let options = LogOptions::default().segment_bytes(8192).background_compaction(true);
    let store = options.clone().open_in(Arc::new(folder.clone())).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                store.compact().unwrap();
            }
        });
        let stop = SetOnDrop(&stop);
        let threads = (0..THREADS).map(|_| {
            scope.spawn(|| {
                let mut counters = KEYS.map(|key| (key, None, 0));
                for round in 0..increments {
                    let (key, known, last) = &mut counters[round % KEYS.len()];
                    let made = increment(&store, key, known);
                    assert!(made > *last, "a counter went back");
                    *last = made;
                    // Dead bytes, so that the counters are moved.
                    store.put(b"other", &[7; 100], NONE).unwrap();
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(stop);
    });
    let sum = |store: &LogStore| -> u64 {
        KEYS.iter().map(|key| number(store.get(key).unwrap().as_deref())).sum()
    };
    let all = THREADS * increments as u64;
    assert_eq!(sum(&store), all);
    store.close().unwrap();
    assert_eq!(sum(&options.open_in(Arc::new(folder)).unwrap()), all);
    report("exchange", &format!("{all} increments: 0 lost"));
}

/// A lock: at most one thread has it, and whoever has it can give it back.
#[test]
fn a_key_that_is_created_and_deleted_is_a_lock() {
    let store = LogOptions::default().open_in(Arc::new(MemoryFolder::new())).unwrap();
    let is_held = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, is_held) = (&store, &is_held);
            scope.spawn(move || {
                let own = thread.to_le_bytes();
                for _ in 0..500 {
                    while store.compare_exchange(b"lock", None, Some(&own), NONE).unwrap().is_err()
                    {
                        thread::yield_now();
                    }
                    assert!(!is_held.swap(true, Ordering::SeqCst), "two have it");
                    is_held.store(false, Ordering::SeqCst);
                    let returned = store.compare_exchange(b"lock", Some(&own), None, NONE);
                    assert_eq!(returned.unwrap(), Ok(()));
                }
            });
        }
    });
    assert_eq!(store.get(b"lock").unwrap(), None);
}

#[test]
fn a_mismatch_writes_nothing_and_names_the_present_value() -> Result<(), Error> {
    let store = LogOptions::default().open_in(Arc::new(MemoryFolder::new()))?;
    assert_eq!(store.compare_exchange(b"key", None, None, NONE)?, Ok(()));
    assert_eq!(store.compare_exchange(b"key", None, Some(b""), NONE)?, Ok(()));
    let before = store.stats().appended_bytes;
    for (expected, new) in [(None, Some(&b"new"[..])), (Some(&b"old"[..]), None)] {
        let mismatch = store.compare_exchange(b"key", expected, new, NONE)?.unwrap_err();
        assert_eq!(mismatch.current.as_deref(), Some(&b""[..]));
        assert!(mismatch.to_string().contains("has a value of 0 bytes"), "{mismatch}");
    }
    let mismatch = store.compare_exchange(b"none", Some(b""), None, NONE)?.unwrap_err();
    assert!(mismatch.to_string().contains("is absent"), "{mismatch}");
    assert_eq!(store.stats().appended_bytes, before, "an absent key and an empty value differ");
    Ok(())
}
