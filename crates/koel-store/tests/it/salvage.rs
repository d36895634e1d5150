//! Salvage: whatever is damaged, everything else is recovered, and nothing that was never written.

use std::collections::BTreeMap;
use std::sync::Arc;

use koel_store::content::{Archive, Chunking};
use koel_store::{Durability, Error, LogOptions, LogStore, SalvageReport};
use testkit::storage::{MemoryFolder, Random, State};

use crate::damage::{Image, Victim, harms, options, victim};
use crate::trial::{count, first_seed, flip, iterate, report, set_read_only};

fn new_store() -> LogStore {
    options().seed(77).open_in(Arc::new(MemoryFolder::new())).unwrap()
}

/// Salvages these files, which must not change. Returns the state and the report.
fn salvage(image: Image) -> (State, SalvageReport) {
    let (folder, store) = (MemoryFolder::with(image.clone()), new_store());
    let mut seen = (0, 0);
    let salvaged = store.salvage_in(&folder, |read, all| {
        assert!(seen.0 <= read && read <= all);
        seen = (read, all);
    });
    let salvaged = salvaged.unwrap();
    assert_eq!(seen.0, seen.1, "progress comes to its end");
    assert!(folder.contents() == image, "the damaged store was changed");
    assert_eq!(store.verify(|_, _| ()).unwrap().damages, []);
    (iterate(&store).unwrap(), salvaged)
}

#[test]
fn everything_but_the_damaged_records_is_salvaged() {
    let victims: Vec<Victim<LogStore>> =
        (0..8).map(|number| victim(first_seed() + number, number % 2 == 0)).collect();
    let (mut lost, mut older, mut whole) = (0, 0, 0);
    let trials = count(400, 10_000);
    for number in 0..trials {
        let victim = &victims[usize::try_from(number % 8).unwrap()];
        let mut random = Random::new(first_seed() + number);
        let mut image = victim.image.clone();
        let (_, harm) = harms()[random.below(4)];
        let (_, what) = harm(victim, &mut random, &mut image);
        let context = format!("seed {}, trial {number}: {what}", first_seed());
        let mut harmed =
            victim.image.iter().filter(|(name, bytes)| image.get(*name) != Some(*bytes));
        let harmed = harmed.next().filter(|(name, _)| name.ends_with(".log"));
        let is_cut = harmed
            .is_some_and(|(name, bytes)| image.get(name).is_some_and(|it| it.len() < bytes.len()));
        // A log that was cut between two records may have ended there.
        let may_be_whole = is_cut && !victim.closed;
        let (state, salvaged) = salvage(image);
        let changed = state.iter().filter(|(key, value)| victim.now.get(*key) != Some(*value));
        let changed: Vec<_> = changed.collect();
        let missing = victim.now.keys().filter(|key| !state.contains_key(*key)).count() as u64;
        if harmed.is_none() || salvaged.damages.is_empty() && !may_be_whole {
            assert!(state == victim.now, "{context}: all records are sound, {salvaged:?}");
            whole += 1;
        } else if victim.closed {
            // A hint has a note of each record.
            assert!(changed.is_empty(), "{context}: {} are not the last values", changed.len());
            assert_eq!(missing, salvaged.lost, "{context}");
            lost += missing;
        } else {
            for &(key, value) in &changed {
                let once = (key.clone(), value.clone());
                assert!(victim.ever.contains(&once), "{context}: a value that never was");
            }
            older += changed.len();
        }
    }
    report(
        "salvage",
        &format!(
            "{trials} damaged stores, {whole} whole, {lost} values lost and known to be, {older} older"
        ),
    );
    assert!(lost > 0 && whole > 0, "nothing was ever lost");
}

/// Returns a store with keys 0 to 59 in several segments, some overwritten, some deleted; and its
/// state.
fn sample() -> (Image, State) {
    let folder = MemoryFolder::new();
    let store = options().seed(3).open_in(Arc::new(folder.clone())).unwrap();
    let mut now = State::new();
    for key in (0..60).chain(0..20) {
        let value = vec![key; 700 - now.len()];
        store.put(&[key], &value, Durability::None).unwrap();
        now.insert(vec![key], value);
    }
    for key in 10..15 {
        assert!(store.delete(&[key], Durability::None).unwrap());
        now.remove(&[key][..]);
    }
    store.close().unwrap();
    (folder.contents(), now)
}

