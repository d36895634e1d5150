//! `fjall` 3: an LSM-tree. Single inserts into its journal, which the system writes out; a block
//! cache of 256 MiB; no compression (its feature `lz4` is off); other settings are the defaults.

use std::path::Path;
use std::sync::Arc;

use fjall::compaction::Leveled;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::CACHE_BYTES;
use super::entries::Key;
use super::subject::Store;
use crate::Failure;

struct Rival {
    keyspace: Keyspace,
    database: Database,
}

pub(super) fn open(folder: &Path, _keys: u64) -> Result<Box<dyn Store>, Failure> {
    open_with(folder, KeyspaceCreateOptions::default)
}

/// A store that merges nothing before it has 255 runs.
pub(super) fn unmerged(folder: &Path, memtable_bytes: u64) -> Result<Box<dyn Store>, Failure> {
    open_with(folder, || {
        let strategy = Leveled::default().with_l0_threshold(u8::MAX);
        let options = KeyspaceCreateOptions::default().max_memtable_size(memtable_bytes);
        options.compaction_strategy(Arc::new(strategy))
    })
}

fn open_with(
    folder: &Path,
    options: impl FnOnce() -> KeyspaceCreateOptions,
) -> Result<Box<dyn Store>, Failure> {
    let database = Database::builder(folder).cache_size(CACHE_BYTES as u64).open()?;
    let keyspace = database.keyspace("entries", options)?;
    Ok(Box::new(Rival { keyspace, database }))
}

impl Store for Rival {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        Ok(self.keyspace.insert(*key, value)?)
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn get(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        Ok(self.keyspace.get(key)?.map(|value| read(&value)).is_some())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.sync()
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.keyspace.rotate_memtable_and_wait()?)
    }

    fn runs(&self) -> u64 {
        self.keyspace.table_count() as u64
    }

    fn scan(
        &self,
        from: &Key,
        count: usize,
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        let mut seen = 0;
        for entry in self.keyspace.range(&from[..]..).take(count) {
            read(&entry.into_inner()?.1);
            seen += 1;
        }
        Ok(seen)
    }
}
