//! Many keys at once, as in `filter/many.rs`: the blocks are those of `blocks.rs`; here is what a
//! filter of many threads does with each.

use core::convert::Infallible;

use super::ConcurrentFilter;
use super::shards::Arrivals;
use crate::Key;
use crate::blocks::{Block, Hashed, Hashes, each_place, in_blocks};
use crate::error::Full;
use crate::geometry::{BLOCK, Place};
use crate::table::Words;
use crate::vector::InstructionSet;

impl ConcurrentFilter {
    /// [`contains`](Self::contains) for each of `keys`: the answer to `keys[i]` goes to `found[i]`.
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

    /// [`insert`](Self::insert) for each of `keys`, in order.
    ///
    /// # Errors
    /// [`Full`] at the first key that finds no room; those before it are in. Where it must be known
    /// which, insert one by one.
    pub fn insert_many<K: Key>(&self, keys: &[K]) -> Result<(), Full> {
        self.each_place(Hashed(*self.route(), keys), |_, place| self.add(place))
    }

    /// [`remove`](Self::remove) for each of `keys`, in order: whether `keys[i]` was taken out goes
    /// to `removed[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn remove_many<K: Key>(&self, keys: &[K], removed: &mut [bool]) {
        self.remove_each(Hashed(*self.route(), keys), removed);
    }

    fn contains_each(&self, hashes: impl Hashes, found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer for each key");
        let set = InstructionSet::best();
        let mut words = Words::new();
        let mut answers = [false; BLOCK];
        let mut before = self.shards.all_arrivals();
        let work = |_: &mut _, ready: &Block, coming: &Block, start: usize| {
            let places = (&ready.places, &coming.places);
            self.cells.contains_block(set, places, &mut words, &mut answers);
            if !self.shards.are_still(&before) {
                self.ask_again(&before, ready, &mut answers);
                before = self.shards.all_arrivals();
            }
            found[start..start + ready.len].copy_from_slice(&answers[..ready.len]);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = in_blocks(&mut &self.cells, hashes, work);
    }

    /// Looks up once more what may have moved since `before`.
    #[cold]
    fn ask_again(&self, before: &Arrivals, block: &Block, answers: &mut [bool; BLOCK]) {
        for (i, answer) in answers[..block.len].iter_mut().enumerate() {
            let place = block.places.get(i);
            if !*answer && !self.shards.is_still(before, place.fingerprint) {
                *answer = self.contains_place(&place);
            }
        }
    }

    fn count_each(&self, hashes: impl Hashes, counts: &mut [u64]) {
        assert_eq!(hashes.len(), counts.len(), "one answer for each key");
        let Ok(()) = self.each_place(hashes, |i, place| {
            counts[i] = self.count_place(place);
            Ok::<(), Infallible>(())
        });
    }

    fn remove_each(&self, hashes: impl Hashes, removed: &mut [bool]) {
        assert_eq!(hashes.len(), removed.len(), "one answer for each key");
        let Ok(()) = self.each_place(hashes, |i, place| {
            removed[i] = self.take(place);
            Ok::<(), Infallible>(())
        });
    }

    /// Hands each place, with the number of its key, to `work`.
    fn each_place<E>(
        &self,
        hashes: impl Hashes,
        mut work: impl FnMut(usize, &Place) -> Result<(), E>,
    ) -> Result<(), E> {
        each_place(&mut &self.cells, hashes, |_, key, places, i| work(key, &places.get(i)))
    }
}
