//! The trait that every store under measurement implements.

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

/// Opens the store in a folder, or creates it. The number of keys is a hint.
pub(super) type Open<S> = fn(&Path, u64) -> Result<S, Failure>;
