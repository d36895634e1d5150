//! Compaction of a log store with damage: what nothing needs is dropped, and no key changes. A key
//! whose value is damaged stays an error, and a deleted key does not come back.

use std::collections::BTreeMap;
use std::sync::Arc;

use koel_store::{Durability, Error, LogOptions, LogStore};
use testkit::storage::{MemoryFolder, Random};

use crate::trial::{count, first_seed, report};

/// What the store should say of each key.
type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn open(folder: &MemoryFolder) -> Result<LogStore, Error> {
    let options = LogOptions::default().segment_bytes(16 << 10).background_compaction(false);
    options.open_in(Arc::new(folder.clone()))
}

/// Returns the files of a closed store in which keys were overwritten and deleted.
fn sample(random: &mut Random) -> (MemoryFolder, Model) {
    let (folder, mut model) = (MemoryFolder::new(), Model::new());
    let store = open(&folder).unwrap();
    for _ in 0..random.below(600) {
        let key = vec![b'k', u8::try_from(random.below(60)).unwrap()];
        if random.chance(30) {
            store.delete(&key, Durability::None).unwrap();
            model.insert(key, None);
        } else {
            let length = random.below(500);
            let value = random.bytes(length);
            store.put(&key, &value, Durability::None).unwrap();
            model.insert(key, Some(value));
        }
        if random.chance(1) {
            store.compact().unwrap();
        }
    }
    store.close().unwrap();
    (folder, model)
}

/// Returns the store with a sector of a log that has other bytes.
fn lose_sector(folder: &MemoryFolder, random: &mut Random) -> MemoryFolder {
    let mut files = folder.contents();
    let logs: Vec<String> = files.keys().filter(|name| name.ends_with(".log")).cloned().collect();
    let sector = [64, 512, 4096][random.below(3)];
    if let Some(log) = logs.get(random.below(logs.len().max(1))) {
        let bytes = files.get_mut(log).unwrap();
        let start = random.below(bytes.len() / sector + 1) * sector;
        let end = bytes.len().min(start + sector);
        bytes[start.min(end)..end].fill(0xa5);
    }
    MemoryFolder::with(files)
}

/// Checks all keys. Returns how many are damaged.
fn check(store: &LogStore, model: &Model, what: &str) -> usize {
    let damaged = model.iter().filter(|(key, value)| match store.get(key) {
        Ok(found) => {
            assert_eq!(&found, *value, "{what}: key {key:?}");
            false
        }
        Err(Error::Damaged { .. }) => true,
        Err(error) => panic!("{what}: {error}"),
    });
    damaged.count()
}

/// Once a dead damaged record was an error of every compaction, for ever.
#[test]
fn damage_that_nothing_needs_is_dropped_and_no_key_changes() {
    let (runs, mut dropped, mut kept, mut in_doubt) = (count(150, 20_000), 0, 0, 0);
    for seed in (first_seed()..).take(usize::try_from(runs).unwrap()) {
        let mut random = Random::new(seed);
        let (folder, model) = sample(&mut random);
        let folder = lose_sector(&folder, &mut random);
        let Ok(store) = open(&folder) else { continue };
        let damages = store.verify(|_, _| ()).unwrap().damages.len();
        let lost = check(&store, &model, &format!("seed {seed}, before"));
        match store.compact() {
            Ok(report) => {
                assert_eq!(store.verify(|_, _| ()).unwrap().damages, [], "seed {seed}");
                assert_eq!(lost, 0, "seed {seed}: a damaged value was dropped");
                dropped += u64::from(report.damage_dropped > 0);
                assert!(damages == 0 || report.damage_dropped > 0, "seed {seed}");
            }
            Err(Error::Damaged { .. }) if lost > 0 => kept += 1,
            // A tombstone that may still hide a value.
            Err(Error::Damaged { .. }) => in_doubt += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        assert_eq!(check(&store, &model, &format!("seed {seed}, after")), lost, "seed {seed}");
        store.close().unwrap();
        let store = open(&folder).unwrap();
        assert_eq!(check(&store, &model, &format!("seed {seed}, reopened")), lost, "seed {seed}");
        assert_eq!(store.keys().filter(Result::is_ok).count() + lost, live(&model), "seed {seed}");
    }
    let counts = format!("{dropped} clean again, {kept} with a lost value, {in_doubt} in doubt");
    assert!(dropped > 10 && kept > 10 && in_doubt < dropped / 4, "{counts}");
    report("dropped damage", &format!("{runs} stores: {counts}"));
}

/// Returns how many keys have a value.
fn live(model: &Model) -> usize {
    model.values().flatten().count()
}
