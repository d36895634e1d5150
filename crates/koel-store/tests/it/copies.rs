//! Checkpoints of a log store: a copy of one moment, in parallel with everything else. Programs
//! make copies too (`subject.rs`); the ordered store has `lsm::behaviour` and `lsm::bounds`.

use std::fs;
use std::sync::Arc;
use std::thread;

use koel_store::content::{Archive, Chunking};
use koel_store::{Durability, Error, LogOptions, LogStore, LsmOptions};
use testkit::storage::{Call, Failure, Fault, FaultyFolder, Hooked, MemoryFolder, Random, Verdict};

use crate::gated::gated;
use crate::trial::iterate;

const NONE: Durability = Durability::None;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn options() -> LogOptions {
    LogOptions::default().segment_bytes(8192).background_compaction(false).seed(1)
}

fn fill(store: &LogStore, keys: std::ops::Range<u32>, value: &[u8]) -> Result<(), Error> {
    keys.into_iter().try_for_each(|key| store.put(&key.to_le_bytes(), value, NONE))
}

#[test]
fn a_copy_on_disk_shares_segments_and_goes_its_own_way() -> Outcome {
    let folders = tempfile::tempdir()?;
    let (path, copy) = (folders.path().join("store"), folders.path().join("new/copy"));
    let store = options().open(&path)?;
    fill(&store, 0..1_000, &[1; 40])?;
    store.checkpoint(&copy)?;
    let again = store.checkpoint(&copy);
    assert!(matches!(again, Err(Error::NotEmpty { .. })), "{again:?}");
    let mut shared = 0;
    for file in fs::read_dir(&copy)? {
        let links = std::os::unix::fs::MetadataExt::nlink(&file?.metadata()?);
        shared += u64::from(links == 2);
    }
    let sealed = store.stats().segments - 1;
    assert!(sealed > 5 && shared == 2 * sealed, "{shared} of {sealed} segments and their hints");
    for key in 0..1_000_u32 {
        store.delete(&key.to_le_bytes(), NONE)?;
    }
    store.compact()?;
    let copied = options().open(&copy)?;
    assert!(copied.open_report().was_closed);
    assert_eq!((store.iter().count(), copied.iter().count()), (0, 1_000));
    assert_eq!(copied.verify(|_, _| ())?.damages, []);
    fill(&copied, 500..1_500, &[2; 40])?;
    copied.compact()?;
    copied.close()?;
    let copied = options().open(&copy)?;
    assert_eq!(copied.iter().count(), 1_500);
    assert_eq!((copied.get(&[7, 0, 0, 0])?, store.iter().count()), (Some(vec![1; 40]), 0));
    Ok(())
}

#[test]
fn a_copy_of_an_empty_store_is_an_empty_store() -> Outcome {
    let folder = MemoryFolder::new();
    options().open_in(Arc::new(MemoryFolder::new()))?.checkpoint_in(&folder)?;
    let copy = options().open_in(Arc::new(folder))?;
    assert_eq!(copy.iter().count(), 0);
    fill(&copy, 0..10, b"value")?;
    assert_eq!(copy.iter().count(), 10);
    Ok(())
}

/// A read-only store, on whose disk nothing is written, can be copied too.
#[test]
fn a_read_only_store_is_copied() -> Outcome {
    let (disk, folder) = (MemoryFolder::new(), MemoryFolder::new());
    let store = options().open_in(Arc::new(disk.clone()))?;
    fill(&store, 0..300, &[1; 40])?;
    let torn = disk.crash_clone(50, 7);
    let opened = options().read_only(true).open_in(Arc::new(torn))?;
    let state = iterate(&opened)?;
    opened.checkpoint_in(&folder)?;
    assert_eq!(iterate(&options().open_in(Arc::new(folder))?)?, state);
    Ok(())
}

