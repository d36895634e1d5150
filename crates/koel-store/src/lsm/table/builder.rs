//! Writing a table, in constant memory: blocks of data and of hashes, and the index behind them.

use std::cmp::Ordering;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::block::{BlockBuilder, tag_of};
use super::frame::{Codec, FOOTER, FrameWriter, Handle, Kind};
use super::hashes::HashesBuilder;
use super::index::{IndexBuilder, separator_len};
use super::properties::{Properties, TableInfo};
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::memory;
use crate::lsm::entry::Entry;
use crate::lsm::range_deletions::RangeDeletions;

/// How a table is built.
#[derive(Clone, Copy, Debug)]
pub(in crate::lsm) struct TableOptions {
    /// Mixed into checksums; one per store.
    pub(in crate::lsm) salt: u64,
    /// The seed of the hash of keys.
    pub(in crate::lsm) seed: u64,
    /// Bytes at which a block ends, before compression.
    pub(in crate::lsm) block_bytes: usize,
    pub(in crate::lsm) codec: Codec,
}

/// A table that is being written. If it is dropped before it is finished, the caller removes the
/// file (`store_files::table`).
#[derive(Debug)]
pub(in crate::lsm) struct TableBuilder {
    options: TableOptions,
    writer: FrameWriter,
    block: BlockBuilder,
    index: IndexBuilder,
    hashes: HashesBuilder,
    /// The last block, which is not in the index yet: its entry there depends on the next key.
    ended: Option<Handle>,
    /// The key of the last entry.
    key: Vec<u8>,
    /// The sequence number of the last entry.
    sequence: u64,
    /// The hash of the last key.
    hash: u64,
    info: TableInfo,
}

impl TableBuilder {
    /// Creates the file of table `number`.
    pub(in crate::lsm) fn new(
        folder: &dyn Folder,
        number: u64,
        options: &TableOptions,
    ) -> Result<Self, Error> {
        let writer = FrameWriter::new(folder, number, options.salt)?;
        Ok(Self {
            options: *options,
            writer,
            block: BlockBuilder::new(true),
            index: IndexBuilder::new(options.block_bytes, options.codec),
            hashes: HashesBuilder::default(),
            ended: None,
            key: Vec::new(),
            sequence: 0,
            hash: 0,
            info: TableInfo { number, ..TableInfo::default() },
        })
    }

    /// Adds an entry, which comes after all entries so far.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it does not: then an input of the table was damaged.
    pub(in crate::lsm) fn add(&mut self, entry: Entry<'_>) -> Result<(), Error> {
        let order =
            if self.info.entries == 0 { Ordering::Less } else { self.key[..].cmp(entry.key) };
        let is_in_order = order.then(entry.sequence.cmp(&self.sequence)) == Ordering::Less;
        if !is_in_order {
            let what = "it would have entries that are out of order; an input of it is damaged";
            return Err(self.writer.damaged(what));
        }
        let bytes = entry.key.len() + entry.value.map_or(0, <[u8]>::len);
        if self.block.count() > 0 && bytes >= self.options.block_bytes {
            self.end_block()?;
        }
        self.index_ended_block(Some(entry.key))?;
        if order == Ordering::Less {
            self.add_key(entry.key)?;
        }
        self.block.add(entry, tag_of(self.hash))?;
        self.info.count(&entry)?;
        self.sequence = entry.sequence;
        if self.block.size() >= self.options.block_bytes {
            self.end_block()?;
        }
        Ok(())
    }

    /// Makes `key` the last key.
    fn add_key(&mut self, key: &[u8]) -> Result<(), Error> {
        memory::copy_into(&mut self.key, key)?;
        self.hash = xxh3_64_with_seed(key, self.options.seed);
        self.hashes.add(&mut self.writer, self.hash)?;
        self.info.keys += 1;
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), Error> {
        let raw = self.block.finish()?;
        self.ended = Some(self.writer.append(Kind::Data, self.options.codec, raw)?);
        self.block.clear();
        Ok(())
    }

    /// Adds the last block to the index, now that the key behind it is known.
    fn index_ended_block(&mut self, next: Option<&[u8]>) -> Result<(), Error> {
        let Some(handle) = self.ended.take() else { return Ok(()) };
        let place = match next {
            Some(next) if next == self.key => (next, self.sequence),
            Some(next) => match separator_len(&self.key, next) {
                Some(len) => (&next[..len], 0),
                None => (&self.key[..], 0),
            },
            None => (&self.key[..], 0),
        };
        self.index.add(&mut self.writer, 0, place, handle)
    }

    /// Returns the number of entries so far.
    pub(in crate::lsm) fn entries(&self) -> u64 {
        self.info.entries
    }

    /// Writes the rest and syncs the file, but not the folder. A table may be empty.
    pub(in crate::lsm) fn finish(
        mut self,
        range_deletions: Arc<RangeDeletions>,
    ) -> Result<TableInfo, Error> {
        if self.block.count() > 0 {
            self.end_block()?;
        }
        self.index_ended_block(None)?;
        let list = self.hashes.finish(&mut self.writer)?;
        let (root, height) = self.index.finish(&mut self.writer)?;
        let mut info = self.info;
        info.last_key = self.key;
        info.add_range_deletions(range_deletions);
        let properties = Properties { root, height, list, info };
        let bytes = properties.encode()?;
        let handle = self.writer.append(Kind::Properties, Codec::None, &bytes)?;
        let bytes = handle.end() + FOOTER as u64;
        self.writer.finish(handle)?;
        Ok(TableInfo { bytes, ..properties.info })
    }
}
