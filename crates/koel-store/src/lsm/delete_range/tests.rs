//! More range deletions than the store keeps.

use crate::{Durability, Error, LsmOptions, LsmStore};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const NONE: Durability = Durability::None;

fn open(folder: &tempfile::TempDir) -> Result<LsmStore, Error> {
    let options = LsmOptions::default().few_entries(0).background(false).seed(1);
    options.open(folder.path())
}

fn key(number: u32) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

/// Puts two keys for each number, and deletes the first one in a range of its own.
fn delete(store: &LsmStore, number: u32) -> Result<(), Error> {
    store.put(&key(2 * number), b"1815", NONE)?;
    store.put(&key(2 * number + 1), b"1906", NONE)?;
    store.delete_range(key(2 * number)..key(2 * number + 1), NONE)
}

#[test]
fn everything_is_merged_before_range_deletions_take_too_much_memory() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = open(&folder)?;
    let mut most = 0;
    for number in 0..500 {
        delete(&store, number)?;
        most = most.max(store.stats().range_deletions);
    }
    assert!((20..200).contains(&most), "{most} range deletions at once");
    assert!(store.stats().merged_bytes > 0);
    let left: Vec<Vec<u8>> =
        store.iter()?.map(|entry| entry.map(|(key, _)| key)).collect::<Result<_, _>>()?;
    assert_eq!(left, (0..500).map(|number| key(2 * number + 1)).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn snapshots_that_keep_too_many_range_deletions_are_named() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = open(&folder)?;
    store.put(b"0", b"", NONE)?;
    let snapshot = store.snapshot();
    let refused = (0..500).find_map(|number| delete(&store, number).err());
    let Some(Error::RangesHeld { bytes, max }) = refused else {
        panic!("{refused:?}");
    };
    assert!(bytes > max);
    let mut transaction = store.transaction();
    transaction.delete_range::<&[u8]>(..)?;
    assert!(matches!(transaction.commit(NONE), Err(Error::RangesHeld { .. })));
    // A range without entries needs none.
    store.delete_range(&b"a"[..]..&b"b"[..], NONE)?;
    drop(snapshot);
    store.delete_range::<&[u8]>(.., NONE)?;
    assert_eq!(store.iter()?.count(), 0);
    Ok(())
}

/// The deletions of its keys would be a batch that the store refuses.
#[test]
fn a_range_is_deleted_whatever_the_size_of_a_batch() -> Outcome {
    let folder = tempfile::tempdir()?;
    let options = LsmOptions::default().max_batch_bytes(100).background(false).seed(1);
    let store = options.open(folder.path())?;
    (0..50).try_for_each(|number| store.put(&key(number), b"1815", NONE))?;
    store.delete_range(key(10)..key(40), NONE)?;
    assert_eq!(store.iter()?.count(), 20);
    Ok(())
}
