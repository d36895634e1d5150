//! Many keys of a maplet at once, in the blocks of `blocks.rs`: the same answers in the same order,
//! several times as fast.

use crate::error::FullError;
use crate::state::store::Store;
use crate::state::{changing, on_table};
use crate::table::blocks::{Hashed, Hashes, each_candidate};
use crate::table::{Candidates, Cuckoo};
use crate::{Key, Maplet};

impl<S: Store> Maplet<S> {
    /// [`get`](Self::get) for each of `keys`: `found(i, value)` is called for every value of
    /// `keys[i]`, in the order of the keys. Nothing is called for a key without values, and no
    /// memory is taken.
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
        let values = |i, slots: Candidates| {
            slots.for_each(|slot| found(i, layout.value_of(slot)));
        };
        on_table!(&self.body.buckets, table => each_candidate(table.table(), hashes, values));
    }
}

impl Maplet {
    /// [`insert`](Self::insert) for each of `keys` with the value of the same index, in order. A
    /// maplet that grows does so for all of them first, where they are 4096 and more.
    ///
    /// # Errors
    /// [`FullError`] at the first pair that finds no room; those before it are in,
    /// [`len`](Self::len) says how many.
    ///
    /// # Panics
    /// Where the slices differ in length, or where a value has more bits than the maplet's values.
    pub fn insert_many<K: Key>(&mut self, keys: &[K], values: &[u64]) -> Result<(), FullError> {
        let route = *self.route();
        self.insert_each(Hashed(route, keys), values)
    }

    /// [`replace`](Self::replace) for each of `keys` with the change of the same index, from a
    /// value to a value, in order: how many pairs were changed.
    ///
    /// # Panics
    /// Where the slices differ in length, or where a new value has more bits than the maplet's
    /// values.
    pub fn replace_many<K: Key>(&mut self, keys: &[K], changes: &[(u64, u64)]) -> usize {
        let route = *self.route();
        self.replace_each(Hashed(route, keys), changes)
    }

    fn replace_each(&mut self, hashes: impl Hashes, changes: &[(u64, u64)]) -> usize {
        assert_eq!(hashes.len(), changes.len(), "one change for each key");
        changing!(self.body, writer => writer.replace_each(hashes, changes))
    }

    fn insert_each(&mut self, hashes: impl Hashes, values: &[u64]) -> Result<(), FullError> {
        assert_eq!(hashes.len(), values.len(), "one value for each key");
        changing!(self.body, writer => writer.insert_pairs(hashes, values))
    }
}
