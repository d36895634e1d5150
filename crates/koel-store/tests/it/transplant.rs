//! Sound records at wrong offsets. A disk that writes to a wrong offset or returns an old sector
//! keeps all bytes of a record, so a checksum of the bytes alone would match.
//!
//! All records have equal lengths and every key is written twice. So any record can replace any
//! other, in particular the old record of a key the new one.

use std::sync::Arc;

use koel_store::{Durability, LogOptions};
use testkit::storage::{MemoryFolder, Random, State};

use crate::trial::{count, first_seed, iterate, report};

/// Bytes before the key, and of a record with a key of 8 and a value of 32 bytes.
const HEAD: usize = 20;
const RECORD: usize = (HEAD + 8 + 32).next_multiple_of(8);
const KEYS: usize = 500;

type Image = std::collections::BTreeMap<String, Vec<u8>>;

fn options() -> LogOptions {
    LogOptions::default().segment_bytes(8192).background_compaction(false).seed(first_seed())
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// The files of a store, and its state.
fn store() -> (Image, State) {
    let folder = MemoryFolder::new();
    let store = options().open_in(Arc::new(folder.clone())).unwrap();
    let mut random = Random::new(first_seed());
    let mut state = State::new();
    for _ in 0..2 {
        for number in 0..KEYS {
            let value = random.bytes(32);
            store.put(&key(number), &value, Durability::None).unwrap();
            state.insert(key(number), value);
        }
    }
    store.close().unwrap();
    (folder.contents(), state)
}

/// Returns the offsets of the records of a key, the older one first.
fn locations(image: &Image, number: usize) -> Vec<(String, usize)> {
    let key = key(number);
    let logs = image.iter().filter(|(name, _)| name.ends_with(".log"));
    let locations: Vec<(String, usize)> = logs
        .flat_map(|(name, bytes)| {
            let at = (0..bytes.len() - 8).filter(|&at| bytes[at..at + 8] == key);
            at.map(|at| (name.clone(), at - HEAD)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(locations.len(), 2, "records of this length, in logs that are in order");
    locations
}

fn record(image: &Image, location: &(String, usize)) -> Vec<u8> {
    image[&location.0][location.1..location.1 + RECORD].to_vec()
}

fn put(image: &mut Image, location: &(String, usize), record: &[u8]) {
    image.get_mut(&location.0).unwrap()[location.1..location.1 + RECORD].copy_from_slice(record);
}

/// Opens and reads everything. The state must be right if nothing is reported.
#[track_caller]
fn judge(image: Image, state: &State, what: &str) -> bool {
    let Ok(store) = options().open_in(Arc::new(MemoryFolder::with(image))) else { return true };
    let mut reported = false;
    for (key, value) in state {
        match store.get(key) {
            Ok(found) => assert!(found.as_ref() == Some(value), "{what}: a wrong answer"),
            Err(_) => reported = true,
        }
    }
    match iterate(&store) {
        Ok(found) => assert!(found == *state, "{what}: a wrong iteration"),
        Err(_) => reported = true,
    }
    reported
}

#[test]
fn an_old_record_that_replaces_the_new_one_is_reported() {
    let (image, state) = store();
    let mut random = Random::new(first_seed());
    let trials = count(100, 2_000);
    for _ in 0..trials {
        let number = random.below(KEYS);
        let locations = locations(&image, number);
        let mut damaged = image.clone();
        put(&mut damaged, &locations[1], &record(&image, &locations[0]));
        assert!(judge(damaged, &state, "old for new"), "key {number}: nothing was said");
    }
    report("old for new", &format!("{trials} records: all reported"));
}

#[test]
fn swapped_records_are_reported() {
    let (image, state) = store();
    let mut random = Random::new(first_seed());
    let trials = count(100, 2_000);
    for _ in 0..trials {
        let (one, other) = (random.below(KEYS), random.below(KEYS));
        if one == other {
            continue;
        }
        let (here, there) = (&locations(&image, one)[1], &locations(&image, other)[1]);
        let mut damaged = image.clone();
        put(&mut damaged, here, &record(&image, there));
        put(&mut damaged, there, &record(&image, here));
        assert!(judge(damaged, &state, "swapped"), "keys {one} and {other}: nothing was said");
    }
    report("swapped records", &format!("{trials} pairs: all reported"));
}

#[test]
fn swapped_logs_of_equal_length_are_reported() {
    let (image, state) = store();
    let logs: Vec<&String> = image.keys().filter(|name| name.ends_with(".log")).collect();
    let mut pairs = 0;
    for (number, &one) in logs.iter().enumerate() {
        for &other in &logs[number + 1..] {
            if image[one].len() == image[other].len() {
                let mut damaged = image.clone();
                damaged.insert(one.clone(), image[other].clone());
                damaged.insert(other.clone(), image[one].clone());
                assert!(judge(damaged, &state, "swapped logs"), "{one}, {other}");
                pairs += 1;
            }
        }
    }
    assert!(pairs > 3);
}
