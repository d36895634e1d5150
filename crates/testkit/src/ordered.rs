//! Ordered stores of unknown bytes: a fuzzer's input becomes a manifest, logs and tables. The store
//! is refused with a reason in one line, or `verify` reports damage, or all ways of reading it
//! agree. Damaged or not, ranges are in order and within their bounds, and every read ends.
//!
//! Inputs are those of `stores.rs`, with tables in the place of hints. The checksums of manifest
//! and logs are made valid again; `tables.rs` does that for tables.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use koel_store::{Batch, Durability, Error, LsmOptions, LsmStore};

use crate::exercise::is_one_line;
use crate::storage::{MemoryFolder, State};
use crate::stores::{Files, files_of, input_of, one_line, seal};

/// New stores have the same seed, so that an input does the same each time.
pub(crate) fn options() -> LsmOptions {
    LsmOptions::default().memtable_bytes(1 << 10).background(false).guide(3, 1).seed(7)
}

/// Returns the files with tables in the place of hints, or the reverse.
fn renamed(files: Files, from: &str, to: &str) -> Files {
    files.into_iter().map(|(name, bytes)| (name.replace(from, to), bytes)).collect()
}

/// Reads a store in all ways, which agree unless `verify` reports damage. Returns its entries, if
/// an iteration reads all of them.
fn read_all_ways(store: &LsmStore) -> Option<State> {
    let forwards = store.iter().and_then(|range| in_order(range, true));
    let backwards = store.iter().and_then(|range| in_order(range.rev(), false));
    let probes = probes(forwards.as_deref().unwrap_or_default());
    let many = store.get_many(&probes);
    let after: Result<Vec<_>, Error> = probes.iter().map(|key| first_from(store, key)).collect();
    let verified = store.verify(|read, all| assert!(read <= all)).inspect_err(one_line);
    let is_whole = verified.is_ok_and(|report| {
        assert!(report.damages.iter().all(|damage| is_one_line(&damage.to_string())));
        report.damages.is_empty()
    });
    assert!(is_one_line(&format!("{:?}", store.stats())));
    if is_whole {
        let entries: State = forwards.expect("no damage").into_iter().collect();
        assert!(entries.iter().rev().eq(backwards.expect("no damage").iter().map(as_pair)));
        let values = probes.iter().map(|key| entries.get(key).cloned());
        assert!(values.eq(many.expect("no damage")), "get differs");
        let next = |key: &Vec<u8>| entries.range(key.clone()..).next().map(|(key, _)| key.clone());
        assert!(probes.iter().map(next).eq(after.expect("no damage")), "a range differs");
        return Some(entries);
    }
    for error in [backwards.err(), many.err(), after.err()].iter().flatten() {
        one_line(error);
    }
    Some(forwards.inspect_err(one_line).ok()?.into_iter().collect())
}

type Pair = (Vec<u8>, Vec<u8>);

fn as_pair((key, value): &Pair) -> (&Vec<u8>, &Vec<u8>) {
    (key, value)
}

/// Returns the entries of a range, which must be in order.
fn in_order(
    range: impl Iterator<Item = Result<Pair, Error>>,
    ascending: bool,
) -> Result<Vec<Pair>, Error> {
    let entries = range.collect::<Result<Vec<_>, Error>>()?;
    let order = if ascending { Ordering::Less } else { Ordering::Greater };
    assert!(entries.is_sorted_by(|one, other| one.0.cmp(&other.0) == order), "keys out of order");
    Ok(entries)
}

/// Returns the keys of some entries, and for each another key.
fn probes(entries: &[Pair]) -> Vec<Vec<u8>> {
    entries.iter().flat_map(|(key, _)| [key.clone(), [key, &[0][..]].concat()]).collect()
}

/// Returns the first key of a range, which ends at the second one of it: both must be within it.
fn first_from(store: &LsmStore, from: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut range = store.range(from..)?;
    let first = range.next().transpose()?.map(|(key, _)| key);
    assert!(first.as_deref().is_none_or(|first| first >= from), "a key before the range");
    if let Some(first) = &first
        && let Some((last, _)) = store.range(..first.as_slice())?.next_back().transpose()?
    {
        assert!(last < *first, "a key behind the range");
    }
    Ok(first)
}

