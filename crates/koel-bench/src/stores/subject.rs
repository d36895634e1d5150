//! What is asked of every store under measurement.

use std::path::Path;

use super::entries::Key;
use crate::Failure;

/// A store under measurement.
pub(super) trait Store: Sized {
    /// How many entries are written at once: 1, but for a store that is meant to be written to in batches.
    const BATCH: usize = 1;

    /// Adds entries whose keys are new. Not durable: they survive the process, or less.
    fn write(&self, entries: &[(Key, &[u8])]) -> Result<(), Failure>;

    /// Makes everything written durable.
    fn sync(&self) -> Result<(), Failure>;

    /// Hands the value of a key to `read`, without a copy where the store does without.
    fn get<R>(&self, key: &Key, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Failure>;

    /// Bytes of the index in memory, where the store tells.
    fn index_bytes(&self) -> Option<u64> {
        None
    }

    /// Records read from files so far, where the store tells.
    fn reads(&self) -> Option<u64> {
        None
    }

    /// Ends it properly.
    fn close(self) -> Result<(), Failure>;
}

/// Opens the store in a folder, or creates it; for so many keys, if that is of use.
pub(super) type Open<S> = fn(&Path, u64) -> Result<S, Failure>;
