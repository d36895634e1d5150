//! Koel's log store: single puts with `Durability::None`, so one write call each. Segments are
//! synced while they fill.

use std::path::Path;

use koel_store::{Durability, LogOptions, LogStore};

use super::entries::Key;
use super::subject::Store;
use crate::Failure;

/// Default settings: segments of 128 MiB, and an index that grows with the keys.
pub(super) fn growing(folder: &Path, _keys: u64) -> Result<LogStore, Failure> {
    Ok(LogStore::open(folder)?)
}

/// Reserves room for all keys in the index from the start.
pub(super) fn sized(folder: &Path, keys: u64) -> Result<LogStore, Failure> {
    Ok(LogOptions::default().expected_keys(keys).open(folder)?)
}

/// One segment that never fills up, so that no write waits for a sync: the slowest group of writes
/// then shows the pauses of the index.
pub(super) fn one_segment(folder: &Path, _keys: u64) -> Result<LogStore, Failure> {
    Ok(LogOptions::default().segment_bytes(16 << 30).bytes_per_sync(u64::MAX).open(folder)?)
}

impl Store for LogStore {
    fn write(&self, entries: &[(Key, &[u8])]) -> Result<(), Failure> {
        for (key, value) in entries {
            self.put(key, value, Durability::None)?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.sync()?)
    }

    #[inline]
    fn get<R>(&self, key: &Key, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Failure> {
        Ok(self.get(key)?.map(|value| read(&value)))
    }

    fn index_bytes(&self) -> Option<u64> {
        Some(self.stats().index_bytes)
    }

    fn reads(&self) -> Option<u64> {
        Some(self.stats().reads)
    }

    fn close(self) -> Result<(), Failure> {
        Ok(self.close()?)
    }
}
