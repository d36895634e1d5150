//! `rocksdb` 0.25, which has RocksDB 11.8: an LSM-tree in C++. Memtables of 64 MiB, as Koel's; a
//! block cache of 256 MiB; a Bloom filter with 10 bits for each whole key; no compression. Two
//! background threads, and single puts into its log, which the system writes out: the defaults.
//!
//! It takes ten minutes to compile, so only `--cfg rocksdb` has it: `scripts/rocksdb`.

use std::path::Path;

use rocksdb::properties::num_files_at_level;
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options};

use super::CACHE_BYTES;
use super::entries::Key;
use super::subject::Store;
use crate::Failure;

const MEMTABLE_BYTES: usize = 64 << 20;
const BITS_PER_KEY: f64 = 10.0;

fn options() -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
    blocks.set_bloom_filter(BITS_PER_KEY, false);
    blocks.set_whole_key_filtering(true);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options.set_compression_type(DBCompressionType::None);
    options.set_max_background_jobs(2);
    options
}

pub(super) fn open(folder: &Path, _keys: u64) -> Result<Box<dyn Store>, Failure> {
    Ok(Box::new(DB::open(&options(), folder)?))
}

/// A store that merges nothing.
pub(super) fn unmerged(folder: &Path, memtable_bytes: u64) -> Result<Box<dyn Store>, Failure> {
    let mut options = options();
    options.set_write_buffer_size(usize::try_from(memtable_bytes)?);
    options.set_disable_auto_compactions(true);
    Ok(Box::new(DB::open(&options, folder)?))
}

impl Store for DB {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        Ok(self.put(key, value)?)
    }

    fn sync(&self) -> Result<(), Failure> {
        Ok(self.flush_wal(true)?)
    }

    fn get(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        Ok(self.get_pinned(key)?.map(|value| read(&value)).is_some())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.flush_wal(true)?;
        self.cancel_all_background_work(true);
        Ok(())
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.flush()?)
    }

    /// Without merges, all of them are in level 0.
    fn runs(&self) -> u64 {
        self.property_int_value(num_files_at_level(0)).ok().flatten().unwrap_or(0)
    }

    fn scan(
        &self,
        from: &Key,
        count: usize,
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        let mut entries = self.raw_iterator();
        entries.seek(from);
        let mut seen = 0;
        while seen < count
            && let Some(value) = entries.value()
        {
            read(value);
            seen += 1;
            entries.next();
        }
        entries.status()?;
        Ok(seen)
    }
}