/// Checks the promise for any files. `whole` means that no checksum was forged; then a store that
/// was written to opens again.
pub(crate) fn arbitrary_files(files: Files, whole: bool) {
    let damaged = MemoryFolder::with(files.clone());
    let salvaged = options().open_in(Arc::new(MemoryFolder::new())).expect("a new store");
    if let Err(error) = salvaged.salvage_in(&damaged, |done, all| assert!(done <= all)) {
        one_line(&error);
    }
    assert!(damaged.contents() == files, "the damaged store was changed");
    read_all_ways(&salvaged);
    let sound = salvaged.verify(|_, _| ()).is_ok_and(|report| report.damages.is_empty());
    assert!(sound, "what was salvaged is not sound");
    let folder = Arc::new(MemoryFolder::with(files.clone()));
    let read = options().read_only(true).open_in(folder.clone());
    let read = read.inspect_err(one_line).map(|store| read_all_ways(&store));
    assert!(folder.contents() == files, "a read-only store has written");
    let Ok(store) = options().open_in(folder.clone()).inspect_err(one_line) else { return };
    let mut expected = read_all_ways(&store);
    let is_new = !files.contains_key("MANIFEST");
    assert!(is_new || read.ok() == Some(expected.clone()), "read-only it finds something else");
    let put = store.put(b"a key of the trial", &[7; 2000], Durability::None);
    let flushed = store.flush().and_then(|()| store.compact());
    for error in [put.as_ref().err(), flushed.as_ref().err()].into_iter().flatten() {
        one_line(error);
    }
    if let Some(expected) = &mut expected {
        expected.insert(b"a key of the trial".to_vec(), vec![7; 2000]);
    }
    let closed = store.close();
    if whole && put.is_ok() && closed.is_ok() {
        let store = options().open_in(folder).expect("a store that was closed");
        let found = read_all_ways(&store);
        assert!(expected.is_none() || found == expected, "not what was there");
    }
}

/// Checks the promise for the files of a fuzzer's input, unchanged and with valid checksums.
///
/// # Panics
/// If the promise is broken.
pub fn fuzzed_bytes(input: &[u8]) {
    let mut files = renamed(files_of(input), ".hint", ".table");
    arbitrary_files(files.clone(), true);
    seal(&mut files);
    arbitrary_files(files, false);
}

/// The seed stores for fuzzing: closed or crashed, with none to three tables, and with batches,
/// deletions and large values.
///
/// # Panics
/// If a store refuses its writes.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let stores = (0..4).flat_map(|rounds| [true, false].map(|closed| store_of(rounds, closed)));
    stores.map(|files| input_of(&renamed(files, ".table", ".hint"))).collect()
}

fn store_of(rounds: u8, closed: bool) -> BTreeMap<String, Vec<u8>> {
    let folder = MemoryFolder::new();
    let store = options().open_in(Arc::new(folder.clone())).expect("a new store");
    for round in 0..rounds {
        for key in 0..4 {
            let value = &[round; 20][..usize::from(5 * key)];
            store.put(&[b'k', key], value, Durability::None).expect("a write");
        }
        store.put(b"", b"the empty key", Durability::Synced).expect("a write");
        store.flush().expect("a flush");
        let mut batch = Batch::new();
        batch.put(b"a", &[round]).and_then(|it| it.put(b"b", b"")).expect("short");
        batch.delete(&[b'k', round]).expect("short");
        store.write(&batch, Durability::None).expect("a write");
        if round == 2 {
            store.put(b"large", &[0; 70_000], Durability::None).expect("a write");
        }
    }
    let files = folder.contents();
    if closed {
        store.close().expect("an end");
        return folder.contents();
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_sound_and_as_if_sealed_here() {
        for seed in seeds() {
            let files = renamed(files_of(&seed), ".hint", ".table");
            let mut again = files.clone();
            seal(&mut again);
            assert!(again == files, "checksums of another format");
            arbitrary_files(files, true);
        }
    }

    /// With another seed no hash fits: iterations find every entry, gets none, and `verify` says
    /// so.
    #[test]
    fn a_manifest_with_the_seed_of_another_store_is_reported() {
        let mut files = store_of(2, true);
        // Behind the header of the record, its key `store`, and the number for `clean`.
        let manifest = files.get_mut("MANIFEST").unwrap();
        let key = manifest.windows(5).position(|bytes| bytes == b"store").unwrap();
        manifest[key + 5 + 8] ^= 1;
        seal(&mut files);
        let store = options().open_in(Arc::new(MemoryFolder::with(files.clone()))).unwrap();
        assert!(store.iter().unwrap().count() > 0);
        assert!(store.get(&[b'k', 2]).unwrap().is_none());
        assert!(!store.verify(|_, _| ()).unwrap().damages.is_empty());
        arbitrary_files(files, false);
    }
}
