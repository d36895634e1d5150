//! The archive: a file is exported as it was imported, or not at all.

use std::io::{self, Read};
use std::sync::Arc;

use koel_store::content::{Archive, ArchiveError, Chunking, CollectProgress};
use koel_store::{LogOptions, LogStore};
use testkit::storage::{MemoryFolder, Random};

use crate::trial::{count, report};

pub(crate) fn options() -> LogOptions {
    LogOptions::default().segment_bytes(1 << 20).background_compaction(false)
}

pub(crate) fn archive() -> Archive {
    Archive::new(options().open_in(Arc::new(MemoryFolder::new())).unwrap())
}

fn reopened(archive: Archive, folder: &MemoryFolder) -> Archive {
    archive.into_store().close().unwrap();
    Archive::new(options().open_in(Arc::new(folder.clone())).unwrap())
}

/// Returns the names of an archive, in the order of their newest versions.
pub(crate) fn names(archive: &Archive) -> Vec<String> {
    let names = archive.entries().unwrap().map(|version| version.unwrap().name);
    names.map(|name| String::from_utf8(name).unwrap()).collect()
}

pub(crate) fn export(archive: &Archive, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let length = archive.export(name, &mut bytes).unwrap();
    assert_eq!(length, bytes.len() as u64);
    bytes
}

const CHUNKINGS: [Chunking; 4] = [
    Chunking::Fixed(4096),
    Chunking::Fixed(16 << 10),
    Chunking::ByContent(1024),
    Chunking::ByContent(16 << 10),
];

#[test]
fn files_of_every_length_around_a_chunk_come_back_byte_for_byte() {
    let mut random = Random::new(1);
    for chunking in CHUNKINGS {
        let folder = MemoryFolder::new();
        let mut archive = Archive::new(options().open_in(Arc::new(folder.clone())).unwrap());
        let lengths = [0, 1, 511, 4095, 4096, 4097, 8192, 16_383, 16_384, 16_385, 1_000_000];
        let mut files = Vec::new();
        for length in lengths {
            files.push((format!("random {length}"), random.bytes(length)));
            files.push((format!("zero {length}"), vec![0; length]));
        }
        for (name, bytes) in &files {
            let imported = archive.import(name, &bytes[..], chunking).unwrap();
            assert_eq!(imported.length, bytes.len() as u64);
            assert_eq!(imported.hash, *blake3::hash(bytes).as_bytes());
        }
        for _ in 0..2 {
            assert!(files.iter().all(|(name, bytes)| export(&archive, name) == *bytes));
            archive = reopened(archive, &folder);
        }
    }
}

#[test]
fn a_tree_of_a_thousand_files_comes_back() {
    let mut random = Random::new(2);
    let archive = archive();
    let files: Vec<(String, Vec<u8>)> = (0..1000)
        .map(|number| {
            let limit = 1 << (1 + random.below(17));
            let length = random.below(limit);
            (format!("tree/{}/{number}", number % 7), random.bytes(length))
        })
        .collect();
    for (name, bytes) in &files {
        archive.import(name, &bytes[..], Chunking::default()).unwrap();
    }
    assert!(files.iter().all(|(name, bytes)| export(&archive, name) == *bytes));
    assert!(names(&archive).iter().eq(files.iter().map(|(name, _)| name)));
    let verified = archive.verify(|_| ()).unwrap();
    assert_eq!((verified.sound, verified.broken.len()), (1000, 0));
}

#[test]
fn equal_chunks_are_stored_once_even_within_a_file() {
    let archive = archive();
    let bytes = Random::new(3).bytes(1 << 20);
    let first = archive.import("a", &bytes[..], Chunking::default()).unwrap();
    assert_eq!((first.chunks, first.new_chunks, first.new_bytes), (64, 64, 1 << 20));
    let before = archive.store().stats().log_bytes;
    let again = archive.import("b", &bytes[..], Chunking::default()).unwrap();
    assert_eq!((again.chunks, again.new_chunks, again.new_bytes), (64, 0, 0));
    let added = archive.store().stats().log_bytes - before;
    assert!(added * 200 <= 1 << 20, "{added} bytes for the second import");
    let zeros = archive.import("zeros", io::repeat(0).take(10 << 20), Chunking::default());
    assert_eq!(zeros.unwrap().new_chunks, 1);
}

#[test]
fn an_insertion_changes_few_chunks_by_content() {
    let archive = archive();
    let bytes = Random::new(4).bytes(2 << 20);
    let changed = [&bytes[..1000], b"inserted", &bytes[1000..]].concat();
    let chunking = Chunking::ByContent(16 << 10);
    archive.import("old", &bytes[..], chunking).unwrap();
    let new = archive.import("new", &changed[..], chunking).unwrap();
    assert!(new.new_chunks <= 3 && new.chunks > 100, "{new:?}");
    assert!(export(&archive, "new") == changed && export(&archive, "old") == bytes);
}

