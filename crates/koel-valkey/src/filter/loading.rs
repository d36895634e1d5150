//! A filter whose chunks are still arriving, and how a body becomes a filter.
//!
//! The header says how long the body is. No memory is taken for what it says: the body grows by the
//! chunks that arrive, in order. The last one is checked together with all others, and only then
//! is it part of the value and there is a filter. The check needs no key: it may be made on another
//! thread, which shares the body, and which nothing changes meanwhile.

use std::mem;
use std::sync::Arc;

use crate::error::Error;
use crate::filter::compat::{self, Compat};
use crate::filter::expiring::Expiring;
use crate::filter::header::{Header, Origin};
use crate::filter::native::Native;
use crate::filter::{Filter, Measure, try_copy};

/// A header, and the first bytes of its body.
#[derive(Debug)]
pub struct Loading {
    header: Header,
    total: u64,
    /// The chunks, among them a last one that is not checked yet.
    body: Arc<Vec<u8>>,
    /// Bytes of the others.
    accepted: usize,
    /// Memory for the filter, if chunks come from the data set. It is written to as they come: the
    /// system gives its pages then, and not all at once with the last chunk.
    room: Option<Vec<u64>>,
}

/// A complete body that is to be checked.
#[derive(Debug)]
pub struct Check {
    header: Header,
    body: Arc<Vec<u8>>,
    room: Vec<u64>,
}

impl Loading {
    /// Begins to load the filter of a header.
    ///
    /// # Errors
    /// [`Error::Create`] if there is no filter with this header.
    pub fn begin(header: Header) -> Result<Self, Error> {
        let total = header.body_len().ok_or(Error::Create)?;
        Ok(Self { header, total, body: Arc::default(), accepted: 0, room: None })
    }

    /// Gets ready for chunks of the data set, which are quick to become a filter.
    pub fn trust(&mut self) {
        self.room = Some(Vec::new());
    }

    /// Bytes of the body that have come.
    pub(super) fn loaded(&self) -> u64 {
        self.accepted as u64
    }

    /// Bytes of the complete body.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds the chunk that begins at `offset` of the body. Returns the check of the body if it is
    /// the last one, which counts only once that has succeeded.
    ///
    /// # Errors
    /// [`Error::Chunk`] if another chunk is missing before it or if it is too long,
    /// [`Error::Checking`], [`Error::NoMemory`]. The chunk does not count then.
    pub fn append(&mut self, offset: u64, chunk: &[u8]) -> Result<Option<Check>, Error> {
        let before = self.accepted;
        let fits = chunk.len() as u64 <= self.total - before as u64;
        if offset != before as u64 || chunk.is_empty() || !fits {
            return Err(Error::Chunk);
        }
        let body = Arc::get_mut(&mut self.body).ok_or(Error::Checking)?;
        body.truncate(before);
        make_room(body, chunk.len(), self.total)?;
        body.extend_from_slice(chunk);
        if let Some(room) = &mut self.room {
            make_room_for_all(body, room, self.total);
        }
        if body.len() as u64 == self.total {
            let (body, room) = (Arc::clone(&self.body), self.room.take().unwrap_or_default());
            return Ok(Some(Check { header: self.header, body, room }));
        }
        self.accepted = body.len();
        Ok(None)
    }

    /// Whether these bytes of the body have come already.
    #[must_use]
    pub fn has(&self, offset: u64, chunk: &[u8]) -> bool {
        let rest = usize::try_from(offset).ok().and_then(|start| self.body().get(start..));
        !chunk.is_empty() && rest.is_some_and(|rest| rest.starts_with(chunk))
    }

    /// Whether this is the body of a check.
    #[must_use]
    pub fn is_of(&self, check: &Check) -> bool {
        Arc::ptr_eq(&self.body, &check.body)
    }

    pub(super) fn incomplete(&self) -> Error {
        Error::Incomplete { loaded: self.accepted as u64, total: self.total }
    }

    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let Self { header, total, accepted, .. } = *self;
        Ok(Self { header, total, accepted, body: Arc::new(try_copy(self.body())?), room: None })
    }

    /// Bytes that it has allocated.
    pub(super) fn allocated_bytes(&self, measure: Measure<'_>) -> usize {
        let of = |start, len| if len == 0 { 0 } else { measure(start, len) };
        let room = self.room.as_ref().map_or(0, |it| of(it.as_ptr().cast(), 8 * it.capacity()));
        of(self.body.as_ptr(), self.body.capacity()) + room
    }

    pub(super) fn header(&self) -> Header {
        self.header
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body[..self.accepted]
    }
}

impl Check {
    /// The filter of the body.
    ///
    /// # Errors
    /// [`Error::Image`] if the body is no sound filter, [`Error::NoMemory`].
    pub fn run(&mut self, of: Origin) -> Result<Filter, Error> {
        let room = mem::take(&mut self.room);
        match self.header {
            Header::Native(header) => {
                Ok(Native::load(header, &self.body, of, room).map_err(Error::Image)?.into())
            }
            Header::Expiring(header, expired) => {
                Ok(Expiring::load(header, expired, &self.body, of, room)
                    .map_err(Error::Image)?
                    .into())
            }
            Header::Compat(shape, totals) => {
                let tables = compat::tables(&shape).ok_or(Error::Create)?;
                let body = try_copy(&self.body)?;
                Ok(Filter::Compat(Compat::load(shape.options, totals, tables, body)))
            }
        }
    }
}

/// Makes room for so many bytes more of a body of `total`. The room doubles, so that small chunks
/// are not all copied for each of them, but never exceeds the whole body, which the limit allows.
fn make_room(body: &mut Vec<u8>, more: usize, total: u64) -> Result<(), Error> {
    let len = body.len();
    if body.capacity() - len >= more {
        return Ok(());
    }
    let rest = usize::try_from(total - len as u64).unwrap_or(usize::MAX);
    let room = more.max(len.min(rest));
    body.try_reserve_exact(room).map_err(|_| Error::NoMemory)
}

/// Takes memory for the whole body and its filter once a 16th of `total` has come, so that none of
/// it is moved, and writes to as much of it as has come.
fn make_room_for_all(body: &mut Vec<u8>, room: &mut Vec<u64>, total: u64) {
    let words = body.len() / 8 + 1;
    let rest = usize::try_from(total - body.len() as u64).unwrap_or(usize::MAX);
    if room.capacity() < words && rest / 16 <= body.len() {
        // Without it, each chunk asks for its own, and so does the filter.
        drop(body.try_reserve_exact(rest));
        drop(room.try_reserve_exact(words + rest / 8 + 1 - room.len()));
    }
    room.resize(room.capacity().min(words), 1);
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
            let mut loading = Loading::begin(header).expect("a header");
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
            let mut check =
                loading.append(offset as u64, &last).expect("the last").expect("complete");
            assert!(check.run(Origin::Anywhere).is_ok());
        }
    }
}
