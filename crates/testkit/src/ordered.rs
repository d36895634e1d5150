//! Ordered stores of unknown bytes: a fuzzer's input becomes a manifest, logs and tables. The store
//! is refused with a reason in one line, or all ways of reading it agree.
//!
//! Inputs are those of `stores.rs`, with tables in the place of hints. The checksums of manifest
//! and logs are made valid again; `tables.rs` does that for tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use koel_store::{Batch, Durability, Error, LsmOptions, LsmStore};
use xxhash_rust::xxh3::xxh3_64;

use crate::exercise::is_one_line;
use crate::storage::{MemoryFolder, State};
use crate::stores::{Files, Record, files_of, input_of, number_in, salt_of, set};

/// Offset of the first record of a manifest, and of a log.
const FIRST: [usize; 2] = [32, 40];
/// Offset of the checksum of the header of a manifest.
const CHECKSUM: usize = 24;

fn options() -> LsmOptions {
    LsmOptions::default().memtable_bytes(1 << 10).background(false).guide(3, 1)
}

/// Returns the files with tables in the place of hints, or the reverse.
fn renamed(files: Files, from: &str, to: &str) -> Files {
    files.into_iter().map(|(name, bytes)| (name.replace(from, to), bytes)).collect()
}

/// Makes the checksums of manifest and logs valid, and gives logs the salt of the manifest.
fn seal(files: &mut Files) {
    let salt = salt_of(files);
    for (name, bytes) in files {
        let is_manifest = name == "MANIFEST";
        if is_manifest {
            let checksum = xxh3_64(&bytes[..bytes.len().min(CHECKSUM)]);
            set(bytes, CHECKSUM, checksum);
        } else if name.ends_with(".log") {
            set(bytes, 16, salt);
            let checksum = xxh3_64(&bytes[..bytes.len().min(32)]);
            set(bytes, 32, checksum);
        } else {
            continue;
        }
        let number = if is_manifest { 0 } else { number_in(name) };
        let mut at = FIRST[usize::from(!is_manifest)];
        while let Some(record) = Record::at(bytes, at) {
            for (place, checksum) in record.checksums(salt, number, bytes, at) {
                set(bytes, place, checksum);
            }
            at = record.end;
        }
    }
}

fn one_line(error: &Error) {
    assert!(is_one_line(&error.to_string()), "{error}");
}

/// Reads a store in all ways, which must agree. Returns its entries, if all were readable.
fn read_all_ways(store: &LsmStore) -> Option<State> {
    let read = || -> Result<State, Error> {
        let forwards = store.iter()?.collect::<Result<Vec<_>, Error>>()?;
        let mut backwards = store.iter()?.rev().collect::<Result<Vec<_>, Error>>()?;
        backwards.reverse();
        assert!(forwards.is_sorted_by(|one, other| one.0 < other.0), "keys out of order");
        assert!(forwards == backwards, "both directions differ");
        let keys: Vec<&Vec<u8>> = forwards.iter().map(|(key, _)| key).collect();
        let many = store.get_many(&keys)?;
        assert!(many.iter().flatten().eq(forwards.iter().map(|(_, value)| value)), "get differs");
        Ok(forwards.into_iter().collect())
    };
    let found = read().inspect_err(one_line).ok();
    let verified = store.verify(|read, all| assert!(read <= all)).inspect_err(one_line);
    if let Ok(verified) = verified {
        assert!(verified.damages.iter().all(|damage| is_one_line(&damage.to_string())));
        assert!(found.is_some() || !verified.damages.is_empty(), "verify does not find the damage");
    }
    assert!(is_one_line(&format!("{:?}", store.stats())));
    found
}

/// Checks the promise for any files. `whole` means that no checksum was forged; then a store that
/// was written to opens again.
fn arbitrary_files(files: Files, whole: bool) {
    let damaged = MemoryFolder::with(files.clone());
    let salvaged = options().open_in(Arc::new(MemoryFolder::new())).expect("a new store");
    if let Err(error) = salvaged.salvage_in(&damaged, |done, all| assert!(done <= all)) {
        one_line(&error);
    }
    assert!(damaged.contents() == files, "the damaged store was changed");
    assert!(read_all_ways(&salvaged).is_some(), "what was salvaged is not sound");
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
    let store = options().seed(7).open_in(Arc::new(folder.clone())).expect("a new store");
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
    use crate::storage::Random;

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

    /// What the fuzzer does, with changes that are few and small.
    #[test]
    fn changed_stores_are_sound_or_reported() {
        let mut random = Random::new(1);
        for seed in seeds() {
            for _ in 0..40 {
                let mut bytes = seed.clone();
                for _ in 0..=random.below(3) {
                    let at = random.below(bytes.len());
                    bytes[at] = [bytes[at] ^ 1 << random.below(8), 0, 255][random.below(3)];
                }
                fuzzed_bytes(&bytes);
            }
        }
    }
}
