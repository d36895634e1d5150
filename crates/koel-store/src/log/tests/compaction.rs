//! Compaction: the records it drops, its cost, and concurrent reads and writes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{NONE, Outcome, all, key, new_store, options, reopened};
use crate::log::pick::Policy;
use crate::log::{CompactReport, LogStore};
use crate::{Batch, Durability, Error};

/// The tombstone has the first sequence number after those that the compaction saw. The first
/// compaction picks the segment with the value, the second only that with the tombstone.
#[test]
fn a_key_deleted_right_after_a_compaction_stays_deleted() -> Outcome {
    let (folder, store) = new_store()?;
    store.put(b"key", b"value", NONE)?;
    store.put(b"big", &[1; 500], NONE)?;
    for i in 0..30 {
        store.put(&key(i), &[1; 60], NONE)?;
    }
    store.put(b"big", &[2; 500], NONE)?;
    assert_eq!(store.compact()?.segments, 1);
    assert!(store.delete(b"key", NONE)?);
    store.put(b"other", &[3; 3000], NONE)?;
    store.put(b"other", &[4; 3000], NONE)?;
    assert_eq!(store.compact()?.segments, 1);
    let store = reopened(store, &folder)?;
    assert_eq!(store.get(b"key")?, None);
    assert_eq!(store.stats().keys, 32);
    Ok(())
}

#[test]
fn everything_deleted_leaves_nothing_behind() -> Outcome {
    let (_folder, store) = new_store()?;
    for round in 0..3 {
        for i in 0..500 {
            store.put(&key(i), &[round; 60], NONE)?;
        }
        for i in 0..500 {
            assert!(store.delete(&key(i), NONE)?);
        }
    }
    assert!(store.stats().segments > 20);
    store.compact()?;
    let stats = store.stats();
    assert_eq!((stats.keys, stats.dead_bytes), (0, 0));
    assert!(stats.log_bytes < 4096 && stats.segments <= 2, "{stats:?}");
    Ok(())
}

/// Each synced write is followed by a mark: here 32 of 64 bytes.
#[test]
fn compaction_frees_the_space_of_marks_once() -> Outcome {
    let folder = tempfile::tempdir()?;
    let open = |background| options().background_compaction(background).open(folder.path());
    let store = open(false)?;
    for i in 0..300 {
        store.put(&key(i), &[1; 8], Durability::Synced)?;
    }
    let before = store.stats();
    store.close()?;
    let store = open(false)?;
    let compacted = store.compact()?;
    assert!(compacted.segments >= 4 && compacted.written < compacted.read * 2 / 3, "{compacted:?}");
    let after = store.stats();
    assert!(after.log_bytes < before.log_bytes * 2 / 3, "{before:?} {after:?}");
    assert_eq!((after.dead_bytes, after.keys), (0, 300));
    assert_eq!(store.compact()?, CompactReport::default());
    store.close()?;
    let store = open(false)?;
    assert_eq!(store.compact()?, CompactReport::default());
    store.close()?;
    // The background thread does so too, and then finds nothing more to do.
    let store = open(true)?;
    for i in 300..600 {
        store.put(&key(i), &[1; 8], Durability::Synced)?;
    }
    let start = Instant::now();
    while store.stats().log_bytes > 600 * 32 * 3 / 2 {
        assert!(start.elapsed().as_secs() < 60, "{:?}", store.stats());
        std::thread::sleep(Duration::from_millis(1));
    }
    store.close()?;
    let store = open(false)?;
    assert!(store.stats().compacted_bytes == 0 && store.verify(|_, _| ())?.damages.is_empty());
    Ok(())
}

#[test]
fn tombstones_are_dropped_although_the_oldest_segments_never_change() -> Outcome {
    let (_folder, store) = new_store()?;
    for i in 0..1000 {
        store.put(&key(i), &[0; 60], NONE)?;
    }
    let before = store.stats().log_bytes;
    for i in 1000..20_000 {
        store.put(&key(i), &[1; 10], NONE)?;
        assert!(store.delete(&key(i), NONE)?);
        if i % 1000 == 0 {
            store.compact()?;
        }
    }
    store.compact()?;
    let stats = store.stats();
    assert!(stats.log_bytes < before + before / 10, "{before} bytes and then {stats:?}");
    assert_eq!(stats.keys, 1000);
    Ok(())
}

