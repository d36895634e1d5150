//! Koel's stores: single puts with `Durability::None`, so one write call each.
//!
//! Segments of the log store are synced while they fill. The ordered store has a block cache of 256
//! MiB and no compression. Other settings are the defaults.

use std::path::Path;

use koel_store::{CompactionPolicy, Compression, Durability, LogOptions, LogStore};
use koel_store::{LsmOptions, LsmStore};

use super::CACHE_BYTES;
use super::entries::Key;
use super::subject::Store;
use crate::Failure;

/// Default settings: segments of 128 MiB, and an index that grows with the keys.
pub(super) fn growing(folder: &Path, _keys: u64) -> Result<Box<dyn Store>, Failure> {
    Ok(Box::new(LogStore::open(folder)?))
}

/// Reserves room for all keys in the index from the start.
pub(super) fn sized(folder: &Path, keys: u64) -> Result<Box<dyn Store>, Failure> {
    Ok(Box::new(LogOptions::default().expected_keys(keys).open(folder)?))
}

/// One segment that never fills up, so that no write waits for a sync: the slowest group of writes
/// then shows the pauses of the index.
pub(super) fn one_segment(folder: &Path, _keys: u64) -> Result<Box<dyn Store>, Failure> {
    let options = LogOptions::default().segment_bytes(16 << 30).bytes_per_sync(u64::MAX);
    Ok(Box::new(options.open(folder)?))
}

fn options() -> LsmOptions {
    LsmOptions::default().compression(Compression::None).cache_bytes(CACHE_BYTES as u64)
}

pub(super) fn ordered(folder: &Path, _keys: u64) -> Result<Box<dyn Store>, Failure> {
    Ok(Box::new(options().open(folder)?))
}

/// Without a guide: the difference in CPU time is what the guide costs.
pub(super) fn unguided(folder: &Path, _keys: u64) -> Result<Box<dyn Store>, Failure> {
    Ok(Box::new(options().guide(0, 1).open(folder)?))
}

/// A store that merges nothing before it has 32 runs.
pub(super) fn unmerged(folder: &Path, memtable_bytes: u64) -> Result<Box<dyn Store>, Failure> {
    let options = options().policy(CompactionPolicy::Tiered).ratio(32);
    Ok(Box::new(options.memtable_bytes(memtable_bytes).open(folder)?))
}

/// What both stores do in the same words.
macro_rules! calls_of_both {
    () => {
        fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
            Ok(self.put(key, value, Durability::None)?)
        }

        fn sync(&self) -> Result<(), Failure> {
            Ok(self.sync()?)
        }

        fn get(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
            Ok(self.get(key)?.map(|value| read(&value)).is_some())
        }

        fn close(self: Box<Self>) -> Result<(), Failure> {
            Ok((*self).close()?)
        }
    };
}

impl Store for LogStore {
    calls_of_both!();

    fn index_bytes(&self) -> Option<u64> {
        Some(self.stats().index_bytes)
    }

    fn reads(&self) -> Option<u64> {
        Some(self.stats().reads)
    }
}

impl Store for LsmStore {
    calls_of_both!();

    fn index_bytes(&self) -> Option<u64> {
        Some(self.stats().guide_bytes)
    }

    fn scan(
        &self,
        from: &Key,
        count: usize,
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        let mut seen = 0;
        for entry in self.range(&from[..]..)?.take(count) {
            read(&entry?.1);
            seen += 1;
        }
        Ok(seen)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.flush()?)
    }

    fn runs(&self) -> u64 {
        self.stats().runs.len() as u64
    }

    fn false_candidates(&self) -> Option<u64> {
        Some(self.stats().false_candidates)
    }
}
