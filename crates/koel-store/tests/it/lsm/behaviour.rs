//! What an ordered store does in particular cases, one per test.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use koel_store::{
    Batch, CompactionPolicy, Durability, Error, LogStore, LsmOptions, LsmStore, StoreKind,
};
use testkit::storage::{Call, Failure, Fault, FaultyFolder, Hooked, MemoryFolder, State, Verdict};

use super::trial::collect;

pub(super) type Outcome = Result<(), Box<dyn std::error::Error>>;

pub(super) const NONE: Durability = Durability::None;

fn options() -> LsmOptions {
    LsmOptions::default().memtable_bytes(8 << 10).background(false).seed(1)
}

pub(super) fn key(number: u32) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

/// Puts a value under each of these numbers.
fn fill(store: &LsmStore, numbers: Range<u32>, value: &[u8]) -> Result<(), Error> {
    numbers.into_iter().try_for_each(|number| store.put(&key(number), value, NONE))
}

#[test]
fn each_kind_of_store_refuses_the_folder_of_the_other() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (log, ordered) = (folder.path().join("log"), folder.path().join("ordered"));
    LogStore::open(&log)?.close()?;
    LsmStore::open(&ordered)?.close()?;
    assert_eq!(StoreKind::of(&log)?, Some(StoreKind::Log));
    assert_eq!(StoreKind::of(&ordered)?, Some(StoreKind::Lsm));
    assert_eq!(StoreKind::of(folder.path())?, None);
    assert_eq!(StoreKind::of(folder.path().join("none"))?, None);
    let refused = LogStore::open(&ordered).map(drop);
    assert!(matches!(refused, Err(Error::WrongKind { found: StoreKind::Lsm })), "{refused:?}");
    let refused = LsmStore::open(&log).map(drop);
    assert!(matches!(refused, Err(Error::WrongKind { found: StoreKind::Log })), "{refused:?}");
    Ok(())
}

#[test]
fn an_open_store_is_locked_and_a_missing_one_is_not_read() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = LsmStore::open(folder.path())?;
    assert!(matches!(LsmStore::open(folder.path()), Err(Error::Locked)));
    drop(store);
    LsmStore::open(folder.path())?;
    let none = LsmOptions::default().read_only(true).open(folder.path().join("none"));
    assert!(matches!(none, Err(Error::NoStore { .. })));
    Ok(())
}

#[test]
fn keys_and_values_up_to_the_limits_are_taken_and_longer_ones_refused() -> Outcome {
    let store = options().open_in(Arc::new(MemoryFolder::new()))?;
    let (longest, large) = (vec![7; 64 << 10], vec![9; 3 << 20]);
    store.put(&longest, &large, NONE)?;
    store.put(b"", b"", NONE)?;
    store.flush()?;
    assert!(store.get(&longest)? == Some(large) && store.get(b"")? == Some(Vec::new()));
    let refused = store.put(&[7; (64 << 10) + 1], b"", NONE);
    assert!(matches!(refused, Err(Error::TooLong { what: "key", max: 65_536, .. })), "{refused:?}");
    let mut batch = Batch::new();
    batch.put(b"first", b"")?.put(b"second", &vec![0; (256 << 20) + 1])?;
    let refused = store.write(&batch, NONE);
    assert!(matches!(refused, Err(Error::TooLong { what: "value", .. })), "{refused:?}");
    assert!(!store.contains(b"first")?, "half a batch");
    Ok(())
}

