//! The memtable: the newest entries, in memory and in order.
//!
//! A skip list that readers search while a writer inserts. Entries are never changed or removed; a
//! memtable goes away as a whole once a table has its entries. It belongs to one file of the log,
//! from which it is built again after a crash.
//!
//! Most reads look for keys that are not in it, and a search of the list waits for memory at every
//! step. So a cuckoo filter of the keys is asked first, and the nodes of the list hold the first
//! bytes of their keys, which decide nearly every comparison. The filter takes 1 % of the memory:
//! the overhead of an entry bounds how many keys there can be.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use crossbeam_skiplist::SkipSet;
use koel::{ConcurrentFilter, KeyHash};

use super::entry::{Cursor, Entry, LAST_SEQUENCE, cmp_places, hash_of, word_at};
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

/// The share of absent keys for which the memtable is searched.
const RATE: f64 = 0.02;

/// Which keys a memtable may have. A writer adds a key before its entry.
///
/// The entries take at least a known number of bytes each, so the size of the memtable bounds the
/// number of keys. A filter that refuses a key, because there are more after all or because their
/// hashes collide on purpose, is not asked any more.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Without one, every key may be there.
    filter: Option<ConcurrentFilter>,
    /// The filter has refused a key.
    is_full: AtomicBool,
    seed: u64,
}

impl Keys {
    /// Returns an empty filter with room for so many keys. `seed` is that of their hashes.
    pub(super) fn new(capacity: u64, seed: u64) -> Self {
        let builder = ConcurrentFilter::builder(capacity, RATE).trust_hashes();
        // Without memory for a filter, the memtable is searched for every key.
        Self { filter: builder.build().ok(), is_full: AtomicBool::new(false), seed }
    }

    pub(super) fn insert(&self, key: &[u8]) {
        let Some(filter) = &self.filter else { return };
        if filter.insert_unique(&KeyHash::new(hash_of(key, self.seed))).is_err() {
            self.is_full.store(true, atomic::Ordering::Relaxed);
        }
    }

    /// Whether a key with this hash may be there.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let has = |filter: &ConcurrentFilter| filter.contains(&KeyHash::new(hash));
        self.filter.as_ref().is_none_or(has) || self.is_full.load(atomic::Ordering::Relaxed)
    }
}

/// Entries that a cursor copies at a time, at least and at most.
const AHEAD: [usize; 2] = [2, 64];

/// A place in a memtable: copies references to the next few entries at a time. Entries that are
/// inserted later have greater sequence numbers than its reader sees, so it may miss them.
#[derive(Debug)]
pub(in crate::lsm) struct MemtableCursor {
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
    pub(in crate::lsm) fn new(memtable: Arc<Memtable>) -> Self {
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
            At::Entry(entry) => Some(entry.stored.entry()),
            At::Start | At::End => None,
        }
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        self.jump(Bound::Included(&Sought::new(key, sequence)), true);
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        self.jump(Bound::Excluded(&Sought::new(key, LAST_SEQUENCE)), false);
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
