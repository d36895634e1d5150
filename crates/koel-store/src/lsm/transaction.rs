//! Optimistic transactions: reads of one moment, and writes that are made together if nothing of
//! what was read has changed since.
//!
//! A transaction takes no lock. It notes the keys and the parts of ranges that it has read, and
//! keeps its writes in memory. The commit holds the lock of the writer: it looks for versions of
//! what was read that are younger than the snapshot, and without one it makes the writes as a
//! batch. So transactions that commit are as if each had been made at the moment of its commit,
//! one after the other. A transaction without writes is as of the moment at which it began.
//!
//! Cost of a commit: for each key that was read, a search of the memtables, and of those runs that
//! the guide names and that were written since. For a range, its entries in these.
//!
//! Source: H. T. Kung and J. T. Robinson, *On optimistic methods for concurrency control*, 1981.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::iter::Peekable;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::entry::Cursor;
use super::iter::{Pair, Range, is_within, seek_to};
use super::snapshot::Snapshot;
use super::store::Store;
use super::wal::check_lengths;
use crate::Error;
use crate::kernel::batch::Batch;
use crate::kernel::log_end::Durability;
use crate::kernel::memory;

/// The writes of a transaction: the last value of each key, `None` if it is deleted.
type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;
/// A part of the keys: from and to.
type Span = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Reads and writes of an [`LsmStore`](super::LsmStore) that take effect together or not at all.
///
/// It reads the store as it was when the transaction began, and its own writes. [`commit`] makes
/// the writes if nothing of what it has read was written by others since; otherwise it fails with
/// [`Error::Conflict`], and the transaction is to be made again from its start. Dropping a
/// transaction gives it up.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let store = koel_store::LsmStore::open(folder.path())?;
/// use koel_store::{Durability, Error};
///
/// // Counts one more, whatever other threads do.
/// let count = loop {
///     let mut transaction = store.transaction();
///     let count = match transaction.get(b"count")? {
///         Some(bytes) => u64::from_le_bytes(bytes.as_slice().try_into()?),
///         None => 0,
///     };
///     transaction.put(b"count", &(count + 1).to_le_bytes())?;
///     match transaction.commit(Durability::None) {
///         Ok(()) => break count + 1,
///         Err(Error::Conflict) => continue,
///         Err(error) => return Err(error.into()),
///     }
/// };
/// assert_eq!(count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What it has read and written stays in memory until it ends. As long as it lives, merges keep the
/// versions that it can see, as for a [`Snapshot`].
///
/// [`commit`]: Self::commit
#[derive(Debug)]
pub struct Transaction {
    store: Arc<Store>,
    snapshot: Snapshot,
    reads: Reads,
    writes: Writes,
}

/// What a transaction has read.
#[derive(Debug, Default)]
struct Reads {
    keys: BTreeSet<Vec<u8>>,
    spans: Vec<Span>,
}

impl Transaction {
    pub(super) fn new(store: Arc<Store>) -> Self {
        let snapshot = Snapshot::new(store.clone());
        Self { store, snapshot, reads: Reads::default(), writes: Writes::new() }
    }

    /// Returns the value of `key`: the one that this transaction has set, or the one of its start.
    ///
    /// # Errors
    /// As [`LsmStore::get`](super::LsmStore::get).
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if let Some(value) = self.writes.get(key) {
            return value.as_deref().map(memory::copy_of).transpose();
        }
        let value = self.snapshot.get(key)?;
        self.note(key)?;
        Ok(value)
    }

    /// Returns whether `key` has a value, as [`get`](Self::get) sees it.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&mut self, key: &[u8]) -> Result<bool, Error> {
        if let Some(value) = self.writes.get(key) {
            return Ok(value.is_some());
        }
        let is_there = self.snapshot.contains(key)?;
        self.note(key)?;
        Ok(is_there)
    }

    fn note(&mut self, key: &[u8]) -> Result<(), Error> {
        if !self.reads.keys.contains(key) {
            self.reads.keys.insert(memory::copy_of(key)?);
        }
        Ok(())
    }

    /// Returns the entries of a range of keys in order, as [`get`](Self::get) sees them.
    ///
    /// Only the part of the range up to the last entry that was taken counts as read, and all of it
    /// once the iterator has ended. So who takes the first entry of a queue does not conflict with
    /// who adds to its end.
    ///
    /// # Errors
    /// As [`LsmStore::range`](super::LsmStore::range).
    pub fn range<K: AsRef<[u8]>>(
        &mut self,
        keys: impl RangeBounds<K>,
    ) -> Result<TransactionRange<'_>, Error> {
        Ok(self.with_writes(self.snapshot.range(keys)?))
    }

    /// Returns the entries whose keys start with `prefix`, as [`range`](Self::range) does.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn prefix(&mut self, prefix: &[u8]) -> Result<TransactionRange<'_>, Error> {
        Ok(self.with_writes(self.snapshot.prefix(prefix)?))
    }

    fn with_writes(&mut self, range: Range) -> TransactionRange<'_> {
        let (from, to) = range.bounds();
        let writes = writes_in(&self.writes, &from, &to).peekable();
        let read = &mut self.reads.spans;
        TransactionRange { range: range.peekable(), writes, from, to, read, last: None }
    }

    /// Sets the value of `key`, once the transaction is committed.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::OutOfMemory`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<&mut Self, Error> {
        check_lengths(key.len() as u64, value.len() as u64)?;
        self.writes.insert(memory::copy_of(key)?, Some(memory::copy_of(value)?));
        Ok(self)
    }

    /// Deletes `key`, once the transaction is committed.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::OutOfMemory`].
    pub fn delete(&mut self, key: &[u8]) -> Result<&mut Self, Error> {
        check_lengths(key.len() as u64, 0)?;
        self.writes.insert(memory::copy_of(key)?, None);
        Ok(self)
    }

    /// Makes the writes, all of them as one batch, unless something that was read has changed.
    ///
    /// # Errors
    /// [`Error::Conflict`], and then nothing was written: begin again with a new transaction.
    /// Otherwise as [`LsmStore::write`](super::LsmStore::write).
    pub fn commit(self, durability: Durability) -> Result<(), Error> {
        let mut batch = Batch::new();
        for (key, value) in &self.writes {
            match value {
                Some(value) => batch.put(key, value)?,
                None => batch.delete(key)?,
            };
        }
        let sequence = self.snapshot.sequence();
        let is_unchanged = || match self.store.has_changed(&self.reads, sequence)? {
            true => Err(Error::Conflict),
            false => Ok(()),
        };
        self.store.write_if(&batch, durability, is_unchanged)
    }
}

