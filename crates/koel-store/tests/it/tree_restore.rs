//! Restored trees: what is selected, what is in the way, and what is left alone.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};

use koel_store::Durability;
use koel_store::LogOptions;
use koel_store::content::{Archive, Entry, RestoreOptions, Selection, Target, TreeOptions};

use crate::tree::Place;

#[test]
fn entries_are_selected_and_their_folders_created() {
    let place = Place::new();
    let (archive, copy) = (&place.archive, place.path("copy"));
    for name in ["tree/a/b/take", "tree/a/leave", "tree/leave"] {
        place.write(name, name);
    }
    fs::create_dir(place.path("tree/empty")).unwrap();
    place.import("tree");
    let (_, entry) = archive.find("tree").unwrap();
    let select = &mut |path: &[u8], _: &Entry| match path {
        b"tree/a/b/take" => Selection::Take,
        _ => Selection::Search,
    };
    let options = RestoreOptions::default();
    let target = Target::Below(&copy);
    let restored = archive.restore("tree", &entry, target, &options, select, &mut |_| ()).unwrap();
    assert_eq!((restored.files, restored.folders, restored.problems.len()), (1, 3, 0));
    let found: Vec<_> = place.snapshot("copy").into_keys().collect();
    let expected = ["", "tree", "tree/a", "tree/a/b", "tree/a/b/take"];
    assert_eq!(found, expected.map(|path| path.as_bytes().to_vec()));
}

/// The folder of the store may be inside the tree, and the tree is restored around it.
#[test]
fn the_folder_of_the_store_is_left_out_and_left_alone() {
    let mut place = Place::new();
    let db = place.path("db");
    place.archive = Archive::new(LogOptions::default().open(&db).unwrap());
    let archive = &place.archive;
    place.write("file", "text");
    let options = TreeOptions::default().skip(&db);
    let imported = archive.import_tree("tree", &place.path(""), &options, &mut |_| ()).unwrap();
    assert_eq!((imported.files, imported.folders), (1, 1));
    // A tree with a folder of that name.
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("db")).unwrap();
    fs::write(other.path().join("db/MANIFEST"), "not one").unwrap();
    archive.import_tree("other", other.path(), &TreeOptions::default(), &mut |_| ()).unwrap();
    let (_, entry) = archive.find("other").unwrap();
    let options = RestoreOptions::default().skip(&db);
    let restored = place.restore("other", &entry, "", &options);
    assert_eq!(restored.problems.len(), 1, "{restored:?}");
    place.archive.into_store().close().unwrap();
    LogOptions::default().open(&db).unwrap();
}

#[test]
fn files_and_links_that_are_in_the_way_are_replaced_and_never_written_through() {
    let place = Place::new();
    let (copy, outside) = (place.path("copy"), place.path("outside"));
    place.write("tree/file", "new");
    place.write("tree/sub/file", "new");
    symlink("file", place.path("tree/link")).unwrap();
    place.import("tree");
    place.write("outside/file", "precious");
    let before = place.snapshot("outside");
    fs::create_dir(&copy).unwrap();
    symlink(outside.join("file"), copy.join("file")).unwrap();
    symlink(&outside, copy.join("sub")).unwrap();
    symlink(&outside, copy.join("link")).unwrap();
    let restored = place.restore_newest("tree", "copy");
    assert_eq!(place.snapshot("outside"), before);
    assert_eq!(fs::read(copy.join("file")).unwrap(), b"new");
    assert_eq!(fs::read_link(copy.join("link")).unwrap().as_os_str().as_bytes(), b"file");
    assert_eq!(restored.problems.len(), 1, "the folder: {restored:?}");
    assert_eq!(restored.problems[0].name, b"tree/sub");
    let names: Vec<_> = place.snapshot("copy").into_keys().collect();
    assert!(names.iter().all(|name| !name.starts_with(b".koel")), "{names:?}");
}

/// Regression: a file `.koel-PROCESS-NUMBER` stayed for ever.
#[test]
fn what_a_killed_restoration_left_is_removed_by_the_next() {
    let (place, copy) = (Place::new(), "copy");
    place.write("tree/sub/file", "text");
    place.import("tree");
    let mut process = std::process::Command::new("true").spawn().unwrap();
    process.wait().unwrap();
    let left = format!(".koel-{}-1", process.id());
    let running = format!(".koel-{}-x", std::process::id());
    let folders = ["copy/sub", "copy"];
    for name in [&left, &running] {
        folders.iter().for_each(|folder| place.write(&format!("{folder}/{name}"), "half"));
    }
    let is_there = |folder: &str, name: &str| place.path(&format!("{folder}/{name}")).exists();
    place.restore_newest("tree", copy);
    for folder in folders {
        assert!(!is_there(folder, &left) && is_there(folder, &running));
    }
    assert_eq!(fs::read(place.path("copy/sub/file")).unwrap(), b"text");
    place.write(&format!("copy/{left}"), "half");
    place.archive.export_file("tree/sub/file", &place.path("copy/single")).unwrap();
    assert!(!is_there(copy, &left) && is_there(copy, &running));
}

/// A file with the right of its owner must not get another owner, who would give that right away.
#[test]
fn set_user_id_is_restored_only_with_the_owner() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let (file, copy) = (place.path("file"), place.path("copy"));
    place.write("file", "text");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o6755)).unwrap();
    place.import("file");
    let (_, entry) = place.archive.find("file").unwrap();
    for (owners, mode) in [(false, 0o755), (true, 0o6755)] {
        let options = RestoreOptions::default().owners(owners);
        let restored = place.restore("file", &entry, "copy", &options);
        assert_eq!(restored.problems.len(), usize::from(!owners), "what is dropped is said");
        let status = fs::metadata(&copy).unwrap();
        assert_eq!(status.mode() & 0o7777, mode);
        assert_eq!(status.uid(), fs::metadata(&file).unwrap().uid());
    }
}

/// Once everything belonged to whoever exported it, without a word.
#[test]
fn other_owners_than_the_imported_ones_are_counted() {
    let place = Place::new();
    place.write("file", "text");
    place.import("file");
    let (_, entry) = place.archive.find("file").unwrap();
    let restored = place.restore("file", &entry, "copy", &RestoreOptions::default());
    assert_eq!((restored.other_owners, restored.problems), (0, vec![]));
    // The owner of the version, by docs/FORMAT-STORES.md: after kind, flags, name and mode.
    let key = [&b"\xffv"[..], &1_u64.to_le_bytes()].concat();
    let mut value = place.archive.store().get(&key).unwrap().unwrap();
    let owner = 1 + 12 + 2 + "file".len() + 2 + 2 + 2;
    let me = fs::metadata(place.path("file")).unwrap().uid();
    assert_eq!(value[owner..owner + 4], me.to_le_bytes());
    value[owner..owner + 4].copy_from_slice(&4242_u32.to_le_bytes());
    place.archive.store().put(&key, &value, Durability::None).unwrap();
    let (_, entry) = place.archive.find("file").unwrap();
    let restored = place.restore("file", &entry, "copy", &RestoreOptions::default());
    assert_eq!((restored.other_owners, restored.problems), (1, vec![]));
    let all = RestoreOptions::default().owners(true);
    assert_eq!(place.restore("file", &entry, "copy", &all).other_owners, 0, "not silent either");
}
