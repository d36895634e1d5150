//! Writes that take effect together: all of them or, after a crash, none.
//!
//! A batch is the records as they will lie in the log, without sequences and checksums; the writer copies and seals them.

use crate::Error;
use crate::kernel::record::{self, Head};

/// A list of writes, in order; the last one of a key counts. Reusable after [`clear`](Self::clear).
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
    records: Vec<Planned>,
}

/// A record of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) start: usize,
    pub(super) head: Head,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write of `value` under `key`.
    ///
    /// # Errors
    /// [`Error::TooLong`] where one of them has more than 4 GiB, 2^32 bytes.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<&mut Self, Error> {
        let head = Head::of_value(length("key", key.len())?, length("value", value.len())?);
        Ok(self.add(head, key, value))
    }

    /// Adds a removal of `key`.
    ///
    /// # Errors
    /// [`Error::TooLong`] where it has more than 4 GiB, 2^32 bytes.
    pub fn delete(&mut self, key: &[u8]) -> Result<&mut Self, Error> {
        Ok(self.add(Head::of_tombstone(length("key", key.len())?), key, &[]))
    }

    /// Writes in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets them, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    /// The records, not sealed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn records(&self) -> &[Planned] {
        &self.records
    }

    pub(super) fn key(&self, planned: &Planned) -> &[u8] {
        planned.head.key(&self.bytes[planned.start..])
    }

    fn add(&mut self, head: Head, key: &[u8], value: &[u8]) -> &mut Self {
        self.records.push(Planned { start: self.bytes.len(), head });
        self.bytes.reserve(record::usize_of(head.size()));
        record::append(&mut self.bytes, &head, key, value);
        self
    }
}

/// The length of a key or a value, if a record can have it.
pub(super) fn length(what: &'static str, len: impl TryInto<u64>) -> Result<u64, Error> {
    let len = len.try_into().unwrap_or(u64::MAX);
    if len <= record::LONGEST { Ok(len) } else { Err(Error::TooLong { what, len }) }
}
