//! Merges beside a damaged table, and beside a snapshot.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;

use koel_store::{CompactionPolicy, Error, LsmOptions, LsmStore};
use testkit::storage::{MemoryFolder, State};

use super::behaviour::{NONE, Outcome};
use super::trial::collect;

/// Bytes of values; a memtable is full after about 60 of them.
const VALUE: [u8; 100] = [7; 100];

/// LogOptions with which two runs of a level are one too many.
fn options() -> LsmOptions {
    let options = LsmOptions::default().memtable_bytes(8 << 10).background(false).cache_bytes(0);
    options.policy(CompactionPolicy::Levelled).ratio(2).seed(1)
}

fn key(group: u8, number: u32) -> Vec<u8> {
    format!("{}{number:05}", char::from(group)).into_bytes()
}

fn fill(store: &LsmStore, group: u8, count: u32) -> usize {
    let puts = (0..count).map(|number| store.put(&key(group, number), &VALUE, NONE));
    puts.filter(Result::is_err).count()
}

/// Returns the files of a store of one run, the first block of which is damaged, and its name.
fn damaged_store() -> Result<(MemoryFolder, String), Error> {
    let folder = MemoryFolder::new();
    let store = options().open_in(Arc::new(folder.clone()))?;
    assert_eq!(fill(&store, b'a', 300), 0);
    store.compact()?;
    let name = format!("{:016x}.table", store.stats().runs[0].number);
    store.close()?;
    let mut files = folder.contents();
    files.get_mut(&name).expect("the run")[100] ^= 1;
    Ok((MemoryFolder::with(files), name))
}

#[test]
fn a_damaged_table_is_left_alone_by_all_merges_but_the_first() -> Outcome {
    let (folder, name) = damaged_store()?;
    let store = options().open_in(Arc::new(folder))?;
    let failed = fill(&store, b'b', 3000);
    let stats = store.stats();
    assert_eq!(failed, 1, "{stats:?}");
    let (damaged, others) = stats.runs.split_last().expect("runs");
    assert!(damaged.failed.as_ref().is_some_and(|reason| reason.contains(&name)), "{stats:?}");
    assert!(others.len() < 6 && others.iter().all(|run| run.failed.is_none()), "{stats:?}");
    assert!(stats.merged_bytes > stats.flushed_bytes, "{stats:?}");
    assert_eq!(stats.merge_failed, None, "the last merge succeeded");
    // What is not in the damaged block is still there.
    assert_eq!(store.get(&key(b'b', 2998))?.as_deref(), Some(&VALUE[..]));
    assert_eq!(store.get(&key(b'a', 299))?.as_deref(), Some(&VALUE[..]));
    for _ in 0..2 {
        let refused = store.compact();
        assert!(
            matches!(&refused, Err(Error::Damaged { file, .. }) if *file == name),
            "{refused:?}"
        );
    }
    assert!(store.stats().merge_failed.is_some_and(|reason| reason.contains(&name)));
    Ok(())
}

#[test]
fn a_damaged_block_is_skipped_once_all_of_its_keys_are_overwritten() -> Outcome {
    let (folder, _) = damaged_store()?;
    let store = options().policy(CompactionPolicy::Tiered).ratio(32).open_in(Arc::new(folder))?;
    // The first block has about 35 keys. Without the last of them it is not overwritten.
    let in_block = (0..300).take_while(|&number| store.get(&key(b'a', number)).is_err()).count();
    let last = u32::try_from(in_block)? - 1;
    (0..last).try_for_each(|number| store.put(&key(b'a', number), b"new", NONE))?;
    assert!(matches!(store.compact(), Err(Error::Damaged { .. })));
    store.delete(&key(b'a', last), NONE)?;
    let snapshot = store.snapshot();
    store.put(b"more", b"", NONE)?;
    assert!(matches!(store.compact(), Err(Error::Damaged { .. })), "a snapshot may need it");
    drop(snapshot);
    store.compact()?;
    let stats = store.stats();
    assert_eq!((stats.runs.len(), stats.damage_skipped, stats.merge_failed), (1, 1, None));
    assert!(store.verify(|_, _| ())?.damages.is_empty());
    for number in 0..300 {
        let value = store.get(&key(b'a', number))?;
        let expected = if number < last { Some(&b"new"[..]) } else { Some(&VALUE[..]) };
        let expected = expected.filter(|_| number != last);
        assert_eq!(value.as_deref(), expected, "{number}");
    }
    Ok(())
}

#[test]
fn a_snapshot_keeps_what_a_filter_drops_in_a_merge_that_runs_meanwhile() -> Outcome {
    let ((begun, has_begun), (go, may_go)) = (sync_channel(1), sync_channel(1));
    let (is_armed, gate) = (Arc::new(AtomicBool::new(false)), Mutex::new((begun, may_go)));
    let flag = is_armed.clone();
    let options = options().compaction_filter(move |key, _| {
        if !flag.load(Ordering::Relaxed) {
            return true;
        }
        if key[0] == b'z' {
            // All other entries are dropped by now. The merge waits until a snapshot was taken.
            let gate = gate.lock().expect("one merge");
            gate.0.send(()).is_ok() && gate.1.recv().is_ok()
        } else {
            false
        }
    });
    let store = options.open_in(Arc::new(MemoryFolder::new()))?;
    store.put(b"a session", b"1", NONE)?;
    store.put(b"z", b"stays", NONE)?;
    store.compact()?;
    is_armed.store(true, Ordering::Relaxed);
    let before: State = collect(store.iter()?)?;
    let snapshot = thread::scope(|scope| {
        let merge = scope.spawn(|| store.compact());
        has_begun.recv()?;
        let snapshot = store.snapshot();
        go.send(())?;
        merge.join().expect("no panic")?;
        Ok::<_, Box<dyn std::error::Error>>(snapshot)
    })?;
    assert_eq!(collect(store.iter()?)?.into_keys().collect::<Vec<_>>(), [b"z"]);
    assert!(collect(snapshot.iter()?)? == before, "the snapshot has changed");
    assert_eq!(snapshot.get(b"a session")?.as_deref(), Some(&b"1"[..]));
    assert!(snapshot.contains(b"a session")? && !store.contains(b"a session")?);
    assert_eq!(collect(snapshot.prefix(b"a ")?)?.len(), 1);
    Ok(())
}
