//! One test for each fault that a random trial found, reduced to its steps.

use std::sync::Arc;

use koel_store::{Durability, LogStore, Options};
use testkit::storage::{Failure, Fault, FaultyFolder, MemoryFolder};

fn open(folder: impl koel_store::files::Folder + 'static) -> LogStore {
    let options = Options::default().segment_bytes(8192).background_compaction(false).seed(1);
    options.open_in(Arc::new(folder)).unwrap()
}

/// A process ended between the rename of a manifest and the sync of the folder. What is opened then rests on a name that is not durable.
#[test]
fn a_manifest_that_is_there_but_not_durable_is_made_so_before_anything_rests_on_it() {
    let disk = MemoryFolder::new();
    let store = open(disk.clone());
    store.put(b"old", b"1", Durability::Synced).unwrap();
    store.close().unwrap();

    // How many calls there are up to the sync of the folder, which is the last one before the log is written to.
    let counting = FaultyFolder::new(disk.crash_clone(100, 0), None);
    counting.record();
    open(counting.clone()).put(b"new", b"2", Durability::None).unwrap();
    let calls = counting.trace();
    let written = calls.iter().position(|call| call.verb == "write" && call.name.ends_with(".log"));
    let synced = calls[..written.unwrap()].iter().rposition(|call| call.verb == "sync").unwrap();
    assert_eq!(calls[synced].name, "", "the folder");

    let fault = Fault { at: synced as u64, lasting: true, failure: Failure::Eio };
    let dying = open(FaultyFolder::new(disk.clone(), Some(fault)));
    assert!(dying.put(b"new", b"2", Durability::None).is_err());
    drop(dying);

    let store = open(disk.clone());
    store.put(b"new", b"2", Durability::Synced).unwrap();
    let after = open(disk.crash_clone(0, 0));
    assert_eq!(after.get(b"new").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(after.get(b"old").unwrap().as_deref(), Some(&b"1"[..]));
}

/// A power failure during the very first opening left a new manifest that no name leads to.
#[test]
fn what_a_crash_of_the_first_opening_left_is_not_in_the_way() {
    for at in 0..12 {
        for kept in [0, 50, 100] {
            let fault = Fault { at, lasting: true, failure: Failure::Eio };
            let folder = FaultyFolder::new(MemoryFolder::new(), Some(fault));
            let options = Options::default().background_compaction(false);
            drop(options.open_in(Arc::new(folder.clone())));
            let store = open(folder.inner().crash_clone(kept, at));
            store.put(b"key", b"value", Durability::Synced).unwrap();
        }
    }
}

/// A value that is durable was overwritten by one that is not; a compaction dropped the first, and a power failure took the second.
#[test]
fn a_compaction_makes_durable_what_it_drops_values_for() {
    let disk = MemoryFolder::new();
    let options = Options::default().segment_bytes(4096).background_compaction(true).seed(1);
    let store = options.open_in(Arc::new(disk.clone())).unwrap();
    for number in 0..2_000_u64 {
        let key = (number % 20).to_le_bytes();
        let durability = if number < 20 { Durability::Synced } else { Durability::None };
        store.put(&key, &[0; 100], durability).unwrap();
        if number.is_multiple_of(50) && number > 0 {
            let crashed = open(disk.crash_clone(0, number));
            for key in 0..20_u64 {
                assert!(crashed.get(&key.to_le_bytes()).unwrap().is_some(), "{key} after {number}");
            }
        }
    }
}
