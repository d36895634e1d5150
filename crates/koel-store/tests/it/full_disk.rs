//! What an operation answers is what happened: after a call of it has failed, the store has all of
//! the operation or nothing, and a full disk keeps no byte of what was refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use koel_store::{Batch, Durability, Error, LogOptions, LogStore};
use testkit::storage::{Failure, Fault, FaultyFolder, MemoryFolder, State};

use crate::trial::report;

type FaultyDisk = FaultyFolder<MemoryFolder>;

/// An operation that is durable when it succeeds.
type Operation = fn(LogStore) -> Result<(), Error>;

const KEYS: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];

const OPERATIONS: [(&str, Operation); 9] = [
    ("put", |store| store.put(b"a", b"new", Durability::Synced)),
    ("put a large value", |store| store.put(b"a", &[7; 300_000], Durability::Synced)),
    ("put from a reader", |store| {
        store.put_reader(b"e", 700_000, std::io::repeat(7), Durability::Synced)
    }),
    ("put into the next segment", |store| store.put(b"a", &[1; 3_800], Durability::Synced)),
    ("delete", |store| store.delete(b"a", Durability::Synced).map(drop)),
    ("compare and exchange", |store| {
        let old = [2; 600];
        store.compare_exchange(b"a", Some(&old), Some(b"new"), Durability::Synced).map(drop)
    }),
    ("batch", |store| {
        let mut batch = Batch::new();
        batch.put(b"a", b"1")?.delete(b"b")?.put(b"e", &[5; 900])?;
        store.write(&batch, Durability::Synced)
    }),
    ("close", |store| {
        store.put(b"a", b"new", Durability::None)?;
        store.close().map_err(|error| Error::InDoubt { reason: error.to_string() })
    }),
    ("compact", |store| store.compact().map(drop)),
];

fn options() -> LogOptions {
    LogOptions::default().seed(1).segment_bytes(4096).background_compaction(false)
}

fn read(store: &LogStore) -> State {
    let value = |key: &[u8]| store.get(key).unwrap().map(|value| (key.to_vec(), value));
    KEYS.into_iter().filter_map(value).collect()
}

/// Opens a store that has dead records and an unsynced end, on a disk that fails as told.
fn open(was_closed: bool, fault: Option<Fault>) -> (FaultyDisk, LogStore) {
    let disk = FaultyFolder::new(MemoryFolder::new(), fault);
    let store = options().open_in(Arc::new(disk.clone())).unwrap();
    for round in 0..3 {
        for key in &KEYS[..4] {
            store.put(key, &[round; 600], Durability::None).unwrap();
        }
        store.sync().unwrap();
    }
    store.put(b"d", b"last", Durability::None).unwrap();
    if !was_closed {
        return (disk, store);
    }
    store.close().unwrap();
    let store = options().open_in(Arc::new(disk.clone())).unwrap();
    (disk, store)
}

/// Runs an operation while a call of it fails. Returns what failed, for messages.
fn strike(operation: Operation, was_closed: bool, fault: Fault, before: &State, after: &State) {
    let (disk, store) = open(was_closed, Some(fault));
    let bytes = record_bytes(&disk);
    let result = operation(store);
    let struck = format!("{fault:?}, {:?}, {result:?}", disk.struck());
    let no_room = fault.failure == Failure::Enospc;
    let is_refused = !matches!(result, Ok(()) | Err(Error::InDoubt { .. }));
    if no_room && is_refused && before != after {
        assert_eq!(record_bytes(&disk), bytes, "{struck}: something is left");
    }
    disk.heal();
    let without_unsynced = disk.inner().crash_clone(0, 1);
    let reopened = options().open_in(Arc::new(disk)).unwrap();
    // After a failed sync of the folder, both manifests may be the durable one.
    let two_manifests = struck.contains("verb: \"sync\", name: \"\"");
    if no_room && !two_manifests {
        let report = reopened.open_report();
        assert!(report.torn.is_none() && report.removed.is_empty(), "{struck}: {report:?}");
    }
    let now = read(&reopened);
    match &result {
        Ok(()) => {
            assert!(now == *after, "{struck}: said to be done, and is not");
            let crashed = options().open_in(Arc::new(without_unsynced)).unwrap();
            assert!(read(&crashed) == *after, "{struck}: not durable");
        }
        Err(Error::InDoubt { .. }) => assert!(now == *before || now == *after, "{struck}: half"),
        Err(_) => assert!(now == *before, "{struck}: said to have failed, and is done"),
    }
}

