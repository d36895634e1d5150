//! Many keys at once: the same answers in the same order, several times as fast.
//!
//! The blocks are those of `blocks.rs`; here is what a filter does with each.

use core::convert::Infallible;
use core::ops::Range;

use crate::blocks::{MANY, contains_each, copies_of, each_hash, each_place, hashes_of};
use crate::error::Full;
use crate::geometry::Places;
use crate::store::Store;
use crate::table::{Put, Table};
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
    /// # Ok::<(), koel::Full>(())
    /// ```
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.contains_each(hashes_of(self.hasher(), keys), found);
    }

    /// [`contains_many`](Self::contains_many) for keys hashed beforehand.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn contains_many_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_each(copies_of(hashes), found);
    }

    /// [`count`](Self::count) for each of `keys`: the answer to `keys[i]` goes to `counts[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        self.count_each(hashes_of(self.hasher(), keys), counts);
    }

    /// [`count_many`](Self::count_many) for keys hashed beforehand.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        self.count_each(copies_of(hashes), counts);
    }

    fn contains_each(
        &self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
        found: &mut [bool],
    ) {
        assert_eq!(hashes.0, found.len(), "one answer for each key");
        match &self.body.grown {
            None => contains_each(&self.body.table, hashes, found),
            Some(grown) => contains_each(grown.table(), hashes, found),
        }
    }

    fn count_each(&self, hashes: (usize, impl Fn(Range<usize>, &mut [u64])), counts: &mut [u64]) {
        assert_eq!(hashes.0, counts.len(), "one answer for each key");
        if self.body.grown.is_some() {
            let count = |filter: &mut &Self, key: usize, hash| {
                counts[key] = filter.count_hash(hash);
                Ok::<(), Infallible>(())
            };
            let Ok(()) =
                each_hash(&mut &*self, |filter, hash| filter.prefetch(hash), hashes, 0, count);
            return;
        }
        let count = |filter: &mut &Self, key: usize, places: &Places, i| {
            counts[key] = filter.count_place(&places.get(i));
            Ok::<(), Infallible>(())
        };
        let Ok(()) = each_place(&mut &*self, |filter| filter.table(), hashes, count);
    }

    /// What [`each_hash`] does for the keys to come.
    fn prefetch(&self, hash: u64) {
        self.body.prefetch(hash);
    }

    /// What [`each_place`] walks over.
    fn table(&self) -> &Table<S::Buckets> {
        &self.body.table
    }
}

