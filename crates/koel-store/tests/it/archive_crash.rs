//! Power failures while files are imported, removed and collected.
//!
//! Imports and removals are durable when they return. So after a failure the archive has exactly
//! the files of the model, except that the interrupted operation may or may not have taken effect.
//! Each file is complete, whatever an interrupted collection had dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use koel_store::LogOptions;
use koel_store::content::{Archive, ArchiveError, Chunking};
use testkit::storage::{Failure, Fault, FaultyFolder, MemoryFolder, Random};

use crate::trial::{count, first_seed, report};

const FAILURES: u64 = 20;
const CHUNK: usize = 512;

type Files = BTreeMap<String, Vec<u8>>;

fn options(seed: u64) -> LogOptions {
    LogOptions::default().segment_bytes(8192).background_compaction(false).seed(seed)
}

/// Returns a file; files share most of their chunks.
fn content(random: &mut Random) -> Vec<u8> {
    let mut pieces = Vec::new();
    for _ in 0..random.below(20) {
        pieces.extend(Random::new(random.below(30) as u64).bytes(CHUNK));
    }
    let end = random.below(CHUNK);
    [pieces, random.bytes(end)].concat()
}

/// Applies an operation to the archive. Returns the files after it.
fn step(
    archive: &Archive,
    files: &Files,
    random: &mut Random,
) -> (Files, Result<(), ArchiveError>) {
    let name = format!("file {}", random.below(6));
    let mut after = files.clone();
    let done = match random.below(10) {
        0..6 => {
            let bytes = content(random);
            let imported = archive.import(&name, &bytes[..], Chunking::Fixed(CHUNK)).map(drop);
            after.insert(name, bytes);
            imported
        }
        6..9 => {
            let there = after.remove(&name).is_some();
            archive.remove(&name).map(|removed| assert_eq!(removed, there))
        }
        _ => archive.collect(|_| ()).map(drop),
    };
    (after, done)
}

/// Returns all files of an archive, exported.
fn exported(archive: &Archive) -> Result<Files, ArchiveError> {
    let mut files = Files::new();
    for version in archive.entries()? {
        let name = String::from_utf8(version?.name).unwrap();
        let mut bytes = Vec::new();
        archive.export(&name, &mut bytes)?;
        assert!(files.insert(name, bytes).is_none(), "a name came twice");
    }
    Ok(files)
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let (mut disk, mut files) = (MemoryFolder::new(), Files::new());
    for failure in 0..FAILURES {
        let at = random.below(500) as u64;
        let fault = Fault { at, lasting: true, failure: Failure::Eio };
        let faulty = FaultyFolder::new(disk.clone(), Some(fault));
        let mut after = files.clone();
        if let Ok(store) = options(seed).open_in(Arc::new(faulty)) {
            let archive = Archive::new(store);
            loop {
                let (next, done) = step(&archive, &files, &mut random);
                after = next;
                if done.is_err() {
                    break;
                }
                files.clone_from(&after);
            }
        }
        let kept = [0, 50, 100][random.below(3)];
        disk = disk.crash_clone(kept, random.next_u64());
        let what = format!("seed {seed}, failure {failure}, {kept} % kept");
        let store = options(seed).open_in(Arc::new(disk.crash_clone(100, 0)));
        let archive = Archive::new(store.unwrap_or_else(|error| panic!("{what}: {error}")));
        let found = exported(&archive).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found == files || found == after, "{what}: not the files before or after");
        files = found;
    }
}

#[test]
fn a_power_failure_leaves_every_file_as_before_or_as_after() {
    let failures = count(1_000, 20_000);
    let runs = failures.div_ceil(FAILURES);
    for seed in (first_seed()..).take(usize::try_from(runs).unwrap()) {
        run(seed);
    }
    report("archive", &format!("{} power failures: every file whole", runs * FAILURES));
}
