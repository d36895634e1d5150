//! Trees: what goes in comes out, older versions stay, and what is not kept is told.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use koel_store::Durability;
use koel_store::content::{
    Archive, ArchiveError, Chunking, Entry, Kind, RestoreOptions, RestoreReport, Selection, Target,
    TreeOptions, TreeReport,
};
use testkit::storage::{Failure, Fault, FaultyFolder, MemoryFolder, Random};
use testkit::trees::{create_random, snapshot};

use crate::archive::{archive, names, options};
use crate::trial::{count, first_seed, report};

pub(crate) fn import(archive: &Archive, name: &str, path: &Path) -> TreeReport {
    archive.import_tree(name, path, &TreeOptions::default(), &mut |_| ()).unwrap()
}

/// Restores everything in an entry.
pub(crate) fn restore(archive: &Archive, name: &str, entry: &Entry, to: &Path) -> RestoreReport {
    let options = RestoreOptions::default();
    let all = &mut |_: &[u8], _: &Entry| Selection::Take;
    archive.restore(name, entry, Target::Path(to), &options, all, &mut |_| ()).unwrap()
}

pub(crate) fn restore_newest(archive: &Archive, name: &str, to: &Path) -> RestoreReport {
    let (_, entry) = archive.find(name).unwrap();
    restore(archive, name, &entry, to)
}

#[test]
fn every_tree_comes_back_with_links_modes_and_times() {
    let runs = count(30, 2_000);
    for seed in (first_seed()..).take(usize::try_from(runs).unwrap()) {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(seed);
        let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
        let entries = random.below(60);
        create_random(&mut random, &tree, entries).unwrap();
        let expected = snapshot(&tree).unwrap();
        let archive = archive();
        let imported = import(&archive, "name", &tree);
        assert_eq!(imported.problems, [], "seed {seed}");
        assert_eq!(
            imported.files + imported.folders + imported.links,
            expected.len() as u64,
            "seed {seed}"
        );
        // Once more over the first copy: every file is replaced. The time of the folder itself was
        // then that of the export.
        for _ in 0..2 {
            let restored = restore_newest(&archive, "name", &copy);
            assert_eq!(restored.problems, [], "seed {seed}");
            let found = snapshot(&copy).unwrap();
            let difference = expected.iter().zip(&found).find(|(one, other)| one != other);
            assert_eq!((difference, found.len()), (None, expected.len()), "seed {seed}");
        }
        assert_eq!(archive.verify(|_| ()).unwrap().broken, [], "seed {seed}");
        assert_eq!(archive.collect(|_| ()).unwrap().dropped, 0, "seed {seed}");
    }
    report("trees", &format!("{runs} trees: equal"));
}

#[test]
fn unchanged_files_are_not_read_and_unchanged_folders_take_no_space() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    for number in 0..200 {
        fs::write(tree.join(format!("sub/{number}")), vec![number; 1000]).unwrap();
    }
    // Until a later change is sure to have another time.
    sleep(Duration::from_millis(120));
    let archive = archive();
    import(&archive, "tree", &tree);
    let before = archive.store().stats().log_bytes;
    let mut read = 0;
    let options = TreeOptions::default();
    let again = archive.import_tree("tree", &tree, &options, &mut |bytes| read += bytes).unwrap();
    assert_eq!((again.files, again.unchanged, again.new_chunks, read), (200, 200, 0, 0));
    let added = archive.store().stats().log_bytes - before;
    // A sector of zeros is between the version and its spare copy.
    assert!(added < 4096 + 1000, "{added} bytes for an unchanged tree");
    let all =
        archive.import_tree("tree", &tree, &options.read_all(true), &mut |bytes| read += bytes);
    assert_eq!((all.unwrap().unchanged, read), (0, 200_000));
}

/// A program that sets the time of a file back after it changed it.
#[test]
fn a_change_that_keeps_size_and_time_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "before").unwrap();
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    let archive = archive();
    // At once, within one step of the clock of the file system; and later.
    for pause in [0, 120] {
        sleep(Duration::from_millis(pause));
        import(&archive, "file", &file);
        for text in ["after1", "after2"] {
            fs::write(&file, text).unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
            assert_eq!(import(&archive, "file", &file).unchanged, 0);
            let mut out = Vec::new();
            archive.export("file", &mut out).unwrap();
            assert_eq!(out, text.as_bytes());
        }
    }
}