#[test]
fn a_copy_that_fails_leaves_the_folder_empty() -> Outcome {
    let store = options().open_in(Arc::new(MemoryFolder::new()))?;
    fill(&store, 0..1_000, &[1; 40])?;
    let state = iterate(&store)?;
    let mut failed = 0;
    for at in 2..100 {
        let disk = MemoryFolder::new();
        let fault = Fault { at, lasting: false, failure: Failure::Enospc };
        let folder = FaultyFolder::new(disk.clone(), Some(fault));
        if store.checkpoint_in(&folder).is_err() {
            let names: Vec<String> = disk.contents().into_keys().collect();
            assert!(names.is_empty() || names == ["MANIFEST"], "call {at}: {names:?}");
            failed += u64::from(names.is_empty());
            let disk = MemoryFolder::new();
            store.checkpoint_in(&disk)?;
            assert_eq!(iterate(&options().open_in(Arc::new(disk))?)?, state);
        }
    }
    assert!(failed > store.stats().segments, "{failed} failures");
    Ok(())
}

/// The power fails after the copy was made: everything of it is on disk.
#[test]
fn a_finished_copy_survives_a_power_failure() -> Outcome {
    let store = options().open_in(Arc::new(MemoryFolder::new()))?;
    fill(&store, 0..500, &[3; 40])?;
    let linked = MemoryFolder::new();
    store.checkpoint_in(&linked)?;
    // A folder of another kind gets no links.
    let copied = Hooked::with(MemoryFolder::new(), |_: &Call| Verdict::Pass);
    store.checkpoint_in(&copied)?;
    for disk in [&linked, copied.inner()] {
        let copy = options().open_in(Arc::new(disk.crash_clone(0, 1)))?;
        assert_eq!(iterate(&copy)?, iterate(&store)?);
    }
    Ok(())
}

#[test]
fn nothing_waits_for_a_copy_on_another_disk() -> Outcome {
    let store = options().open_in(Arc::new(MemoryFolder::new()))?;
    fill(&store, 0..1_000, &[1; 40])?;
    let before = iterate(&store)?;
    let other = MemoryFolder::new();
    let disk = gated(other.clone());
    disk.hook().hold(|verb, name| verb == "write" && !name.is_empty());
    thread::scope(|scope| {
        let copy = scope.spawn(|| store.checkpoint_in(&disk));
        disk.hook().wait_for_held();
        let written = fill(&store, 0..2_000, &[2; 40]).and_then(|()| store.compact());
        disk.hook().release();
        assert!(written?.segments > 5, "compacted while the copy was made");
        copy.join().expect("no panic")
    })?;
    let copy = options().open_in(Arc::new(other))?;
    assert!(iterate(&copy)? == before, "the copy is not of one moment");
    assert!(copy.verify(|_, _| ())?.damages.is_empty());
    Ok(())
}

/// Each copy once went on with numbers far beyond those of its original: after some 64 copies of
/// copies they were out of range, and the last one did not open.
#[test]
fn a_copy_of_a_copy_can_be_copied_again_and_again() -> Outcome {
    let (mut log, mut lsm) = (MemoryFolder::new(), MemoryFolder::new());
    for round in 0..300_u32 {
        let next = [MemoryFolder::new(), MemoryFolder::new()];
        let store = LogOptions::default().background_compaction(false).open_in(Arc::new(log))?;
        store.put(&round.to_le_bytes(), b"value", NONE)?;
        store.checkpoint_in(&next[0])?;
        let store = LsmOptions::default().background(false).open_in(Arc::new(lsm))?;
        store.put(&round.to_le_bytes(), b"value", NONE)?;
        store.checkpoint_in(&next[1])?;
        [log, lsm] = next;
    }
    assert_eq!(LogOptions::default().open_in(Arc::new(log))?.iter().count(), 300);
    assert_eq!(LsmOptions::default().open_in(Arc::new(lsm))?.iter()?.count(), 300);
    Ok(())
}

#[test]
fn a_copy_of_an_archive_exports_what_it_had() -> Outcome {
    let store =
        LogOptions::default().segment_bytes(64 << 10).open_in(Arc::new(MemoryFolder::new()));
    let archive = Archive::new(store?);
    let bytes = Random::new(1).bytes(1 << 20);
    archive.import("name", &bytes[..], Chunking::default())?;
    let folder = MemoryFolder::new();
    archive.store().checkpoint_in(&folder)?;
    archive.remove("name")?;
    archive.store().compact()?;
    let copy = Archive::new(LogOptions::default().open_in(Arc::new(folder))?);
    let mut found = Vec::new();
    copy.export("name", &mut found)?;
    assert!(found == bytes);
    Ok(())
}
