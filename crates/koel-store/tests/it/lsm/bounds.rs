//! What a write never waits for, and what never ends the writes: a guide that is being built, a
//! copy on another disk, a filter that panics, a large batch, many runs in a level.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use koel_store::{Batch, CompactionPolicy, Error, LsmOptions, LsmStore};
use testkit::storage::{MemoryFolder, State};

use super::behaviour::{NONE, Outcome, key};
use super::trial::collect;
use crate::gated::{GatedFolder, gated, wait_until};

/// A memtable is full after about 60 of them.
const VALUE: [u8; 100] = [7; 100];
/// Entries that fill twelve memtables.
const MANY: u32 = 12 * 65;

const MEMTABLE: u64 = 8 << 10;

/// Options of a store whose writes wait two seconds at most.
fn options() -> LsmOptions {
    let options = LsmOptions::default().memtable_bytes(MEMTABLE).cache_bytes(0).seed(1);
    options.policy(CompactionPolicy::Tiered).ratio(8).stall_limit(Duration::from_secs(2))
}

fn fill(store: &LsmStore, numbers: impl IntoIterator<Item = u32>) -> Result<(), Error> {
    numbers.into_iter().try_for_each(|number| store.put(&key(number), &VALUE, NONE))
}

/// Returns the files of a store of some runs, none of them merged, without a guide.
fn store_of_runs() -> Result<MemoryFolder, Error> {
    let folder = MemoryFolder::new();
    let store = options().background(false).open_in(Arc::new(folder.clone()))?;
    for run in 0..5 {
        fill(&store, (run..200).step_by(5))?;
        store.flush()?;
    }
    store.close()?;
    let mut files = folder.contents();
    files.remove("GUIDE");
    Ok(MemoryFolder::with(files))
}

/// Holds the reads of the runs of this moment by other threads.
fn hold_reads_of_runs(folder: &GatedFolder, store: &LsmStore) {
    let old: Vec<u64> = store.stats().runs.iter().map(|run| run.number).collect();
    let me = thread::current().id();
    folder.hook().hold(move |verb, name| {
        let is_old = old.iter().any(|number| name == format!("{number:016x}.table"));
        verb == "read" && is_old && thread::current().id() != me
    });
}

#[test]
fn puts_and_reads_go_on_while_a_guide_is_built() -> Outcome {
    let folder = gated(store_of_runs()?);
    let store = options().open_in(Arc::new(folder.clone()))?;
    hold_reads_of_runs(&folder, &store);
    for number in 0..300 {
        assert!(!store.contains(format!("{number:06}x").as_bytes())?);
    }
    folder.hook().wait_for_held();
    fill(&store, 1000..1000 + MANY)?;
    assert!(store.contains(&key(1000))? && store.contains(&key(7))? && !store.contains(b"5")?);
    let stats = store.stats();
    assert!(!stats.has_guide && stats.unguided_runs == stats.runs.len() as u64, "{stats:?}");
    folder.hook().release();
    wait_until("the guide knows all runs", || {
        let stats = store.stats();
        stats.has_guide && stats.unguided_runs == 0 && stats.sealed_memtables == 0
    });
    let found = (0..200).chain(1000..1000 + MANY).all(|number| {
        store.get(&key(number)).is_ok_and(|value| value.as_deref() == Some(&VALUE[..]))
    });
    assert!(found && store.verify(|_, _| ())?.damages.is_empty());
    Ok(())
}

#[test]
fn puts_and_reads_go_on_while_a_guide_that_is_full_is_built_anew() -> Outcome {
    let folder = gated(store_of_runs()?);
    let store = options().guide(5, 1).open_in(Arc::new(folder.clone()))?;
    // Absent keys, until there is a guide.
    wait_until("there is a guide", || {
        store.get(b"000001x").is_ok_and(|value| value.is_none()) && store.stats().has_guide
    });
    hold_reads_of_runs(&folder, &store);
    fill(&store, 1000..1000 + MANY)?;
    folder.hook().wait_for_held();
    fill(&store, 2000..2000 + MANY / 3)?;
    let stats = store.stats();
    assert!(stats.has_guide && stats.unguided_runs > 0, "{stats:?}");
    assert!(store.contains(&key(1000))? && store.contains(&key(7))? && !store.contains(b"5")?);
    folder.hook().release();
    wait_until("the guide knows all runs", || store.stats().unguided_runs == 0);
    assert!(store.verify(|_, _| ())?.damages.is_empty());
    Ok(())
}

#[test]
fn nothing_waits_for_a_copy_on_another_disk() -> Outcome {
    let store = options().open_in(Arc::new(store_of_runs()?))?;
    fill(&store, 500..510)?;
    let before: State = collect(store.iter()?)?;
    let other = MemoryFolder::new();
    let disk = gated(other.clone());
    disk.hook().hold(|verb, name| verb == "write" && !name.is_empty());
    thread::scope(|scope| {
        let copy = scope.spawn(|| store.checkpoint_in(&disk));
        disk.hook().wait_for_held();
        let written = fill(&store, 1000..1000 + MANY).and_then(|()| store.compact());
        let runs = store.stats().runs.len();
        disk.hook().release();
        written?;
        assert_eq!(runs, 1, "merged while the copy was made");
        copy.join().expect("no panic")
    })?;
    let copy = options().open_in(Arc::new(other))?;
    assert!(collect(copy.iter()?)? == before, "the copy is not of one moment");
    assert!(copy.verify(|_, _| ())?.damages.is_empty());
    Ok(())
}

/// A filter that panics at one key, and how often it was called with that.
fn panicking() -> (Arc<AtomicU64>, LsmOptions) {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let options = options().compaction_filter(move |key, _| {
        let is_bad = key == b"000007";
        counted.fetch_add(u64::from(is_bad), Ordering::Relaxed);
        assert!(!is_bad, "it cannot read 000007");
        true
    });
    (calls, options)
}

