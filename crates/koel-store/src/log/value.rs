//! A value as a stream: a large one is read block by block, each block checked before a byte of it is handed out.

use std::io::{self, Read};
use std::sync::Arc;

use crate::Error;
use crate::kernel::record::{self, Kind};
use crate::kernel::scan::Found;
use crate::kernel::segment::Segment;

/// Reads a value, in at most 64 KiB of memory. The value is that of the moment when it was asked for, whatever is written meanwhile.
///
/// A read of damaged bytes fails with [`io::ErrorKind::InvalidData`] and an [`Error::Damaged`] inside.
#[derive(Debug)]
pub struct ValueReader {
    segment: Arc<Segment>,
    /// Where the next block starts.
    offset: u64,
    len: u64,
    /// Bytes of the value behind the block in memory.
    left: usize,
    block: Vec<u8>,
    /// The part of the block that was not handed out.
    from: usize,
    to: usize,
}

impl ValueReader {
    pub(super) fn new(segment: &Arc<Segment>, found: &Found<'_>) -> Self {
        let Found { offset, head, .. } = *found;
        let block = found.value().to_vec();
        Self {
            segment: segment.clone(),
            offset: offset + head.body(),
            len: head.value_len,
            left: if head.kind == Kind::Large { record::usize_of(head.value_len) } else { 0 },
            from: 0,
            to: block.len(),
            block,
        }
    }

    /// Bytes of the whole value.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes sure that there are bytes to hand out; false at the end.
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