/// The entries of a range that a [`Transaction`] sees, in order.
#[derive(Debug)]
pub struct TransactionRange<'a> {
    range: Peekable<Range>,
    writes: Peekable<WritesIn<'a>>,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    read: &'a mut Vec<Span>,
    /// The last key that was passed.
    last: Option<Vec<u8>>,
}

impl TransactionRange<'_> {
    fn next_pair(&mut self) -> Result<Option<Pair>, Error> {
        loop {
            let order = match (self.writes.peek(), self.range.peek()) {
                (Some((written, _)), Some(Ok((stored, _)))) => (*written).cmp(stored),
                (Some(_), None) => Ordering::Less,
                (_, Some(_)) => Ordering::Greater,
                (None, None) => return Ok(None),
            };
            // A write hides the entry in the store.
            let stored = if order.is_ge() { self.range.next().transpose()? } else { None };
            let (key, value) = match self.writes.next_if(|_| order.is_le()) {
                Some((key, value)) => {
                    let value = value.as_deref().map(memory::copy_of).transpose()?;
                    (memory::copy_of(key)?, value)
                }
                None => stored.map(|(key, value)| (key, Some(value))).unwrap_or_default(),
            };
            memory::copy_into(self.last.get_or_insert_default(), &key)?;
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
    }
}

impl Iterator for TransactionRange<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let pair = self.next_pair().transpose();
        if pair.is_none() {
            self.last = None;
            self.read.push((self.from.clone(), self.to.clone()));
        }
        pair
    }
}

/// Notes what was read.
impl Drop for TransactionRange<'_> {
    fn drop(&mut self) {
        if let Some(last) = self.last.take() {
            self.read.push((self.from.clone(), Bound::Included(last)));
        }
    }
}

type WritesIn<'a> = btree_map::Range<'a, Vec<u8>, Option<Vec<u8>>>;

/// Returns the writes between two bounds: none if there is no key between them.
fn writes_in<'a>(writes: &'a Writes, from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> WritesIn<'a> {
    let is_empty = match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    };
    if is_empty { btree_map::Range::default() } else { writes.range((from.clone(), to.clone())) }
}

impl Store {
    /// Returns whether something of `reads` was written after `sequence`. The caller holds the
    /// lock of the writer.
    fn has_changed(&self, reads: &Reads, sequence: u64) -> Result<bool, Error> {
        let state = self.state.load();
        for key in &reads.keys {
            if self.newest_in(&state, key, sequence)? > sequence {
                return Ok(true);
            }
        }
        for cursor in &mut state.cursors_after(sequence) {
            for span in &reads.spans {
                if has_later(&mut **cursor, span, sequence)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Returns whether there is an entry in a part of the keys that was written after `sequence`.
fn has_later(cursor: &mut dyn Cursor, (from, to): &Span, sequence: u64) -> Result<bool, Error> {
    seek_to(cursor, from)?;
    while let Some(entry) = cursor.entry() {
        if !is_within(to, entry.key, |key, to| key < to) {
            break;
        }
        if entry.sequence > sequence {
            return Ok(true);
        }
        cursor.next()?;
    }
    Ok(false)
}
