//! A store with many segments and few open files, in a folder that counts them: nothing is lost or
//! found twice, whatever is compacted and removed meanwhile. So it is if the system refuses files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use koel_store::content::{Archive, Chunking};
use koel_store::files::Folder;
use koel_store::{CompactionPolicy, Durability, Error, LogOptions, LogStore, LsmOptions, LsmStore};
use testkit::storage::{Call, Hook, Hooked, MemoryFolder, Verdict};

const OPEN: usize = 8;
/// Additional open files: a manifest and a hint being written, and the active segment.
const BESIDES: usize = 3;
const KEYS: u32 = 1500;
/// The error of a system call: too many open files.
const EMFILE: i32 = 24;

/// Counts open files, and refuses more than `limit` if that is not 0.
#[derive(Debug, Default)]
struct Open {
    now: AtomicUsize,
    most: AtomicUsize,
    limit: AtomicUsize,
    refused: AtomicUsize,
}

type Counting = Hooked<MemoryFolder, Open>;

impl Hook for Open {
    fn before(&self, call: &Call) -> Verdict {
        match call.verb {
            "opened" => {
                let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(now, Ordering::Relaxed);
            }
            "closed" => drop(self.now.fetch_sub(1, Ordering::Relaxed)),
            "open" | "create" => {
                let limit = self.limit.load(Ordering::Relaxed);
                if limit > 0 && self.now.load(Ordering::Relaxed) >= limit {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    return Verdict::Fail(io::Error::from_raw_os_error(EMFILE));
                }
            }
            _ => {}
        }
        Verdict::Pass
    }
}

fn counting() -> Counting {
    Hooked::with(MemoryFolder::new(), Open::default())
}

fn open(folder: &Counting) -> LogStore {
    let options = LogOptions::default().segment_bytes(4096).max_open_files(OPEN).seed(1);
    options.background_compaction(false).open_in(Arc::new(folder.clone())).unwrap()
}

fn value(key: u32, round: u8) -> Vec<u8> {
    let len = 500 + usize::try_from(key % 7).unwrap();
    vec![round; len]
}

/// Returns a key of an ordered store: keys are in the order of the numbers.
fn name(key: u32) -> Vec<u8> {
    format!("{key:06}").into_bytes()
}

fn write(store: &LogStore, keys: impl Iterator<Item = u32>, round: u8) {
    for key in keys {
        store.put(&key.to_le_bytes(), &value(key, round), Durability::None).unwrap();
    }
}

/// A store of many segments, all of whose keys were put in round 1.
fn written() -> (Counting, LogStore) {
    let folder = counting();
    let store = open(&folder);
    write(&store, 0..KEYS, 1);
    (folder, store)
}

fn check(store: &LogStore, round: impl Fn(u32) -> u8) {
    // Reads in an order in which neighbours are in different segments.
    for i in 0..KEYS {
        let key = i.wrapping_mul(677) % KEYS;
        let found = store.get(&key.to_le_bytes()).unwrap();
        assert_eq!(found, Some(value(key, round(key))), "{key}");
    }
}

#[test]
fn a_store_of_many_segments_has_few_files_open() {
    let (folder, store) = written();
    assert!(store.stats().segments > 200);
    check(&store, |_| 1);
    store.close().unwrap();
    let store = open(&folder);
    check(&store, |_| 1);
    assert!(store.verify(|_, _| ()).unwrap().damages.is_empty());
    let most = folder.hook().most.load(Ordering::Relaxed);
    assert!((OPEN..=OPEN + BESIDES).contains(&most), "{most}");
    store.close().unwrap();
    assert_eq!(folder.hook().now.load(Ordering::Relaxed), 0);
}

