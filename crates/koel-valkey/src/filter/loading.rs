//! A filter whose chunks are still arriving, and how a body becomes a filter.
//!
//! The header says how long the body is. No memory is taken for what it says: the body grows by the
//! chunks that arrive, in order. The last one is checked together with all others, and only then
//! is there a filter.

use std::mem;

use crate::error::Error;
use crate::filter::compat::{self, Compat};
use crate::filter::expiring::Expiring;
use crate::filter::header::Header;
use crate::filter::native::Native;
use crate::filter::{Filter, try_copy};

/// A header, and the first bytes of its body.
#[derive(Debug)]
pub struct Loading {
    header: Header,
    total: u64,
    body: Vec<u8>,
}

impl Loading {
    /// Begins to load a filter of at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::Create`] if there is no filter with this header, [`Error::Limit`].
    pub fn begin(header: Header, limit: u64) -> Result<Self, Error> {
        let total = header.body_len().ok_or(Error::Create)?;
        if total > limit {
            return Err(Error::Limit { bytes: total, limit });
        }
        Ok(Self { header, total, body: Vec::new() })
    }

    /// Adds the chunk that begins at `offset` of the body. Returns the filter if it is the last.
    ///
    /// # Errors
    /// [`Error::Chunk`] if another chunk is missing before it or if it is too long,
    /// [`Error::Image`] if the body is complete and no sound filter, [`Error::NoMemory`]. The chunk
    /// does not count then.
    pub fn append(&mut self, offset: u64, chunk: &[u8]) -> Result<Option<Filter>, Error> {
        let before = self.body.len();
        let fits = chunk.len() as u64 <= self.total - before as u64;
        if offset != before as u64 || chunk.is_empty() || !fits {
            return Err(Error::Chunk);
        }
        self.make_room(chunk.len())?;
        self.body.extend_from_slice(chunk);
        if (self.body.len() as u64) < self.total {
            return Ok(None);
        }
        let filter = self.finish();
        if filter.is_err() {
            self.body.truncate(before);
        }
        filter.map(Some)
    }

    /// Makes room for so many bytes more. The room doubles, so that small chunks are not all copied
    /// for each of them, but never exceeds the whole body, which the limit allows.
    fn make_room(&mut self, more: usize) -> Result<(), Error> {
        let len = self.body.len();
        if self.body.capacity() - len >= more {
            return Ok(());
        }
        let rest = usize::try_from(self.total - len as u64).unwrap_or(usize::MAX);
        let room = more.max(len.min(rest));
        self.body.try_reserve_exact(room).map_err(|_| Error::NoMemory)
    }

    /// The filter of the complete body.
    fn finish(&mut self) -> Result<Filter, Error> {
        match self.header {
            Header::Native(header) => {
                let filter = Native::load(header, &self.body).map_err(Error::Image)?;
                Ok(filter.into())
            }
            Header::Expiring(header, expired) => {
                let filter = Expiring::load(header, expired, &self.body).map_err(Error::Image)?;
                Ok(filter.into())
            }
            Header::Compat(shape, totals) => {
                let tables = compat::tables(&shape).ok_or(Error::Create)?;
                let body = mem::take(&mut self.body);
                Ok(Filter::Compat(Compat::load(shape.options, totals, tables, body)))
            }
        }
    }

    pub(super) fn incomplete(&self) -> Error {
        Error::Incomplete { loaded: self.body.len() as u64, total: self.total }
    }

    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        Ok(Self { body: try_copy(&self.body)?, ..*self })
    }

    pub(super) fn header(&self) -> Header {
        self.header
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Options;
    use crate::filter::header::{Shape, Totals};

    /// A body that stays as it is keeps the memory that it got while its chunks came.
    #[test]
    fn a_body_takes_no_more_memory_than_its_header_says() {
        let total = 3 * 4096;
        for size in [1, 7, 1000, 4096, 5000, total] {
            let options = Options { bucket_size: 3, ..Options::default() };
            let shape = Shape { buckets: 4096, tables: 1, options };
            let header = Header::Compat(shape, Totals { items: 0, deleted: 0 });
            let mut loading = Loading::begin(header, total as u64).expect("a header");
            let (mut offset, mut moves, mut capacity) = (0, 0, 0);
            while offset < total - size {
                let complete = loading.append(offset as u64, &vec![1; size]).expect("a chunk");
                assert!(complete.is_none() && loading.body.capacity() <= total, "{size}");
                moves += usize::from(loading.body.capacity() > capacity);
                capacity = loading.body.capacity();
                offset += size;
            }
            assert!(moves <= 15, "{moves} times for chunks of {size}");
            let last = vec![1; total - offset];
            assert!(loading.append(offset as u64, &last).expect("the last").is_some());
        }
    }
}
