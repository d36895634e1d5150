//! Batches of keys, in the blocks of `table/blocks.rs`.

use core::convert::Infallible;

use super::ConcurrentFilter;
use super::shards::Arrivals;
use crate::Key;
use crate::address::geometry::Location;
use crate::error::FullError;
use crate::mem::vector::{BLOCK, InstructionSet};
use crate::table::blocks::{Block, Blocks, Hashed};
use crate::table::{Buckets, Words};

impl ConcurrentFilter {
    /// [`contains`](Self::contains) for each of `keys`: the answer to `keys[i]` goes to `found[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        let set = InstructionSet::best();
        let mut words = Words::new();
        let mut answers = [false; BLOCK];
        let mut before = self.shards.all_arrivals();
        let mut blocks = Blocks::new(&self.cells, Hashed(*self.route(), keys), 0);
        while let Some((ready, coming, start)) = blocks.next(&self.cells) {
            let locations = (&ready.locations, &coming.locations);
            self.cells.contains_block(set, locations, &mut words, &mut answers);
            if !self.shards.are_still(&before) {
                self.ask_again(&before, ready, &mut answers);
                before = self.shards.all_arrivals();
            }
            found[start..start + ready.len].copy_from_slice(&answers[..ready.len]);
        }
    }

    /// [`count`](Self::count) for each of `keys`: the answer to `keys[i]` goes to `counts[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        assert_eq!(keys.len(), counts.len(), "one answer for each key");
        let Ok(()) = self.each_location(keys, |i, location| {
            counts[i] = self.count_location(location);
            Ok::<(), Infallible>(())
        });
    }

    /// [`insert`](Self::insert) for each of `keys`, in order.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room. The keys before it were inserted. Insert
    /// keys singly to learn which one failed.
    pub fn insert_many<K: Key>(&self, keys: &[K]) -> Result<(), FullError> {
        self.each_location(keys, |_, location| self.add(location))
    }

    /// [`remove`](Self::remove) for each of `keys`, in order: whether `keys[i]` was removed goes to
    /// `removed[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn remove_many<K: Key>(&self, keys: &[K], removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        let Ok(()) = self.each_location(keys, |i, location| {
            removed[i] = self.take(location);
            Ok::<(), Infallible>(())
        });
    }

    /// Repeats the lookup of every absent key whose entry may have moved since `before`.
    #[cold]
    fn ask_again(&self, before: &Arrivals, block: &Block, answers: &mut [bool; BLOCK]) {
        for (i, answer) in answers[..block.len].iter_mut().enumerate() {
            let location = block.locations.get(i);
            if !*answer && !self.shards.is_still(before, location.fingerprint) {
                *answer = self.contains_location(&location);
            }
        }
    }

    /// Calls `work` with the index and the location of each key.
    fn each_location<K: Key, E>(
        &self,
        keys: &[K],
        mut work: impl FnMut(usize, &Location) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut blocks = Blocks::new(&self.cells, Hashed(*self.route(), keys), 0);
        while let Some((ready, coming, start)) = blocks.next(&self.cells) {
            for i in 0..ready.len {
                self.cells.prefetch_both(&coming.locations, i);
                work(start + i, &ready.locations.get(i))?;
            }
        }
        Ok(())
    }
}
