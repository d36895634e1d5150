//! Stores in which someone has put other things than the files of a store: links, pipes, folders,
//! huge sparse files, and no lock.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use koel_store::{Durability, Error, LogOptions, LogStore};
use testkit::stores::manifest;

use crate::memory::sparse_store;

const LOG: &str = "0000000000000001.log";
const HINT: &str = "0000000000000001.hint";

/// What stands in the place of a file.
const STRANGERS: [fn(&Path); 5] = [
    |path| symlink(path.with_extension("moved"), path).unwrap(),
    |path| symlink(path.with_extension("nowhere"), path).unwrap(),
    |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
    |path| fs::create_dir(path).unwrap(),
    |path| symlink("/dev/zero", path).unwrap(),
];

/// A closed store of one record, and its folder.
fn store() -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("store");
    let store = LogStore::open(&path).unwrap();
    store.put(b"key", b"value", Durability::None).unwrap();
    store.close().unwrap();
    (temporary, path)
}

fn read_only(path: &Path) -> Result<LogStore, Error> {
    LogOptions::default().read_only(true).open(path)
}

fn value(store: &LogStore) -> Option<Vec<u8>> {
    store.get(b"key").unwrap()
}

#[test]
fn a_file_that_is_not_regular_is_refused_unopened() {
    for name in ["MANIFEST", "LOCK", LOG] {
        for put_stranger in STRANGERS {
            let (_temporary, path) = store();
            let file = path.join(name);
            fs::rename(&file, file.with_extension("moved")).unwrap();
            put_stranger(&file);
            for opened in [LogStore::open(&path), read_only(&path)] {
                let text = opened.unwrap_err().to_string();
                assert!(text.contains(name) && text.contains("not a regular file"), "{text}");
            }
            assert!(!file.with_extension("nowhere").exists(), "{name} was created elsewhere");
            let rescued = LogStore::open(path.with_file_name("rescued")).unwrap();
            let salvaged = rescued.salvage(&path, |_, _| ());
            match name {
                "LOCK" => drop(salvaged.unwrap_err()),
                _ => assert_eq!(salvaged.unwrap().damages[0].file, name),
            }
            assert_eq!(value(&rescued).is_some(), name == "MANIFEST");
        }
    }
}

#[test]
fn a_hint_that_is_not_regular_is_ignored_unopened() {
    for put_stranger in STRANGERS {
        let (_temporary, path) = store();
        fs::remove_file(path.join(HINT)).unwrap();
        put_stranger(&path.join(HINT));
        let store = read_only(&path).unwrap();
        assert_eq!((value(&store).unwrap(), store.open_report().hinted), (b"value".to_vec(), 0));
    }
}

#[test]
fn without_its_lock_file_a_store_still_has_one_writer() {
    let (_temporary, path) = store();
    let first = LogStore::open(&path).unwrap();
    fs::remove_file(path.join("LOCK")).unwrap();
    for _ in 0..2 {
        assert!(matches!(LogStore::open(&path), Err(Error::Locked)));
        assert!(matches!(read_only(&path), Err(Error::Locked)));
        fs::write(path.join("LOCK"), "").unwrap();
    }
    first.put(b"key", b"first", Durability::Synced).unwrap();
    drop(first);
    let reader = read_only(&path).unwrap();
    fs::remove_file(path.join("LOCK")).unwrap();
    assert!(matches!(LogStore::open(&path), Err(Error::Locked)));
    assert_eq!(value(&reader).unwrap(), b"first");
}

/// The store was found by its path: it went on in whichever folder was there.
#[test]
fn a_store_whose_folder_was_moved_writes_nothing_into_another() {
    let (_temporary, path) = store();
    let moved = path.with_file_name("moved");
    let options = || LogOptions::default().segment_bytes(4096).background_compaction(false);
    let old = options().open(&path).unwrap();
    fs::rename(&path, &moved).unwrap();
    let new = options().open(&path).unwrap();
    for i in 0..100_u8 {
        old.put(&[i], &[i; 60_000], Durability::None).unwrap();
        new.put(&[i], b"new", Durability::None).unwrap();
    }
    old.close().unwrap();
    new.close().unwrap();
    let (old, new) = (LogStore::open(&moved).unwrap(), LogStore::open(&path).unwrap());
    assert_eq!((old.stats().keys, new.stats().keys), (101, 100));
    assert!(old.verify(|_, _| ()).unwrap().damages.is_empty());
    assert!(new.verify(|_, _| ()).unwrap().damages.is_empty());
}

#[test]
fn files_are_readable_by_those_who_may_read_the_folder_and_the_manifest() {
    for (folder, manifest, expected) in [
        (0o700, 0o644, 0o600),
        (0o750, 0o644, 0o640),
        (0o755, 0o600, 0o600),
        (0o755, 0o640, 0o640),
        (0o755, 0o644, 0o644),
    ] {
        let (_temporary, path) = store();
        let set = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
        set(&path, folder).unwrap();
        set(&path.join("MANIFEST"), manifest).unwrap();
        fs::remove_file(path.join("LOCK")).unwrap();
        let store = LogStore::open(&path).unwrap();
        store.put(b"key", b"new", Durability::None).unwrap();
        store.compact().unwrap();
        store.close().unwrap();
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().mode() & 0o777;
            // The old segment keeps its mode.
            let too_wide = mode & !expected & 0o077;
            assert!(too_wide == 0 || entry.file_name() == LOG, "{entry:?}: {mode:o}");
        }
    }
}

#[test]
fn a_store_that_is_not_there_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    for name in ["nowhere", "empty"] {
        let path = temporary.path().join(name);
        if name == "empty" {
            fs::create_dir(&path).unwrap();
        }
        let error = read_only(&path).unwrap_err();
        assert!(matches!(error, Error::NoStore { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
}

/// A record whose sequence number had no room lost its upper bits, and was damage when the store
/// was opened again.
#[test]
fn a_store_whose_sequence_numbers_run_out_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    for (sequence, is_refused) in [((1 << 55) - 1, false), (1 << 55, true), ((1 << 56) - 1, true)] {
        let manifest = manifest(b"koelman\n", 7, &[("store", vec![1, 3, sequence, 1, 4096, 0])]);
        fs::write(temporary.path().join("MANIFEST"), manifest).unwrap();
        assert_eq!(LogStore::open(temporary.path()).is_err(), is_refused, "{sequence}");
    }
}

/// Reading the zeros of 1.6 TiB would take half an hour.
#[test]
fn holes_of_sparse_files_are_not_read() {
    let temporary = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let (many, one) = (temporary.path().join("many"), temporary.path().join("one"));
    for (path, count, is_closed) in [(&many, 100, true), (&one, 1, false)] {
        fs::create_dir(path).unwrap();
        sparse_store(path, count, is_closed);
    }
    assert!(matches!(read_only(&many), Err(Error::Damaged { .. })));
    let rescued = LogStore::open(temporary.path().join("rescued")).unwrap();
    let report = rescued.salvage(&many, |_, _| ()).unwrap();
    assert_eq!((report.records, report.damages.len()), (0, 100));
    let opened = LogStore::open(&one).unwrap();
    let torn = opened.open_report().torn.clone().unwrap();
    assert_eq!((torn.offset, torn.bytes), (40, (16 << 30) - 40));
    opened.put(b"key", b"value", Durability::Synced).unwrap();
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
