//! Optimistic transactions: reads of one moment, and writes that are made together if nothing of
//! what was read has changed since.
//!
//! A transaction takes no lock. It notes the keys and the parts of ranges that it has read, and
//! keeps its writes in memory. The commit holds the lock of the writer: it looks for versions of
//! what was read that are younger than the snapshot, and without one it makes the writes as a
//! batch. So transactions that commit are as if each had been made at the moment of its commit,
//! one after the other. A transaction without writes is as of the moment at which it began.
//!
//! Cost of a commit: that of `changes.rs`, for each key and range that was read.
//!
//! Source: H. T. Kung and J. T. Robinson, *On optimistic methods for concurrency control*, 1981.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::iter::Peekable;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::entry::{Span, check_lengths};
use super::iter::{Pair, Range};
use super::range_deletions::{KeyRange, RangeDeletions};
use super::snapshot::{Snapshot, bounds};
use super::store::Store;
use crate::Error;
use crate::kernel::batch::Batch;
use crate::kernel::log_end::Durability;
use crate::kernel::memory;

/// The writes of a transaction: the last value of each key, `None` if it is deleted.
type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

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
    /// The ranges that it deletes whatever is in them. Its writes come after that.
    deleted: RangeDeletions,
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
        Self {
            store,
            snapshot,
            reads: Reads::default(),
            writes: Writes::new(),
            deleted: RangeDeletions::default(),
        }
    }

    /// Returns the value of `key`: the one that this transaction has set, or the one of its start.
    ///
    /// # Errors
    /// As [`LsmStore::get`](super::LsmStore::get).
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if let Some(value) = self.writes.get(key) {
            return value.as_deref().map(memory::copy_of).transpose();
        }
        if is_deleted(&self.deleted, key) {
            return Ok(None);
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
        if is_deleted(&self.deleted, key) {
            return Ok(false);
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
        let (deleted, read) = (&self.deleted, &mut self.reads.spans);
        TransactionRange { range: range.peekable(), writes, deleted, from, to, read, last: None }
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

    /// Deletes a range of keys, once the transaction is committed, as
    /// [`LsmStore::delete_range`](super::LsmStore::delete_range) does.
    ///
    /// A range with few entries, which are deleted one by one, counts as read.
    ///
    /// # Errors
    /// As [`LsmStore::delete_range`](super::LsmStore::delete_range).
    pub fn delete_range<K: AsRef<[u8]>>(
        &mut self,
        keys: impl RangeBounds<K>,
    ) -> Result<&mut Self, Error> {
        let (from, to) = bounds(&keys);
        self.delete_keys(KeyRange::between(from, to)?)
    }

    /// Deletes the keys that start with `prefix`, as [`delete_range`](Self::delete_range) does.
    ///
    /// # Errors
    /// As [`delete_range`](Self::delete_range).
    pub fn delete_prefix(&mut self, prefix: &[u8]) -> Result<&mut Self, Error> {
        self.delete_keys(KeyRange::prefix(prefix)?)
    }

    fn delete_keys(&mut self, keys: Option<KeyRange>) -> Result<&mut Self, Error> {
        let Some(keys) = keys else { return Ok(self) };
        let span = keys.bounds()?;
        self.writes.retain(|key, _| !keys.contains(key));
        match self.store.few_keys(&self.snapshot.sources(), &span)? {
            Some(few) => {
                self.writes.extend(few.into_iter().map(|key| (key, None)));
                memory::push(&mut self.reads.spans, span)?;
            }
            None => self.deleted.add(keys, DELETED, &[]),
        }
        Ok(self)
    }

    /// Makes the writes, all of them as one batch, unless something that was read has changed.
    ///
    /// # Errors
    /// [`Error::Conflict`], and then nothing was written: begin again with a new transaction.
    /// [`Error::Damaged`] if what it reads again is damaged, and [`Error::RangesHeld`] if it
    /// deletes ranges. Otherwise as [`LsmStore::write`](super::LsmStore::write).
    pub fn commit(self, durability: Durability) -> Result<(), Error> {
        let mut batch = Batch::new();
        for (keys, _) in self.deleted.iter() {
            batch.delete_range(&keys.from, keys.to.as_deref())?;
        }
        if !batch.is_empty() {
            self.store.make_room_for_ranges()?;
        }
        for (key, value) in &self.writes {
            match value {
                Some(value) => batch.put(key, value)?,
                None => batch.delete(key)?,
            };
        }
        let (Reads { keys, spans }, sequence) = (&self.reads, self.snapshot.sequence());
        let is_unchanged = || self.store.check_unchanged(keys, spans, sequence);
        self.store.write_if(&batch, durability, is_unchanged)
    }
}

/// The sequence number of what a transaction deletes.
const DELETED: u64 = 1;

fn is_deleted(deleted: &RangeDeletions, key: &[u8]) -> bool {
    deleted.newest(key, DELETED) == DELETED
}

/// The entries of a range that a [`Transaction`] sees, in order.
#[derive(Debug)]
pub struct TransactionRange<'a> {
    range: Peekable<Range>,
    writes: Peekable<WritesIn<'a>>,
    deleted: &'a RangeDeletions,
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
                None => {
                    let (key, value) = stored.unwrap_or_default();
                    let is_deleted = is_deleted(self.deleted, &key);
                    (key, Some(value).filter(|_| !is_deleted))
                }
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
