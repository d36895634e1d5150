//! Both stores answer the same failures of the folder in the same way, and a full disk refuses
//! writes for no longer than it is full.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use koel_store::{Batch, Durability, Error, LogOptions, LogStore, LsmOptions, LsmStore};
use testkit::storage::{Failure, Fault, FaultyFolder, MemoryFolder};

use crate::subject::Subject;

/// What a write answers when a call of it fails, and what happens afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    /// The write was made.
    made: bool,
    in_doubt: bool,
    /// The store takes the next write.
    goes_on: bool,
}

/// A call: what it does, to which kind of file, and for which time in this write.
type Call = (&'static str, String, usize);

/// Where a write meets the log.
#[derive(Clone, Copy, Debug)]
enum Write {
    /// It creates the first file.
    First,
    /// It says in the manifest that the log goes on.
    AfterClosing,
    /// It appends.
    Next,
}

fn log() -> LogOptions {
    LogOptions::default().seed(1).segment_bytes(4096).background_compaction(false)
}

fn ordered() -> LsmOptions {
    LsmOptions::default().seed(1).memtable_bytes(8 << 10).background(false)
}

fn put<S: Subject>(store: &S, key: &[u8], durability: Durability) -> Result<(), Error> {
    let mut batch = Batch::new();
    store.write(batch.put(key, &[7; 60])?, durability)
}

/// Makes a write while a call of it may fail. Returns the answer, and the numbers of the calls
/// before and after the write.
fn run<S: Subject>(
    options: &S::LogOptions,
    write: Write,
    folder: &FaultyFolder<MemoryFolder>,
) -> (Answer, u64, u64) {
    let open = || S::open_in(options, Arc::new(folder.clone())).unwrap();
    let mut store = open();
    if !matches!(write, Write::First) {
        put(&store, b"before", Durability::Synced).unwrap();
    }
    if matches!(write, Write::AfterClosing) {
        store.close().unwrap();
        store = open();
    }
    let first = folder.calls();
    let written = put(&store, b"now", Durability::Synced);
    let last = folder.calls();
    folder.heal();
    let goes_on = put(&store, b"after", Durability::Synced).is_ok();
    let in_doubt = matches!(written, Err(Error::InDoubt { .. }));
    let answer = Answer { made: written.is_ok(), in_doubt, goes_on };
    drop(store);
    let store = open();
    let is_there = store.get(b"now").unwrap().is_some();
    assert!(is_there == answer.made || in_doubt, "{write:?}, {:?}, {written:?}", folder.struck());
    assert_eq!(store.get(b"after").unwrap().is_some(), goes_on, "{write:?}");
    assert_eq!(store.get(b"before").unwrap().is_some(), !matches!(write, Write::First));
    (answer, first, last)
}

/// Returns the answer to the failure of each call of a write.
fn answers<S: Subject>(
    options: &S::LogOptions,
    write: Write,
    lasting: bool,
    failure: Failure,
) -> BTreeMap<Call, Answer> {
    let healthy = FaultyFolder::new(MemoryFolder::new(), None);
    let (healthy, first, last) = run::<S>(options, write, &healthy);
    assert!(healthy.made && healthy.goes_on);
    let (mut answers, mut times) = (BTreeMap::new(), BTreeMap::new());
    for at in first..last {
        let fault = Fault { at, lasting, failure };
        let folder = FaultyFolder::new(MemoryFolder::new(), Some(fault));
        let (answer, ..) = run::<S>(options, write, &folder);
        let Some(call) = folder.struck().filter(|call| !call.name.ends_with(".hint")) else {
            continue;
        };
        let kind = call.name.split_once('.').map_or(&call.name[..], |(_, kind)| kind).to_owned();
        let time = times.entry((call.verb, kind.clone())).or_insert(0);
        *time += 1;
        if !lasting && ["create", "write"].contains(&call.verb) {
            assert!(answer.goes_on, "{write:?}, {call:?}: {answer:?}");
        }
        answers.insert((call.verb, kind, *time), answer);
    }
    answers
}

#[test]
fn both_stores_answer_the_same_failures_in_the_same_way() {
    let mut calls = 0;
    for write in [Write::First, Write::AfterClosing, Write::Next] {
        for lasting in [false, true] {
            for failure in [Failure::Eio, Failure::Enospc] {
                let of_log = answers::<LogStore>(&log(), write, lasting, failure);
                let of_ordered = answers::<LsmStore>(&ordered(), write, lasting, failure);
                assert_eq!(of_log, of_ordered, "{write:?}, {failure:?}, lasting: {lasting}");
                calls += of_log.len();
            }
        }
    }
    assert!(calls > 60, "{calls}");
}

/// Fills a disk, frees some of it, and goes on, with the same handle.
fn fill<S: Subject>(options: &S::LogOptions) {
    let disk = MemoryFolder::new();
    let store = S::open_in(options, Arc::new(disk.clone())).unwrap();
    let (mut number, mut written) = (0_u32, Vec::new());
    for room in [30_000, 60_000, 90_000] {
        disk.limit(room);
        let mut refused = 0_usize;
        while refused < 20 {
            let key = format!("{number:06}").into_bytes();
            number += 1;
            match put(&store, &key, Durability::Synced) {
                Ok(()) => written.push(key),
                Err(Error::Io { error, .. }) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
                    refused += 1;
                }
                // Without a reason its threads are slow, as beside other work.
                Err(Error::Stalled { reason, .. }) => refused += usize::from(reason.is_some()),
                Err(error) => panic!("with {room} bytes: {error}"),
            }
        }
        assert!(disk.used() <= room);
    }
    disk.limit(u64::MAX);
    let key = b"at the end".to_vec();
    let mut tries = (0..1000).map(|_| put(&store, &key, Durability::Synced).is_ok());
    assert!(tries.any(|is_ok| is_ok), "there is room again");
    written.push(key);
    let check = |store: &S| {
        let contents = store.contents().unwrap();
        assert!(contents.keys().eq(&written), "what was acknowledged, and nothing else");
    };
    check(&store);
    drop(store);
    check(&S::open_in(options, Arc::new(disk)).unwrap());
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    fill::<LogStore>(&log());
    fill::<LsmStore>(&ordered());
    fill::<LsmStore>(&ordered().background(true).stall_limit(Duration::from_millis(5)));
}
