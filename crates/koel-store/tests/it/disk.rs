//! On the file system: one writer at a time, and clear errors.

use std::io::{self, Read};

use koel_store::{Durability, Error, LogOptions, LogStore};

use crate::trial::{count, report, set_read_only};

#[test]
fn a_folder_has_one_store_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folders");
    let store = LogStore::open(&path).unwrap();
    store.put(b"key", b"value", Durability::Synced).unwrap();
    assert!(matches!(LogStore::open(&path), Err(Error::Locked)));
    store.close().unwrap();
    let store = LogStore::open(&path).unwrap();
    assert_eq!(store.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert!(store.open_report().was_closed);
}

#[test]
fn several_readers_or_one_writer_can_have_a_store_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let reader = || LogOptions::default().read_only(true).open(&path);
    assert!(matches!(reader(), Err(Error::NoStore { .. })));
    assert!(!path.exists(), "a read-only store is not created");
    let store = LogStore::open(&path).unwrap();
    store.put(b"key", b"value", Durability::None).unwrap();
    assert!(matches!(reader(), Err(Error::Locked)));
    store.close().unwrap();
    set_read_only(&path, true);
    let readers = [reader().unwrap(), reader().unwrap()];
    for store in &readers {
        assert_eq!(store.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    }
    set_read_only(&path, false);
    assert!(matches!(LogStore::open(&path), Err(Error::Locked)));
    drop(readers);
    LogStore::open(&path).unwrap().close().unwrap();
}

#[test]
fn a_store_that_cannot_be_opened_is_an_error_of_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let text = LogStore::open(&file).unwrap_err().to_string();
    assert!(text.contains("file") && text.lines().count() == 1, "{text}");
    let strange = folder.path().join("strange");
    std::fs::create_dir(&strange).unwrap();
    std::fs::write(strange.join("MANIFEST"), "something else").unwrap();
    let text = LogStore::open(&strange).unwrap_err().to_string();
    assert!(text.contains("MANIFEST") && text.lines().count() == 1, "{text}");
    assert_eq!(std::fs::read(strange.join("MANIFEST")).unwrap(), b"something else");
}

/// Only in the full run.
#[test]
fn a_value_of_four_gibibytes_comes_back_and_a_longer_one_is_refused() {
    const LONGEST: u64 = 4 << 30;
    let folder = tempfile::tempdir().unwrap();
    let store = LogStore::open(folder.path()).unwrap();
    let put = |len| {
        let value = io::repeat(7).take(len);
        store.put_reader(b"key", len, value, Durability::None)
    };
    let text = put(LONGEST + 1).unwrap_err().to_string();
    assert!(
        text.contains("the maximum is 4294967296 bytes") && text.lines().count() == 1,
        "{text}"
    );
    if count(0, 1) == 0 {
        return;
    }
    put(LONGEST).unwrap();
    store.close().unwrap();
    let store = LogStore::open(folder.path()).unwrap();
    let mut value = store.get_reader(b"key").unwrap().unwrap();
    assert_eq!(value.len(), LONGEST);
    let (mut piece, mut read) = (vec![0; 1 << 16], 0);
    loop {
        match value.read(&mut piece).unwrap() {
            0 => break,
            count => {
                assert!(piece[..count].iter().all(|&byte| byte == 7));
                read += count as u64;
            }
        }
    }
    assert_eq!(read, LONGEST);
    report("longest", &format!("a value of {read} bytes, equal"));
}
