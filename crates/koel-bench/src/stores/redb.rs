//! `redb` 4: a copy-on-write B-tree. Batches of 1,000 without durability and every 200th batch
//! durable, since a transaction of one entry writes several pages; a cache of 256 MiB; one read
//! transaction for all gets.

use std::cell::{Cell, Ref, RefCell};
use std::path::Path;

use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, TableDefinition};

use super::CACHE_BYTES;
use super::entries::Key;
use super::subject::Store;
use crate::Failure;

const TABLE: TableDefinition<Key, &[u8]> = TableDefinition::new("entries");
/// One commit in this many is durable.
const DURABLE_EVERY: u64 = 200;

type Table = ReadOnlyTable<Key, &'static [u8]>;

struct Rival {
    database: Database,
    commits: Cell<u64>,
    /// Created by the first get after a write.
    table: RefCell<Option<Table>>,
}

pub(super) fn open(folder: &Path, _keys: u64) -> Result<Box<dyn Store>, Failure> {
    let database =
        Database::builder().set_cache_size(CACHE_BYTES).create(folder.join("entries.redb"))?;
    Ok(Box::new(Rival { database, commits: Cell::new(0), table: RefCell::new(None) }))
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

    fn table(&self) -> Result<Ref<'_, Table>, Failure> {
        if self.table.borrow().is_none() {
            let table = self.database.begin_read()?.open_table(TABLE)?;
            *self.table.borrow_mut() = Some(table);
        }
        Ref::filter_map(self.table.borrow(), Option::as_ref).map_err(|_| "no table".into())
    }
}

impl Store for Rival {
    fn batch(&self) -> usize {
        1000
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        self.write(&[(*key, value)])
    }

    fn write(&self, entries: &[(Key, &[u8])]) -> Result<(), Failure> {
        self.table.replace(None);
        self.commits.set(self.commits.get() + 1);
        let is_durable = self.commits.get().is_multiple_of(DURABLE_EVERY);
        self.commit(entries, if is_durable { Durability::Immediate } else { Durability::None })
    }

    fn sync(&self) -> Result<(), Failure> {
        self.commit(&[], Durability::Immediate)
    }

    fn get(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        Ok(self.table()?.get(key)?.map(|value| read(value.value())).is_some())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        drop(self.table);
        Ok(self.database.close()?)
    }

    fn scan(
        &self,
        from: &Key,
        count: usize,
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        let mut seen = 0;
        for entry in self.table()?.range(*from..)?.take(count) {
            read(entry?.1.value());
            seen += 1;
        }
        Ok(seen)
    }
}
