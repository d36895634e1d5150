//! Many keys of a maplet at once, in the blocks of `blocks.rs`: the same answers in the same order, several times as fast.

use core::convert::Infallible;

use super::built::exchange;
use crate::blocks::{Hashed, Hashes, MANY, each_candidate, each_change, each_hash, each_insert};
use crate::body::Body;
use crate::error::Full;
use crate::geometry::BLOCK;
use crate::growth::Grown;
use crate::prefetch::prefetch;
use crate::store::Store;
use crate::{Key, Maplet};

/// Values and changes are asked for so many keys ahead: a processor that fetches buckets from all over the table does not see by itself that they are read in order
/// (docs/decisions/0007-maplet.md has the figures).
const AHEAD: usize = BLOCK;

impl<S: Store> Maplet<S> {
    /// [`get`](Self::get) for each of `keys`: `found(i, value)` is called for every value of `keys[i]`, in the order of the keys. Nothing is called for a key without
    /// values, and no memory is taken.
    ///
    /// ```
    /// let mut files = koel::Maplet::builder(1000, 0.001, 8).build()?;
    /// files.insert_many(&["ada", "grace"], &[1, 200])?;
    /// let mut found = vec![];
    /// files.get_many(&["ada", "mary", "grace"], |i, file| found.push((i, file)));
    /// assert_eq!(found, [(0, 1), (2, 200)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_many<K: Key>(&self, keys: &[K], found: impl FnMut(usize, u64)) {
        self.get_each(Hashed(*self.route(), keys), found);
    }

    fn get_each(&self, hashes: impl Hashes, mut found: impl FnMut(usize, u64)) {
        let layout = self.layout();
        let value = |i, slot| found(i, layout.value_of(slot));
        match &self.body {
            Body::Built(table) => each_candidate(table, hashes, value),
            Body::Grown(grown) => each_candidate(grown.table(), hashes, value),
        }
    }
}

impl Maplet {
    /// [`insert`](Self::insert) for each of `keys` with the value of the same index, in order. A maplet that grows does so for all of them first, where they are 4096 and more.
    ///
    /// # Errors
    /// [`Full`] at the first pair that finds no room; those before it are in, [`len`](Self::len) says how many.
    ///
    /// # Panics
    /// Where the slices differ in length, or where a value has more bits than the maplet's values.
    pub fn insert_many<K: Key>(&mut self, keys: &[K], values: &[u64]) -> Result<(), Full> {
        let route = *self.route();
        self.insert_each(Hashed(route, keys), values)
    }

    /// [`replace`](Self::replace) for each of `keys` with the change of the same index, from a value to a value, in order: how many pairs were changed.
    ///
    /// # Panics
    /// Where the slices differ in length, or where a new value has more bits than the maplet's values.
    pub fn replace_many<K: Key>(&mut self, keys: &[K], changes: &[(u64, u64)]) -> usize {
        let route = *self.route();
        self.replace_each(Hashed(route, keys), changes)
    }

    fn replace_each(&mut self, hashes: impl Hashes, changes: &[(u64, u64)]) -> usize {
        assert_eq!(hashes.len(), changes.len(), "one change for each key");
        let mut changed = 0;
        match &mut self.body {
            Body::Built(table) => {
                let Ok(()) = each_change(table, hashes, |at, key, places, i| {
                    prefetch(changes, key + AHEAD);
                    let done = exchange(at, places.fingerprints()[i], changes[key]);
                    changed += usize::from(done);
                    Ok::<(), Infallible>(())
                });
            }
            Body::Grown(grown) => {
                let Ok(()) = each_hash(grown, Grown::prefetch, hashes, 0, |grown, key, hash| {
                    let (old, new) = changes[key];
                    changed += usize::from(grown.replace(hash, old, new));
                    Ok::<(), Infallible>(())
                });
            }
        }
        changed
    }

    fn insert_each(&mut self, hashes: impl Hashes, values: &[u64]) -> Result<(), Full> {
        assert_eq!(hashes.len(), values.len(), "one value for each key");
        let pairs = &mut self.pairs;
        match &mut self.body {
            Body::Built(table) => each_insert(table, hashes, |at, key, places, i| {
                prefetch(values, key + AHEAD);
                pairs.add(at, (places.fingerprints()[i], values[key]), || places.get(i))
            }),
            Body::Grown(grown) => {
                let ignored = &mut |_: &_, _| {};
                // Each takes a slot. In a table that is less full it is found sooner.
                if values.len() >= MANY {
                    pairs.keep_load(grown, values.len() as u64, ignored);
                }
                each_hash(grown, Grown::prefetch, hashes, 0, |grown, key, hash| {
                    pairs.insert_grown(grown, (hash, values[key]), None, ignored)
                })
            }
        }
    }
}