#[test]
fn a_file_imported_again_replaces_the_old_one_and_a_removed_one_is_gone() {
    let archive = archive();
    for text in ["one", "two"] {
        archive.import("name", text.as_bytes(), Chunking::default()).unwrap();
        assert_eq!(export(&archive, "name"), text.as_bytes());
    }
    assert_eq!(archive.entries().unwrap().count(), 1);
    let (_, entry) = archive.find("name").unwrap();
    assert_eq!(entry.content().unwrap().hash, *blake3::hash(b"two").as_bytes());
    assert!(archive.remove("name").unwrap() && !archive.remove("name").unwrap());
    assert_eq!(archive.entries().unwrap().count(), 0);
    let gone = archive.export("name", io::sink());
    assert!(matches!(gone, Err(ArchiveError::NoSuchName { .. })));
}

#[test]
fn a_collection_drops_exactly_the_chunks_that_no_file_names() {
    let folder = MemoryFolder::new();
    let archive = Archive::new(options().open_in(Arc::new(folder.clone())).unwrap());
    let (shared, gone) = (Random::new(5).bytes(1 << 20), Random::new(6).bytes(4 << 20));
    archive.store().put(b"a record beside", b"1", koel_store::Durability::None).unwrap();
    archive.import("stays", &shared[..], Chunking::default()).unwrap();
    archive.import("goes", &[&shared[..], &gone].concat()[..], Chunking::default()).unwrap();
    assert_eq!(archive.collect(|_| ()).unwrap().dropped, 0);
    let before = archive.store().stats().log_bytes;
    archive.remove("goes").unwrap();
    // 256 chunks that only this file had, and its list.
    assert_eq!(archive.collect(|_| ()).unwrap().dropped, 257);
    let after = archive.store().stats().log_bytes;
    assert!(after < before - (3 << 20), "{before} -> {after}");
    assert!(export(&archive, "stays") == shared);
    assert!(archive.store().get(b"a record beside").unwrap().is_some());
    let archive = reopened(archive, &folder);
    assert!(export(&archive, "stays") == shared);
    let back = archive.import("goes", &gone[..], Chunking::default()).unwrap();
    assert_eq!(back.new_chunks, 256);
    assert!(export(&archive, "goes") == gone);
}

/// A collection once kept every segment open until it ended.
#[test]
fn a_collection_needs_space_for_a_few_segments_only() {
    const SEGMENT: u64 = 1 << 16;
    let disk = MemoryFolder::new();
    let options = LogOptions::default().segment_bytes(SEGMENT).background_compaction(false);
    let archive = Archive::new(options.open_in(Arc::new(disk.clone())).unwrap());
    let bytes = Random::new(5).bytes(2 << 20);
    // The chunks of both files alternate, so that each segment has live records.
    let (mut stays, mut goes) = (Vec::new(), Vec::new());
    for (number, pair) in bytes.chunks(8192).enumerate() {
        for (pieces, name) in [(&mut stays, "stays"), (&mut goes, "goes")] {
            let piece = if name == "stays" { &pair[..4096] } else { &pair[4096..] };
            archive.import(format!("{name} {number}"), piece, Chunking::Fixed(4096)).unwrap();
            pieces.extend_from_slice(piece);
        }
    }
    archive.import("stays", &stays[..], Chunking::Fixed(4096)).unwrap();
    for number in 0..bytes.len() / 8192 {
        archive.remove(format!("goes {number}")).unwrap();
    }
    let before = disk.used();
    disk.limit(before + 3 * SEGMENT);
    let collected = archive.collect(|_| ()).unwrap();
    assert!(collected.compacted.segments > 30, "{collected:?}");
    assert!(disk.used() < before - before / 4, "{before} -> {}", disk.used());
    assert!(export(&archive, "stays") == stays);
}

#[test]
fn a_collection_reports_its_progress() {
    let archive = archive();
    let bytes = Random::new(7).bytes(6 << 20);
    archive.import("stays", &bytes[..2 << 20], Chunking::default()).unwrap();
    archive.import("goes", &bytes[2 << 20..], Chunking::default()).unwrap();
    archive.remove("goes").unwrap();
    let log_bytes = archive.store().stats().log_bytes;
    let (mut before, mut keys, mut copied) = (0, 0, 0);
    let collected = archive.collect(|step| match step {
        CollectProgress::Searching { read, total: all } => {
            assert!(before < read && read <= all && all == log_bytes && copied == 0);
            before = read;
            keys += 1;
        }
        CollectProgress::Copied(bytes) => copied += bytes,
    });
    let compacted = collected.unwrap().compacted;
    assert!(before > log_bytes - (1 << 20) && keys > 384, "{before} of {log_bytes}, {keys} keys");
    assert!(copied > 0 && copied < compacted.written, "{copied}, {compacted:?}");
}

