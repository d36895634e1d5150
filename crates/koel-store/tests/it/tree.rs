//! Trees: what goes in comes out, older versions stay, and what is not kept is told.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use koel_store::Durability;
use koel_store::content::{
    Archive, ArchiveError, Chunking, Entry, Kind, RestoreOptions, RestoreReport, Selection, Target,
    TreeOptions, TreeReport,
};
use testkit::storage::{Failure, Fault, FaultyFolder, MemoryFolder, Random};
use testkit::trees::{Snapshot, create_random, snapshot};

use crate::archive::{archive, export, names, options};
use crate::trial::{count, first_seed, report};

/// An archive, and a folder to import from and to restore to.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) archive: Archive,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), archive: archive() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and creates the folders that it is in.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn snapshot(&self, name: &str) -> Snapshot {
        snapshot(&self.path(name)).unwrap()
    }

    /// Imports what is at this path, under its name.
    pub(crate) fn import(&self, name: &str) -> TreeReport {
        let options = TreeOptions::default();
        self.archive.import_tree(name, &self.path(name), &options, &mut |_| ()).unwrap()
    }

    /// Restores everything in an entry.
    pub(crate) fn restore(
        &self,
        name: &str,
        entry: &Entry,
        to: &str,
        options: &RestoreOptions,
    ) -> RestoreReport {
        let (to, all) = (self.path(to), &mut |_: &[u8], _: &Entry| Selection::Take);
        self.archive.restore(name, entry, Target::Path(&to), options, all, &mut |_| ()).unwrap()
    }

    /// Restores the newest version.
    pub(crate) fn restore_newest(&self, name: &str, to: &str) -> RestoreReport {
        let (_, entry) = self.archive.find(name).unwrap();
        self.restore(name, &entry, to, &RestoreOptions::default())
    }
}

#[test]
fn every_tree_comes_back_with_links_modes_and_times() {
    let runs = count(30, 2_000);
    for seed in (first_seed()..).take(usize::try_from(runs).unwrap()) {
        let (place, mut random) = (Place::new(), Random::new(seed));
        let entries = random.below(60);
        create_random(&mut random, &place.path("tree"), entries).unwrap();
        let expected = place.snapshot("tree");
        let imported = place.import("tree");
        assert_eq!(imported.problems, [], "seed {seed}");
        let all = imported.files + imported.folders + imported.links;
        assert_eq!(all, expected.len() as u64, "seed {seed}");
        // Once more over the first copy: every file is replaced. The time of the folder itself was
        // then that of the export.
        for _ in 0..2 {
            assert_eq!(place.restore_newest("tree", "copy").problems, [], "seed {seed}");
            let found = place.snapshot("copy");
            let difference = expected.iter().zip(&found).find(|(one, other)| one != other);
            assert_eq!((difference, found.len()), (None, expected.len()), "seed {seed}");
        }
        assert_eq!(place.archive.verify(|_| ()).unwrap().broken, [], "seed {seed}");
        assert_eq!(place.archive.collect(|_| ()).unwrap().dropped, 0, "seed {seed}");
    }
    report("trees", &format!("{runs} trees: equal"));
}

#[test]
fn unchanged_files_are_not_read_and_unchanged_folders_take_no_space() {
    let place = Place::new();
    let (archive, tree) = (&place.archive, place.path("tree"));
    for number in 0..200 {
        place.write(&format!("tree/sub/{number}"), vec![number; 1000]);
    }
    // Until a later change is sure to have another time.
    sleep(Duration::from_millis(120));
    place.import("tree");
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
    let place = Place::new();
    let file = place.path("file");
    place.write("file", "before");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    // At once, within one step of the clock of the file system; and later.
    for pause in [0, 120] {
        sleep(Duration::from_millis(pause));
        place.import("file");
        for text in ["after1", "after2"] {
            fs::write(&file, text).unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
            assert_eq!(place.import("file").unchanged, 0);
            assert_eq!(export(&place.archive, "file"), text.as_bytes());
        }
    }
}

#[test]
fn a_deleted_file_is_gone_from_the_next_version_and_stays_in_the_older_one() {
    let place = Place::new();
    let archive = &place.archive;
    place.write("tree/stays", Random::new(1).bytes(100_000));
    place.write("tree/goes", Random::new(2).bytes(100_000));
    let old = place.import("tree").version;
    let before = place.snapshot("tree");
    fs::remove_file(place.path("tree/goes")).unwrap();
    place.import("tree");
    assert_eq!(names(archive), ["tree"]);
    assert!(matches!(archive.find("tree/goes"), Err(ArchiveError::NoSuchName { .. })));
    let version = archive.version(old).unwrap();
    let restored = place.restore("tree", &version.entry, "old", &RestoreOptions::default());
    assert_eq!(restored.problems, []);
    assert_eq!(place.snapshot("old"), before);
    assert_eq!(archive.collect(|_| ()).unwrap().dropped, 0, "the older version needs all");
    assert_eq!(archive.keep_newest("tree", 1).unwrap(), 1);
    assert!(matches!(archive.version(old), Err(ArchiveError::NoSuchVersion { .. })));
    // The 7 chunks of the file, their list, and the entries of the old folder.
    assert_eq!(archive.collect(|_| ()).unwrap().dropped, 9);
    place.restore_newest("tree", "new");
    assert_eq!(place.snapshot("new"), place.snapshot("tree"));
}