#[test]
fn segments_are_ordered_without_a_manifest_and_with_a_wrong_one() {
    let (image, now) = sample();
    let other = victim::<LogStore>(first_seed(), true).image;
    let wrong: [Option<Vec<u8>>; 4] = [
        None,
        Some(Vec::new()),
        Some(other["MANIFEST"].clone()),
        Some({
            let folder = MemoryFolder::new();
            options().seed(3).open_in(Arc::new(folder.clone())).unwrap().close().unwrap();
            folder.contents().remove("MANIFEST").unwrap()
        }),
    ];
    for (number, manifest) in wrong.into_iter().enumerate() {
        let mut image = image.clone();
        image.remove("MANIFEST");
        image.extend(manifest.map(|bytes| ("MANIFEST".to_owned(), bytes)));
        let (state, salvaged) = salvage(image);
        assert!(state == now, "wrong manifest {number}");
        let files: Vec<_> = salvaged.damages.iter().map(|damage| &damage.file[..]).collect();
        assert_eq!(files, ["MANIFEST"], "wrong manifest {number}");
    }
}

/// Returns the files of a store before and after a compaction that dropped keys, and its state.
fn compacted() -> (Image, Image, State) {
    let folder = MemoryFolder::new();
    let store = options().seed(4).open_in(Arc::new(folder.clone())).unwrap();
    for key in (0..60).chain(0..55) {
        store.put(&[key], &[key; 700], Durability::None).unwrap();
    }
    (50..60).for_each(|key| assert!(store.delete(&[key], Durability::None).unwrap()));
    store.sync().unwrap();
    let before = folder.contents();
    assert!(store.compact().unwrap().segments > 0);
    let now = iterate(&store).unwrap();
    store.close().unwrap();
    (before, folder.contents(), now)
}

/// A manifest from before a compaction names removed segments; their records are in others.
#[test]
fn a_manifest_from_before_a_compaction_hides_nothing() {
    let (mut before, mut after, now) = compacted();
    after.insert("MANIFEST".to_owned(), before.remove("MANIFEST").unwrap());
    let (state, salvaged) = salvage(after);
    assert!(state == now, "{salvaged:?}");
}

/// A power failure after a compaction may leave replaced segments with records of deleted keys.
#[test]
fn replaced_segments_bring_no_deleted_key_back() {
    let (before, after, now) = compacted();
    let left: Vec<_> = before.keys().filter(|name| !after.contains_key(*name)).collect();
    assert!(left.iter().any(|name| name.ends_with(".log")));
    for name in left {
        let mut image = after.clone();
        image.insert(name.clone(), before[name].clone());
        let (state, salvaged) = salvage(image);
        assert!(state == now, "{name}");
        assert_eq!(salvaged.damages, [], "{name}");
    }
}

#[test]
fn a_log_cut_within_its_header_counts_as_missing() {
    let (mut image, now) = sample();
    let first = image.keys().find(|name| name.ends_with(".log")).unwrap().clone();
    for len in [0, 1, 39, 40, 41] {
        image.get_mut(&first).unwrap().resize(len, 0);
        let (state, salvaged) = salvage(image.clone());
        assert!(state.iter().all(|(key, value)| now.get(key) == Some(value)), "{len} bytes");
        assert_eq!((now.len() - state.len()) as u64, salvaged.lost, "{len} bytes");
    }
}

#[test]
fn a_segment_of_another_store_is_left_out() {
    let (mut image, now) = sample();
    let folder = MemoryFolder::new();
    let store = options().seed(5).open_in(Arc::new(folder.clone())).unwrap();
    store.put(b"strange", b"", Durability::None).unwrap();
    store.close().unwrap();
    let last = image.keys().rfind(|name| name.ends_with(".log")).unwrap().clone();
    let (_, strange) =
        folder.contents().into_iter().find(|(name, _)| name.ends_with(".log")).unwrap();
    image.insert(last.clone(), strange);
    let (state, salvaged) = salvage(image);
    assert!(state.iter().all(|(key, value)| now.get(key) == Some(value)), "an older value");
    assert_eq!((now.len() - state.len()) as u64, salvaged.lost);
    assert!(salvaged.lost > 0 && salvaged.damages.iter().all(|damage| damage.file == last));
}