#[test]
fn readers_of_compacted_segments_can_read_to_the_end() {
    let (folder, store) = written();
    let before = store.stats().segments;
    let mut iterator = store.iter();
    let first = iterator.next().unwrap().unwrap();
    write(&store, (0..KEYS).filter(|key| key % 3 > 0), 2);
    assert!(store.compact().unwrap().segments >= before / 2);
    check(&store, |key| if key % 3 > 0 { 2 } else { 1 });
    let mut seen: Vec<u32> = Vec::new();
    for entry in std::iter::once(Ok(first)).chain(iterator) {
        let (key, found) = entry.unwrap();
        let key = u32::from_le_bytes(key.try_into().unwrap());
        assert_eq!(found, value(key, 1));
        seen.push(key);
    }
    assert_eq!(seen, Vec::from_iter(0..KEYS));
    check(&store, |key| if key % 3 > 0 { 2 } else { 1 });
    assert!(folder.hook().now.load(Ordering::Relaxed) <= OPEN + BESIDES, "removed ones are closed");
    let names = folder.list().unwrap();
    let logs = names.iter().filter(|name| name.ends_with(".log")).count();
    assert_eq!(logs as u64, store.stats().segments);
}

/// Once a removed file that had readers stayed open until the last of them was gone.
#[test]
fn readers_of_compacted_segments_keep_few_files_open() {
    let (folder, store) = written();
    let iterator = store.iter();
    let reader = store.get_reader(&0_u32.to_le_bytes()).unwrap().unwrap();
    write(&store, 0..KEYS, 2);
    assert!(store.compact().unwrap().segments > 200);
    let open = folder.hook().now.load(Ordering::Relaxed);
    assert!(open <= OPEN + BESIDES, "{open} files are open");
    assert_eq!(iterator.map(Result::unwrap).filter(|(_, value)| value[0] == 1).count(), 1500);
    let logs = || {
        let names = folder.list().unwrap();
        names.iter().filter(|name| name.ends_with(".log")).count() as u64
    };
    assert_eq!(logs(), store.stats().segments + 1, "the reader has one");
    let segments = store.stats().segments;
    store.close().unwrap();
    assert_eq!(logs(), segments, "a closed store leaves nothing");
    let value = io::read_to_string(reader).unwrap();
    assert!(value.len() >= 500 && value.bytes().all(|byte| byte == 1));
    assert_eq!(folder.hook().now.load(Ordering::Relaxed), 0);
}

/// The most files that [`refusing`] allows: those that a store needs, and two more.
const SCARCE: usize = 7;

/// A folder where files beyond a few are refused.
fn refusing() -> Counting {
    let folder = counting();
    folder.hook().limit.store(SCARCE, Ordering::Relaxed);
    folder
}

fn assert_refused(folder: &Counting) {
    assert!(folder.hook().refused.load(Ordering::Relaxed) > 100, "few files were refused");
}

/// Once a put failed as soon as the system had no more descriptors.
#[test]
fn a_log_store_goes_on_when_files_are_refused() {
    let folder = refusing();
    let options = LogOptions::default().segment_bytes(4096).seed(1).background_compaction(false);
    let open = || options.clone().open_in(Arc::new(folder.clone())).unwrap();
    let store = open();
    write(&store, 0..KEYS, 1);
    check(&store, |_| 1);
    let iterator = store.iter();
    write(&store, (0..KEYS).filter(|key| key % 3 > 0), 2);
    store.compact().unwrap();
    assert_eq!(iterator.map(Result::unwrap).count(), 1500);
    assert!(store.verify(|_, _| ()).unwrap().damages.is_empty());
    store.close().unwrap();
    check(&open(), |key| if key % 3 > 0 { 2 } else { 1 });
    assert_refused(&folder);
}

#[test]
fn an_ordered_store_goes_on_when_files_are_refused() {
    let folder = refusing();
    let options = LsmOptions::default().memtable_bytes(16 << 10).background(false).seed(1);
    let options = options.policy(CompactionPolicy::Tiered).ratio(32).cache_bytes(0);
    let open = || options.clone().open_in(Arc::new(folder.clone())).unwrap();
    let store = open();
    let put = |key: u32, round| {
        store.put(&name(key), &value(key, round), Durability::None).unwrap();
    };
    (0..3 * KEYS).for_each(|key| put(key % KEYS, u8::try_from(key / KEYS).unwrap()));
    let all = |store: &LsmStore| {
        let found: Vec<_> = store.iter().unwrap().map(Result::unwrap).collect();
        let expected = (0..KEYS).map(|key| (name(key), value(key, 2)));
        assert!(expected.eq(found));
    };
    all(&store);
    assert!(store.stats().runs.len() > 2 * SCARCE, "{} runs", store.stats().runs.len());
    store.compact().unwrap();
    all(&store);
    assert!(store.verify(|_, _| ()).unwrap().damages.is_empty());
    store.close().unwrap();
    all(&open());
    assert_refused(&folder);
}