#[test]
fn a_filter_that_panics_is_an_error_once_and_the_store_goes_on() -> Outcome {
    let (calls, options) = panicking();
    let store = options.open_in(Arc::new(store_of_runs()?))?;
    let refused = store.compact();
    let Err(Error::FilterPanicked { reason }) = &refused else { panic!("{refused:?}") };
    assert!(reason.contains("it cannot read 000007"), "{reason}");
    store.compact()?;
    fill(&store, 0..MANY)?;
    store.compact()?;
    let stats = store.stats();
    assert_eq!((calls.load(Ordering::Relaxed), stats.runs.len()), (1, 1));
    assert_eq!(stats.filter_panicked, Some("it cannot read 000007".to_owned()));
    assert_eq!((stats.merge_failed, stats.flush_failed, stats.poisoned), (None, None, false));
    assert_eq!(u32::try_from(store.iter()?.count())?, MANY);
    store.close()?;
    Ok(())
}

#[test]
fn a_filter_that_panics_in_a_thread_stops_neither_writes_nor_the_end() -> Outcome {
    for is_closed in [false, true] {
        let (calls, options) = panicking();
        let store = options.open_in(Arc::new(MemoryFolder::new()))?;
        // Each memtable has the key; the first flush meets it.
        for _ in 0..20 {
            fill(&store, 0..40)?;
        }
        store.flush()?;
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert!(store.stats().filter_panicked.is_some() && store.contains(b"000007")?);
        if is_closed { store.close()? } else { drop(store) }
    }
    Ok(())
}

#[test]
fn a_batch_beyond_the_limit_is_refused_and_a_single_put_is_not() -> Outcome {
    let options = LsmOptions::default().max_batch_bytes(1000);
    let store = options.open_in(Arc::new(MemoryFolder::new()))?;
    let mut batch = Batch::new();
    while batch.len() < 8 {
        batch.put(&key(1), &VALUE)?;
    }
    let refused = store.write(&batch, NONE).expect_err("more than 1000 bytes");
    assert!(matches!(refused, Error::BatchTooLarge { max: 1000, bytes: 1001.. }), "{refused:?}");
    assert!(refused.to_string().contains("LsmOptions::max_batch_bytes"), "{refused}");
    assert!(!store.contains(&key(1))?, "nothing of it was written");
    store.put(&key(1), &[1; 5000], NONE)?;
    batch.clear();
    store.write(batch.put(&key(2), &VALUE)?.put(&key(3), &VALUE)?, NONE)?;
    assert_eq!(store.iter()?.count(), 3);
    Ok(())
}

#[test]
fn every_ratio_takes_more_memtables_than_a_level_has_runs() -> Outcome {
    for policy in [CompactionPolicy::LazyLevelled, CompactionPolicy::Tiered] {
        for ratio in [5, 24, 25, 32] {
            let options = options().policy(policy).ratio(ratio);
            let store = options.open_in(Arc::new(MemoryFolder::new()))?;
            for round in 0..5 {
                fill(&store, round * MANY..(round + 1) * MANY)?;
            }
            assert_eq!(u32::try_from(store.iter()?.count())?, 5 * MANY, "{policy:?}, {ratio}");
        }
    }
    Ok(())
}

#[test]
fn the_write_that_fills_a_memtable_finds_the_next_file_of_the_log() -> Outcome {
    let (inner, made) = (MemoryFolder::new(), Arc::new(AtomicU64::new(0)));
    let folder = gated(inner.clone());
    let (me, counted) = (thread::current().id(), made.clone());
    folder.hook().hold(move |verb, name| {
        let is_mine = name.ends_with(".log") && thread::current().id() == me;
        counted.fetch_add(u64::from(verb == "create" && is_mine), Ordering::Relaxed);
        false
    });
    let store = options().open_in(Arc::new(folder))?;
    let logs = || -> BTreeSet<String> {
        inner.contents().into_keys().filter(|name| name.ends_with(".log")).collect()
    };
    let mut numbers = 0..;
    let mut fill_to = |bytes| {
        while store.stats().memtable_bytes < bytes {
            fill(&store, numbers.next())?;
        }
        Ok::<_, Error>(())
    };
    for _ in 0..5 {
        let before = logs();
        fill_to(MEMTABLE / 2)?;
        // The file of the memtable before goes, perhaps after the next one has come.
        wait_until("the next file is there", || {
            let logs = logs();
            store.stats().sealed_memtables == 0 && logs.len() == 2 && logs.last() > before.last()
        });
        fill_to(MEMTABLE)?;
        // The next write starts another memtable.
        fill(&store, [0])?;
        wait_until("it is flushed", || store.stats().sealed_memtables == 0);
    }
    assert_eq!(made.load(Ordering::Relaxed), 1, "the first file, by the first write");
    store.close()?;
    assert_eq!(logs().len(), 1, "none is left over");
    Ok(())
}

#[test]
fn a_closed_store_has_little_to_replay() -> Outcome {
    let folder = MemoryFolder::new();
    let store = options().open_in(Arc::new(folder.clone()))?;
    fill(&store, 0..100)?;
    store.close()?;
    let store = options().open_in(Arc::new(folder.clone()))?;
    assert!(store.open_report().replayed < 1000, "{:?}", store.open_report());
    let runs = store.stats().runs.len();
    assert!(runs > 0 && store.iter()?.count() == 100);
    // A few entries leave no table.
    store.put(b"one more", b"", NONE)?;
    store.close()?;
    let store = options().open_in(Arc::new(folder))?;
    assert_eq!((store.stats().runs.len(), store.iter()?.count()), (runs, 101));
    Ok(())
}
