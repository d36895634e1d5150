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
use crate::table::{GROUP, Put, Table, Words};
use crate::vector::InstructionSet;
use crate::{CuckooFilter, Key, KeyHasher};

/// A table that a cache is likely to hold: looking ahead costs more there than it brings.
const CACHED_BYTES: usize = 8 << 20;

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
    #[inline]
    fn fill(
        &mut self,
        (set, table): (InstructionSet, &Table<impl AsRef<[u8]>>),
        (start, len): (usize, usize),
        hash: &impl Fn(Range<usize>, &mut [u64]),
    ) {
        self.len = len.saturating_sub(start).min(BLOCK);
        let keys = start..start + self.len;
        if self.len == BLOCK {
            // The length known at compile time makes vector code of the hash.
            table.locate_many(
                set,
                #[inline(always)]
                |hashes| hash(keys, &mut hashes[..BLOCK]),
                &mut self.places,
            );
        } else if self.len > 0 {
            table.locate_many(set, |hashes| hash(keys, &mut hashes[..self.len]), &mut self.places);
        }
    }

    /// The places in use, group by group: the first place of the group, and which are in use.
    fn groups(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let len = self.len;
        (0..BLOCK)
            .step_by(GROUP)
            .map(move |first| (first, first.min(len)..(first + GROUP).min(len)))
    }
}

/// Hands the places of `len` keys to `work`, a block at a time and in order: the target, the block, and the number of its first key. Their
/// buckets have been asked for; `work` asks for those of the coming block, group by group, between groups of its own.
fn in_blocks<T, S: Store, E>(
    target: &mut T,
    filter_of: impl Fn(&T) -> &CuckooFilter<S>,
    (len, hash): (usize, impl Fn(Range<usize>, &mut [u64])),
    mut work: impl FnMut(&mut T, &Block, &Block, usize) -> Result<(), E>,
) -> Result<(), E> {
    let set = InstructionSet::best();
    let mut blocks = (Block::new(), Block::new());
    let (mut ready, mut coming) = (&mut blocks.0, &mut blocks.1);
    let mut start = 0;
    ready.fill((set, &filter_of(target).table), (start, len), &hash);
    for first in (0..ready.len).step_by(GROUP) {
        filter_of(target).table.prefetch_group(&ready.places, first);
    }
    while ready.len > 0 {
        let next = start + ready.len;
        coming.fill((set, &filter_of(target).table), (next, len), &hash);
        work(target, ready, coming, start)?;
        start = next;
        mem::swap(&mut ready, &mut coming);
    }
    Ok(())
}

/// How many keys there are, and what writes the hashes of some of them.
pub(crate) fn hashes_of<K: Key>(
    hasher: &KeyHasher,
    keys: &[K],
) -> (usize, impl Fn(Range<usize>, &mut [u64])) {
    (
        keys.len(),
        #[inline(always)]
        move |range: Range<usize>, hashes: &mut [u64]| hasher.hash_each(&keys[range], hashes),
    )
}

/// The same for hashes that are there already.
pub(crate) fn copies_of(ready: &[u64]) -> (usize, impl Fn(Range<usize>, &mut [u64])) {
    (
        ready.len(),
        #[inline(always)]
        move |range: Range<usize>, hashes: &mut [u64]| hashes.copy_from_slice(&ready[range]),
    )
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
        let (set, table) = (InstructionSet::best(), &self.table);
        let mut words = Words::new();
        let mut answers = [false; BLOCK];
        let Ok(()) = in_blocks(
            &mut &*self,
            |filter| filter,
            hashes,
            |_, ready, coming, start| {
                table.contains_block(
                    set,
                    (&ready.places, &coming.places),
                    &mut words,
                    &mut answers,
                );
                found[start..start + ready.len].copy_from_slice(&answers[..ready.len]);
                Ok::<(), Infallible>(())
            },
        );
    }

    fn count_each(&self, hashes: (usize, impl Fn(Range<usize>, &mut [u64])), counts: &mut [u64]) {
        assert_eq!(hashes.0, counts.len(), "one answer for each key");
        let Ok(()) = in_blocks(
            &mut &*self,
            |filter| filter,
            hashes,
            |filter, ready, coming, start| {
                for (first, group) in ready.groups() {
                    filter.table.prefetch_group(&coming.places, first);
                    for i in group {
                        counts[start + i] = filter.count_place(&ready.places.get(i));
                    }
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
        in_blocks(
            self,
            |filter| filter,
            hashes,
            |filter, ready, coming, _| {
                for (first, group) in ready.groups() {
                    filter.table.prefetch_group(&coming.places, first);
                    filter.prefetch_searches(ready, group.end);
                    for i in group {
                        let (bits, fingerprint) =
                            (ready.places.bits(i), ready.places.fingerprints()[i]);
                        match filter.put_new(bits, fingerprint) {
                            Put::Done => {}
                            refused => filter.add_refused(&ready.places.get(i), refused)?,
                        }
                    }
                }
                Ok(())
            },
        )
    }

    fn insert_unique_each(
        &mut self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
        added: &mut [bool],
    ) -> Result<(), Full> {
        assert_eq!(hashes.0, added.len(), "one answer for each key");
        added.fill(false);
        in_blocks(
            self,
            |filter| filter,
            hashes,
            |filter, ready, coming, start| {
                for (first, group) in ready.groups() {
                    filter.table.prefetch_group(&coming.places, first);
                    filter.prefetch_searches(ready, group.end);
                    for i in group {
                        let places = &ready.places;
                        let (bits, fingerprint) = (places.bits(i), places.fingerprints()[i]);
                        added[start + i] =
                            filter.add_unique(bits, fingerprint, || places.get(i))?;
                    }
                }
                Ok(())
            },
        )
    }

    /// Asks the memory for what the searches for the group from `first` on will look at: where searches are to be expected, in a table
    /// that no cache holds.
    #[inline]
    fn prefetch_searches(&self, ready: &Block, first: usize) {
        let searches = self.entries / 3 > self.slots() / 4;
        if searches && self.table.bytes().len() > CACHED_BYTES {
            for i in first..(first + GROUP).min(ready.len) {
                self.table.prefetch_search(&ready.places.get(i));
            }
        }
    }

    fn remove_each(
        &mut self,
        hashes: (usize, impl Fn(Range<usize>, &mut [u64])),
        removed: &mut [bool],
    ) {
        assert_eq!(hashes.0, removed.len(), "one answer for each key");
        let Ok(()) = in_blocks(
            self,
            |filter| filter,
            hashes,
            |filter, ready, coming, start| {
                for (first, group) in ready.groups() {
                    filter.table.prefetch_group(&coming.places, first);
                    for i in group {
                        let (bits, fingerprint) =
                            (ready.places.bits(i), ready.places.fingerprints()[i]);
                        let (home, alternate) = ready.places.buckets(i);
                        removed[start + i] =
                            filter.take_one(home.min(alternate), bits, fingerprint);
                    }
                }
                Ok::<(), Infallible>(())
            },
        );
    }
}