#[test]
fn files_of_an_archive_are_salvaged_and_the_damaged_one_is_named() {
    let folder = MemoryFolder::new();
    let store =
        LogOptions::default().segment_bytes(1 << 20).open_in(Arc::new(folder.clone())).unwrap();
    let archive = Archive::new(store);
    let mut random = Random::new(first_seed());
    let files: BTreeMap<String, Vec<u8>> =
        (0..9).map(|number| (format!("file {number}"), random.bytes(300_000))).collect();
    // Chunks, some of which are large values.
    for (name, bytes) in &files {
        archive.import(name, &bytes[..], Chunking::Fixed(100_000)).unwrap();
    }
    archive.into_store().close().unwrap();
    let mut image = folder.contents();
    flip(&mut image, &files["file 4"][150_000..150_100]);
    let store = new_store();
    let salvaged = store.salvage_in(&MemoryFolder::with(image), |_, _| ()).unwrap();
    assert_eq!((salvaged.lost, salvaged.damages.len()), (1, 1));
    let archive = Archive::new(store);
    let verified = archive.verify(|_| ()).unwrap();
    assert_eq!((verified.sound, &verified.broken[0].0[..]), (8, "file 4"));
    for (name, bytes) in files.iter().filter(|(name, _)| *name != "file 4") {
        let mut out = Vec::new();
        archive.export(name, &mut out).unwrap();
        assert!(out == *bytes, "{name}");
    }
}

/// A version that its name does not list would not be found. A number assigned twice would hide a
/// file.
#[test]
fn files_that_lost_their_lists_of_versions_are_listed_again() {
    let folder = MemoryFolder::new();
    let open = |folder: &MemoryFolder| options().seed(8).open_in(Arc::new(folder.clone()));
    let archive = Archive::new(open(&folder).unwrap());
    let names: Vec<String> = (0..6).map(|number| format!("file {number}")).collect();
    for name in &names {
        archive.import(name, name.as_bytes(), Chunking::default()).unwrap();
    }
    archive.into_store().close().unwrap();
    let image = folder.contents();
    // The last record of the next number (its key after both lengths); lists of versions; all.
    let next: Vec<u8> = [&[2, 0, 9, 16, 0xff, b't', 3][..], &7_u64.to_le_bytes()].concat();
    let list = |name: &str| [&[0xff, b'n'][..], name.as_bytes()].concat();
    // The newest version, which has a spare copy.
    let version: Vec<u8> = [&[0xff, b'v'][..], &6_u64.to_le_bytes()].concat();
    let all = vec![next.clone(), list("file 0"), list("file 3"), list("file 5"), version.clone()];
    for lost in [vec![next], vec![list("file 3")], vec![list("file 5")], vec![version], all] {
        let mut image = image.clone();
        lost.iter().for_each(|part| flip(&mut image, part));
        let store = new_store();
        let salvaged = store.salvage_in(&MemoryFolder::with(image), |_, _| ()).unwrap();
        assert_eq!(salvaged.lost, lost.len() as u64);
        let archive = Archive::new(store);
        let lists = lost.iter().filter(|part| part.starts_with(&[0xff, b'n'])).count() as u64;
        assert_eq!(archive.repair().unwrap(), lists);
        archive.import("new", &b"new"[..], Chunking::default()).unwrap();
        assert_eq!(archive.repair().unwrap(), 0);
        archive.collect(|_| ()).unwrap();
        let verified = archive.verify(|_| ()).unwrap();
        assert_eq!((verified.sound, verified.broken), (7, Vec::new()), "{lost:02x?}");
        let listed = crate::archive::names(&archive);
        assert!(names.iter().all(|name| listed.contains(name)), "{listed:?}");
        let numbers = archive.versions().unwrap().map(|version| version.unwrap().number);
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn a_locked_or_missing_folder_is_refused_and_a_read_only_one_is_not() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("old");
    let store = LogStore::open(&path).unwrap();
    store.put(b"key", b"value", Durability::None).unwrap();
    let new = new_store();
    assert!(matches!(new.salvage(&path, |_, _| ()), Err(Error::Locked)));
    store.close().unwrap();
    let nowhere = temporary.path().join("nowhere");
    assert!(matches!(new.salvage(&nowhere, |_, _| ()), Err(Error::NoStore { .. })));
    assert!(!nowhere.exists());
    set_read_only(&path, true);
    let salvaged = new.salvage(&path, |_, _| ()).unwrap();
    set_read_only(&path, false);
    assert_eq!((salvaged.records, salvaged.damages), (1, Vec::new()));
    assert_eq!(new.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    std::fs::remove_file(path.join("LOCK")).unwrap();
    new.salvage(&path, |_, _| ()).unwrap();
    assert!(!path.join("LOCK").exists(), "nothing is written there");
}