#[test]
fn an_archive_goes_on_when_files_are_refused() {
    let folder = refusing();
    let options = LogOptions::default().segment_bytes(16 << 10).seed(1);
    let open = || Archive::new(options.clone().open_in(Arc::new(folder.clone())).unwrap());
    let bytes = testkit::storage::Random::new(1).bytes(2 << 20);
    let archive = open();
    archive.import("name", &bytes[..], Chunking::Fixed(4096)).unwrap();
    let export = |archive: &Archive| {
        let mut found = Vec::new();
        archive.export("name", &mut found).unwrap();
        assert!(found == bytes);
    };
    export(&archive);
    archive.into_store().close().unwrap();
    export(&open());
    assert_refused(&folder);
}

/// The pools of a process give way to each other.
#[test]
fn two_stores_share_the_files_that_are_there() {
    let folder = refusing();
    let stores: Vec<_> = (0..2)
        .map(|_| {
            // Both count in one hook.
            let own = Hooked::with(MemoryFolder::new(), Shared(folder.clone()));
            let options = LogOptions::default().segment_bytes(4096).seed(1);
            options.background_compaction(false).open_in(Arc::new(own)).unwrap()
        })
        .collect();
    for part in 0..10 {
        let keys = || part * KEYS / 10..(part + 1) * KEYS / 10;
        stores.iter().for_each(|store| write(store, keys(), 1));
    }
    stores.iter().for_each(|store| check(store, |_| 1));
    assert_refused(&folder);
}

/// Counts in the hook of another folder.
struct Shared(Counting);

impl Hook for Shared {
    fn before(&self, call: &Call) -> Verdict {
        self.0.hook().before(call)
    }
}

#[cfg(unix)]
mod limited {
    //! A process whose limit is real. The test runs itself as the child.

    use std::env;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use koel_store::content::{RestoreOptions, Selection, Target, TreeOptions};

    use super::*;

    const FOLDER: &str = "KOEL_DESCRIPTORS_FOLDER";
    /// What the child may have open, its three streams included.
    const LIMIT: &str = "24";

    /// The child: stores with their default limits, all open at once. Does nothing in an ordinary
    /// run.
    #[test]
    fn child() {
        let Ok(folder) = env::var(FOLDER) else { return };
        let folder = Path::new(&folder);
        let log = LogOptions::default().segment_bytes(4096).open(folder.join("log")).unwrap();
        write(&log, 0..KEYS, 1);
        write(&log, 0..KEYS, 2);
        let ordered = LsmOptions::default().memtable_bytes(16 << 10).ratio(32).cache_bytes(0);
        let ordered = ordered.policy(CompactionPolicy::Tiered).open(folder.join("lsm")).unwrap();
        for key in 0..KEYS {
            ordered.put(&name(key), &value(key, 1), Durability::None).unwrap();
        }
        check(&log, |_| 2);
        assert!(log.compact().is_ok());
        ordered.compact().unwrap();
        for key in 0..KEYS {
            assert_eq!(ordered.get(&name(key)).unwrap(), Some(value(key, 1)));
        }
        ordered.close().unwrap();
        archive(folder);
        check(&log, |_| 2);
        assert_eq!(log.stats().compaction_failed, None);
        log.close().unwrap();
    }