#[test]
fn a_record_overwritten_while_it_is_copied_is_dead_in_the_new_segment() -> Outcome {
    let (folder, store) = new_store()?;
    for i in 0..50 {
        store.put(&key(i), &[1; 50], NONE)?;
        store.put(b"dead", &[1; 50], NONE)?;
    }
    store.delete(b"dead", NONE)?;
    store.store().seal_for_compaction()?;
    let (mut views, mut after) = (Vec::new(), BTreeMap::new());
    store.store().compact(Policy::THOROUGH, &mut |_, _| {
        if views.is_empty() {
            for i in 0..50 {
                store.put(&key(i), &[2; 50], NONE).expect("a write");
            }
            after = all(&store).expect("all pairs");
            views.push(store.iter());
        }
        true
    })?;
    assert!(after.values().all(|value| *value == [2; 50]));
    for view in views {
        let seen: Vec<_> = view.collect::<Result<_, _>>()?;
        assert_eq!(seen.len(), 50, "a key came twice, or not at all");
        assert_eq!(BTreeMap::from_iter(seen), after);
    }
    assert!(store.verify(|_, _| {})?.damages.is_empty());
    let dead = store.stats().dead_bytes;
    let store = reopened(store, &folder)?;
    assert_eq!((all(&store)?, store.stats().dead_bytes), (after, dead));
    Ok(())
}

#[test]
fn compaction_can_be_stopped_while_nothing_is_copied() -> Outcome {
    let (_folder, store) = new_store()?;
    for i in 0..500 {
        store.put(b"key", &key(i), NONE)?;
    }
    store.store().seal_for_compaction()?;
    let mut asked = Vec::new();
    let compacted = store.store().compact(Policy::THOROUGH, &mut |_, bytes| {
        asked.push(bytes);
        asked.len() < 10
    })?;
    assert_eq!((asked, compacted), (vec![0; 10], CompactReport::default()));
    assert!(store.compact()?.segments > 0);
    Ok(())
}

/// Returns the bytes written by puts and compaction per byte appended, in 40,000 overwrites of 4000
/// keys. A fifth of the keys gets `hot_percent` of the writes, and its share of the others.
fn write_amplification(hot_percent: u64) -> Result<f64, Box<dyn std::error::Error>> {
    use testkit::keys::splitmix64;

    let folder = tempfile::tempdir()?;
    let store = options().segment_bytes(16 << 10).open(folder.path())?;
    let overwrite = |draw: u64| -> Outcome {
        let point = splitmix64(!draw);
        let is_hot = splitmix64(draw) % 100 < hot_percent;
        let number = if is_hot { point % 800 * 5 } else { point % 4000 };
        store.put(&number.to_le_bytes(), &[1; 20], NONE)?;
        if draw.is_multiple_of(20) {
            store.store().compact(Policy::BACKGROUND, &mut |_, _| true)?;
            let stats = store.stats();
            assert!(stats.dead_bytes * 10 <= stats.log_bytes * 3, "{stats:?}");
        }
        Ok(())
    };
    (0..4000_u64).try_for_each(|number| store.put(&number.to_le_bytes(), &[1; 20], NONE))?;
    (0..20_000).try_for_each(overwrite)?;
    let before = store.stats();
    (20_000..60_000).try_for_each(overwrite)?;
    let after = store.stats();
    let appended = (after.appended_bytes - before.appended_bytes) as f64;
    Ok(1.0 + (after.compacted_bytes - before.compacted_bytes) as f64 / appended)
}

/// When segments were picked by their dead share alone, both logs were rewritten about as much:
/// 2.29 and 2.10. No policy gets below 1.8 if all keys are overwritten equally often.
#[test]
fn a_log_with_a_few_hot_keys_is_rewritten_less() -> Outcome {
    let (uniform, hot) = (write_amplification(0)?, write_amplification(95)?);
    assert!((1.8..2.5).contains(&uniform), "{uniform}");
    assert!(hot < 0.8 * uniform, "{hot}");
    Ok(())
}

