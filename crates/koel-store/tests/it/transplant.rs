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
fn judge(image: Image, state: &State) -> bool {
    let Ok(store) = options().open_in(Arc::new(MemoryFolder::with(image))) else { return true };
    let mut reported = false;
    for (key, value) in state {
        match store.get(key) {
            Ok(found) => assert!(found.as_ref() == Some(value), "a wrong answer"),
            Err(_) => reported = true,
        }
    }
    match iterate(&store) {
        Ok(found) => assert!(found == *state, "a wrong iteration"),
        Err(_) => reported = true,
    }
    reported
}

#[test]
fn records_at_the_offsets_of_others_are_reported() {
    let (image, state) = store();
    let mut random = Random::new(first_seed());
    let trials = count(200, 4_000);
    for trial in 0..trials {
        let (one, other) = (random.below(KEYS), random.below(KEYS));
        let mut damaged = image.clone();
        let here = &locations(&image, one)[1];
        // The old record of a key for its new one, or the new ones of two keys for each other.
        let there = if trial % 2 == 0 {
            &locations(&image, one)[0]
        } else {
            put(&mut damaged, &locations(&image, other)[1], &record(&image, here));
            &locations(&image, other)[1]
        };
        put(&mut damaged, here, &record(&image, there));
        let is_reported = here == there || judge(damaged, &state);
        assert!(is_reported, "trial {trial}, keys {one} and {other}: nothing was said");
    }
    report("transplanted records", &format!("{trials} old for new or swapped: all reported"));
}
