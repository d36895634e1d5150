//! The memtable: the newest entries, in memory and in order.
//!
//! A skip list that readers search while a writer inserts. Entries are never changed or removed; a
//! memtable goes away as a whole once a table has its entries. It belongs to one file of the log,
//! from which it is built again after a crash.
//!
//! A cursor copies references to the next few entries at a time. Entries that are inserted later
//! have greater sequence numbers than its reader sees, so it may miss them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use crossbeam_skiplist::SkipSet;

use super::cursor::Cursor;
use super::entry::{Entry, LAST_SEQUENCE, cmp_places};
use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::counter::Counter;
use crate::kernel::memory;

/// Bytes of memory that an entry takes besides its key and value.
const OVERHEAD: u64 = 128;
/// Entries that a cursor copies at a time, at least and at most.
const AHEAD: [usize; 2] = [2, 64];

/// The entries of one file of the log.
#[derive(Debug, Default)]
pub(super) struct Memtable {
    entries: SkipSet<Shared>,
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
struct Shared(Arc<Stored>);

#[derive(Debug)]
struct Stored {
    entry: NewEntry,
    sequence: u64,
}

/// What entries are sorted and found by.
trait Place {
    fn place(&self) -> (&[u8], u64);
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

impl Place for Shared {
    fn place(&self) -> (&[u8], u64) {
        (self.0.entry.key(), self.0.sequence)
    }
}

impl Place for (&[u8], u64) {
    fn place(&self) -> (&[u8], u64) {
        *self
    }
}

impl<'a> Borrow<dyn Place + 'a> for Shared {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        cmp_places(self.place(), other.place())
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
        cmp_places(self.place(), other.place())
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
    /// Returns an empty memtable for a file of the log.
    pub(super) fn new(log: u64) -> Self {
        Self { log, ..Self::default() }
    }

    /// Adds an entry. One thread at a time calls this, with ascending sequence numbers.
    pub(super) fn insert(&self, entry: NewEntry, sequence: u64) {
        self.bytes.add_exclusive(entry.bytes.len() as u64 + OVERHEAD);
        self.count.add_exclusive(1);
        self.entries.insert(Shared(Arc::new(Stored { entry, sequence })));
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
    pub(super) fn get<R>(
        &self,
        key: &[u8],
        sequence: u64,
        take: impl FnOnce(Entry<'_>) -> R,
    ) -> Option<R> {
        let place: &dyn Place = &(key, sequence);
        let found = self.entries.lower_bound(Bound::Included(place))?;
        let entry = found.value().0.entry();
        (entry.key == key).then(|| take(entry))
    }
}

/// A place in a memtable.
#[derive(Debug)]
pub(super) struct MemtableCursor {
    memtable: Arc<Memtable>,
    at: At,
    /// The entries that follow, in the direction of the last step.
    ahead: VecDeque<Shared>,
    forwards: bool,
    /// Entries to copy next.
    count: usize,
}

#[derive(Clone, Debug)]
enum At {
    Start,
    Entry(Shared),
    End,
}

impl MemtableCursor {
    pub(super) fn new(memtable: Arc<Memtable>) -> Self {
        let (at, ahead, forwards, count) = (At::Start, VecDeque::new(), true, AHEAD[0]);
        Self { memtable, at, ahead, forwards, count }
    }

    /// Moves to the first entry within `bound`, or in the other direction to the last one.
    fn jump(&mut self, bound: Bound<&dyn Place>, forwards: bool) {
        self.ahead.clear();
        self.forwards = forwards;
        self.count = AHEAD[0];
        self.fill(bound);
        self.take_ahead();
    }

    fn step(&mut self, forwards: bool) {
        if self.forwards != forwards {
            self.ahead.clear();
            self.forwards = forwards;
            self.count = AHEAD[0];
        }
        if self.ahead.is_empty() {
            match (self.at.clone(), forwards) {
                (At::Entry(entry), _) => self.fill(Bound::Excluded(&entry)),
                (At::Start, true) | (At::End, false) => self.fill(Bound::Unbounded),
                (At::Start, false) | (At::End, true) => {}
            }
        }
        self.take_ahead();
    }

    /// Copies references to the next entries.
    fn fill(&mut self, bound: Bound<&dyn Place>) {
        let entries = &self.memtable.entries;
        let mut next =
            if self.forwards { entries.lower_bound(bound) } else { entries.upper_bound(bound) };
        while let Some(entry) = next.filter(|_| self.ahead.len() < self.count) {
            self.ahead.push_back(entry.value().clone());
            next = if self.forwards { entry.next() } else { entry.prev() };
        }
        self.count = (self.count * 2).min(AHEAD[1]);
    }

    fn take_ahead(&mut self) {
        let past = if self.forwards { At::End } else { At::Start };
        self.at = self.ahead.pop_front().map_or(past, At::Entry);
    }
}

impl Cursor for MemtableCursor {
    fn entry(&self) -> Option<Entry<'_>> {
        match &self.at {
            At::Entry(entry) => Some(entry.0.entry()),
            At::Start | At::End => None,
        }
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        self.jump(Bound::Included(&(key, sequence)), true);
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        self.jump(Bound::Excluded(&(key, LAST_SEQUENCE)), false);
        Ok(())
    }

    fn first(&mut self) -> Result<(), Error> {
        self.jump(Bound::Unbounded, true);
        Ok(())
    }

    fn last(&mut self) -> Result<(), Error> {
        self.jump(Bound::Unbounded, false);
        Ok(())
    }

    fn next(&mut self) -> Result<(), Error> {
        self.step(true);
        Ok(())
    }

    fn previous(&mut self) -> Result<(), Error> {
        self.step(false);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