/// Once each MiB took 0.1 s at every rate, and so did a record of any length.
#[test]
fn background_compaction_keeps_its_rate_and_stops_at_once() -> Outcome {
    let folder = tempfile::tempdir()?;
    let options = || options().segment_bytes(6 << 20).compaction_rate(64 << 10);
    let store = options().open(folder.path())?;
    // 27 % is dead: enough for a compaction, but not urgent.
    store.put(b"stays", &[1; 4 << 20], NONE)?;
    store.put(b"goes", &[2; 1_945_000], NONE)?;
    store.put(b"goes", b"", NONE)?;
    store.close()?;
    let store = options().background_compaction(true).open(folder.path())?;
    store.put(b"next", &[3; 1 << 20], NONE)?;
    let stats = store.stats();
    assert!((26..28).contains(&(stats.dead_bytes * 100 / stats.log_bytes)), "{stats:?}");
    let copy = folder.path().join("0000000000000003.log");
    let start = Instant::now();
    while !copy.exists() {
        assert!(start.elapsed().as_secs() < 60, "nothing is compacted");
        std::thread::sleep(Duration::from_millis(1));
    }
    let start = Instant::now();
    while start.elapsed().as_millis() < 1500 {
        assert_eq!(store.stats().compacted_bytes, 0, "4 MiB at 64 KiB a second");
        std::thread::sleep(Duration::from_millis(100));
    }
    store.close()?;
    let original = folder.path().join("0000000000000001.log");
    assert!(original.exists(), "closing waited for the end of the compaction");
    Ok(())
}

#[test]
fn a_store_compacted_right_after_opening_can_be_closed() -> Outcome {
    let (folder, store) = new_store()?;
    for i in 0..300 {
        store.put(&key(i % 100), &[1; 50], NONE)?;
    }
    store.put_reader(b"last", 100_000, &[1; 100_000][..], NONE)?;
    let store = reopened(store, &folder)?;
    assert!(store.compact()?.segments > 0);
    let store = reopened(store, &folder)?;
    assert!(store.open_report().was_closed);
    assert_eq!(store.open_report().replayed, 0);
    assert_eq!(store.stats().keys, 101);
    Ok(())
}

/// Once the index kept the memory of deleted keys as long as the store was open.
#[test]
fn compaction_frees_the_memory_of_deleted_keys() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = options().segment_bytes(16 << 20).open(folder.path())?;
    let write = |keys: std::ops::Range<u32>, value: Option<&[u8]>| {
        let mut batch = Batch::new();
        for i in keys {
            match value {
                Some(value) => batch.put(&key(i), value)?,
                None => batch.delete(&key(i))?,
            };
        }
        store.write(&batch, NONE)
    };
    let all = 300_000;
    (0..all).step_by(1000).try_for_each(|first| write(first..first + 1000, Some(b"")))?;
    let full = store.stats().index_bytes;
    (1000..all).step_by(1000).try_for_each(|first| write(first..first + 1000, None))?;
    assert_eq!(store.stats().index_bytes, full);
    store.compact()?;
    let stats = store.stats();
    assert!(stats.keys == 1000 && stats.index_bytes < full / 2, "{full} bytes before: {stats:?}");
    for i in (0..1000).chain((1000..all).step_by(997)) {
        assert_eq!(store.contains(&key(i))?, i < 1000, "{i}");
    }
    (1000..all).step_by(1000).try_for_each(|first| write(first..first + 1000, Some(b"")))?;
    assert_eq!(store.stats().keys, u64::from(all));
    Ok(())
}

/// Once a compaction and the writer both took the last free slot. Records of one segment were then
/// looked up in the other, and the store did not open any more.
#[test]
fn the_last_free_slot_goes_to_one_segment() -> Outcome {
    let folder = tempfile::tempdir()?;
    // The number of segments of this size for which there are slots.
    let (open, slots) = (|| options().segment_bytes(16 << 30).open(folder.path()), 128);
    let store = open()?;
    let twice = |i| (0..2).try_for_each(|_| store.put(&key(i), &key(i), NONE));
    for i in 0..slots - 2 {
        twice(i)?;
        store.store().seal_for_compaction()?;
    }
    twice(slots - 2)?;
    assert_eq!(store.stats().segments, u64::from(slots) - 1);
    let mut sealed = Vec::new();
    store.store().compact(Policy::THOROUGH, &mut |store, copied| {
        if copied > 0 && sealed.is_empty() {
            sealed.push(store.seal_for_compaction());
        }
        true
    })?;
    assert!(matches!(sealed[..], [Err(Error::Full { segments: 128 })]), "{sealed:?}");
    let check = |store: &LogStore| {
        (0..slots - 1).try_for_each(|i| {
            assert_eq!(store.get(&key(i))?, Some(key(i).to_vec()), "key {i}");
            Ok::<_, Error>(())
        })
    };
    check(&store)?;
    store.close()?;
    check(&open()?)?;
    Ok(())
}