#[test]
fn what_is_inside_a_tree_is_removed_from_all_its_versions() {
    let place = Place::new();
    let archive = &place.archive;
    place.write("a/tree/sub/deep/secret", Random::new(3).bytes(50_000));
    place.write("a/tree/sub/other", "text");
    place.import("a/tree");
    place.import("a/tree");
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
    fs::remove_file(place.path(secret)).unwrap();
    for version in archive.versions().unwrap() {
        let version = version.unwrap();
        let (copy, options) = (version.number.to_string(), RestoreOptions::default());
        assert_eq!(place.restore("a/tree", &version.entry, &copy, &options).problems, []);
        assert!(place.snapshot(&copy).keys().eq(place.snapshot("a/tree").keys()));
    }
    assert_eq!(archive.verify(|_| ()).unwrap().broken, []);
}

#[test]
fn what_is_not_kept_is_reported_by_name() {
    use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};

    let place = Place::new();
    place.write("tree/file", "text");
    mknodat(CWD, place.path("tree/fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _listener = UnixListener::bind(place.path("tree/socket")).unwrap();
    let file = place.path("tree/file");
    let attribute = setxattr(file, "user.comment", b"text", XattrFlags::empty());
    // Also if the file is not read: the problem is remembered.
    for pause in [120, 0] {
        sleep(Duration::from_millis(pause));
        let imported = place.import("tree");
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
    let place = Place::new();
    for number in 0..300 {
        place.write(&format!("tree/{number}"), number.to_string());
    }
    let faulty = FaultyFolder::new(MemoryFolder::new(), None);
    let archive = Archive::new(options().open_in(Arc::new(faulty.clone())).unwrap());
    archive.store().put(b"first", b"", Durability::Synced).unwrap();
    faulty.record();
    let options = TreeOptions::default().durability(Durability::None);
    for name in ["one", "two"] {
        archive.import_tree(name, &place.path("tree"), &options, &mut |_| ()).unwrap();
    }
    archive.store().sync().unwrap();
    let trace = faulty.trace();
    let syncs = trace.iter().filter(|call| call.verb == "sync").count();
    assert_eq!(syncs, 1, "{trace:?}");
}

/// A failing call at every place of an import, and a power failure after it.
#[test]
fn an_interrupted_import_leaves_the_last_version_or_adds_the_new_one() {
    let (mut place, mut random) = (Place::new(), Random::new(first_seed()));
    let tree = place.path("tree");
    create_random(&mut random, &tree, 30).unwrap();
    let disk = MemoryFolder::new();
    let small = || options().segment_bytes(1 << 16);
    let archive = Archive::new(small().open_in(Arc::new(disk.clone())).unwrap());
    archive.import_tree("tree", &tree, &TreeOptions::default(), &mut |_| ()).unwrap();
    let before = place.snapshot("tree");
    archive.into_store().close().unwrap();
    place.write("tree/new", random.bytes(100_000));
    let after = place.snapshot("tree");
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
        place.archive = Archive::new(store.unwrap());
        assert_eq!(place.restore_newest("tree", "copy").problems, [], "call {at}");
        let found = place.snapshot("copy");
        assert!(found == before || found == after, "call {at}");
        fs::remove_dir_all(place.path("copy")).unwrap();
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
    for changes in [1, 2] {
        let place = Place::new();
        let (archive, file) = (&place.archive, place.path("file"));
        place.write("file", Random::new(1).bytes(3_000_000));
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
        let restored = place.restore_newest("file", "copy");
        let marked = changes == 2;
        assert_eq!(stored.changed_while_read, marked);
        assert_eq!(imported.problems.len(), usize::from(marked));
        assert_eq!(restored.problems.len(), usize::from(marked));
        let verified = archive.verify(|_| ()).unwrap();
        assert_eq!((verified.broken.len(), verified.changed.len()), (0, usize::from(marked)));
        if !marked {
            assert!(fs::read(place.path("copy")).unwrap() == fs::read(&file).unwrap());
        }
    }
}

#[test]
fn holes_stay_holes() {
    use std::os::unix::fs::FileExt;

    let mut place = Place::new();
    let (file, copy) = (place.path("file"), place.path("copy"));
    let sparse = fs::File::create(&file).unwrap();
    sparse.set_len(50_000_001).unwrap();
    let data = Random::new(1).bytes(10_000);
    for at in [0, 20_000_003, 49_990_001] {
        sparse.write_all_at(&data, at).unwrap();
    }
    let on_disk = |path: &Path| fs::metadata(path).unwrap().blocks() * 512;
    for chunking in [Chunking::default(), Chunking::ByContent(16 << 10)] {
        place.archive = archive();
        let options = TreeOptions::default().chunking(chunking);
        place.archive.import_tree("file", &file, &options, &mut |_| ()).unwrap();
        place.restore_newest("file", "copy");
        assert!(fs::read(&copy).unwrap() == fs::read(&file).unwrap());
        let (before, after) = (on_disk(&file), on_disk(&copy));
        assert!(after <= before + 100_000, "{after} bytes on disk, {before} before");
    }
    // Zeros that were written stay written.
    place.write("file", vec![0; 1_000_000]);
    place.import("file");
    place.restore_newest("file", "copy");
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
