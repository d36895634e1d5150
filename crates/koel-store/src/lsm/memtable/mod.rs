//! The memtable: the newest entries, in memory and in order.
//!
//! * `list` keeps them: a skip list that readers search while a writer adds entries.
//! * `arena` is the memory of the list: a few large blocks.
//! * `keys` says which keys cannot be in it, without a search.
//! * `cursor` is a place in it.
//!
//! Entries are never changed or removed; a memtable goes away as a whole once a table has its
//! entries. It belongs to one file of the log, from which it is built again after a crash.

mod arena;
mod cursor;
mod keys;
mod list;

use std::sync::{Arc, Mutex};

pub(super) use cursor::MemtableCursor;
pub(super) use list::Written;

use self::keys::Keys;
use self::list::{List, Node, Place};
use super::entry::{LAST_SEQUENCE, Lookup, hash_of};
use super::range_deletions::{KeyRange, RangeDeletions};
use crate::Error;
use crate::kernel::threads::{Counter, lock};

/// The entries of one file of the log.
#[derive(Debug, Default)]
pub(super) struct Memtable {
    list: List,
    keys: Keys,
    /// The number of the file of the log; 0 if there is none yet.
    pub(super) log: u64,
    /// The seed of the hashes of keys.
    seed: u64,
    count: Counter,
    /// Those that came with its entries.
    range_deletions: Mutex<Arc<RangeDeletions>>,
    /// Bytes of memory that these take.
    range_bytes: Counter,
}

/// What a read takes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Value,
    /// For reads that only look whether there is one.
    Nothing,
}

impl Memtable {
    /// Returns an empty memtable for a file of the log, for about so many bytes. `seed` is that of
    /// the hashes of keys.
    pub(super) fn new(log: u64, bytes: u64, seed: u64) -> Self {
        let (list, keys) = (List::new(bytes), Keys::new(bytes));
        Self { list, keys, log, seed, ..Self::default() }
    }

    /// Copies a key and the parts of its value into the memtable; no value to delete the key. No
    /// read finds them before [`link`](Self::link). One thread at a time calls these two.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn write<'a>(
        &self,
        key: &[u8],
        value: Option<(u64, impl Iterator<Item = &'a [u8]>)>,
    ) -> Result<Written, Error> {
        let hash = hash_of(key, self.seed);
        // Versions of one key differ in it, too.
        let random = hash_of(&self.list.bytes().to_le_bytes(), hash);
        let written = self.list.write(key, value, random)?;
        self.keys.insert(hash);
        Ok(written)
    }

    /// Adds what was written to the entries. The sequence numbers ascend.
    pub(super) fn link(&self, written: Written, sequence: u64) {
        self.list.link(written, sequence);
        self.count.add_exclusive(1);
    }

    /// Adds a range deletion, as [`link`](Self::link) adds an entry.
    pub(super) fn delete_range(&self, keys: KeyRange, sequence: u64, boundaries: &[u64]) {
        let mut deletions = lock(&self.range_deletions);
        Arc::make_mut(&mut deletions).add(keys, sequence, boundaries);
        self.range_bytes.set(deletions.bytes());
    }

    /// Returns the range deletions so far.
    pub(super) fn range_deletions(&self) -> Arc<RangeDeletions> {
        lock(&self.range_deletions).clone()
    }

    /// Returns how many bytes of memory the entries and range deletions take.
    pub(super) fn bytes(&self) -> u64 {
        self.list.bytes() + self.range_bytes.get()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> u64 {
        self.count.get()
    }

    /// Returns whether there are neither entries nor range deletions.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0 && self.range_bytes.get() == 0
    }

    /// Returns the sequence number of the newest version of `key`, if there is one. `hash` is that
    /// of the key.
    pub(super) fn newest(&self, key: &[u8], hash: u64) -> Option<u64> {
        self.find(key, hash, LAST_SEQUENCE).map(Node::sequence)
    }

    fn find(&self, key: &[u8], hash: u64, sequence: u64) -> Option<Node<'_>> {
        if !self.keys.may_have(hash) {
            return None;
        }
        let place = Place::new(key, sequence);
        let node = self.list.node(self.list.first_from(&place)?);
        node.cmp_key(&place).is_eq().then_some(node)
    }

    /// Returns the version that a read looks for, if there is one: its value, or `None` if the key
    /// was deleted.
    pub(super) fn get(
        &self,
        lookup: Lookup<'_>,
        take: Take,
    ) -> Option<Result<Option<Vec<u8>>, Error>> {
        let node = self.find(lookup.key, lookup.hash, lookup.sequence)?;
        if node.is_deletion() || node.sequence() < lookup.deleted {
            return Some(Ok(None));
        }
        let mut value = Vec::new();
        let copied = match take {
            Take::Value => node.copy_value(&mut value),
            Take::Nothing => Ok(()),
        };
        Some(copied.map(|()| Some(value)))
    }
}

#[cfg(test)]
impl Memtable {
    /// Adds an entry.
    pub(super) fn add(&self, key: &[u8], value: Option<&[u8]>, sequence: u64) -> Result<(), Error> {
        let value = value.map(|value| (value.len() as u64, std::iter::once(value)));
        self.link(self.write(key, value)?, sequence);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
