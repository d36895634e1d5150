//! A view of the store as of one moment: a sequence number, of which merges keep what it sees.
//!
//! A compaction filter drops what such a number sees, also of a snapshot that was taken while the
//! merge ran. So in a store with a filter a snapshot holds the state of its moment, as ranges do.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::iter::Range;
use super::memtable::Take;
use super::store::Store;
use super::version::{State, StateSources};
use crate::Error;

/// The entries of an [`LsmStore`](super::LsmStore) as they were when the snapshot was taken.
///
/// A snapshot is a number: it takes no memory and no time. But as long as it lives, merges keep the
/// old versions that it can see. It can outlive the store.
///
/// In a store with a [compaction filter](super::LsmOptions::compaction_filter) it also holds the
/// memtables, the guide and the files of that moment, even if they were flushed or merged since.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// use koel_store::{Durability, LsmStore};
///
/// let store = LsmStore::open(folder.path())?;
/// store.put(b"ada", b"1815", Durability::None)?;
/// let before = store.snapshot();
/// store.delete(b"ada", Durability::None)?;
/// assert_eq!(store.get(b"ada")?, None);
/// assert_eq!(before.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Snapshot {
    store: Arc<Store>,
    sequence: u64,
    /// Only in a store with a compaction filter.
    state: Option<Arc<State>>,
}

impl Snapshot {
    pub(super) fn new(store: Arc<Store>) -> Self {
        let sequence = store.snapshots.take();
        // All states from here on have what the number sees.
        let state = store.options.filter.is_some().then(|| store.state.load());
        Self { store, sequence, state }
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    fn state(&self) -> Arc<State> {
        self.state.clone().unwrap_or_else(|| self.store.state.load())
    }

    /// Returns what a range of it reads.
    pub(super) fn sources(&self) -> StateSources {
        StateSources { state: self.state(), sequence: self.sequence }
    }

    fn take(&self, key: &[u8], take: Take) -> Result<Option<Vec<u8>>, Error> {
        self.store.get_in(&self.state(), key, self.sequence, take)
    }

    /// Returns the value that `key` had.
    ///
    /// # Errors
    /// As [`LsmStore::get`](super::LsmStore::get).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.take(key, Take::Value)
    }

    /// Returns whether `key` had a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.take(key, Take::Nothing)?.is_some())
    }

    /// Returns the entries of a range of keys, as [`LsmStore::range`](super::LsmStore::range) does.
    ///
    /// # Errors
    /// As [`LsmStore::range`](super::LsmStore::range).
    pub fn range<K: AsRef<[u8]>>(&self, keys: impl RangeBounds<K>) -> Result<Range, Error> {
        let (from, to) = bounds(&keys);
        self.store.range_in(self.state(), self.sequence, from, to)
    }

    /// Returns the entries whose keys start with `prefix`.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn prefix(&self, prefix: &[u8]) -> Result<Range, Error> {
        self.store.prefix_in(self.state(), self.sequence, prefix)
    }

    /// Returns all entries.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn iter(&self) -> Result<Range, Error> {
        self.range::<&[u8]>(..)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.store.snapshots.release(self.sequence);
    }
}

/// Returns the bounds of a range of keys as bytes.
pub(super) fn bounds<'a, K: AsRef<[u8]> + 'a>(
    keys: &'a impl RangeBounds<K>,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (keys.start_bound().map(K::as_ref), keys.end_bound().map(K::as_ref))
}
