//! The behaviour of a store while some of its records are damaged.

use std::sync::Arc;

use koel_store::files::Folder;
use koel_store::{Batch, Durability, Error, LogStore};
use testkit::storage::{MemoryFolder, Random, State};

use crate::damage::options;
use crate::trial::{count, first_seed, flip};

/// Once compaction picked the damaged segment again and again, and no other.
#[test]
fn a_damaged_segment_does_not_stop_compaction_of_the_others() {
    let folder = MemoryFolder::new();
    let open = |folder: &MemoryFolder| options().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    let store = open(&folder);
    let put = |store: &LogStore, key: u8, value: u8| {
        store.put(&[key], &[value; 700], Durability::None).unwrap();
    };
    // Most of the first segment is dead, so it is the best one; half of each later one is.
    (0..11).for_each(|key| put(&store, key, 0));
    (0..10).for_each(|key| put(&store, key, 1));
    for key in 20..120 {
        put(&store, key, 0);
        put(&store, 200, key);
    }
    store.close().unwrap();
    let mut files = folder.contents();
    let first = files.iter_mut().find(|(name, _)| name.ends_with(".log")).unwrap();
    let (name, end) = (first.0.clone(), first.1.len());
    first.1[end - 9] ^= 1;
    let folder = MemoryFolder::with(files);
    let store = open(&folder);
    let before = store.stats();
    let is_of_the_first = |result: Result<_, Error>| match result {
        Err(Error::Damaged { file, .. }) => file == name,
        _ => false,
    };
    assert!(is_of_the_first(store.compact()));
    let after = store.stats();
    assert!(after.dead_bytes < 9000 && after.log_bytes < before.log_bytes * 2 / 3, "{after:?}");
    // It is remembered, and not read again.
    assert!(is_of_the_first(store.compact()));
    assert_eq!(store.stats().compacted_bytes, after.compacted_bytes);
    (20..120).for_each(|key| assert_eq!(store.get(&[key]).unwrap(), Some(vec![0; 700])));
    drop(store);
    let store = open(&folder);
    assert!(is_of_the_first(store.compact()), "another session looks once more");
}

/// Once a manifest that could not be opened again was noticed by the next opening, but not by
/// verify.
#[test]
fn verify_checks_that_the_manifest_is_the_one_of_its_store() {
    let other = |seed: u64| {
        let folder = MemoryFolder::new();
        let store = options().seed(seed).open_in(Arc::new(folder.clone())).unwrap();
        (0..20).for_each(|key| store.put(&[key], &[0; 700], Durability::None).unwrap());
        store.close().unwrap();
        folder.contents().remove("MANIFEST").unwrap()
    };
    let folder = MemoryFolder::new();
    let store = options().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    let damages = || store.verify(|_, _| ()).unwrap().damages;
    let put_back = |bytes: &[u8]| {
        folder.remove("MANIFEST").unwrap();
        folder.create("MANIFEST").unwrap().write_at(bytes, 0).unwrap();
    };
    assert_eq!(damages(), []);
    let older = folder.contents().remove("MANIFEST").unwrap();
    (0..20).for_each(|key| store.put(&[key], &[0; 700], Durability::None).unwrap());
    store.compact().unwrap();
    assert_eq!(damages(), []);
    for wrong in [&older, &other(2), &b"koelman\n"[..].to_vec()] {
        put_back(wrong);
        assert!(matches!(&damages()[..], [damage] if damage.file == "MANIFEST"), "{:?}", damages());
    }
    put_back(&other(1));
    assert_eq!(damages(), [], "that of a store with the same files");
    folder.remove("MANIFEST").unwrap();
    assert!(matches!(&damages()[..], [damage] if damage.file == "MANIFEST"), "{:?}", damages());
    store.put(b"key", &[0; 8000], Durability::None).unwrap();
    assert_eq!(damages(), [], "it is written anew with each segment");
}

/// Tombstones before, in and after damage: what they hide never comes back, whatever is compacted.
/// If hints identify the key of the damaged record, every key can be written and deleted.
#[test]
fn keys_can_be_written_and_deleted_despite_damage() {
    for seed in first_seed()..first_seed() + count(100, 2_000) {
        deletes_despite_damage(seed);
    }
}

