//! One test for each fault that was found, reduced to its steps.

use std::sync::Arc;

use koel_store::{Durability, Error, LogOptions, LogStore};
use tempfile::TempDir;
use testkit::storage::{Failure, Fault, FaultyFolder, MemoryFolder};
use testkit::stores::{Files, seal};

fn open(folder: impl koel_store::files::Folder + 'static) -> LogStore {
    let options = LogOptions::default().segment_bytes(8192).background_compaction(false).seed(1);
    options.open_in(Arc::new(folder)).unwrap()
}

/// A process ended between the rename of a manifest and the sync of the folder. The next opening
/// then depended on a name that was not durable.
#[test]
fn a_manifest_is_made_durable_before_anything_depends_on_it() {
    let disk = MemoryFolder::new();
    let store = open(disk.clone());
    store.put(b"old", b"1", Durability::Synced).unwrap();
    store.close().unwrap();

    // The number of calls up to the sync of the folder, the last one before the log is written.
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

/// A power failure during the very first opening left a new manifest under its temporary name.
#[test]
fn a_store_opens_after_a_crash_of_its_first_opening() {
    for at in 0..12 {
        for kept in [0, 50, 100] {
            let fault = Fault { at, lasting: true, failure: Failure::Eio };
            let folder = FaultyFolder::new(MemoryFolder::new(), Some(fault));
            let options = LogOptions::default().background_compaction(false);
            drop(options.open_in(Arc::new(folder.clone())));
            let store = open(folder.inner().crash_clone(kept, at));
            store.put(b"key", b"value", Durability::Synced).unwrap();
        }
    }
}

/// A durable value was overwritten by one that was not durable. A compaction dropped the first, and
/// a power failure lost the second.
#[test]
fn a_compaction_makes_later_values_durable_before_it_drops_earlier_ones() {
    let disk = MemoryFolder::new();
    let options = LogOptions::default().segment_bytes(4096).background_compaction(true).seed(1);
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

/// Offsets in a manifest: the numbers of the record `store`, and those of the first record `log`;
/// each of these has 48 bytes.
const STORE: usize = 32 + 20 + 5;
const LOG: usize = 112 + 20 + 3;

/// Opens a closed store of twenty keys after changing fields of 8 bytes in the file with this
/// suffix, under a matching checksum.
fn changed(suffix: &str, fields: &[(usize, u64)]) -> Result<LogStore, Error> {
    let folder = MemoryFolder::new();
    let store = open(folder.clone());
    for key in 0..20_u8 {
        store.put(&[key], b"value", Durability::None).unwrap();
    }
    store.close().unwrap();
    let mut files: Files = folder.contents();
    let file = files.iter_mut().find(|(name, _)| name.ends_with(suffix)).unwrap().1;
    for (at, number) in fields {
        file[*at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    seal(&mut files);
    let options = LogOptions::default().background_compaction(false);
    options.open_in(Arc::new(MemoryFolder::with(files)))
}

/// Found by fuzzing: the index made room for as many keys as the manifest said, 2^64.
#[test]
fn a_manifest_reserves_no_more_memory_than_the_log_has_keys_for() {
    let unchanged = changed("MANIFEST", &[]).unwrap().stats().index_bytes;
    for keys in [1 << 40, u64::MAX] {
        let store = changed("MANIFEST", &[(STORE + 40, keys)]).unwrap();
        assert_eq!((store.stats().keys, store.iter().count()), (20, 20));
        assert_eq!(store.stats().index_bytes, unchanged);
    }
}

/// Found by review: a division by the number of segments that the index can address, 0 at that
/// size; an overflow of the sequence number, which has 56 bits in a record; and the number of an
/// existing segment for the next one.
#[test]
fn an_invalid_number_is_refused_in_a_manifest_and_ignored_in_a_hint() {
    let sizes = [8, 4088, (16 << 30) + 8, 1 << 63].map(|bytes| (32, bytes));
    let sequences = [1 << 56, u64::MAX].map(|sequence| (16, sequence));
    let numbers = [0, 1].map(|number| (24, number));
    for (at, number) in sizes.into_iter().chain(sequences).chain(numbers) {
        let refused = changed("MANIFEST", &[(STORE + at, number)]);
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{at}, {number}: {refused:?}");
    }
    for (_, sequence) in sequences {
        let store = changed(".hint", &[(40, sequence)]).unwrap();
        assert_eq!((store.open_report().hinted, store.iter().count()), (0, 20));
    }
}

/// Found by review: a note of an offset after the segment became a location with too many bits.
#[test]
fn a_hint_with_notes_outside_its_segment_is_ignored() {
    // Each of the twenty notes is a hash and, in one byte, the four units of its record.
    let (first, last) = (48 + 8, 48 + 19 * 9 + 8);
    let far = u64::from_le_bytes([4 << 2 | 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
    for (at, number) in [(last, 5 << 2), (last, 31 << 2), (last, 4 << 2 | 2), (first, far)] {
        let store = changed(".hint", &[(at, number)]).unwrap();
        assert_eq!((store.open_report().hinted, store.iter().count()), (0, 20), "{number:x}");
    }
    let as_written = changed(".hint", &[(last, 4 << 2)]).unwrap();
    assert_eq!((as_written.open_report().hinted, as_written.iter().count()), (1, 20));
}

/// Returns the files of a store with at least three segments, and the same files with an old
/// manifest.
fn with_an_older_manifest(closed: bool) -> (Files, Files) {
    let folder = MemoryFolder::new();
    let store = open(folder.clone());
    store.put(b"first", b"value", Durability::Synced).unwrap();
    let store = if closed {
        store.close().unwrap();
        open(folder.clone())
    } else {
        store
    };
    let older = folder.contents()["MANIFEST"].clone();
    for key in 0..40_u8 {
        store.put(&[key], &[key; 600], Durability::None).unwrap();
    }
    store.close().unwrap();
    let files = folder.contents();
    let mut mixed = files.clone();
    mixed.insert("MANIFEST".to_owned(), older);
    (files, mixed)
}

/// Opens files that are refused. Returns why.
fn refused_unchanged(files: &Files) -> Error {
    let folder = MemoryFolder::with(files.clone());
    let options = LogOptions::default().background_compaction(false);
    let refused = options.open_in(Arc::new(folder.clone()));
    assert!(folder.contents() == *files, "opening changed or removed a file");
    refused.expect_err("a wrong manifest was taken for the right one")
}

/// Once files that MANIFEST did not name were removed before anything was checked.
#[test]
fn an_old_manifest_is_refused_and_nothing_is_removed() {
    for closed in [false, true] {
        let (files, mixed) = with_an_older_manifest(closed);
        assert!(files.len() >= 6);
        let refused = refused_unchanged(&mixed);
        assert_eq!(closed, matches!(refused, Error::Damaged { .. }), "{refused}");
        assert_eq!(!closed, matches!(refused, Error::OldManifest { .. }), "{refused}");
        let store = open(MemoryFolder::with(files));
        assert_eq!(store.stats().keys, 41);
    }
}

/// The same, with damage at the end of the last segment that the old manifest names: nothing is cut
/// off.
#[test]
fn an_old_manifest_does_not_turn_damage_into_a_torn_end() {
    let (_, mut mixed) = with_an_older_manifest(false);
    let first = mixed.iter_mut().find(|(name, _)| name.ends_with(".log")).unwrap().1;
    let last = first.len() - 100;
    first[last] ^= 1;
    mixed.retain(|name, _| !name.ends_with(".hint"));
    let refused = refused_unchanged(&mixed);
    assert!(matches!(refused, Error::OldManifest { .. }), "{refused}");
}

/// All of the log is in a new segment: only its sequence numbers tell that it is newer.
#[test]
fn the_first_manifest_of_a_store_is_refused_with_a_later_log() {
    let folder = MemoryFolder::new();
    let store = open(folder.clone());
    let older = folder.contents()["MANIFEST"].clone();
    store.put(b"key", b"value", Durability::None).unwrap();
    store.close().unwrap();
    let mut mixed = folder.contents();
    mixed.insert("MANIFEST".to_owned(), older);
    let refused = refused_unchanged(&mixed);
    let is_named = matches!(&refused, Error::OldManifest { file } if file.ends_with(".log"));
    assert!(is_named, "{refused}");
}

/// Once the log was unsound under the manifest of the other store, so all of it was removed.
#[test]
fn the_manifest_of_another_store_is_refused_and_nothing_is_removed() {
    let of_seed = |seed: u64, folder: &MemoryFolder| {
        let options = LogOptions::default().segment_bytes(4096).background_compaction(false);
        options.seed(seed).open_in(Arc::new(folder.clone())).unwrap()
    };
    let (folder, other) = (MemoryFolder::new(), MemoryFolder::new());
    let store = of_seed(1, &folder);
    (0..40_u8).for_each(|key| store.put(&[key], &[key; 600], Durability::None).unwrap());
    store.close().unwrap();
    of_seed(2, &other).close().unwrap();
    let mut mixed = folder.contents();
    mixed.extend(other.contents());
    let refused = refused_unchanged(&mixed);
    let is_named = matches!(&refused, Error::OtherStore { file } if file.ends_with(".log"));
    assert!(is_named, "{refused}");
}

/// Creates a store of many segments: the first half and a record of the last one are dead.
fn of_dead_segments(disk: &MemoryFolder) {
    let store = open(disk.clone());
    for round in 0..2 {
        for key in 0..40_u8 {
            store.put(&[key], &[round; 600], Durability::None).unwrap();
        }
    }
    store.put(&[39], &[2; 600], Durability::None).unwrap();
    store.close().unwrap();
}

fn logs(folder: &FaultyFolder<MemoryFolder>) -> u64 {
    folder.inner().contents().into_keys().filter(|name| name.ends_with(".log")).count() as u64
}

/// Once a segment whose header could not be written stayed until the next opening.
#[test]
fn a_failed_compaction_removes_the_files_it_created() {
    let prepared = MemoryFolder::new();
    of_dead_segments(&prepared);
    let fresh = |fault| FaultyFolder::new(prepared.crash_clone(100, 0), fault);
    let counting = fresh(None);
    counting.record();
    let store = open(counting.clone());
    let first = counting.calls();
    store.compact().unwrap();
    let calls = (0..).zip(counting.trace()).skip(usize::try_from(first).unwrap());
    let created: Vec<u64> = calls
        .filter(|(_, call)| call.verb == "create" && call.name.ends_with(".log"))
        .map(|(at, _)| at)
        .collect();
    // The sealed segment and the copies; after each its header, its sync, and that of the folder.
    assert!(created.len() >= 2);
    for at in created.iter().flat_map(|&at| at + 1..at + 4) {
        let folder = fresh(Some(Fault { at, lasting: false, failure: Failure::Eio }));
        let store = open(folder.clone());
        assert!(store.compact().is_err());
        assert_eq!(logs(&folder), store.stats().segments, "{:?}", folder.struck());
    }
}

/// Once the space was not freed, without an error.
#[test]
fn a_segment_that_cannot_be_removed_is_an_error_and_is_removed_by_the_next_opening() {
    let prepared = MemoryFolder::new();
    of_dead_segments(&prepared);
    let counting = FaultyFolder::new(prepared.crash_clone(100, 0), None);
    counting.record();
    open(counting.clone()).compact().unwrap();
    let is_removal =
        |call: &testkit::storage::Call| call.verb == "remove" && call.name.ends_with(".log");
    let at = counting.trace().iter().position(is_removal).unwrap() as u64;
    let fault = Fault { at, lasting: false, failure: Failure::Eio };
    let folder = FaultyFolder::new(prepared.crash_clone(100, 0), Some(fault));
    let store = open(folder.clone());
    let refused = store.compact();
    assert!(matches!(&refused, Err(Error::Io { action: "remove", .. })), "{refused:?}");
    assert_eq!(logs(&folder), store.stats().segments + 1, "all others are gone");
    store.put(b"key", b"value", Durability::Synced).unwrap();
    drop(store);
    let store = open(folder.clone());
    assert_eq!((store.stats().keys, store.open_report().removed.len()), (41, 1));
    assert_eq!(logs(&folder), store.stats().segments);
}

/// Returns the changed files of a closed store with this many keys, twelve per segment, under
/// matching checksums.
fn forged(keys: u8, change: impl FnOnce(&mut Files)) -> Files {
    let folder = MemoryFolder::new();
    let store = open(folder.clone());
    (0..keys).for_each(|key| store.put(&[key], &[key; 600], Durability::None).unwrap());
    store.close().unwrap();
    let mut files = folder.contents();
    change(&mut files);
    seal(&mut files);
    files
}

fn set(files: &mut Files, name: &str, at: usize, number: u64) {
    let file = files.get_mut(name).unwrap();
    file[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn refused(files: Files) -> String {
    let options = LogOptions::default().background_compaction(false);
    match options.open_in(Arc::new(MemoryFolder::with(files))) {
        Err(Error::Damaged { file, .. }) => file,
        Err(other) => other.to_string(),
        Ok(_) => "opened".to_owned(),
    }
}

/// Found by review: such a record got the location of another segment, or one with too many bits.
#[test]
fn a_record_after_the_size_of_a_segment_is_refused() {
    const FIRST: &str = "0000000000000001";
    for hinted in [true, false] {
        let files = forged(20, |files| {
            set(files, "MANIFEST", STORE + 32, 4096);
            files.retain(|name, _| hinted || !name.ends_with(".hint"));
        });
        assert_eq!(refused(files), format!("{FIRST}.log"), "{hinted}");
    }
    // In a store that was not closed it is not a torn end either.
    let files = forged(10, |files| {
        set(files, "MANIFEST", STORE + 32, 4096);
        // Not clean.
        set(files, "MANIFEST", STORE, 0);
        set(files, "MANIFEST", LOG + 8, 40);
        files.retain(|name, _| !name.ends_with(".hint"));
    });
    assert_eq!(refused(files), format!("{FIRST}.log"));
}

/// Found by review: the records of one of them could not be found.
#[test]
fn two_segments_in_one_slot_are_refused() {
    const SLOTS: u64 = 1 << 22;
    let files = forged(20, |files| {
        set(files, "MANIFEST", STORE + 24, SLOTS + 2);
        set(files, "MANIFEST", LOG + 48, SLOTS + 1);
        files.retain(|name, _| !name.ends_with(".hint"));
        let second = files.remove("0000000000000002.log").unwrap();
        let name = format!("{:016x}.log", SLOTS + 1);
        files.insert(name.clone(), second);
        set(files, &name, 24, SLOTS + 1);
    });
    assert_eq!(refused(files), "MANIFEST");
}

/// Found by review: two ends of 2^63 bytes overflow their sum.
#[test]
fn a_segment_of_impossible_length_is_refused_in_a_manifest() {
    for end in [(16 << 30) + 8, 1 << 63] {
        let files = forged(20, |files| {
            set(files, "MANIFEST", LOG + 8, end);
            set(files, "MANIFEST", LOG + 48 + 8, end);
        });
        assert_eq!(refused(files), "MANIFEST");
    }
}

/// Returns a store on disk, one file of which was extended to 1 TiB with a hole.
fn with_a_tebibyte(suffix: &str, closed: bool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = LogOptions::default().background_compaction(false);
    let store = options.open(folder.path()).unwrap();
    (0..20_u8).for_each(|key| store.put(&[key], b"value", Durability::Synced).unwrap());
    let copy = tempfile::tempdir().unwrap();
    if closed {
        store.close().unwrap();
    }
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let to = copy.path().join(path.file_name().unwrap());
        std::fs::copy(&path, &to).unwrap();
        if path.to_str().unwrap().ends_with(suffix) {
            std::fs::OpenOptions::new().write(true).open(to).unwrap().set_len(1 << 40).unwrap();
        }
    }
    copy
}

/// Found by review: memory was taken for the length of the file.
#[cfg(unix)]
#[test]
fn files_that_are_too_long_are_refused_or_ignored_before_they_are_read() {
    let open = |folder: &TempDir| LogOptions::default().open(folder.path());
    for (suffix, closed) in [("MANIFEST", true), (".log", true), (".log", false)] {
        let refused = open(&with_a_tebibyte(suffix, closed));
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{suffix} {closed}");
    }
    let store = open(&with_a_tebibyte(".hint", true)).unwrap();
    assert_eq!((store.open_report().hinted, store.stats().keys), (0, 20));
}
