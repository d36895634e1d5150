//! The trait that every store under measurement implements.

use std::hint::black_box;
use std::path::Path;

use super::entries::Key;
use crate::Failure;

/// A store under measurement.
pub(super) trait Store: Sized {
    /// The number of entries written at once: 1, unless the store is designed for batches.
    const BATCH: usize = 1;

    /// Adds entries with new keys. They need not be durable, only readable by this process.
    fn write(&self, entries: &[(Key, &[u8])]) -> Result<(), Failure>;

    /// Makes all writes durable.
    fn sync(&self) -> Result<(), Failure>;

    /// Calls `read` with the value of a key, without a copy if the store can.
    fn get<R>(&self, key: &Key, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Failure>;

    /// The bytes of the index in memory, if the store tells.
    fn index_bytes(&self) -> Option<u64> {
        None
    }

    /// The number of records read from files so far, if the store tells.
    fn reads(&self) -> Option<u64> {
        None
    }

    /// Closes the store properly.
    fn close(self) -> Result<(), Failure>;
}

/// A store with its keys in order.
pub(super) trait Tree: Store {
    /// Writes what is in memory to the disk as one sorted run.
    fn flush(&self) -> Result<(), Failure>;

    /// The number of sorted runs.
    fn runs(&self) -> u64;

    /// The number of runs that were read so far without holding the key, if the store tells.
    fn false_candidates(&self) -> Option<u64> {
        None
    }

    /// Passes the values of up to `count` keys, from this one on and in order, to `read`. Returns
    /// their number.
    fn scan(&self, from: &Key, count: usize, read: impl FnMut(&[u8])) -> Result<usize, Failure>;
}

/// The number of entries of a scan.
pub(super) const SCANNED: usize = 100;

/// Scans [`SCANNED`] entries from a key on. Returns their number.
pub(super) type Scan<S> = fn(&S, &Key) -> Result<usize, Failure>;

/// The [`Scan`] of a tree.
pub(super) fn scan<S: Tree>(store: &S, from: &Key) -> Result<usize, Failure> {
    store.scan(from, SCANNED, |value| {
        black_box(value.first());
    })
}

/// Opens a tree that does not merge its runs, with a memtable of this size.
pub(super) type OpenUnmerged<S> = fn(&Path, u64) -> Result<S, Failure>;

/// Opens the store in a folder, or creates it. The number of keys is a hint.
pub(super) type Open<S> = fn(&Path, u64) -> Result<S, Failure>;