fn deletes_despite_damage(seed: u64) {
    let mut random = Random::new(seed);
    let folder = MemoryFolder::new();
    let open = |folder: &MemoryFolder| options().seed(1).open_in(Arc::new(folder.clone()));
    let store = open(&folder).unwrap();
    let mut now = State::new();
    let step = |store: &LogStore, now: &mut State, random: &mut Random| {
        let key = vec![u8::try_from(random.below(100)).unwrap()];
        if random.chance(40) {
            let was_there = store.delete(&key, Durability::None).unwrap();
            assert_eq!(was_there, now.remove(&key).is_some(), "{seed}: key {key:?}");
        } else {
            let count = random.below(900);
            let value = random.bytes(count);
            store.put(&key, &value, Durability::None).unwrap();
            now.insert(key, value);
        }
    };
    (0..200).for_each(|_| step(&store, &mut now, &mut random));
    store.close().unwrap();
    // A bit flips in a record of any segment but the last; hints have the original record.
    let mut files = folder.contents();
    let logs: Vec<String> = files.keys().filter(|name| name.ends_with(".log")).cloned().collect();
    let name = &logs[random.below(logs.len() - 1)];
    let log = files.get_mut(name).unwrap();
    let at = 40 + random.below(log.len() - 40);
    log[at] ^= 1 << random.below(8);
    let mut folder = MemoryFolder::with(files);
    for _ in 0..4 {
        let store = open(&folder).unwrap();
        for _ in 0..60 {
            step(&store, &mut now, &mut random);
            if random.chance(10) {
                let compacted = store.compact();
                assert!(matches!(compacted, Ok(_) | Err(Error::Damaged { .. })), "{compacted:?}");
            }
        }
        let mut damaged = 0;
        for key in 0..100 {
            match store.get(&[key]) {
                Ok(found) => assert!(found.as_ref() == now.get(&[key][..]), "{seed}: key {key}"),
                Err(_) => damaged += 1,
            }
        }
        assert!(damaged <= 1, "{seed}: {damaged} keys for one bit");
        drop(store);
        folder = folder.crash_clone(100, seed);
    }
}

/// Opening reads the previous record of a key. Once a flipped bit in it made all keys unreadable.
#[test]
fn a_damaged_record_does_not_make_other_keys_unreadable() {
    let folder = MemoryFolder::new();
    let store = options().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    let value = |key: u8, version: u8| [&[0xa5, key, version][..], &[version; 700]].concat();
    for version in 0..3 {
        (0..30).for_each(|key| {
            store.put(&[key], &value(key, version), Durability::None).unwrap();
        });
    }
    (20..30).for_each(|key| assert!(store.delete(&[key], Durability::None).unwrap()));
    store.close().unwrap();
    let files = folder.contents();
    for (key, version) in (0..30).flat_map(|key| (0..3).map(move |version| (key, version))) {
        let mut files = files.clone();
        let damaged = value(key, version);
        for log in files.iter_mut().filter(|(name, _)| name.ends_with(".log")).map(|(_, log)| log) {
            if let Some(at) = log.windows(703).position(|bytes| bytes == damaged) {
                log[at + 300] ^= 1;
            }
        }
        let folder = MemoryFolder::with(files);
        // In the second round the damage was dropped, or all other segments were compacted.
        let is_live = version == 2 && key < 20;
        for was_compacted in [false, true] {
            let store = options().open_in(Arc::new(folder.clone())).unwrap();
            for other in 0..30 {
                let found = store.get(&[other]);
                let expected = (other < 20).then(|| value(other, 2));
                if other == key && is_live {
                    assert!(matches!(found, Err(Error::Damaged { .. })), "key {other}");
                } else {
                    assert!(found.unwrap() == expected, "key {other} beside {key}.{version}");
                }
            }
            assert_eq!(store.stats().keys, 20);
            let damages = store.verify(|_, _| ()).unwrap().damages.len();
            assert_eq!(damages, usize::from(is_live || !was_compacted), "{key}.{version}");
            match store.compact() {
                Ok(report) => assert!(!is_live && report.damage_dropped == damages as u64),
                Err(Error::Damaged { .. }) => assert!(is_live, "{key}.{version}"),
                Err(error) => panic!("{error}"),
            }
        }
        // Its own key can be written again, alone or in a batch, and deleted.
        let store = options().open_in(Arc::new(folder)).unwrap();
        let mut batch = Batch::new();
        batch.put(&[key], &value(key, 3)).unwrap();
        if version == 1 {
            store.write(&batch, Durability::None).unwrap();
        } else {
            store.put(&[key], &value(key, 3), Durability::None).unwrap();
        }
        assert!(store.get(&[key]).unwrap() == Some(value(key, 3)));
        assert!(store.delete(&[key], Durability::None).unwrap());
        assert_eq!(store.get(&[key]).unwrap(), None);
    }
}

/// Once an iterator ended at the first damage.
#[test]
fn an_iteration_goes_on_after_damage() {
    let folder = MemoryFolder::new();
    let store = options().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    (0..30).for_each(|key| store.put(&[key], &[key; 700], Durability::None).unwrap());
    store.close().unwrap();
    let mut files = folder.contents();
    [0, 7, 8, 29].into_iter().for_each(|key| flip(&mut files, &[key; 700]));
    let store = options().open_in(Arc::new(MemoryFolder::with(files))).unwrap();
    let (sound, damaged): (Vec<_>, Vec<_>) = store.iter().partition(Result::is_ok);
    assert!(damaged.iter().all(|item| matches!(item, Err(Error::Damaged { .. }))));
    // Two adjacent ones are reported as one.
    assert_eq!(damaged.len(), 3);
    let keys: Vec<u8> = sound.into_iter().map(|item| item.unwrap().0[0]).collect();
    assert_eq!(keys, (0..30).filter(|key| ![0, 7, 8, 29].contains(key)).collect::<Vec<u8>>());
    assert_eq!(store.keys().filter(Result::is_err).count(), 3);
}
