//! The bytes of a store do not control memory use: sparse files and wrong lengths under valid
//! checksums are refused first. The sizes of reads show how much memory is used.

use std::path::Path;
use std::sync::Arc;

use koel_store::content::{Archive, ArchiveError, Chunking};
use koel_store::{Batch, DiskFolder, Durability, Error, LogOptions, LogStore};
use tempfile::TempDir;
use testkit::storage::FaultyFolder;
use testkit::stores::manifest;
use xxhash_rust::xxh3::xxh3_64;

const SEGMENT: u64 = 16 << 30;
const SALT: u64 = 7;
const MIB: usize = 1 << 20;

/// Opens a store. Returns the greatest number of bytes that a read asked for, and the sum of all
/// reads.
fn open(path: &Path, options: LogOptions) -> (Result<LogStore, Error>, usize, usize) {
    let folder = FaultyFolder::new(DiskFolder::new(path).unwrap(), None);
    folder.record();
    let store = options.background_compaction(false).open_in(Arc::new(folder.clone()));
    let reads = folder.trace().into_iter().filter(|call| call.verb == "read");
    let sizes: Vec<usize> = reads.map(|call| call.bytes).collect();
    (store, sizes.iter().copied().max().unwrap_or(0), sizes.iter().sum())
}

/// Appends the checksum of `bytes` and writes a file, which is then extended to `len` with a hole.
fn write_sparse(path: &Path, mut bytes: Vec<u8>, len: u64) {
    let checksum = xxh3_64(&bytes);
    bytes.extend(checksum.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

/// The start of a file: magic, version 1, and numbers.
fn header(magic: &[u8; 8], numbers: &[u64]) -> Vec<u8> {
    let words = numbers.iter().flat_map(|number| number.to_le_bytes());
    let mut bytes = magic.to_vec();
    bytes.extend(1_u64.to_le_bytes().into_iter().chain(words));
    bytes
}

/// A store of sparse segments of 16 GiB, whose manifest says that it has 2^64 - 1 keys.
pub(crate) fn sparse_store(path: &Path, segments: u64, is_closed: bool) {
    let end = if is_closed { SEGMENT } else { 40 };
    let store = vec![is_closed.into(), 3, 1 << 40, segments + 1, SEGMENT, u64::MAX];
    let mut records = vec![("store", store)];
    for number in 1..=segments {
        records.push(("log", vec![number, end, 0]));
        let log = path.join(format!("{number:016x}.log"));
        write_sparse(&log, header(b"koellog\n", &[SALT, number]), SEGMENT);
    }
    std::fs::write(path.join("MANIFEST"), manifest(b"koelman\n", SALT, &records)).unwrap();
}

/// A folder with a closed one.
fn sparse(segments: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    sparse_store(folder.path(), segments, true);
    folder
}

/// The index once made room for all keys in the manifest that sparse segments could hold.
#[test]
fn sparse_segments_and_a_large_number_of_keys_are_refused_without_taking_memory() {
    let folder = sparse(100);
    let (refused, greatest, sum) = open(folder.path(), LogOptions::default());
    assert!(matches!(refused, Err(Error::Damaged { offset: 40, .. })), "{refused:?}");
    assert!(greatest <= MIB && sum < 2 * MIB, "{greatest}, {sum} bytes read");
}

/// A hint was once read as a whole, up to 12 GiB, before any of it was checked.
#[test]
fn a_sparse_hint_is_ignored_before_it_is_in_memory() {
    let folder = sparse(1);
    let numbers = [SALT, 1, SEGMENT, 5];
    let hint = folder.path().join("0000000000000001.hint");
    write_sparse(&hint, header(b"koelhnt\n", &numbers), 12 << 30);
    let (refused, greatest, sum) = open(folder.path(), LogOptions::default());
    assert!(matches!(refused, Err(Error::Damaged { offset: 40, .. })), "{refused:?}");
    assert!(greatest <= MIB && sum < 8 * MIB, "{greatest}, {sum} bytes read");
}

/// The length of a key was once believed before the checksum was known to match.
#[test]
fn a_record_with_a_long_key_is_checked_before_it_is_in_memory() {
    let folder = sparse(1);
    let path = folder.path().join("0000000000000001.log");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    // A value with wide lengths, sequence number 1, and a key of 200 MiB.
    let meta = 1_u64 << 8 | 0x40 | 1;
    std::os::unix::fs::FileExt::write_all_at(&file, &meta.to_le_bytes(), 48).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &(200_u64 << 20).to_le_bytes(), 56).unwrap();
    let (refused, greatest, sum) = open(folder.path(), LogOptions::default());
    assert!(matches!(refused, Err(Error::Damaged { offset: 40, .. })), "{refused:?}");
    assert!(greatest <= MIB && sum > 200 * MIB, "{greatest}, {sum} bytes read");
}

#[test]
fn a_damaged_record_with_a_long_key_is_an_error_of_its_get_and_takes_no_memory() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = FaultyFolder::new(DiskFolder::new(temporary.path()).unwrap(), None);
    let store = LogOptions::default().seed(1).open_in(Arc::new(folder.clone())).unwrap();
    let key = vec![b'k'; 5 * MIB];
    store.put(&key, b"value", Durability::Synced).unwrap();
    assert_eq!(store.get(&key).unwrap().as_deref(), Some(&b"value"[..]));
    let path = temporary.path().join("0000000000000001.log");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"K", 4 << 20).unwrap();
    folder.record();
    let damaged = store.get(&key);
    assert!(matches!(damaged, Err(Error::Damaged { offset: 40, .. })), "{damaged:?}");
    let reads = folder.trace();
    assert!(reads.iter().all(|call| call.bytes <= MIB), "{reads:?}");
}

