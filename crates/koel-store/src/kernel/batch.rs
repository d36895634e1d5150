//! Writes that take effect together: after a crash, the store has all of them or none.
//!
//! A batch holds its records as they will be in the log, without sequence numbers and checksums.
//! The writer copies and seals them.

use super::bytes::usize_of;
use super::memory;
use super::record::{self, Header};
use crate::Error;

/// A list of writes, in order; the last one of a key wins. Reusable after [`clear`](Self::clear).
///
/// ```
/// use koel_store::Batch;
///
/// let mut batch = Batch::new();
/// batch.put(b"ada", b"1815")?.put(b"grace", b"1906")?.delete(b"mary")?;
/// assert_eq!(batch.len(), 3);
/// # Ok::<(), koel_store::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    records: Vec<Unsealed>,
}

/// An unsealed record of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsealed {
    pub(crate) start: usize,
    pub(crate) header: Header,
}

impl Batch {
    /// Returns an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write of `value` under `key`.
    ///
    /// # Errors
    /// [`Error::TooLong`] if one of them has more than 4 GiB (2^32 bytes), [`Error::OutOfMemory`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<&mut Self, Error> {
        let header = Header::of_value(length("key", key.len())?, length("value", value.len())?);
        self.add(header, key, value)
    }

    /// Adds a deletion of `key`.
    ///
    /// # Errors
    /// [`Error::TooLong`] if it has more than 4 GiB (2^32 bytes), [`Error::OutOfMemory`].
    pub fn delete(&mut self, key: &[u8]) -> Result<&mut Self, Error> {
        self.add(Header::of_tombstone(length("key", key.len())?), key, &[])
    }

    /// Adds a deletion of the keys from `from` on and before `to`, or to the last one. Only an
    /// ordered store takes it, and its keys have at most [`BLOCK`](record::BLOCK) bytes.
    pub(crate) fn delete_range(&mut self, from: &[u8], to: Option<&[u8]>) -> Result<(), Error> {
        let to = to.unwrap_or_default();
        let header = Header::of_range(from.len() as u64, to.len() as u64);
        self.add(header, from, to).map(drop)
    }

    /// Returns the number of writes in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether the batch has no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Removes all writes, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    /// Returns the bytes of all records.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn records(&self) -> &[Unsealed] {
        &self.records
    }

    pub(crate) fn key(&self, record: &Unsealed) -> &[u8] {
        record.header.key(&self.bytes[record.start..])
    }

    /// Returns the value of a record in parts: one, or the blocks of a large value.
    pub(crate) fn value_parts(&self, unsealed: &Unsealed) -> impl Iterator<Item = &[u8]> {
        let record = &self.bytes[unsealed.start..];
        let mut at = usize_of(unsealed.header.body());
        let blocks = record::block_sizes(&unsealed.header).map(move |block| {
            let start = at;
            at += block.stored;
            &record[start..start + block.content]
        });
        std::iter::once(unsealed.header.value(record)).chain(blocks)
    }

    fn add(&mut self, header: Header, key: &[u8], value: &[u8]) -> Result<&mut Self, Error> {
        memory::reserve(&mut self.bytes, usize_of(header.size()))?;
        memory::push(&mut self.records, Unsealed { start: self.bytes.len(), header })?;
        record::append(&mut self.bytes, &header, key, value);
        Ok(self)
    }
}

/// Returns the length of a key or a value, if a record can have it.
pub(crate) fn length(what: &'static str, len: impl TryInto<u64>) -> Result<u64, Error> {
    let len = len.try_into().unwrap_or(u64::MAX);
    let max = record::MAX_LEN;
    if len <= max { Ok(len) } else { Err(Error::TooLong { what, len, max }) }
}
