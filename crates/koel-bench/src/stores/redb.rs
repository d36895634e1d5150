//! `redb` 4: a copy-on-write B-tree. Batches of 1,000 without durability and every 200th batch
//! durable, since a transaction of one entry writes several pages; a cache of 256 MiB; one read
//! transaction for all gets.

use std::cell::{Cell, OnceCell};
use std::path::Path;

use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, TableDefinition};

use super::CACHE_BYTES;
use super::entries::Key;
use super::subject::Store;
use crate::Failure;

const TABLE: TableDefinition<Key, &[u8]> = TableDefinition::new("entries");
/// One commit in this many is durable.
const DURABLE_EVERY: u64 = 200;

pub(super) struct Rival {
    database: Database,
    commits: Cell<u64>,
    /// Created by the first get after the last write.
    table: OnceCell<ReadOnlyTable<Key, &'static [u8]>>,
}

pub(super) fn open(folder: &Path, _keys: u64) -> Result<Rival, Failure> {
    let database =
        Database::builder().set_cache_size(CACHE_BYTES).create(folder.join("entries.redb"))?;
    Ok(Rival { database, commits: Cell::new(0), table: OnceCell::new() })
}

impl Rival {
    fn commit(&self, entries: &[(Key, &[u8])], durability: Durability) -> Result<(), Failure> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in entries {
                table.insert(key, value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn table(&self) -> Result<&ReadOnlyTable<Key, &'static [u8]>, Failure> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let table = self.database.begin_read()?.open_table(TABLE)?;
        Ok(self.table.get_or_init(|| table))
    }
}

impl Store for Rival {
    const BATCH: usize = 1000;

    fn write(&self, entries: &[(Key, &[u8])]) -> Result<(), Failure> {
        self.commits.set(self.commits.get() + 1);
        let is_durable = self.commits.get().is_multiple_of(DURABLE_EVERY);
        self.commit(entries, if is_durable { Durability::Immediate } else { Durability::None })
    }

    fn sync(&self) -> Result<(), Failure> {
        self.commit(&[], Durability::Immediate)
    }

    #[inline]
    fn get<R>(&self, key: &Key, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Failure> {
        Ok(self.table()?.get(key)?.map(|value| read(value.value())))
    }

    fn close(self) -> Result<(), Failure> {
        drop(self.table);
        Ok(self.database.close()?)
    }
}
