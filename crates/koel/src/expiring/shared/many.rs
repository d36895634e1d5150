//! Batches for a shared expiring filter: a block of keys is sorted by shard, so that each shard is
//! locked once for all its keys of the block.

use super::ConcurrentExpiringFilter;
use super::builder::MOST_SHARD_BITS;
use crate::Key;
use crate::concurrent::sync::lock;
use crate::error::FullError;
use crate::expiring::ExpiringFilter;

/// Keys of a block: sixteen for each of 64 shards.
const BLOCK: usize = 1024;
const MOST_SHARDS: usize = 1 << MOST_SHARD_BITS;

/// A block of keys by shard, and in order within a shard.
struct Sorted {
    /// Addresses in their shards.
    addresses: [u64; BLOCK],
    /// The number of each key in the block.
    numbers: [usize; BLOCK],
    /// Where the keys of each shard end.
    ends: [usize; MOST_SHARDS],
}

impl Sorted {
    fn new() -> Self {
        Self { addresses: [0; BLOCK], numbers: [0; BLOCK], ends: [0; MOST_SHARDS] }
    }

    /// Sorts these addresses, of which each is told its shard and its address there.
    fn sort(&mut self, addresses: &[u64], divided: impl Fn(u64) -> (usize, u64)) {
        let mut counts = [0; MOST_SHARDS];
        addresses.iter().for_each(|&address| counts[divided(address).0] += 1);
        let mut start = 0;
        for (end, count) in self.ends.iter_mut().zip(counts) {
            *end = start;
            start += count;
        }
        for (number, &address) in addresses.iter().enumerate() {
            let (shard, address) = divided(address);
            let place = &mut self.ends[shard];
            self.addresses[*place] = address;
            self.numbers[*place] = number;
            *place += 1;
        }
    }
}

impl ConcurrentExpiringFilter {
    /// [`contains`](Self::contains) for each of `keys`. Writes the answer to `keys[i]` to
    /// `found[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        found.fill(false);
        self.each_age(keys, |key, _| found[key] = true);
    }

    /// [`age`](Self::age) for each of `keys`. Writes the answer to `keys[i]` to `ages[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn age_many<K: Key>(&self, keys: &[K], ages: &mut [Option<u64>]) {
        assert_eq!(keys.len(), ages.len(), "one answer for each key");
        ages.fill(None);
        self.each_age(keys, |key, age| ages[key] = Some(age));
    }

    /// [`insert`](Self::insert) for each of `keys`. Writes to `added[i]` whether `keys[i]` was new.
    /// Equal keys are inserted in order.
    ///
    /// # Errors
    /// [`FullError`] if the shard of a key is full. Keys of that shard after it in the same block
    /// of 1024 keys are not inserted, and no later block is; `added` is false for them.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn insert_many<K: Key>(&self, keys: &[K], added: &mut [bool]) -> Result<(), FullError> {
        self.insert_each::<false, K>(keys, added)
    }

    /// [`insert_unique`](Self::insert_unique) for each of `keys`. Writes to `added[i]` whether
    /// `keys[i]` was added. Equal keys are inserted in order.
    ///
    /// # Errors
    /// As [`insert_many`](Self::insert_many).
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn insert_unique_many<K: Key>(
        &self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), FullError> {
        self.insert_each::<true, K>(keys, added)
    }

    /// [`remove`](Self::remove) for each of `keys`. Writes to `removed[i]` whether `keys[i]` was
    /// removed.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_many<K: Key>(&self, keys: &[K], removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        let mut answers = [false; BLOCK];
        self.each_part(keys, |shard, first, addresses, numbers| {
            let answers = &mut answers[..addresses.len()];
            shard.body.remove_each_stamped(addresses, answers);
            numbers.iter().zip(answers).for_each(|(i, answer)| removed[first + i] = *answer);
        });
    }

    fn insert_each<const KEEPS: bool, K: Key>(
        &self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), FullError> {
        assert_eq!(keys.len(), added.len(), "one answer for each key");
        added.fill(false);
        let (mut answers, mut failed) = ([false; BLOCK], None);
        self.each_part(keys, |shard, first, addresses, numbers| {
            let is_later = failed.is_some_and(|(_, block)| block != first);
            if is_later {
                return;
            }
            let answers = &mut answers[..addresses.len()];
            answers.fill(false);
            if let Err(full) = shard.body.insert_each_stamped::<KEEPS>(addresses, answers) {
                failed = failed.or(Some((full, first)));
            }
            numbers.iter().zip(answers).for_each(|(i, answer)| added[first + i] = *answer);
        });
        failed.map_or(Ok(()), |(full, _)| Err(full))
    }

    fn each_age<K: Key>(&self, keys: &[K], mut found: impl FnMut(usize, u64)) {
        self.each_part(keys, |shard, first, addresses, numbers| {
            shard.body.each_age(addresses, |key, age| found(first + numbers[key], age));
        });
    }

    /// Calls `work` for each block and each shard with keys in it: with the shard, locked, the
    /// number of the first key of the block, the addresses in the shard, and the numbers of their
    /// keys in the block.
    fn each_part<K: Key>(
        &self,
        keys: &[K],
        mut work: impl FnMut(&mut ExpiringFilter, usize, &[u64], &[usize]),
    ) {
        let (mut sorted, mut addresses) = (Sorted::new(), [0; BLOCK]);
        for (block, keys) in keys.chunks(BLOCK).enumerate() {
            let addresses = &mut addresses[..keys.len()];
            self.route.address_each(keys, addresses);
            sorted.sort(addresses, |address| self.divided(address));
            let mut start = 0;
            for (shard, &end) in self.shards.iter().zip(&sorted.ends) {
                if start < end {
                    let (addresses, numbers) =
                        (&sorted.addresses[start..end], &sorted.numbers[start..end]);
                    work(&mut lock(shard), block * BLOCK, addresses, numbers);
                }
                start = end;
            }
        }
    }
}