#[test]
fn a_deleted_file_is_gone_from_the_next_version_and_stays_in_the_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("stays"), Random::new(1).bytes(100_000)).unwrap();
    fs::write(tree.join("goes"), Random::new(2).bytes(100_000)).unwrap();
    let archive = archive();
    let old = import(&archive, "tree", &tree).version;
    let before = snapshot(&tree).unwrap();
    fs::remove_file(tree.join("goes")).unwrap();
    import(&archive, "tree", &tree);
    assert_eq!(names(&archive), ["tree"]);
    assert!(matches!(archive.find("tree/goes"), Err(ArchiveError::NoSuchName { .. })));
    let version = archive.version(old).unwrap();
    let restored = restore(&archive, "tree", &version.entry, &folder.path().join("old"));
    assert_eq!(restored.problems, []);
    assert_eq!(snapshot(&folder.path().join("old")).unwrap(), before);
    assert_eq!(archive.collect(|_| ()).unwrap().dropped, 0, "the older version needs all");
    assert_eq!(archive.keep_newest("tree", 1).unwrap(), 1);
    assert!(matches!(archive.version(old), Err(ArchiveError::NoSuchVersion { .. })));
    // The 7 chunks of the file, their list, and the entries of the old folder.
    assert_eq!(archive.collect(|_| ()).unwrap().dropped, 9);
    restore_newest(&archive, "tree", &folder.path().join("new"));
    assert_eq!(snapshot(&folder.path().join("new")).unwrap(), snapshot(&tree).unwrap());
}

#[test]
fn what_is_inside_a_tree_is_removed_from_all_its_versions() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("sub/deep")).unwrap();
    fs::write(tree.join("sub/deep/secret"), Random::new(3).bytes(50_000)).unwrap();
    fs::write(tree.join("sub/other"), "text").unwrap();
    let archive = archive();
    import(&archive, "a/tree", &tree);
    import(&archive, "a/tree", &tree);
    assert!(!archive.remove("a/tree/sub/none").unwrap());
    assert!(!archive.remove("a").unwrap());
    let secret = "a/tree/sub/deep/secret";
    // Once that removed it from every version without a word.
    assert!(matches!(archive.remove(secret), Err(ArchiveError::Inside { .. })));
    assert_eq!(archive.remove_inside("a").unwrap(), 0);
    assert_eq!(archive.remove_inside("a/tree").unwrap(), 0);
    assert_eq!(archive.remove_inside(secret).unwrap(), 2);
    assert_eq!(archive.remove_inside(secret).unwrap(), 0);
    assert!(archive.collect(|_| ()).unwrap().dropped > 4, "its chunks");
    fs::remove_file(tree.join("sub/deep/secret")).unwrap();
    for version in archive.versions().unwrap() {
        let version = version.unwrap();
        let copy = folder.path().join(version.number.to_string());
        assert_eq!(restore(&archive, "a/tree", &version.entry, &copy).problems, []);
        let paths = |path: &Path| snapshot(path).unwrap().into_keys().collect::<Vec<_>>();
        assert_eq!(paths(&copy), paths(&tree));
    }
    assert_eq!(archive.verify(|_| ()).unwrap().broken, []);
}

#[test]
fn what_is_not_kept_is_reported_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "text").unwrap();
    let fifo = tree.join("fifo");
    let mode = rustix::fs::Mode::RUSR;
    let made = rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0);
    made.unwrap();
    let _listener = UnixListener::bind(tree.join("socket")).unwrap();
    let attribute = rustix::fs::setxattr(
        tree.join("file"),
        "user.comment",
        b"text",
        rustix::fs::XattrFlags::empty(),
    );
    let archive = archive();
    // Also if the file is not read: the problem is remembered.
    for pause in [120, 0] {
        sleep(Duration::from_millis(pause));
        let imported = import(&archive, "tree", &tree);
        let problems: Vec<_> = imported
            .problems
            .iter()
            .map(|it| (String::from_utf8_lossy(&it.name).into_owned(), &it.what[..]))
            .filter(|(name, _)| name != "tree/file" || attribute.is_ok())
            .collect();
        let mut expected = vec![("tree/fifo", "a FIFO is not kept")];
        assert_eq!(imported.sockets, [b"tree/socket"]);
        if attribute.is_ok() {
            let what = "its extended attributes or access control list are not kept";
            expected.insert(1, ("tree/file", what));
        }
        let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), *b)).collect();
        assert_eq!(problems, expected);
        assert_eq!((imported.files, imported.folders), (1, 1));
    }
}

