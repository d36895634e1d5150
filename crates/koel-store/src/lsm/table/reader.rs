//! An open table: one key, and the blocks for cursors.
//!
//! Cost of a lookup: a search in the root and in one or two index blocks from the cache, one block
//! of data from the cache or from the file, and the tags in it. Nothing is copied but the value.
//!
//! **Cache.** Blocks stay in memory up to a number of bytes, shared by all tables of a store.
//! `quick_cache` decides which blocks stay, much as S3-FIFO does: a scan does not push out what is
//! read often. A block is checked and decompressed when it is read from the file, and never again
//! while it is here.

use std::sync::{Arc, OnceLock};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::{Block, tag_of};
use super::frame::{self, Handle, Kind, Unsealed};
use super::index::handle_of;
use super::properties::{Properties, TableInfo};
use super::verify::UNSOUND;
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::memory;
use crate::kernel::store_files::{NumberedFile, TABLE};
use crate::lsm::entry::Lookup;

/// An open table.
#[derive(Debug)]
pub(in crate::lsm) struct Table {
    file: NumberedFile,
    pub(super) properties: Properties,
    /// Where the properties are.
    pub(super) properties_at: Handle,
    root: Arc<Block>,
    cache: Arc<BlockCache>,
    /// Comes after the file: dropping it may remove that.
    removal: Removal,
}

/// Removes the file of a table when nobody reads it any more, if it is to be removed. Until then
/// the file can be closed and opened again.
#[derive(Debug)]
struct Removal {
    name: String,
    folder: OnceLock<Arc<dyn Folder>>,
}

impl Drop for Removal {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.get() {
            // What cannot be removed is when the store is next opened.
            drop(folder.remove(&self.name));
        }
    }
}

/// The version of a key that a read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lsm) struct Found {
    pub(in crate::lsm) sequence: u64,
    /// `None` if the key was deleted.
    pub(in crate::lsm) value: Option<Vec<u8>>,
}

impl Table {
    /// Opens table `number` and checks everything but its entries.
    pub(in crate::lsm) fn open(
        folder: &dyn Folder,
        number: u64,
        salt: u64,
        cache: &Arc<BlockCache>,
    ) -> Result<Self, Error> {
        let file = NumberedFile::open(folder, TABLE, (salt, number))?;
        let (properties, properties_at) = read_properties(&file)?;
        let at = properties.root;
        let root = frame::read(&file, properties.info.bytes, (at, Kind::Index))?;
        let root = Block::of_index(root.bytes, root.start)
            .filter(|root| (root.count() == 0) == (properties.info.entries == 0))
            .ok_or_else(|| file.damaged(at.offset, "the index is not sound"))?;
        let (root, cache) = (Arc::new(root), cache.clone());
        let removal = Removal { name: file.name.clone(), folder: OnceLock::new() };
        Ok(Self { file, properties, properties_at, root, cache, removal })
    }

    /// Removes the file from a folder once the table is dropped.
    pub(in crate::lsm) fn remove_when_unused(&self, folder: &Arc<dyn Folder>) {
        self.removal.folder.get_or_init(|| folder.clone());
    }

    /// Returns the version that a read looks for, if there is one.
    pub(in crate::lsm) fn get(&self, lookup: Lookup<'_>) -> Result<Option<Found>, Error> {
        let Lookup { key, hash, sequence, deleted } = lookup;
        let info = self.info();
        if key < &info.first_key[..] || key > &info.last_key[..] {
            return Ok(None);
        }
        let Some(handle) = self.find_block(key, sequence)? else { return Ok(None) };
        let block = self.block(handle, Kind::Data, true)?;
        let found = block.find(key, tag_of(hash), sequence);
        let Some(entry) = found.ok_or_else(|| self.unsound(handle))? else { return Ok(None) };
        let value = entry.value.filter(|_| entry.sequence >= deleted);
        let value = value.map(|value| memory::copy_of(block.value(value))).transpose()?;
        Ok(Some(Found { sequence: entry.sequence, value }))
    }