/// A reader that fails after some bytes.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.0.min(into.len());
        self.0 -= count;
        into[..count].fill(7);
        if count == 0 { Err(io::Error::other("the source failed")) } else { Ok(count) }
    }
}

#[test]
fn an_import_that_fails_leaves_the_old_file() {
    let archive = archive();
    archive.import("name", &b"old"[..], Chunking::default()).unwrap();
    for name in ["name", "new"] {
        let failed = archive.import(name, Failing(100_000), Chunking::default());
        assert!(matches!(failed, Err(ArchiveError::Read(_))));
    }
    assert_eq!(export(&archive, "name"), b"old");
    assert_eq!(archive.entries().unwrap().count(), 1);
    for (name, chunking) in [("", Chunking::default()), ("name", Chunking::Fixed(1))] {
        let refused = archive.import(name, &b"new"[..], chunking).unwrap_err();
        assert!(matches!(refused, ArchiveError::BadName { .. } | ArchiveError::BadChunking(_)));
    }
    let long = archive.import("n".repeat(4097), &b"new"[..], Chunking::default());
    assert!(matches!(long, Err(ArchiveError::BadName { .. })));
}

#[test]
fn a_file_exported_to_disk_is_the_one_imported() {
    let archive = archive();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let bytes = Random::new(8).bytes(3_000_000);
    archive.import("name", &bytes[..], Chunking::ByContent(8192)).unwrap();
    for _ in 0..2 {
        assert_eq!(archive.export_file("name", &path).unwrap(), 3_000_000);
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let permissions = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions();
    assert_eq!(permissions(&path), permissions(&plain), "those of any new file");
    let nowhere = folder.path().join("no/such/folder");
    assert!(matches!(archive.export_file("name", &nowhere), Err(ArchiveError::Write(_))));
}

#[test]
fn several_threads_import_export_and_collect() {
    let archive = archive();
    let file = |seed: u64| Random::new(seed % 5).bytes(300_000);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let archive = &archive;
            scope.spawn(move || {
                for round in 0..20 {
                    let name = format!("{thread}/{}", round % 4);
                    let bytes = file(thread + round);
                    archive.import(&name, &bytes[..], Chunking::default()).unwrap();
                    assert!(export(archive, &name) == bytes);
                    if round % 5 == thread {
                        archive.remove(&name).unwrap();
                        archive.collect(|_| ()).unwrap();
                    }
                }
            });
        }
    });
    assert!(archive.verify(|_| ()).unwrap().broken.is_empty());
}

/// Only in the full run, and on disk.
#[test]
fn a_file_beyond_four_gibibytes_and_one_of_three_hundred_thousand_chunks_come_back() {
    if count(0, 1) == 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::new(LogStore::open(folder.path().join("store")).unwrap());
    let middle = (4_u64 << 30) + 12_345;
    let (start, end) = (Random::new(9).bytes(100_000), Random::new(10).bytes(100_001));
    let sparse = (&start[..]).chain(io::repeat(0).take(middle)).chain(&end[..]);
    let imported = archive.import("sparse", sparse, Chunking::default()).unwrap();
    assert_eq!(imported.length, middle + 200_001);
    let path = folder.path().join("out");
    archive.export_file("sparse", &path).unwrap();
    let mut expected = (&start[..]).chain(io::repeat(0).take(middle)).chain(&end[..]);
    assert!(same(&mut expected, &mut std::fs::File::open(&path).unwrap()));

    let noise = Random::new(11).bytes(160_000_000);
    let imported = archive.import("noise", &noise[..], Chunking::Fixed(512)).unwrap();
    assert_eq!((imported.chunks, imported.new_chunks), (312_500, 312_500));
    archive.export_file("noise", &path).unwrap();
    assert!(same(&mut &noise[..], &mut std::fs::File::open(&path).unwrap()));
    report("large", &format!("{} and {} bytes: equal", middle + 200_001, noise.len()));
}

/// Returns whether two streams have equal bytes.
fn same(one: &mut dyn Read, other: &mut dyn Read) -> bool {
    let (mut from_one, mut from_other) = (Vec::new(), Vec::new());
    loop {
        from_one.clear();
        from_other.clear();
        one.take(1 << 20).read_to_end(&mut from_one).unwrap();
        other.take(1 << 20).read_to_end(&mut from_other).unwrap();
        if from_one != from_other {
            return false;
        }
        if from_one.is_empty() {
            return true;
        }
    }
}
