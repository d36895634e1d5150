//! Blocks in memory, up to a number of bytes, shared by all tables of a store.
//!
//! `quick_cache` decides which blocks stay, much as S3-FIFO does: a scan does not push out what is
//! read often. A block is checked and decompressed when it is read from the file,
//! and never again while it is here.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::Block;

/// The number of a table and the offset of a block in it.
type Key = (u64, u64);

/// The block cache of a store.
#[derive(Debug)]
pub(in crate::lsm) struct BlockCache(Option<Cache<Key, Arc<Block>, Bytes>>);

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Key, Arc<Block>> for Bytes {
    fn weight(&self, _: &Key, block: &Arc<Block>) -> u64 {
        block.memory() as u64
    }
}

impl BlockCache {
    /// Returns a cache that holds blocks of up to `bytes` bytes; 0 turns it off.
    pub(in crate::lsm) fn new(bytes: u64) -> Self {
        // An estimate of the number of blocks. Its tables grow with what is in it.
        let blocks = usize::try_from(bytes >> 12).unwrap_or(usize::MAX).clamp(16, 1 << 20);
        Self((bytes > 0).then(|| Cache::with_weighter(blocks, bytes, Bytes)))
    }

    #[inline]
    pub(super) fn get(&self, table: u64, offset: u64) -> Option<Arc<Block>> {
        self.0.as_ref()?.get(&(table, offset))
    }

    pub(super) fn insert(&self, table: u64, offset: u64, block: &Arc<Block>) {
        if let Some(cache) = &self.0 {
            cache.insert((table, offset), block.clone());
        }
    }

    /// Returns the bytes of the blocks in the cache.
    pub(in crate::lsm) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, Cache::weight)
    }
}
