//! The hashes of the keys of a table, in frames of their own between the data, from which the
//! guide is built without reading a key.
//!
//! Each frame but the last has [`HASHES`] hashes of 64 bits. The list at the end of the file has
//! the offset of each frame. So both writing and reading take constant memory, but for 1 byte for
//! 1,024 keys.

use super::frame::{Codec, FrameWriter, HASHES, Handle, Kind};
use super::reader::Table;
use crate::Error;
use crate::kernel::bytes::{u64_at, usize_of};
use crate::kernel::memory;

/// The frames of hashes that are being written.
#[derive(Debug, Default)]
pub(super) struct HashesBuilder {
    /// The hashes of the frame that is being filled.
    bytes: Vec<u8>,
    /// The offset of each frame.
    list: Vec<u8>,
}

impl HashesBuilder {
    pub(super) fn add(&mut self, writer: &mut FrameWriter, hash: u64) -> Result<(), Error> {
        memory::reserve(&mut self.bytes, 8)?;
        self.bytes.extend_from_slice(&hash.to_le_bytes());
        if self.bytes.len() as u64 == 8 * HASHES {
            self.end_frame(writer)?;
        }
        Ok(())
    }

    fn end_frame(&mut self, writer: &mut FrameWriter) -> Result<(), Error> {
        let handle = writer.append(Kind::Hashes, Codec::None, &self.bytes)?;
        self.bytes.clear();
        memory::reserve(&mut self.list, 8)?;
        self.list.extend_from_slice(&handle.offset.to_le_bytes());
        Ok(())
    }

    /// Writes the rest, and the list. Returns where the list is.
    pub(super) fn finish(mut self, writer: &mut FrameWriter) -> Result<Handle, Error> {
        if !self.bytes.is_empty() {
            self.end_frame(writer)?;
        }
        writer.append(Kind::List, Codec::None, &self.list)
    }
}

/// The hashes of the distinct keys of a table, in the order of the keys.
#[derive(Debug)]
pub(in crate::lsm) struct Hashes<'a> {
    table: &'a Table,
    /// The offsets of the frames; read at first use.
    list: Option<Vec<u8>>,
    /// Hashes that were returned.
    returned: u64,
}

impl Table {
    /// Returns the hashes of its distinct keys.
    pub(in crate::lsm) fn hashes(&self) -> Hashes<'_> {
        Hashes { table: self, list: None, returned: 0 }
    }
}

impl Hashes<'_> {
    /// Replaces the contents of `into` by the next hashes. Returns false at the end. After damage
    /// of some hashes it goes on with those behind them.
    pub(in crate::lsm) fn next(&mut self, into: &mut Vec<u64>) -> Result<bool, Error> {
        into.clear();
        let left = self.table.info().keys - self.returned;
        if left == 0 {
            return Ok(false);
        }
        let list = match self.list.take() {
            Some(list) => list,
            None => self.table.hash_list()?,
        };
        let offset = u64_at(&list, usize_of(8 * (self.returned / HASHES)));
        self.list = Some(list);
        let count = left.min(HASHES);
        self.returned += count;
        let frame = self.table.read(Handle { offset, stored: 8 * count }, Kind::Hashes)?;
        let (hashes, _) = frame.raw().as_chunks();
        memory::reserve(into, hashes.len())?;
        into.extend(hashes.iter().map(|hash| u64::from_le_bytes(*hash)));
        Ok(true)
    }
}
