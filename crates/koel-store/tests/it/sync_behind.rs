//! The thread that syncs a segment while it fills: it makes unsynced writes durable, and its
//! failures poison the store.

use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Durability, Error, LogOptions, LogStore};
use testkit::storage::{Failure, Fault, FaultyFolder, MemoryFolder};

use crate::gated::wait_until;

const BEHIND: u64 = 1 << 16;

/// Returns a store of one segment with this many bytes of values.
fn filled(folder: impl Folder + 'static, values: u64) -> LogStore {
    let options = LogOptions::default().segment_bytes(1 << 20).bytes_per_sync(BEHIND).seed(1);
    let store = options.background_compaction(false).open_in(Arc::new(folder)).unwrap();
    for number in 0..values / 1024 {
        store.put(&number.to_le_bytes(), &[1; 1024], Durability::None).unwrap();
    }
    store
}

/// Returns the numbers of the calls that sync the log; the first one is that of its creation.
fn syncs_of_the_log(folder: &FaultyFolder<MemoryFolder>) -> Vec<u64> {
    let calls = (0..).zip(folder.trace());
    let syncs = calls.filter(|(_, call)| call.verb == "sync" && call.name.ends_with(".log"));
    syncs.map(|(at, _)| at).collect()
}

#[test]
fn unsynced_writes_become_durable_except_for_the_last() {
    let folder = MemoryFolder::new();
    let store = filled(folder.clone(), 8 * BEHIND);
    let all = store.stats().keys;
    wait_until("the log is synced", || {
        let crashed = filled(folder.crash_clone(0, 0), 0);
        crashed.stats().keys + BEHIND / 1024 >= all
    });
    store.close().unwrap();
}

/// The last put wakes the thread, so that its sync is the last call.
#[test]
fn a_failed_sync_in_the_background_poisons_the_store() {
    const VALUES: u64 = BEHIND - 1024;
    let counting = FaultyFolder::new(MemoryFolder::new(), None);
    counting.record();
    let store = filled(counting.clone(), VALUES);
    wait_until("the log is synced", || syncs_of_the_log(&counting).len() == 2);
    let at = syncs_of_the_log(&counting)[1];
    assert_eq!(at + 1, counting.calls());
    drop(store);

    let fault = Fault { at, lasting: false, failure: Failure::Eio };
    let folder = FaultyFolder::new(MemoryFolder::new(), Some(fault));
    let store = filled(folder.clone(), VALUES);
    wait_until("the log is synced", || store.stats().poisoned);
    assert_eq!(folder.struck().unwrap().verb, "sync");
    let refused = store.put(b"key", b"value", Durability::None);
    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    assert_eq!(store.iter().count() as u64, VALUES / 1024);
    assert!(store.close().is_err());
}