impl CuckooFilter {
    /// [`insert`](Self::insert) for each of `keys`, in order. For 4096 keys and more a filter that grows makes room ahead, for a quarter of its entries at a time. So they take half to two thirds
    /// of the time of inserts one by one; where they are copies of few, the filter may be a quarter larger afterwards than it need be. With fewer keys, or in a filter that does not grow, all
    /// bytes are those of inserts one by one.
    ///
    /// # Errors
    /// [`Full`] at the first key that finds no room; those before it are in, [`len`](Self::len) says how many.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), Full> {
        let hasher = *self.hasher();
        self.insert_each(hashes_of(&hasher, keys))
    }

    /// [`insert_many`](Self::insert_many) for keys hashed beforehand.
    ///
    /// # Errors
    /// As [`insert_many`](Self::insert_many).
    pub fn insert_many_hashes(&mut self, hashes: &[u64]) -> Result<(), Full> {
        self.insert_each(copies_of(hashes))
    }

    /// [`insert_unique`](Self::insert_unique) for each of `keys`, in order: whether `keys[i]` was added goes to `added[i]`.
    ///
    /// # Errors
    /// [`Full`] at the first key that finds no room; those before it are in, and the answers from it on are false.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn insert_unique_many<K: Key>(
        &mut self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), Full> {
        let hasher = *self.hasher();
        self.insert_unique_each(hashes_of(&hasher, keys), added)
    }

    /// [`insert_unique_many`](Self::insert_unique_many) for keys hashed beforehand.
    ///
    /// # Errors
    /// As [`insert_unique_many`](Self::insert_unique_many).
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn insert_unique_many_hashes(
        &mut self,
        hashes: &[u64],
        added: &mut [bool],
    ) -> Result<(), Full> {
        self.insert_unique_each(copies_of(hashes), added)
    }

    /// [`remove`](Self::remove) for each of `keys`, in order: whether `keys[i]` was taken out goes to `removed[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        let hasher = *self.hasher();
        self.remove_each(hashes_of(&hasher, keys), removed);
    }

    /// [`remove_many`](Self::remove_many) for keys hashed beforehand.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn remove_many_hashes(&mut self, hashes: &[u64], removed: &mut [bool]) {
        self.remove_each(copies_of(hashes), removed);
    }

    fn insert_each(
        &mut self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
    ) -> Result<(), Full> {
        let mut done = 0;
        if self.body.grown.is_none() {
            match self.insert_each_as_built((hashes.0, &hashes.1), &mut done) {
                Err(full) if self.grows_instead(full) => self.start_to_grow()?,
                result => return result,
            }
        }
        let len = hashes.0;
        let mut ahead = if len < MANY { len } else { done };
        each_hash(self, Self::prefetch, hashes, done, |filter, key, hash| {
            if key == ahead {
                ahead += filter.make_way(len - key);
            }
            filter.insert_grown(hash)
        })
    }

    /// The same in the table that the filter was built with; `done` keys are in.
    fn insert_each_as_built(
        &mut self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
        done: &mut usize,
    ) -> Result<(), Full> {
        each_place(self, Self::table, hashes, |filter, _, places, i| {
            match filter.put_new(places.bits(i), places.fingerprints()[i]) {
                Put::Done => {}
                refused => filter.add_refused(&places.get(i), refused)?,
            }
            *done += 1;
            Ok(())
        })
    }

    fn insert_unique_each(
        &mut self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
        added: &mut [bool],
    ) -> Result<(), Full> {
        assert_eq!(hashes.0, added.len(), "one answer for each key");
        added.fill(false);
        let mut done = 0;
        if self.body.grown.is_none() {
            match self.insert_unique_as_built((hashes.0, &hashes.1), added, &mut done) {
                Err(full) if self.grows_instead(full) => self.start_to_grow()?,
                result => return result,
            }
        }
        each_hash(self, Self::prefetch, hashes, done, |filter, key, hash| {
            added[key] = filter.insert_unique_hash(hash)?;
            Ok(())
        })
    }

    /// The same in the table that the filter was built with; the first `done` keys are dealt with.
    fn insert_unique_as_built(
        &mut self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
        added: &mut [bool],
        done: &mut usize,
    ) -> Result<(), Full> {
        each_place(self, Self::table, hashes, |filter, key, places, i| {
            let (bits, fingerprint) = (places.bits(i), places.fingerprints()[i]);
            added[key] = filter.add_unique(bits, fingerprint, || places.get(i))?;
            *done += 1;
            Ok(())
        })
    }

    fn remove_each(
        &mut self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
        removed: &mut [bool],
    ) {
        assert_eq!(hashes.0, removed.len(), "one answer for each key");
        if self.body.grown.is_some() {
            let Ok(()) = each_hash(self, Self::prefetch, hashes, 0, |filter, key, hash| {
                removed[key] = filter.remove_grown(hash);
                Ok::<(), Infallible>(())
            });
            return;
        }
        let Ok(()) = each_place(self, Self::table, hashes, |filter, key, places, i| {
            let (bits, fingerprint) = (places.bits(i), places.fingerprints()[i]);
            let (home, alternate) = places.buckets(i);
            removed[key] = filter.take_one(home.min(alternate), bits, fingerprint);
            Ok::<(), Infallible>(())
        });
    }
}