    /// Returns where the block of data is that has the first entry at or after a place.
    fn find_block(&self, key: &[u8], sequence: u64) -> Result<Option<Handle>, Error> {
        let Some(mut handle) = self.child(&self.root, self.properties.root, key, sequence)? else {
            return Ok(None);
        };
        for _ in 1..self.properties.height {
            let block = self.block(handle, Kind::Index, true)?;
            let child = self.child(&block, handle, key, sequence)?;
            // The last entry has the place that the block above gives to all of it.
            handle = child.ok_or_else(|| self.unsound(handle))?;
        }
        Ok(Some(handle))
    }

    /// Searches an index block, which is at `at`.
    #[inline]
    fn child(
        &self,
        block: &Block,
        at: Handle,
        key: &[u8],
        sequence: u64,
    ) -> Result<Option<Handle>, Error> {
        let index = block.seek(key, sequence).ok_or_else(|| self.unsound(at))?;
        if index == block.count() {
            return Ok(None);
        }
        self.child_at(block, at, index).map(Some)
    }

    /// Returns where the block is that entry `index` of an index block stands for.
    #[inline]
    pub(super) fn child_at(
        &self,
        block: &Block,
        at: Handle,
        index: usize,
    ) -> Result<Handle, Error> {
        let entry = block.entry(index);
        entry.and_then(|entry| handle_of(block, &entry)).ok_or_else(|| self.unsound(at))
    }

    /// Returns a block from the cache or from the file. It has an entry.
    #[inline]
    pub(super) fn block(
        &self,
        handle: Handle,
        kind: Kind,
        fill_cache: bool,
    ) -> Result<Arc<Block>, Error> {
        match self.cache.get(self.info().number, handle.offset) {
            Some(block) => Ok(block),
            None => self.read_block(handle, kind, fill_cache),
        }
    }

    /// Reads a block from the file. It has an entry.
    pub(super) fn read_block(
        &self,
        handle: Handle,
        kind: Kind,
        fill_cache: bool,
    ) -> Result<Arc<Block>, Error> {
        let frame = self.read(handle, kind)?;
        let block = match kind {
            Kind::Data => Block::of_data(frame.bytes, frame.start),
            _ => Block::of_index(frame.bytes, frame.start),
        };
        let block = block.filter(|block| block.count() > 0).ok_or_else(|| self.unsound(handle))?;
        let block = Arc::new(block);
        if fill_cache {
            self.cache.insert(self.info().number, handle.offset, &block);
        }
        Ok(block)
    }

    /// Reads a frame.
    pub(super) fn read(&self, handle: Handle, kind: Kind) -> Result<Unsealed, Error> {
        frame::read(&self.file, self.info().bytes, (handle, kind))
    }

    /// Returns the offsets of the frames of hashes.
    pub(super) fn hash_list(&self) -> Result<Vec<u8>, Error> {
        let frame = self.read(self.properties.list, Kind::List)?;
        memory::copy_of(frame.raw())
    }

    /// The error of a block that was written wrongly: its checksum matches.
    pub(super) fn unsound(&self, at: Handle) -> Error {
        self.file.damaged(at.offset, UNSOUND)
    }

    pub(super) fn root(&self) -> (&Arc<Block>, Handle) {
        (&self.root, self.properties.root)
    }

    /// Returns the number of index blocks from the root to a block of data.
    pub(super) fn height(&self) -> u64 {
        self.properties.height
    }

    #[inline]
    pub(in crate::lsm) fn info(&self) -> &TableInfo {
        &self.properties.info
    }
}

/// Reads the properties that the footer leads to.
pub(super) fn read_properties(file: &NumberedFile) -> Result<(Properties, Handle), Error> {
    let (len, mut bytes) = (file.len()?, [0; frame::FOOTER]);
    let start = len.checked_sub(bytes.len() as u64);
    let start = start.ok_or_else(|| file.damaged(len, "the file is cut short"))?;
    file.read_up_to(&mut bytes, start)?;
    let footer = frame::decode_footer(&bytes, file.position(start));
    let handle = footer.ok_or_else(|| file.damaged(start, "the footer is not sound"))?;
    let frame = frame::read(file, len, (handle, Kind::Properties))?;
    let properties = Properties::decode(frame.raw())?;
    // The guide takes memory for the keys; each has a hash in the file.
    let mut properties = properties
        .filter(|properties| properties.info.keys <= len / 8)
        .ok_or_else(|| file.damaged(handle.offset, "the properties are not sound"))?;
    properties.info.number = file.number;
    properties.info.bytes = len;
    Ok((properties, handle))
}

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