#[test]
fn names_inside_one_another_are_refused() {
    let archive = archive();
    let file = |name: &str| archive.import(name, &b"text"[..], Chunking::default()).map(drop);
    file("a/b").unwrap();
    file("a/bc").unwrap();
    for name in ["a", "a/b/c", "a/b/c/d"] {
        assert!(matches!(file(name), Err(ArchiveError::Overlap { .. })), "{name}");
    }
    archive.remove("a/b").unwrap();
    file("a/b/c").unwrap();
    for name in ["..", "a/../b", "/a", "a/", "a//b", "", "a\0"] {
        assert!(matches!(file(name), Err(ArchiveError::BadName { .. })), "{name:?}");
    }
    assert_eq!(names(&archive), ["a/bc", "a/b/c"]);
}

#[test]
fn many_files_take_one_sync() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..300 {
        fs::write(tree.join(number.to_string()), number.to_string()).unwrap();
    }
    let faulty = FaultyFolder::new(MemoryFolder::new(), None);
    let archive = Archive::new(options().open_in(Arc::new(faulty.clone())).unwrap());
    archive.store().put(b"first", b"", Durability::Synced).unwrap();
    faulty.record();
    let options = TreeOptions::default().durability(Durability::None);
    for name in ["one", "two"] {
        archive.import_tree(name, &tree, &options, &mut |_| ()).unwrap();
    }
    archive.store().sync().unwrap();
    let trace = faulty.trace();
    let syncs = trace.iter().filter(|call| call.verb == "sync").count();
    assert_eq!(syncs, 1, "{trace:?}");
}

/// A failing call at every place of an import, and a power failure after it.
#[test]
fn an_interrupted_import_leaves_the_last_version_or_adds_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    let mut random = Random::new(first_seed());
    create_random(&mut random, &tree, 30).unwrap();
    let disk = MemoryFolder::new();
    let small = || options().segment_bytes(1 << 16);
    let archive = Archive::new(small().open_in(Arc::new(disk.clone())).unwrap());
    import(&archive, "tree", &tree);
    let before = snapshot(&tree).unwrap();
    archive.into_store().close().unwrap();
    fs::write(tree.join("new"), random.bytes(100_000)).unwrap();
    let after = snapshot(&tree).unwrap();
    let (mut interrupted, mut calls) = (0, 0);
    for at in 0.. {
        let fault = Fault { at, lasting: true, failure: Failure::Eio };
        let start = disk.crash_clone(100, 0);
        let faulty = FaultyFolder::new(start.clone(), Some(fault));
        if let Ok(store) = small().open_in(Arc::new(faulty.clone())) {
            let archive = Archive::new(store);
            let done = archive.import_tree("tree", &tree, &TreeOptions::default(), &mut |_| ());
            interrupted += u32::from(done.is_err());
        }
        let kept = [0, 50, 100][usize::try_from(at % 3).unwrap()];
        let store = small().open_in(Arc::new(start.crash_clone(kept, at)));
        let archive = Archive::new(store.unwrap());
        let copy = folder.path().join(format!("copy {at}"));
        assert_eq!(restore_newest(&archive, "tree", &copy).problems, [], "call {at}");
        let found = snapshot(&copy).unwrap();
        assert!(found == before || found == after, "call {at}");
        fs::remove_dir_all(copy).unwrap();
        calls += 1;
        if faulty.struck().is_none() {
            break;
        }
    }
    assert!(interrupted > 20, "{interrupted} of {calls}");
}

