//! On the real file system: one store at a time, and clear words where there can be none.

use koel_store::{Durability, Error, LogStore};

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
    assert!(store.opened().was_closed);
}

#[test]
fn a_store_that_cannot_be_is_told_in_a_line() {
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
