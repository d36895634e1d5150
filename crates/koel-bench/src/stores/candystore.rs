//! `candystore` 1.2: an append-only log with a hash table beside it, as Koel's store, but the table
//! is a mapped file. It makes a checkpoint (a sync, on its own thread) after every 128 MiB, which
//! is when Koel syncs a segment. By default it makes one after 128 KiB and loads more slowly. Files
//! of 128 MiB; other settings are the defaults.

use std::path::Path;

use candystore::{CandyStore, Config};

use super::entries::Key;
use super::subject::Store;
use crate::Failure;

pub(super) fn open(folder: &Path, _keys: u64) -> Result<Box<dyn Store>, Failure> {
    let config = Config {
        max_data_file_size: 128 << 20,
        checkpoint_delta_bytes: Some(128 << 20),
        checkpoint_interval: None,
        ..Config::default()
    };
    Ok(Box::new(CandyStore::open(folder, config)?))
}

impl Store for CandyStore {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        self.set(key, value)?;
        Ok(())
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.checkpoint()?)
    }

    fn get(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        Ok(self.get(key)?.map(|value| read(&value)).is_some())
    }

    fn index_bytes(&self) -> Option<u64> {
        Some(self.stats().index_size_bytes)
    }

    fn reads(&self) -> Option<u64> {
        Some(self.stats().num_read_ops)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.sync()
    }
}
