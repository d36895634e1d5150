//! Keys and values of the stores: any number of them, computed rather than stored, the same in
//! every run.

use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use testkit::keys::splitmix64;

use crate::Failure;

/// A key.
pub(super) type Key = [u8; 16];

/// The positions in the pool where a value can begin.
const STARTS: usize = 1 << 16;

/// The CPU time of this thread is read after this many entries: often enough to see a pause of a
/// millisecond, seldom enough to cost nothing.
const GROUP: usize = 64;

/// Keys and values by number.
pub(super) struct Entries {
    /// Random bytes; every value is a slice of them. They fit the second-level cache of any core,
    /// so that making a value costs nothing next to storing it.
    pool: Vec<u8>,
    value_bytes: usize,
    pub(super) keys: u64,
}

impl Entries {
    pub(super) fn new(keys: u64, value_bytes: usize) -> Self {
        let words = (STARTS + value_bytes).div_ceil(8) as u64;
        let pool = (0..words).flat_map(|word| splitmix64(!word).to_le_bytes()).collect();
        Self { pool, value_bytes, keys }
    }

    /// The value of the key with this number.
    #[inline]
    pub(super) fn value(&self, number: u64) -> &[u8] {
        let start = usize::try_from(splitmix64(number) % STARTS as u64).unwrap_or(0);
        &self.pool[start..][..self.value_bytes]
    }

    /// Passes all entries to `write` in batches of this size. Returns the latency of the slowest
    /// write, and the highest CPU time of this thread for [`GROUP`] entries, or for a batch.
    pub(super) fn put_all<'a>(
        &'a self,
        at_once: usize,
        write: impl FnMut(&[(Key, &'a [u8])]) -> Result<(), Failure>,
    ) -> Result<[Duration; 2], Failure> {
        self.put_each((0..self.keys).map(|number| (number, number)), at_once, write)
    }

    /// The same for entries by the numbers of their keys and values.
    pub(super) fn put_each<'a>(
        &'a self,
        mut numbers: impl Iterator<Item = (u64, u64)>,
        at_once: usize,
        mut write: impl FnMut(&[(Key, &'a [u8])]) -> Result<(), Failure>,
    ) -> Result<[Duration; 2], Failure> {
        let mut batch: Vec<(Key, &[u8])> = Vec::with_capacity(at_once);
        let (mut longest, mut busiest) = (Duration::ZERO, Duration::ZERO);
        let (mut before, mut busy) = (Instant::now(), ThreadTime::now());
        let mut group = 0;
        loop {
            let entries = numbers.by_ref().take(at_once);
            batch.extend(entries.map(|(number, value)| (key(number), self.value(value))));
            if batch.is_empty() {
                return Ok([longest, busiest]);
            }
            write(&batch)?;
            let now = Instant::now();
            longest = longest.max(now - before);
            before = now;
            group += batch.len();
            if group >= GROUP {
                busiest = busiest.max(busy.elapsed());
                (busy, group) = (ThreadTime::now(), 0);
            }
            batch.clear();
        }
    }

    /// The bytes of a key and its value.
    pub(super) fn entry_bytes(&self) -> u64 {
        (size_of::<Key>() + self.value_bytes) as u64
    }

    /// The bytes of all keys and values.
    pub(super) fn bytes(&self) -> u64 {
        self.keys * self.entry_bytes()
    }

    /// The number of a present key, in random order.
    #[inline]
    pub(super) fn present(&self, query: u64) -> u64 {
        splitmix64(query ^ (1 << 60)) % self.keys
    }

    /// The number of an absent key.
    #[inline]
    pub(super) fn absent(&self, query: u64) -> u64 {
        self.keys + query
    }
}

/// Different numbers below 2^63 have different keys.
#[inline]
pub(super) fn key(number: u64) -> Key {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&splitmix64(2 * number).to_le_bytes());
    key[8..].copy_from_slice(&splitmix64(2 * number + 1).to_le_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_differ_and_values_have_their_length() {
        let entries = Entries::new(1000, 100);
        assert_eq!((0..2000).map(key).collect::<BTreeSet<_>>().len(), 2000);
        let values: BTreeSet<_> = (0..1000).map(|number| entries.value(number)).collect();
        assert!(values.len() > 900 && values.iter().all(|value| value.len() == 100));
        assert!((0..1000).all(|query| entries.present(query) < 1000));
        assert_eq!((entries.absent(0), entries.bytes()), (1000, 116_000));
    }
}
