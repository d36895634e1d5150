//! Ordered stores of unknown bytes: the trial of `stores.rs`, in which `verify` reports damage, or
//! all ways of reading a store agree. Damaged or not, ranges are in order and within their bounds,
//! and every read ends.
//!
//! The checksums of manifest and logs are made valid again; `tables.rs` does that for tables.

use std::cmp::Ordering;
use std::sync::Arc;

use koel_store::{Batch, Durability, Error, LsmOptions, LsmStore, SalvageReport};

use crate::exercise::is_one_line;
use crate::storage::{MemoryFolder, State};
use crate::stores::{Subject, Values, is_whole, one_line};

/// New stores have the same seed, so that an input does the same each time.
pub(crate) fn options() -> LsmOptions {
    let options = LsmOptions::default().memtable_bytes(1 << 10).few_entries(0);
    options.background(false).guide(3, 1).seed(7)
}

impl Subject for LsmStore {
    const ENDING: &str = "table";

    fn open_small(folder: &MemoryFolder, read_only: bool) -> Result<Self, Error> {
        options().read_only(read_only).open_in(Arc::new(folder.clone()))
    }

    /// Tables hold values too, so no value is compared with those of the logs.
    fn read_all_ways(&self, _: &Values) -> (Option<State>, bool) {
        let forwards = self.iter().and_then(|range| in_order(range, true));
        let backwards = self.iter().and_then(|range| in_order(range.rev(), false));
        let probes = probes(forwards.as_deref().unwrap_or_default());
        let many = self.get_many(&probes);
        let after: Result<Vec<_>, _> = probes.iter().map(|key| first_from(self, key)).collect();
        let is_whole = is_whole(self.verify(|read, all| assert!(read <= all)));
        assert!(is_one_line(&format!("{:?}", self.stats())));
        if !is_whole {
            let errors = [backwards.err(), many.err(), after.err()];
            errors.iter().flatten().for_each(one_line);
            return (forwards.inspect_err(one_line).ok().map(State::from_iter), false);
        }
        let entries: State = forwards.expect("no damage").into_iter().collect();
        assert!(entries.iter().rev().eq(backwards.expect("no damage").iter().map(as_pair)));
        let values = probes.iter().map(|key| entries.get(key).cloned());
        assert!(values.eq(many.expect("no damage")), "get differs");
        let next = |key: &Vec<u8>| entries.range(key.clone()..).next().map(|(key, _)| key.clone());
        assert!(probes.iter().map(next).eq(after.expect("no damage")), "a range differs");
        (Some(entries), true)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get(key)
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.write(batch, durability)
    }

    fn delete_from(&self, key: &[u8]) -> Result<bool, Error> {
        self.delete_range(key.., Durability::None).map(|()| true)
    }

    fn compact(&self) -> Result<(), Error> {
        self.flush().and_then(|()| self.compact())
    }

    fn salvage(&self, damaged: &MemoryFolder) -> Result<SalvageReport, Error> {
        self.salvage_in(damaged, |read, all| assert!(read <= all))
    }

    fn close(self) -> Result<(), Error> {
        self.close()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::{arbitrary_files, seal, store_of};

    /// With another seed no hash fits: iterations find every entry, gets none, and `verify` says
    /// so.
    #[test]
    fn a_manifest_with_the_seed_of_another_store_is_reported() {
        let mut files = store_of::<LsmStore>(2, true);
        // Behind the header of the record, its key `store`, and the number for `clean`.
        let manifest = files.get_mut("MANIFEST").unwrap();
        let key = manifest.windows(5).position(|bytes| bytes == b"store").unwrap();
        manifest[key + 5 + 8] ^= 1;
        seal(&mut files);
        let store = LsmStore::open_small(&MemoryFolder::with(files.clone()), false).unwrap();
        assert!(store.iter().unwrap().count() > 0);
        assert!(store.get(&[b'k', 2]).unwrap().is_none());
        assert!(!store.verify(|_, _| ()).unwrap().damages.is_empty());
        drop(arbitrary_files::<LsmStore>(files, false));
    }
}
