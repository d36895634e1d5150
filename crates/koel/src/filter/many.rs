//! Many keys at once: the same answers in the same order, several times as fast.
//!
//! The walk over blocks of keys is in `blocks.rs`, what happens to each in `state/many.rs`.

use crate::error::FullError;
use crate::state::store::Store;
use crate::state::{changing, on_table, reading};
use crate::table::Cuckoo;
use crate::table::blocks::{Hashed, Hashes, contains_each};
use crate::{CuckooFilter, Key};

impl<S: Store> CuckooFilter<S> {
    /// [`contains`](Self::contains) for each of `keys`: the answer to `keys[i]` goes to `found[i]`.
    ///
    /// ```
    /// let mut filter = koel::CuckooFilter::with_capacity(1000);
    /// filter.insert_many(&["ada", "grace"])?;
    /// let mut found = [false; 3];
    /// filter.contains_many(&["ada", "mary", "grace"], &mut found);
    /// assert_eq!(found, [true, false, true]);
    /// # Ok::<(), koel::FullError>(())
    /// ```
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.contains_each(Hashed(*self.route(), keys), found);
    }

    /// [`count`](Self::count) for each of `keys`: the answer to `keys[i]` goes to `counts[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        self.count_each(Hashed(*self.route(), keys), counts);
    }

    pub(super) fn contains_each(&self, hashes: impl Hashes, found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer for each key");
        on_table!(&self.body.buckets, table => contains_each(table.table(), hashes, found));
    }

    fn count_each(&self, hashes: impl Hashes, counts: &mut [u64]) {
        assert_eq!(hashes.len(), counts.len(), "one answer for each key");
        reading!(self.body, reader => reader.count_each(hashes, counts));
    }
}

impl CuckooFilter {
    /// [`insert`](Self::insert) for each of `keys`, in order. For 4096 keys and more a filter that
    /// grows makes room ahead, for a quarter of its entries at a time. So they take half to two
    /// thirds of the time of inserts one by one; where they are copies of few, the filter may be a
    /// quarter larger afterwards than it need be. With fewer keys, or in a filter that does not
    /// grow, all bytes are those of inserts one by one.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room; those before it are in,
    /// [`len`](Self::len) says how many.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), FullError> {
        let route = *self.route();
        self.insert_each(Hashed(route, keys))
    }

    /// [`insert_unique`](Self::insert_unique) for each of `keys`, in order: whether `keys[i]` was
    /// added goes to `added[i]`.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room; those before it are in, and the answers
    /// from it on are false.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn insert_unique_many<K: Key>(
        &mut self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), FullError> {
        let route = *self.route();
        self.insert_unique_each(Hashed(route, keys), added)
    }

    /// [`remove`](Self::remove) for each of `keys`, in order: whether `keys[i]` was taken out goes
    /// to `removed[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        let route = *self.route();
        self.remove_each(Hashed(route, keys), removed);
    }

    pub(super) fn insert_each(&mut self, hashes: impl Hashes) -> Result<(), FullError> {
        self.body.insert_each::<false>(hashes, &mut [])
    }

    fn insert_unique_each(
        &mut self,
        hashes: impl Hashes,
        added: &mut [bool],
    ) -> Result<(), FullError> {
        assert_eq!(hashes.len(), added.len(), "one answer for each key");
        added.fill(false);
        self.body.insert_each::<true>(hashes, added)
    }

    fn remove_each(&mut self, hashes: impl Hashes, removed: &mut [bool]) {
        assert_eq!(hashes.len(), removed.len(), "one answer for each key");
        changing!(self.body, writer => writer.remove_each(hashes, removed));
    }
}
