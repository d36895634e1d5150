//! Restored trees: what is selected, what is in the way, and what is left alone.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};

use koel_store::LogOptions;
use koel_store::content::{Archive, Entry, RestoreOptions, Selection, Target, TreeOptions};
use testkit::trees::snapshot;

use crate::archive::archive;
use crate::tree::{import, restore_newest};

#[test]
fn entries_are_selected_and_their_folders_created() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    fs::create_dir_all(tree.join("empty")).unwrap();
    for name in ["a/b/take", "a/leave", "leave"] {
        fs::write(tree.join(name), name).unwrap();
    }
    let archive = archive();
    import(&archive, "tree", &tree);
    let (_, entry) = archive.find("tree").unwrap();
    let copy = folder.path().join("copy");
    let select = &mut |path: &[u8], _: &Entry| match path {
        b"tree/a/b/take" => Selection::Take,
        _ => Selection::Search,
    };
    let options = RestoreOptions::default();
    let target = Target::Below(&copy);
    let restored = archive.restore("tree", &entry, target, &options, select, &mut |_| ()).unwrap();
    assert_eq!((restored.files, restored.folders, restored.problems.len()), (1, 3, 0));
    let found: Vec<_> = snapshot(&copy).unwrap().into_keys().collect();
    let expected = ["", "tree", "tree/a", "tree/a/b", "tree/a/b/take"];
    assert_eq!(found, expected.map(|path| path.as_bytes().to_vec()));
}

/// The folder of the store may be inside the tree, and the tree is restored around it.
#[test]
fn the_folder_of_the_store_is_left_out_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("db");
    let archive = Archive::new(LogOptions::default().open(&db).unwrap());
    fs::write(folder.path().join("file"), "text").unwrap();
    let options = TreeOptions::default().skip(&db);
    let imported = archive.import_tree("tree", folder.path(), &options, &mut |_| ()).unwrap();
    assert_eq!((imported.files, imported.folders), (1, 1));
    // A tree with a folder of that name.
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("db")).unwrap();
    fs::write(other.path().join("db/MANIFEST"), "not one").unwrap();
    import(&archive, "other", other.path());
    let (_, entry) = archive.find("other").unwrap();
    let options = RestoreOptions::default().skip(&db);
    let target = Target::Path(folder.path());
    let all = &mut |_: &[u8], _: &Entry| Selection::Take;
    let restored = archive.restore("other", &entry, target, &options, all, &mut |_| ()).unwrap();
    assert_eq!(restored.problems.len(), 1, "{restored:?}");
    archive.into_store().close().unwrap();
    LogOptions::default().open(&db).unwrap();
}

#[test]
fn files_and_links_that_are_in_the_way_are_replaced_and_never_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("file"), "new").unwrap();
    fs::write(tree.join("sub/file"), "new").unwrap();
    symlink("file", tree.join("link")).unwrap();
    let archive = archive();
    import(&archive, "tree", &tree);
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "precious").unwrap();
    let before = snapshot(&outside).unwrap();
    fs::create_dir(&copy).unwrap();
    symlink(outside.join("file"), copy.join("file")).unwrap();
    symlink(&outside, copy.join("sub")).unwrap();
    symlink(&outside, copy.join("link")).unwrap();
    let restored = restore_newest(&archive, "tree", &copy);
    assert_eq!(snapshot(&outside).unwrap(), before);
    assert_eq!(fs::read(copy.join("file")).unwrap(), b"new");
    assert_eq!(fs::read_link(copy.join("link")).unwrap().as_os_str().as_bytes(), b"file");
    assert_eq!(restored.problems.len(), 1, "the folder: {restored:?}");
    assert_eq!(restored.problems[0].name, b"tree/sub");
    let names: Vec<_> = snapshot(&copy).unwrap().into_keys().collect();
    assert!(names.iter().all(|name| !name.starts_with(b".koel")), "{names:?}");
}

/// Regression: a file `.koel-PROCESS-NUMBER` stayed for ever.
#[test]
fn what_a_killed_restoration_left_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("sub/file"), "text").unwrap();
    let archive = archive();
    import(&archive, "tree", &tree);
    fs::create_dir_all(copy.join("sub")).unwrap();
    let mut process = std::process::Command::new("true").spawn().unwrap();
    process.wait().unwrap();
    let left = format!(".koel-{}-1", process.id());
    let running = format!(".koel-{}-x", std::process::id());
    for place in [copy.join("sub"), copy.clone()] {
        fs::write(place.join(&left), "half").unwrap();
        fs::write(place.join(&running), "half").unwrap();
    }
    restore_newest(&archive, "tree", &copy);
    for place in [copy.join("sub"), copy.clone()] {
        assert!(!place.join(&left).exists() && place.join(&running).exists());
    }
    assert_eq!(fs::read(copy.join("sub/file")).unwrap(), b"text");
    fs::write(copy.join(&left), "half").unwrap();
    archive.export_file("tree/sub/file", &copy.join("single")).unwrap();
    assert!(!copy.join(&left).exists() && copy.join(&running).exists());
}

/// A file with the right of its owner must not get another owner, who would give that right away.
#[test]
fn set_user_id_is_restored_only_with_the_owner() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    fs::write(&file, "text").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o6755)).unwrap();
    let archive = archive();
    import(&archive, "file", &file);
    let (_, entry) = archive.find("file").unwrap();
    for (owners, mode) in [(false, 0o755), (true, 0o6755)] {
        let options = RestoreOptions::default().owners(owners);
        let all = &mut |_: &[u8], _: &Entry| Selection::Take;
        let target = Target::Path(&copy);
        let restored = archive.restore("file", &entry, target, &options, all, &mut |_| ()).unwrap();
        assert_eq!(restored.problems.len(), usize::from(!owners), "what is dropped is said");
        let status = fs::metadata(&copy).unwrap();
        assert_eq!(status.mode() & 0o7777, mode);
        assert_eq!(status.uid(), fs::metadata(&file).unwrap().uid());
    }
}