/// Returns the bytes of all segments without their headers: an empty segment is used by the next
/// write.
fn record_bytes(disk: &FaultyDisk) -> usize {
    let files = disk.inner().contents().into_iter();
    files.filter(|(name, _)| name.ends_with(".log")).map(|(_, bytes)| bytes.len() - 40).sum()
}

#[test]
fn after_a_failed_call_the_store_has_what_the_answer_says() {
    let mut faults = 0;
    for (name, operation) in OPERATIONS {
        for was_closed in [false, true] {
            let (disk, store) = open(was_closed, None);
            let (before, first) = (read(&store), disk.calls());
            operation(store).unwrap();
            let last = disk.calls();
            let after = read(&options().open_in(Arc::new(disk)).unwrap());
            for at in first..last {
                for (lasting, failure) in [
                    (false, Failure::Eio),
                    (true, Failure::Eio),
                    (false, Failure::Enospc),
                    (true, Failure::Enospc),
                ] {
                    println!("{name}, closed before: {was_closed}");
                    let fault = Fault { at, lasting, failure };
                    strike(operation, was_closed, fault, &before, &after);
                    faults += 1;
                }
            }
        }
    }
    report("refused writes", &format!("{faults} failed calls: every answer is what happened"));
}

/// Compaction cannot copy on a full disk. It removes what is wholly dead first, and that makes the
/// room for the rest.
#[test]
fn a_full_disk_recovers_by_removing_dead_segments() {
    for was_closed in [false, true] {
        let disk = MemoryFolder::new();
        let open = || options().open_in(Arc::new(disk.clone())).unwrap();
        let mut store = open();
        for round in 0..20_u8 {
            for key in 0..40_u8 {
                store.put(&[key], &[round; 60], Durability::None).unwrap();
            }
        }
        store.sync().unwrap();
        if was_closed {
            store.close().unwrap();
            store = open();
        }
        let full = disk.used();
        disk.limit(full);
        let refused = (0..200).find_map(|_| store.put(b"x", &[1; 60], Durability::Synced).err());
        assert!(refused.is_some(), "the disk is full");
        drop(store);
        let store = open();
        let report = store.compact().unwrap();
        assert!(report.segments > 3 && disk.used() < full / 2, "{report:?} {}", disk.used());
        store.put(b"x", &[1; 60], Durability::Synced).unwrap();
        drop(store);
        let store = open();
        assert!((0..40_u8).all(|key| store.get(&[key]).unwrap() == Some(vec![19; 60])));
        store.verify(|_, _| ()).unwrap();
    }
}

/// A put that is refused once a minute, as by a service that tries again, must not fill the disk.
#[test]
fn refused_puts_leave_nothing_behind() {
    let (disk, store) = open(true, None);
    store.close().unwrap();
    let before = disk.inner().contents();
    for call in 0..20 {
        let full = Fault { at: call, lasting: true, failure: Failure::Enospc };
        let disk = FaultyFolder::new(disk.inner().clone(), Some(full));
        let Ok(store) = options().open_in(Arc::new(disk)) else { continue };
        drop(store.put(b"new", &[1; 700], Durability::Synced));
    }
    let sizes = |files: BTreeMap<String, Vec<u8>>| -> BTreeMap<_, _> {
        files.into_iter().map(|(name, bytes)| (name, bytes.len())).collect()
    };
    assert_eq!(sizes(disk.inner().contents()), sizes(before));
}
