//! Threads that write, read, take snapshots and merge at once. Each batch sets all keys of a group
//! to one number, so a reader that sees two numbers has seen half a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use koel_store::{Batch, Durability, LsmOptions, LsmStore};
use testkit::storage::{MemoryFolder, Random};
use testkit::threads::SetOnDrop;

use crate::trial::{count, report};

const GROUPS: u64 = 4;
const KEYS: u64 = 20;

fn key(group: u64, number: u64) -> Vec<u8> {
    [[u8::try_from(group).unwrap()].as_slice(), &number.to_le_bytes()].concat()
}

fn number_in(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// Writes `batches` batches to a group, each with the next number.
fn write(store: &LsmStore, group: u64, batches: u64) {
    let mut random = Random::new(group);
    for number in 1..=batches {
        let values: Vec<Vec<u8>> = (0..KEYS)
            .map(|_| {
                let filler = random.below(300);
                [&number.to_le_bytes()[..], &random.bytes(filler)].concat()
            })
            .collect();
        let synced = random.chance(5);
        let durability = if synced { Durability::Synced } else { Durability::None };
        if random.chance(10) {
            replace(store, group, &values, durability);
        } else {
            store.write(&batch_of(group, &values), durability).unwrap();
        }
    }
}

fn batch_of(group: u64, values: &[Vec<u8>]) -> Batch {
    let mut batch = Batch::new();
    for (value, number) in values.iter().zip(0..) {
        batch.put(&key(group, number), value).unwrap();
    }
    batch
}

/// Deletes the range of a group and puts its keys again, as one write.
fn replace(store: &LsmStore, group: u64, values: &[Vec<u8>], durability: Durability) {
    let mut transaction = store.transaction();
    transaction.delete_prefix(&[u8::try_from(group).unwrap()]).unwrap();
    for (value, number) in values.iter().zip(0..) {
        transaction.put(&key(group, number), value).unwrap();
    }
    // Nobody else writes to the group.
    transaction.commit(durability).unwrap();
}

/// Checks that all keys of a group have one number, not less than `least`. Returns it.
fn check(values: &[Option<Vec<u8>>], least: u64) -> u64 {
    let numbers: Vec<u64> = values.iter().flatten().map(|value| number_in(value)).collect();
    let first = numbers.first().copied().unwrap_or(0);
    assert!(numbers.is_empty() || numbers.len() == values.len(), "half a batch");
    assert!(numbers.iter().all(|&number| number == first), "{numbers:?}");
    assert!(first >= least, "an older state: {first} after {least}");
    first
}

fn read(store: &LsmStore, group: u64, is_done: &AtomicBool) {
    let mut random = Random::new(100 + group);
    let mut least = 0;
    while !is_done.load(Ordering::Relaxed) {
        let keys: Vec<Vec<u8>> = (0..KEYS).map(|number| key(group, number)).collect();
        let prefix = [u8::try_from(group).unwrap()];
        match random.below(3) {
            0 => least = check(&store.get_many(&keys).unwrap(), least),
            1 => {
                let found = store.prefix(&prefix).unwrap();
                let found: Vec<_> = found.map(|entry| Some(entry.unwrap().1)).collect();
                least = check(&found, least);
            }
            _ => {
                let snapshot = store.snapshot();
                let read =
                    || -> Vec<_> { keys.iter().map(|key| snapshot.get(key).unwrap()).collect() };
                let before = read();
                thread::yield_now();
                assert!(before == read(), "a snapshot has changed");
                let range = snapshot.prefix(&prefix).unwrap().rev();
                let range: Vec<_> = range.map(|entry| Some(entry.unwrap().1)).collect();
                assert_eq!(check(&range, least), check(&before, least));
            }
        }
    }
}

#[test]
fn readers_see_whole_batches_in_order_while_threads_write_and_merge() {
    let batches = count(600, 30_000);
    let folder = MemoryFolder::new();
    let options = LsmOptions::default().memtable_bytes(40_000).bytes_per_sync(5_000).ratio(3);
    let options = options.few_entries(0);
    let store = options.clone().open_in(Arc::new(folder.clone())).unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (store, is_done) = (&store, &is_done);
        let done = SetOnDrop(is_done);
        let writer = |group| scope.spawn(move || write(store, group, batches));
        let writers: Vec<_> = (0..GROUPS).map(writer).collect();
        for group in 0..GROUPS {
            scope.spawn(move || read(store, group, is_done));
        }
        scope.spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                store.compact().unwrap();
                assert_eq!(store.verify(|_, _| ()).unwrap().damages, []);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        drop(done);
    });
    let stats = store.stats();
    assert!(stats.flush_failed.is_none() && stats.merge_failed.is_none(), "{stats:?}");
    drop(store);
    let store = options.open_in(Arc::new(folder)).unwrap();
    for group in 0..GROUPS {
        let keys: Vec<Vec<u8>> = (0..KEYS).map(|number| key(group, number)).collect();
        assert_eq!(check(&store.get_many(&keys).unwrap(), batches), batches);
    }
    report("ordered threads", &format!("{GROUPS} writers, {batches} batches each: all whole"));
}