/// Once such a file had a size that it never had, and nothing but the import said so.
#[test]
fn a_file_that_changes_while_it_is_read_is_read_again_or_marked() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    for changes in [1, 2] {
        fs::write(&file, Random::new(1).bytes(3_000_000)).unwrap();
        let archive = archive();
        // Once in each pass over the file, which a read of nothing ends.
        let (mut left, mut is_due) = (changes, true);
        let progress = &mut |bytes| {
            if bytes > 0 && left > 0 && is_due {
                left -= 1;
                let mut appended = fs::OpenOptions::new().append(true).open(&file).unwrap();
                std::io::Write::write_all(&mut appended, &[7; 1000]).unwrap();
            }
            is_due = bytes == 0;
        };
        let options = TreeOptions::default();
        let imported = archive.import_tree("file", &file, &options, progress).unwrap();
        let (_, entry) = archive.find("file").unwrap();
        let Kind::File(stored) = entry.kind else { panic!("a file") };
        let restored = restore_newest(&archive, "file", &copy);
        let marked = changes == 2;
        assert_eq!(stored.changed_while_read, marked);
        assert_eq!(imported.problems.len(), usize::from(marked));
        assert_eq!(restored.problems.len(), usize::from(marked));
        let verified = archive.verify(|_| ()).unwrap();
        assert_eq!((verified.broken.len(), verified.changed.len()), (0, usize::from(marked)));
        if !marked {
            assert!(fs::read(&copy).unwrap() == fs::read(&file).unwrap());
        }
    }
}

#[test]
fn holes_stay_holes() {
    use std::os::unix::fs::FileExt;

    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    let sparse = fs::File::create(&file).unwrap();
    sparse.set_len(50_000_001).unwrap();
    let data = Random::new(1).bytes(10_000);
    for at in [0, 20_000_003, 49_990_001] {
        sparse.write_all_at(&data, at).unwrap();
    }
    let on_disk = |path: &Path| fs::metadata(path).unwrap().blocks() * 512;
    for chunking in [Chunking::default(), Chunking::ByContent(16 << 10)] {
        let archive = archive();
        let options = TreeOptions::default().chunking(chunking);
        archive.import_tree("file", &file, &options, &mut |_| ()).unwrap();
        restore_newest(&archive, "file", &copy);
        assert!(fs::read(&copy).unwrap() == fs::read(&file).unwrap());
        let (before, after) = (on_disk(&file), on_disk(&copy));
        assert!(after <= before + 100_000, "{after} bytes on disk, {before} before");
    }
    // Zeros that were written stay written.
    fs::write(&file, vec![0; 1_000_000]).unwrap();
    let archive = archive();
    import(&archive, "file", &file);
    restore_newest(&archive, "file", &copy);
    assert_eq!(on_disk(&copy), on_disk(&file));
}

/// Once the chunks of a failed import stayed until the next collection.
#[test]
fn an_abandoned_import_leaves_the_log_as_it_was() {
    let folder = MemoryFolder::new();
    let open = || Archive::new(options().open_in(Arc::new(folder.clone())).unwrap());
    let logs = || -> u64 {
        let files = folder.contents().into_iter();
        files.filter(|(name, _)| name.ends_with(".log")).map(|(_, log)| log.len() as u64).sum()
    };
    let archive = open();
    archive.import("first", &b"first"[..], Chunking::default()).unwrap();
    archive.into_store().close().unwrap();
    let before = logs();
    // Within a segment, and over several.
    for (bytes, most) in [(300_000, before), (5_000_000, before + 5_000_000)] {
        let archive = open();
        archive.import("second", &Random::new(1).bytes(bytes)[..], Chunking::default()).unwrap();
        archive.abandon().unwrap();
        assert!(logs() <= most, "{} bytes", logs());
        let archive = open();
        assert_eq!(names(&archive), ["first"]);
        assert_eq!(archive.verify(|_| ()).unwrap().broken, []);
        assert!(archive.store().verify(|_, _| ()).unwrap().damages.is_empty());
        archive.collect(|_| ()).unwrap();
        archive.import("first", &b"again"[..], Chunking::default()).unwrap();
        archive.into_store().close().unwrap();
    }
}
