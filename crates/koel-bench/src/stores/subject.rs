//! The trait that every store under measurement implements.

use super::entries::Key;
use crate::Failure;

/// A store under measurement. Its calls are virtual: they cost a nanosecond, and a get fifty.
pub(super) trait Store {
    /// The number of entries written at once: 1, unless the store is designed for batches.
    fn batch(&self) -> usize {
        1
    }

    /// Adds or replaces an entry. It need not be durable, only readable by this process.
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure>;

    /// The same for several entries.
    fn write(&self, entries: &[(Key, &[u8])]) -> Result<(), Failure> {
        entries.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Makes all writes durable.
    fn sync(&self) -> Result<(), Failure>;

    /// Calls `read` with the value of a key, without a copy if the store can. Returns whether there
    /// is one.
    fn get(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool, Failure>;

    /// The bytes of the index in memory, if the store tells.
    fn index_bytes(&self) -> Option<u64> {
        None
    }

    /// The number of records read from files so far, if the store tells.
    fn reads(&self) -> Option<u64> {
        None
    }

    /// Closes the store properly.
    fn close(self: Box<Self>) -> Result<(), Failure>;

    /// Passes the values of up to `count` keys, from this one on and in order, to `read`. Returns
    /// their number. Only for a store with its keys in order.
    fn scan(
        &self,
        _from: &Key,
        _count: usize,
        _read: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        Err("its keys are not in order".into())
    }

    /// Writes what is in memory to the disk as one sorted run, in a store that has runs.
    fn flush(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// The number of sorted runs.
    fn runs(&self) -> u64 {
        1
    }

    /// The number of runs that were read so far without holding the key, if the store tells.
    fn false_candidates(&self) -> Option<u64> {
        None
    }
}
