//! The index of a table: a tree of blocks that leads from a key to the block that may have it.
//!
//! An entry of an index block stands for a block below it. Its place is at or after the last entry
//! there and before the first entry behind it, as short as possible; its value says where the block
//! is. Only the root is always in memory: it has at most about 64 KiB.

use super::block::{Block, BlockBuilder, BlockEntry, shared_len};
use super::frame::{Codec, FrameWriter, Handle, Kind};
use crate::Error;
use crate::kernel::bytes::{MAX_VARINT, put_varint, take_varint};
use crate::kernel::memory;
use crate::lsm::entry::Entry;

/// More index blocks than any table has between its root and its data.
pub(super) const MAX_HEIGHT: u64 = 32;

/// Bytes at which an index block above the lowest ones ends.
const UPPER_BYTES: usize = 64 << 10;
/// Every index block but the root has as many entries or more, so that the tree stays flat however
/// long its keys are.
const MIN_ENTRIES: usize = 4;

/// Returns where the block is that an entry of an index block stands for.
#[inline]
pub(super) fn handle_of(block: &Block, entry: &BlockEntry<'_>) -> Option<Handle> {
    let mut value = block.value(entry.value.clone()?);
    let offset = take_varint(&mut value)?;
    let stored = take_varint(&mut value)?;
    value.is_empty().then_some(Handle { offset, stored })
}

/// Returns the length of the shortest start of `next` that is greater than `last`, or `None` if
/// that is all of `next`. `last` is less than `next`.
pub(super) fn separator_len(last: &[u8], next: &[u8]) -> Option<usize> {
    let len = shared_len(last, next) + 1;
    (len < next.len()).then_some(len)
}

/// The blocks of an index that are being written.
#[derive(Debug)]
pub(super) struct IndexBuilder {
    /// The lowest first.
    levels: Vec<Level>,
    block_bytes: usize,
    codec: Codec,
}

#[derive(Debug)]
struct Level {
    block: BlockBuilder,
    /// The place of its last entry.
    key: Vec<u8>,
    sequence: u64,
}

impl Level {
    fn new() -> Self {
        Self { block: BlockBuilder::new(false), key: Vec::new(), sequence: 0 }
    }
}

impl IndexBuilder {
    pub(super) fn new(block_bytes: usize, codec: Codec) -> Self {
        Self { levels: vec![Level::new()], block_bytes, codec }
    }

    /// Adds a block that ends at this place to a level, that above the data first.
    pub(super) fn add(
        &mut self,
        writer: &mut FrameWriter,
        at: usize,
        (key, sequence): (&[u8], u64),
        handle: Handle,
    ) -> Result<(), Error> {
        if at == self.levels.len() {
            memory::push(&mut self.levels, Level::new())?;
        }
        let level = &mut self.levels[at];
        let mut value = Vec::with_capacity(2 * MAX_VARINT);
        put_varint(&mut value, handle.offset);
        put_varint(&mut value, handle.stored);
        level.block.add(Entry { key, sequence, value: Some(&value) }, 0)?;
        level.key = memory::copy_of(key)?;
        level.sequence = sequence;
        let most = if at == 0 { self.block_bytes } else { UPPER_BYTES };
        if level.block.count() >= MIN_ENTRIES && level.block.size() >= most {
            self.end_block(writer, at)?;
        }
        Ok(())
    }

    /// Writes the block of a level and adds it to the level above.
    fn end_block(&mut self, writer: &mut FrameWriter, at: usize) -> Result<(), Error> {
        let level = &mut self.levels[at];
        let handle = writer.append(Kind::Index, self.codec, level.block.finish()?)?;
        level.block.clear();
        let (key, sequence) = (std::mem::take(&mut level.key), level.sequence);
        self.add(writer, at + 1, (&key, sequence), handle)
    }

    /// Writes the rest. Returns where the root is, and the height of the tree.
    pub(super) fn finish(mut self, writer: &mut FrameWriter) -> Result<(Handle, u64), Error> {
        let mut at = 0;
        while at + 1 < self.levels.len() {
            if self.levels[at].block.count() > 0 {
                self.end_block(writer, at)?;
            }
            at += 1;
        }
        let root = writer.append(Kind::Index, self.codec, self.levels[at].block.finish()?)?;
        Ok((root, at as u64 + 1))
    }
}
