//! Blocks in memory, up to a number of bytes.

/// The block cache of a store.
#[derive(Debug)]
pub(in crate::lsm) struct BlockCache;

impl BlockCache {
    /// Returns a cache that holds blocks of up to `bytes` bytes; 0 turns it off.
    pub(in crate::lsm) fn new(_bytes: u64) -> Self {
        unimplemented!()
    }

    /// Returns the bytes of the blocks in the cache.
    pub(in crate::lsm) fn bytes(&self) -> u64 {
        unimplemented!()
    }
}
