//! `fjall` 3: an LSM-tree. Single inserts into its journal, which the system writes out; a block
//! cache of 256 MiB; no compression (its feature `lz4` is off); other settings are the defaults.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::CACHE_BYTES;
use super::entries::Key;
use super::subject::Store;
use crate::Failure;

pub(super) struct Rival {
    keyspace: Keyspace,
    database: Database,
}

pub(super) fn open(folder: &Path, _keys: u64) -> Result<Rival, Failure> {
    let database = Database::builder(folder).cache_size(CACHE_BYTES as u64).open()?;
    let keyspace = database.keyspace("entries", KeyspaceCreateOptions::default)?;
    Ok(Rival { keyspace, database })
}

impl Store for Rival {
    fn write(&self, entries: &[(Key, &[u8])]) -> Result<(), Failure> {
        for &(key, value) in entries {
            self.keyspace.insert(key, value)?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    #[inline]
    fn get<R>(&self, key: &Key, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Failure> {
        Ok(self.keyspace.get(key)?.map(|value| read(&value)))
    }

    fn close(self) -> Result<(), Failure> {
        self.sync()
    }
}
