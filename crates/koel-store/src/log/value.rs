//! A value as a stream. A large one is read block by block, and each block is checked before the
//! caller gets a byte of it.

use std::io::{self, Read};
use std::sync::Arc;

use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::record::{self, Kind};
use crate::kernel::scan::Record;
use crate::kernel::segment::Segment;

/// Reads a value in at most 64 KiB of memory. Later writes do not change what it reads.
///
/// A read of damaged bytes fails with [`io::ErrorKind::InvalidData`], which wraps
/// [`Error::Damaged`].
#[derive(Debug)]
pub struct ValueReader {
    segment: Arc<Segment>,
    /// Offset of the next block.
    offset: u64,
    len: u64,
    /// Bytes of the value after the block in memory.
    left: usize,
    block: Vec<u8>,
    /// The unread part of the block.
    from: usize,
    to: usize,
}

impl ValueReader {
    pub(super) fn new(segment: &Arc<Segment>, record: &Record<'_>) -> Self {
        let Record { offset, header, .. } = *record;
        let block = record.value().to_vec();
        Self {
            segment: segment.clone(),
            offset: offset + header.body(),
            len: header.value_len,
            left: if header.kind == Kind::Large { usize_of(header.value_len) } else { 0 },
            from: 0,
            to: block.len(),
            block,
        }
    }

    /// Returns the length of the whole value in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the value has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the next block if the present one is used up. Returns false at the end.
    fn fill(&mut self) -> Result<bool, Error> {
        if self.from == self.to && self.left > 0 {
            let block = record::block_size(self.left);
            self.segment.block(self.offset, block, &mut self.block)?;
            self.offset += block.stored as u64;
            self.left -= block.content;
            (self.from, self.to) = (0, block.content);
        }
        Ok(self.from < self.to)
    }
}

impl Read for ValueReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.fill() {
            Ok(true) => {
                let read = (&self.block[self.from..self.to]).read(into)?;
                self.from += read;
                Ok(read)
            }
            Ok(false) => Ok(0),
            Err(Error::Io { error, .. }) => Err(error),
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}