    /// A tree of folders in each other is imported and restored.
    fn archive(folder: &Path) {
        let options = LogOptions::default().segment_bytes(16 << 10);
        let store = options.open(folder.join("archive")).unwrap();
        let archive = Archive::new(store);
        let tree = folder.join("tree");
        let deepest = tree.join("a/b");
        fs::create_dir_all(&deepest).unwrap();
        for file in 0..100 {
            fs::write(deepest.join(file.to_string()), vec![file; 3000]).unwrap();
        }
        let options = TreeOptions::default();
        let report = archive.import_tree("tree", &tree, &options, &mut |_| ()).unwrap();
        assert_eq!(report.problems, []);
        let (_, entry) = archive.find("tree").unwrap();
        let copy = folder.join("copy");
        let (target, options) = (Target::Path(&copy), RestoreOptions::default());
        let all = &mut |_: &[u8], _: &_| Selection::Take;
        archive.restore("tree", &entry, target, &options, all, &mut |_| ()).unwrap();
        for file in 0..100 {
            let copied = fs::read(copy.join("a/b").join(file.to_string())).unwrap();
            assert_eq!(copied, vec![file; 3000]);
        }
        archive.into_store().close().unwrap();
    }

    #[test]
    fn stores_adapt_to_the_limit_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let run = Command::new("sh")
            .args(["-c", &format!("ulimit -n {LIMIT} && exec \"$0\" \"$@\"")])
            .arg(env::current_exe().unwrap())
            .args(["--exact", "descriptors::limited::child", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        assert!(folder.path().join("copy/a/b/99").exists(), "the child did not run");
    }
}

/// Once a compaction reopened each file of its run to remove it, and kept all of them open.
#[test]
fn a_compaction_of_many_segments_has_few_files_open() {
    let (folder, store) = written();
    write(&store, 0..KEYS, 2);
    folder.hook().most.store(0, Ordering::Relaxed);
    assert!(store.compact().unwrap().segments > 200);
    let most = folder.hook().most.load(Ordering::Relaxed);
    assert!(most <= OPEN + BESIDES, "{most}");
    check(&store, |_| 2);
}

/// Once a table that was merged while a range read it stayed open as long as the range.
#[test]
fn ranges_over_merged_tables_have_few_files_open() {
    let folder = counting();
    let options = LsmOptions::default().memtable_bytes(1 << 20).background(false).cache_bytes(0);
    let options = options.policy(CompactionPolicy::Tiered).ratio(32).max_open_files(OPEN).seed(1);
    let store = options.open_in(Arc::new(folder.clone())).unwrap();
    let mut ranges = Vec::new();
    for round in 0..5 {
        for table in 0..10 {
            for key in (table..KEYS).step_by(10) {
                store.put(&name(key), &value(key, round), Durability::None).unwrap();
            }
            store.flush().unwrap();
        }
        ranges.push((round, store.iter().unwrap()));
        store.compact().unwrap();
    }
    let tables = || {
        let names = folder.list().unwrap();
        names.iter().filter(|name| name.ends_with(".table")).count()
    };
    assert!(tables() > 40, "the ranges need them: {}", tables());
    for (round, range) in ranges {
        let found: Vec<_> = range.map(Result::unwrap).collect();
        let expected = (0..KEYS).map(|key| (name(key), value(key, round)));
        assert!(expected.eq(found), "the state of round {round}");
        let open = folder.hook().now.load(Ordering::Relaxed);
        assert!(open <= OPEN + BESIDES, "{open} files are open");
    }
    assert_eq!(tables(), 1, "nobody reads them any more");
}

#[test]
fn threads_that_open_and_close_each_others_files_read_the_written_values() {
    let (_, store) = written();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..3).for_each(|_| check(&store, |_| 1)));
        }
        scope.spawn(|| {
            write(&store, KEYS..2 * KEYS, 3);
            write(&store, KEYS..2 * KEYS, 4);
            store.compact().unwrap();
        });
    });
    check(&store, |_| 1);
}

#[cfg(unix)]
#[test]
fn the_error_of_too_many_open_files_names_the_limit() {
    let text = |code| {
        let error = std::io::Error::from_raw_os_error(code);
        Error::Io { action: "open", file: "1.log".to_owned(), error }.to_string()
    };
    assert!(text(24).contains("ulimit -n") && !text(24).contains("disk"), "{}", text(24));
    assert!(text(28).contains("disk"), "{}", text(28));
}
