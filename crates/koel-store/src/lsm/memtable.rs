//! The memtable: the newest entries, in memory and in order.
//!
//! A skip list that readers search while a writer inserts. Entries are never changed or removed; a
//! memtable goes away as a whole once a table has its entries. It belongs to one file of the log,
//! from which it is built again after a crash.
//!
//! Most reads look for keys that are not in it, and a search of the list waits for memory at every
//! step. So a filter of the keys is asked first, and the nodes of the list hold the first bytes of
//! their keys, which decide nearly every comparison. The filter takes 1 % of the memory: the
//! overhead of an entry bounds how many keys there can be.

mod cursor;
mod keys;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use crossbeam_skiplist::SkipSet;
pub(super) use cursor::MemtableCursor;
use keys::Keys;

use super::entry::{Entry, cmp_places, word_at};
use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::memory;
use crate::kernel::threads::Counter;

/// Bytes of memory that an entry takes besides its key and value.
const OVERHEAD: u64 = 128;

/// The entries of one file of the log.
#[derive(Debug, Default)]
pub(super) struct Memtable {
    entries: SkipSet<Shared>,
    keys: Keys,
    /// The number of the file of the log; 0 if there is none yet.
    pub(super) log: u64,
    bytes: Counter,
    count: Counter,
}

/// An entry that has no sequence number yet.
#[derive(Debug)]
pub(super) struct NewEntry {
    /// The key, then the value.
    bytes: Vec<u8>,
    key_len: usize,
    is_deletion: bool,
}

#[derive(Clone, Debug)]
struct Shared {
    prefix: u64,
    stored: Arc<Stored>,
}

#[derive(Debug)]
struct Stored {
    entry: NewEntry,
    sequence: u64,
}

/// What entries are sorted and found by.
trait Place {
    /// The prefix of the key, which is compared first.
    fn prefix(&self) -> u64;
    fn place(&self) -> (&[u8], u64);
}

/// A place that is looked for.
struct Sought<'a> {
    prefix: u64,
    key: &'a [u8],
    sequence: u64,
}

impl NewEntry {
    /// Copies a key and the parts of its value; no value to delete the key.
    pub(super) fn new<'a>(
        key: &[u8],
        value: Option<(u64, impl Iterator<Item = &'a [u8]>)>,
    ) -> Result<Self, Error> {
        let len = value.as_ref().map_or(0, |&(len, _)| usize_of(len));
        let (mut bytes, is_deletion) = (Vec::new(), value.is_none());
        memory::reserve(&mut bytes, key.len() + len)?;
        bytes.extend_from_slice(key);
        for part in value.into_iter().flat_map(|(_, parts)| parts) {
            bytes.extend_from_slice(part);
        }
        Ok(Self { bytes, key_len: key.len(), is_deletion })
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.bytes[..self.key_len]
    }

    /// Returns the value; `None` if the key is deleted.
    pub(super) fn value(&self) -> Option<&[u8]> {
        (!self.is_deletion).then_some(&self.bytes[self.key_len..])
    }
}

impl Stored {
    fn entry(&self) -> Entry<'_> {
        Entry { key: self.entry.key(), sequence: self.sequence, value: self.entry.value() }
    }
}

impl<'a> Sought<'a> {
    fn new(key: &'a [u8], sequence: u64) -> Self {
        Self { prefix: word_at(key, 0), key, sequence }
    }
}

impl Place for Shared {
    fn prefix(&self) -> u64 {
        self.prefix
    }

    fn place(&self) -> (&[u8], u64) {
        (self.stored.entry.key(), self.stored.sequence)
    }
}

impl Place for Sought<'_> {
    fn prefix(&self) -> u64 {
        self.prefix
    }

    fn place(&self) -> (&[u8], u64) {
        (self.key, self.sequence)
    }
}

impl<'a> Borrow<dyn Place + 'a> for Shared {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        let full = || cmp_places(self.place(), other.place());
        self.prefix().cmp(&other.prefix()).then_with(full)
    }
}

impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Place + '_ {}

impl Ord for Shared {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, other): (&dyn Place, &dyn Place) = (self, other);
        one.cmp(other)
    }
}

impl PartialOrd for Shared {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Shared {}

impl Memtable {
    /// Returns an empty memtable for a file of the log, for about so many bytes. `seed` is that of
    /// the hashes of keys.
    pub(super) fn new(log: u64, bytes: u64, seed: u64) -> Self {
        Self { log, keys: Keys::new(bytes / OVERHEAD, seed), ..Self::default() }
    }

    /// Adds an entry. One thread at a time calls this, with ascending sequence numbers.
    pub(super) fn insert(&self, entry: NewEntry, sequence: u64) {
        self.bytes.add_exclusive(entry.bytes.len() as u64 + OVERHEAD);
        self.count.add_exclusive(1);
        self.keys.insert(entry.key());
        let prefix = word_at(entry.key(), 0);
        self.entries.insert(Shared { prefix, stored: Arc::new(Stored { entry, sequence }) });
    }

    /// Returns about how many bytes of memory the entries take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> u64 {
        self.count.get()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Passes the newest version of `key` whose sequence number is at most `sequence` to `take`.
    /// `hash` is that of the key.
    pub(super) fn get<R>(
        &self,
        key: &[u8],
        hash: u64,
        sequence: u64,
        take: impl FnOnce(Entry<'_>) -> R,
    ) -> Option<R> {
        if !self.keys.may_have(hash) {
            return None;
        }
        let place: &dyn Place = &Sought::new(key, sequence);
        let found = self.entries.lower_bound(Bound::Included(place))?;
        let entry = found.value().stored.entry();
        (entry.key == key).then(|| take(entry))
    }
}
