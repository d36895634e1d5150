//! Many keys at once: the same answers in the same order, several times as fast.
//!
//! One key after the other, a filter waits for two cache misses each time. Here the hashes of a block of 64 keys are turned into places by
//! vector code and their buckets asked for, while the block *before* it is worked on, whose buckets have arrived by
//! then. Two blocks of places on the stack are all the memory it takes.

use core::convert::Infallible;
use core::mem;
use core::ops::Range;

use crate::error::Full;
use crate::geometry::{BLOCK, Places};
use crate::store::Store;
use crate::{CuckooFilter, Key};

/// Places worked on between two requests to the memory, so that neither waits for the other.
const GROUP: usize = 8;

/// A block of keys: their places, and how many there are.
struct Block {
    places: Places,
    len: usize,
}

impl Block {
    fn new() -> Self {
        Self { places: Places::new(), len: 0 }
    }

    /// The places of up to a block of the `len` keys from `start` on.
    fn fill<S: Store>(
        &mut self,
        filter: &CuckooFilter<S>,
        (start, len): (usize, usize),
        hash_of: &impl Fn(usize) -> u64,
    ) {
        self.len = len.saturating_sub(start).min(BLOCK);
        let mut hashes = [0; BLOCK];
        for (i, hash) in hashes[..self.len].iter_mut().enumerate() {
            *hash = hash_of(start + i);
        }
        filter.table.geometry().locate_many(&hashes, &mut self.places);
    }
}

/// Hands the places of `len` keys to `work`, in order and in groups, after their buckets were asked for: the target, the places, the group's
/// range of them, and the number of its first key.
fn in_groups<T, S: Store, E>(
    target: &mut T,
    filter_of: impl Fn(&T) -> &CuckooFilter<S>,
    (len, hash_of): (usize, impl Fn(usize) -> u64),
    mut work: impl FnMut(&mut T, &Places, Range<usize>, usize) -> Result<(), E>,
) -> Result<(), E> {
    let mut blocks = (Block::new(), Block::new());
    let (mut ready, mut coming) = (&mut blocks.0, &mut blocks.1);
    ready.fill(filter_of(target), (0, len), &hash_of);
    filter_of(target).table.prefetch_group(&ready.places, 0..ready.len);
    let mut start = 0;
    while ready.len > 0 {
        coming.fill(filter_of(target), (start + ready.len, len), &hash_of);
        for first in (0..BLOCK).step_by(GROUP) {
            let group = |len: usize| first.min(len)..(first + GROUP).min(len);
            filter_of(target).table.prefetch_group(&coming.places, group(coming.len));
            let range = group(ready.len);
            let first_key = start + range.start;
            work(target, &ready.places, range, first_key)?;
        }
        start += ready.len;
        mem::swap(&mut ready, &mut coming);
    }
    Ok(())
}

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
        self.contains_each((keys.len(), |i| self.hasher().hash(&keys[i])), found);
    }

    /// [`contains_many`](Self::contains_many) for keys hashed beforehand.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn contains_many_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_each((hashes.len(), |i| hashes[i]), found);
    }

    /// [`count`](Self::count) for each of `keys`: the answer to `keys[i]` goes to `counts[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        self.count_each((keys.len(), |i| self.hasher().hash(&keys[i])), counts);
    }

    /// [`count_many`](Self::count_many) for keys hashed beforehand.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        self.count_each((hashes.len(), |i| hashes[i]), counts);
    }

    fn contains_each(&self, hashes: (usize, impl Fn(usize) -> u64), found: &mut [bool]) {
        assert_eq!(hashes.0, found.len(), "one answer for each key");
        let Ok(()) = in_groups(
            &mut &*self,
            |filter| filter,
            hashes,
            |filter, places, group, key| {
                let found = &mut found[key..key + group.len()];
                filter.table.contains_group(places, group.start, found);
                Ok::<(), Infallible>(())
            },
        );
    }

    fn count_each(&self, hashes: (usize, impl Fn(usize) -> u64), counts: &mut [u64]) {
        assert_eq!(hashes.0, counts.len(), "one answer for each key");
        let Ok(()) = in_groups(
            &mut &*self,
            |filter| filter,
            hashes,
            |filter, places, group, key| {
                for (place, count) in group.zip(&mut counts[key..]) {
                    *count = filter.count_place(&places.get(place));
                }
                Ok::<(), Infallible>(())
            },
        );
    }
}

impl CuckooFilter {
    /// [`insert`](Self::insert) for each of `keys`, in order.
    ///
    /// # Errors
    /// [`Full`] at the first key that finds no room; those before it are in, [`len`](Self::len) says how many.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), Full> {
        let hasher = *self.hasher();
        self.insert_each((keys.len(), |i| hasher.hash(&keys[i])))
    }

    /// [`insert_many`](Self::insert_many) for keys hashed beforehand.
    ///
    /// # Errors
    /// As [`insert_many`](Self::insert_many).
    pub fn insert_many_hashes(&mut self, hashes: &[u64]) -> Result<(), Full> {
        self.insert_each((hashes.len(), |i| hashes[i]))
    }

    /// [`remove`](Self::remove) for each of `keys`, in order: whether `keys[i]` was taken out goes to `removed[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        let hasher = *self.hasher();
        self.remove_each((keys.len(), |i| hasher.hash(&keys[i])), removed);
    }

    /// [`remove_many`](Self::remove_many) for keys hashed beforehand.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn remove_many_hashes(&mut self, hashes: &[u64], removed: &mut [bool]) {
        self.remove_each((hashes.len(), |i| hashes[i]), removed);
    }

    fn insert_each(&mut self, hashes: (usize, impl Fn(usize) -> u64)) -> Result<(), Full> {
        in_groups(
            self,
            |filter| filter,
            hashes,
            |filter, places, mut group, _| {
                group.try_for_each(|place| filter.add(&places.get(place), 1))
            },
        )
    }

    fn remove_each(&mut self, hashes: (usize, impl Fn(usize) -> u64), removed: &mut [bool]) {
        assert_eq!(hashes.0, removed.len(), "one answer for each key");
        let Ok(()) = in_groups(
            self,
            |filter| filter,
            hashes,
            |filter, places, group, key| {
                for (place, removed) in group.zip(&mut removed[key..]) {
                    *removed = filter.take(&places.get(place));
                }
                Ok::<(), Infallible>(())
            },
        );
    }
}
