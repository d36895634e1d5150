//! Koel's ordered store: single puts with `Durability::None`; a block cache of 256 MiB, no
//! compression; other settings are the defaults.

use std::path::Path;

use koel_store::{CompactionPolicy, Compression, Durability, LsmOptions, LsmStore};

use super::CACHE_BYTES;
use super::entries::Key;
use super::subject::{Store, Tree};
use crate::Failure;

fn options() -> LsmOptions {
    LsmOptions::default().compression(Compression::None).cache_bytes(CACHE_BYTES as u64)
}

pub(super) fn open(folder: &Path, _keys: u64) -> Result<LsmStore, Failure> {
    Ok(options().open(folder)?)
}

/// Without a guide: the difference in CPU time is what the guide costs.
pub(super) fn unguided(folder: &Path, _keys: u64) -> Result<LsmStore, Failure> {
    Ok(options().guide(0, 1).open(folder)?)
}

/// A store that merges nothing before it has 32 runs.
pub(super) fn unmerged(folder: &Path, memtable_bytes: u64) -> Result<LsmStore, Failure> {
    let options = options().policy(CompactionPolicy::Tiered).ratio(32);
    Ok(options.memtable_bytes(memtable_bytes).open(folder)?)
}

impl Store for LsmStore {
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
        Some(self.stats().guide_bytes)
    }

    fn close(self) -> Result<(), Failure> {
        Ok(self.close()?)
    }
}

impl Tree for LsmStore {
    fn flush(&self) -> Result<(), Failure> {
        Ok(self.flush()?)
    }

    fn runs(&self) -> u64 {
        self.stats().runs.len() as u64
    }

    fn false_candidates(&self) -> Option<u64> {
        Some(self.stats().false_candidates)
    }

    fn scan(
        &self,
        from: &Key,
        count: usize,
        mut read: impl FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        let mut seen = 0;
        for entry in self.range(&from[..]..)?.take(count) {
            read(&entry?.1);
            seen += 1;
        }
        Ok(seen)
    }
}