#[test]
fn more_expected_keys_than_memory_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (refused, ..) = open(folder.path(), LogOptions::default().expected_keys(u64::MAX));
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    assert!(open(folder.path(), LogOptions::default()).0.is_ok());
}

/// Room that the manifest asks for is made if the hints have as many records.
#[test]
fn the_index_makes_room_for_the_keys_in_hints() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), LogOptions::default()).0.unwrap();
    let mut batch = Batch::new();
    for key in 0..1_000_000_u64 {
        batch.put(&key.to_le_bytes(), b"").unwrap();
    }
    store.write(&batch, Durability::None).unwrap();
    let grown = store.stats().index_bytes;
    store.close().unwrap();
    let sized = open(folder.path(), LogOptions::default().expected_keys(1_000_000)).0.unwrap();
    let bytes = sized.stats().index_bytes;
    sized.close().unwrap();
    assert_ne!(bytes, grown);
    let reopened = open(folder.path(), LogOptions::default()).0.unwrap();
    assert_eq!((reopened.stats().index_bytes, reopened.stats().keys), (bytes, 1_000_000));
}

/// From some hundred thousand keys on: an index begins with a megabyte.
#[test]
fn an_index_takes_nine_bytes_a_key() {
    const PART: u64 = 250_000;
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), LogOptions::default()).0.unwrap();
    for part in 1..=4 {
        let mut batch = Batch::new();
        for key in (part - 1) * PART..part * PART {
            batch.put(&key.to_le_bytes(), b"").unwrap();
        }
        store.write(&batch, Durability::None).unwrap();
        let bytes = store.stats().index_bytes as f64 / (part * PART) as f64;
        assert!((8.5..9.5).contains(&bytes), "{bytes} bytes a key of {}", part * PART);
    }
}

/// The next number was once increased without a check.
#[test]
fn an_archive_without_a_free_number_refuses_new_names() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::new(LogStore::open(folder.path()).unwrap());
    let next = [&[3][..], &u64::MAX.to_le_bytes()].concat();
    archive.store().put(&[0xff, b't'], &next, Durability::None).unwrap();
    assert_eq!(archive.entries().unwrap().count(), 0, "a pass over the keys, not over all numbers");
    let refused = archive.import("name", &b"text"[..], Chunking::default());
    assert!(matches!(refused, Err(ArchiveError::Record { .. })), "{refused:?}");
}

/// A process whose address space is limited. The test runs itself as the child.
#[cfg(target_os = "linux")]
mod limited {
    use std::env;
    use std::path::Path;
    use std::process::Command;

    use koel_store::{LsmOptions, LsmStore};

    use super::*;

    const FOLDER: &str = "KOEL_MEMORY_FOLDER";
    /// More than half of what the child may have.
    const LONG: usize = 200 * MIB;
    /// What the child may have, in KiB.
    const LIMIT: u64 = 380 << 10;

    fn is_out_of_memory<T>(result: Result<T, Error>) -> bool {
        matches!(result, Err(Error::OutOfMemory { .. }))
    }

    /// The child. Does nothing in an ordinary run.
    #[test]
    fn child() {
        let Ok(folder) = env::var(FOLDER) else { return };
        let folder = Path::new(&folder);
        let options = LogOptions::default().background_compaction(false);
        let store = options.clone().open(folder.join("log")).unwrap();
        let stored = store.get_reader(b"large").unwrap().unwrap();
        assert_eq!(stored.len(), 2 * LONG as u64);
        assert!(is_out_of_memory(store.get(b"large")));
        assert!(is_out_of_memory(store.compare_exchange(b"large", None, None, Durability::None)));
        let long = vec![b'k'; LONG];
        assert!(is_out_of_memory(store.put(&long, b"", Durability::None)));
        assert!(is_out_of_memory(store.delete(&long, Durability::None).and_then(|there| {
            // A key that is not there needs no memory.
            assert!(!there);
            store.put(&long, b"value", Durability::None)
        })));
        // A long value is written in pieces.
        store.put(b"key", &long, Durability::None).unwrap();
        store.put(b"last", b"value", Durability::Synced).unwrap();
        assert!(!store.stats().poisoned, "the errors are no failed writes");
        store.checkpoint(folder.join("copy")).unwrap();
        store.compact().unwrap();
        store.close().unwrap();
        let store = LsmOptions::default().background(false).open(folder.join("lsm")).unwrap();
        assert!(is_out_of_memory(store.put(b"key", &long, Durability::None)));
        drop(long);
        assert_eq!(store.get(b"other").unwrap().as_deref(), Some(&b"value"[..]));
        store.close().unwrap();
        std::fs::write(folder.join("done"), "").unwrap();
    }

    /// A key that did not fit twice into memory once ended the process.
    #[test]
    fn long_keys_and_values_without_memory_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let store = LogStore::open(folder.path().join("log")).unwrap();
        let value = std::io::Read::take(std::io::repeat(7), 2 * LONG as u64);
        store.put_reader(b"large", 2 * LONG as u64, value, Durability::None).unwrap();
        store.close().unwrap();
        let store = LsmStore::open(folder.path().join("lsm")).unwrap();
        store.put(b"other", b"value", Durability::None).unwrap();
        store.close().unwrap();
        let run = Command::new("sh")
            .args(["-c", &format!("ulimit -v {LIMIT} && exec \"$0\" \"$@\"")])
            .arg(env::current_exe().unwrap())
            .args(["--exact", "memory::limited::child", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder.path())
            .env("MALLOC_ARENA_MAX", "1")
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        assert!(folder.path().join("done").exists(), "the child did not run");
    }
}