#[test]
fn an_ingestion_out_of_order_is_refused_as_a_whole() -> Outcome {
    let folder = MemoryFolder::new();
    let store = options().open_in(Arc::new(folder.clone()))?;
    store.put(b"b", b"old", NONE)?;
    for (entries, wrong) in [(["a", "b", "b"], 2), (["b", "a", "c"], 1)] {
        let refused = store.ingest(entries.map(|key| (key, "new")));
        assert!(matches!(refused, Err(Error::NotSorted { entry }) if entry == wrong));
    }
    assert_eq!(store.get(b"b")?.as_deref(), Some(&b"old"[..]));
    assert!(!store.contains(b"a")?);
    let before = store.snapshot();
    assert_eq!(store.ingest([("a", "1"), ("b", "2")])?, 2);
    store.put(b"b", b"3", NONE)?;
    assert_eq!(store.ingest([("b", "4"); 0])?, 0);
    drop(store);
    let store = options().open_in(Arc::new(folder))?;
    assert_eq!(store.get(b"a")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(store.get(b"b")?.as_deref(), Some(&b"3"[..]), "a write after an ingestion counts");
    assert_eq!(before.get(b"b")?.as_deref(), Some(&b"old"[..]), "a snapshot outlives its store");
    Ok(())
}

#[test]
fn a_compaction_leaves_one_run_without_old_versions_and_deletions() -> Outcome {
    let store = options().open_in(Arc::new(MemoryFolder::new()))?;
    for round in 0..3_u8 {
        fill(&store, 0..500, &[round; 40])?;
    }
    for number in 0..250 {
        store.delete(&key(number * 2), NONE)?;
    }
    store.compact()?;
    let stats = store.stats();
    assert_eq!(stats.runs.len(), 1);
    assert_eq!((stats.runs[0].entries, stats.runs[0].tombstones), (250, 0));
    store.compact()?;
    assert_eq!(store.stats().runs, stats.runs, "a merge that changes nothing");
    assert!(stats.has_guide && stats.merged_bytes > 0 && stats.log_bytes < 100, "{stats:?}");
    for number in 0..250 {
        store.delete(&key(number * 2 + 1), NONE)?;
    }
    store.compact()?;
    assert_eq!((store.stats().runs.len(), store.iter()?.count()), (0, 0));
    Ok(())
}

/// A range with few entries leaves deletions of keys, a larger one a record; both end with a merge.
#[test]
fn a_deleted_range_is_gone_at_once_after_a_crash_and_after_a_merge() -> Outcome {
    for few in [0, 10, 1_000] {
        let folder = MemoryFolder::new();
        let options = options().few_entries(few);
        let store = options.clone().open_in(Arc::new(folder.clone()))?;
        fill(&store, 0..300, b"old")?;
        store.flush()?;
        let snapshot = store.snapshot();
        store.delete_range(key(100)..key(200), NONE)?;
        store.put(&key(150), b"new", NONE)?;
        let stats = store.stats();
        assert_eq!(stats.range_deletions, u64::from(few < 100), "{few}");
        let check = |store: &LsmStore| -> Result<(), Error> {
            assert_eq!(store.iter()?.count(), 201);
            assert_eq!(store.iter()?.rev().count(), 201);
            assert_eq!(store.get(&key(150))?.as_deref(), Some(&b"new"[..]));
            for absent in [100, 149, 151, 199] {
                assert_eq!(store.get(&key(absent))?, None);
                assert!(!store.contains(&key(absent))?);
            }
            assert_eq!(store.get_many(&[key(99), key(120), key(200)])?.iter().flatten().count(), 2);
            Ok(())
        };
        check(&store)?;
        check(&options.clone().open_in(Arc::new(folder.crash_clone(100, 1)))?)?;
        store.flush()?;
        store.compact()?;
        check(&store)?;
        assert_eq!(snapshot.iter()?.count(), 300);
        assert_eq!(snapshot.get(&key(150))?.as_deref(), Some(&b"old"[..]));
        drop(snapshot);
        store.compact()?;
        check(&store)?;
        let stats = store.stats();
        assert_eq!((stats.range_deletions, stats.runs[0].range_deletions), (0, 0));
        assert_eq!((stats.runs[0].entries, stats.runs[0].tombstones), (201, 0));
        store.delete_range::<Vec<u8>>(.., NONE)?;
        store.compact()?;
        assert_eq!((store.stats().runs.len(), store.iter()?.count()), (0, 0));
    }
    Ok(())
}

/// Nothing of the entries under it is read: only so are millions of them passed at once.
#[test]
fn a_range_passes_deleted_tables_without_reading_them() -> Outcome {
    let folder = Arc::new(FaultyFolder::new(MemoryFolder::new(), None));
    let options = options().few_entries(0).cache_bytes(0).memtable_bytes(1 << 20);
    let store = options.open_in(folder.clone())?;
    fill(&store, 0..5_000, &[b'v'; 100])?;
    store.flush()?;
    store.delete_range(key(10)..key(4_990), NONE)?;
    let before = folder.calls();
    assert_eq!(store.iter()?.count(), 20);
    assert_eq!(store.iter()?.rev().count(), 20);
    let calls = folder.calls() - before;
    assert!(calls < 40, "{calls} calls");
    Ok(())
}

#[test]
fn a_snapshot_keeps_what_it_sees_until_it_is_dropped() -> Outcome {
    let store = options().open_in(Arc::new(MemoryFolder::new()))?;
    fill(&store, 0..300, b"old")?;
    let snapshot = store.snapshot();
    fill(&store, 0..300, b"new")?;
    store.compact()?;
    assert_eq!(store.stats().runs[0].entries, 600);
    assert!(snapshot.iter()?.all(|entry| entry.is_ok_and(|(_, value)| value == b"old")));
    drop(snapshot);
    store.compact()?;
    assert_eq!(store.stats().runs[0].entries, 300);
    Ok(())
}

#[test]
fn a_filter_lets_entries_expire_but_not_those_of_a_snapshot() -> Outcome {
    let expired = Arc::new(AtomicBool::new(false));
    let flag = expired.clone();
    let options = options().compaction_filter(move |key, _| {
        !(flag.load(Ordering::Relaxed) && key.starts_with(b"session/"))
    });
    let store = options.open_in(Arc::new(MemoryFolder::new()))?;
    store.put(b"session/1", b"", NONE)?;
    store.put(b"user/1", b"", NONE)?;
    store.compact()?;
    assert_eq!(store.iter()?.count(), 2);
    let snapshot = store.snapshot();
    expired.store(true, Ordering::Relaxed);
    store.compact()?;
    assert!(snapshot.contains(b"session/1")?);
    drop(snapshot);
    store.compact()?;
    let left: State = collect(store.iter()?)?;
    assert_eq!(left.into_keys().collect::<Vec<_>>(), [b"user/1"]);
    Ok(())
}

#[test]
fn with_many_runs_a_key_is_looked_for_in_hardly_any_but_its_own() -> Outcome {
    const RUNS: u32 = 16;
    const KEYS: u32 = 40_000;
    let options = options().memtable_bytes(8 << 20).policy(CompactionPolicy::Tiered).ratio(32);
    let store = options.open_in(Arc::new(MemoryFolder::new()))?;
    for run in 0..RUNS {
        // Each run has keys of the whole range, so that no bounds exclude it.
        (run..KEYS).step_by(16).try_for_each(|number| store.put(&key(number), b"value", NONE))?;
        store.flush()?;
    }
    assert_eq!(store.stats().runs.len(), 16);
    for number in 0..KEYS {
        assert!(store.contains(&key(number))?);
    }
    let of_hits = store.stats().false_candidates;
    for number in 0..KEYS {
        assert!(!store.contains(format!("{number:06}x").as_bytes())?);
    }
    let of_misses = store.stats().false_candidates - of_hits;
    let share = |runs: u64| runs as f64 / f64::from(KEYS);
    // Half of the other runs are younger than that of a key, and are asked before it.
    assert!(of_hits > 0 && share(of_hits) <= 0.005, "{of_hits}");
    assert!(of_misses > 0 && share(of_misses) <= 0.005, "{of_misses}");
    Ok(())
}

#[test]
fn a_write_that_waits_in_vain_is_an_error_with_the_reason() -> Outcome {
    // From some call on the disk is full, but the log fits in what it has.
    let folder = Hooked::with(MemoryFolder::new(), |call: &Call| match call.verb {
        "create" if call.name.ends_with(".table") => {
            Verdict::Fail(std::io::ErrorKind::StorageFull.into())
        }
        _ => Verdict::Pass,
    });
    let options = LsmOptions::default().memtable_bytes(2 << 10).stall_limit(Duration::ZERO);
    let store = options.open_in(Arc::new(folder))?;
    let stalled = (0..10_000).find_map(|number| store.put(&key(number), &[0; 64], NONE).err());
    let Some(Error::Stalled { reason, .. }) = &stalled else { panic!("{stalled:?}") };
    if let Some(reason) = reason {
        assert!(reason.contains(".table"), "{reason}");
    }
    store.flush().expect_err("no table can be created");
    let failed = store.stats().flush_failed;
    assert!(failed.as_ref().is_some_and(|reason| reason.contains(".table")), "{failed:?}");
    Ok(())
}

#[test]
fn a_manifest_of_an_earlier_moment_is_named() -> Outcome {
    for with_ingestion in [false, true] {
        let folder = MemoryFolder::new();
        let store = options().open_in(Arc::new(folder.clone()))?;
        store.put(b"a", b"1", NONE)?;
        store.close()?;
        let old = folder.contents()["MANIFEST"].clone();
        let store = options().open_in(Arc::new(folder.clone()))?;
        // The file of the log that the old manifest names must stay.
        if with_ingestion {
            store.ingest([("b", "2")])?;
        } else {
            fill(&store, 0..1_000, &[0; 64])?;
        }
        store.close()?;
        let mut files = folder.contents();
        files.insert("MANIFEST".to_owned(), old);
        let opened = options().open_in(Arc::new(MemoryFolder::with(files))).map(drop);
        assert!(
            matches!(opened, Err(Error::OldManifest { .. } | Error::Damaged { .. })),
            "{opened:?}"
        );
    }
    Ok(())
}

#[test]
fn a_checkpoint_on_disk_shares_files_and_goes_its_own_way() -> Outcome {
    let folders = tempfile::tempdir()?;
    let (path, copy) = (folders.path().join("store"), folders.path().join("copy"));
    let store = options().open(&path)?;
    fill(&store, 0..1_000, &[1; 40])?;
    store.checkpoint(&copy)?;
    let again = store.checkpoint(&copy);
    assert!(matches!(again, Err(Error::NotEmpty { .. })), "{again:?}");
    for number in 0..1_000 {
        store.delete(&key(number), NONE)?;
    }
    store.compact()?;
    let copied = options().open(&copy)?;
    assert_eq!((store.iter()?.count(), copied.iter()?.count()), (0, 1_000));
    assert_eq!(copied.verify(|_, _| ())?.damages, []);
    copied.put(b"new", b"", NONE)?;
    copied.compact()?;
    assert_eq!(copied.iter()?.count(), 1_001);
    Ok(())
}

#[test]
fn a_copy_that_fails_leaves_the_folder_empty() -> Outcome {
    let store = options().open_in(Arc::new(MemoryFolder::new()))?;
    fill(&store, 0..300, &[1; 40])?;
    for at in 2..20 {
        let disk = MemoryFolder::new();
        let fault = Fault { at, lasting: false, failure: Failure::Enospc };
        let folder = FaultyFolder::new(disk.clone(), Some(fault));
        if store.checkpoint_in(&folder).is_err() {
            let names: Vec<String> = disk.contents().into_keys().collect();
            assert!(names.is_empty() || names == ["MANIFEST"], "call {at}: {names:?}");
        }
    }
    Ok(())
}
