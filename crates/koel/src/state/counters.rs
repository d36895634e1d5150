//! Exact counters for what does not fit in the buckets: copies of a key beyond those in its slots,
//! and counts too large for a slot of a counting filter.
//!
//! * **Names.** A counter is named by the *identity* of its entry: the smaller bucket number of the
//!   pair and the fingerprint
//!   ([`Location::identity`](crate::address::geometry::Location::identity)). In a table that grows,
//!   the identity is one that growth does not change (`LinearHashing::identity`).
//! * **Invariant.** A counter exists only while an entry of that identity is in the buckets. So
//!   `contains` never reads counters.
//! * **In memory**: a B-tree of about 25 bytes per counter, O(log n) per operation. It is ordered,
//!   so that equal filters have equal bytes. Its nodes are small. A failure to allocate one ends
//!   the process, as in the collections of std. Before many are made at once, [`Counters::fit`]
//!   asks whether there is memory for all of them.
//! * **In a file**: an ascending array of 16-byte records, read in place by binary search.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::iter;

use crate::error::{FullError, ImageError, require};
use crate::image::RECORD_BYTES;
use crate::mem::buffer::is_available;
use crate::state::exact::{Exact, NoExact, ReadExact, StoredExact};
use crate::state::record::{decode, tree_bytes};

/// Bytes that a counter takes while many are made at once: it is in the tree, in a list of all, and
/// in the memory that sorts the list.
const BYTES_EACH: usize = 60;

/// What names a counter.
pub(crate) type Identity = u64;

/// Reading counters, in memory or in a file.
pub trait ReadCounters {
    /// The type of counters in memory, which can be changed.
    type Owned: WriteCounters<Exact = <Self::Exact as ReadExact>::Owned>;
    /// The exact answers that a filter with such counters has beside them.
    type Exact: ReadExact;
    /// A copy in memory. `None` if there is no memory for it.
    fn to_owned_counters(&self) -> Option<Self::Owned>;
    /// The count of this identity, 0 without a counter.
    fn get(&self, _identity: u64) -> u64 {
        0
    }
    /// The number of counters.
    fn len(&self) -> u64;
    /// All counters, in ascending order of their identities.
    fn iter(&self) -> impl Iterator<Item = (u64, u64)>;
    /// The step at which the group of a bucket was swept last, in an expiring filter.
    fn swept(&self, _bucket: u64) -> u16 {
        0
    }

    /// Checks the counters. `is_name` says whether an entry has an identity.
    ///
    /// # Errors
    /// [`ImageError`] for the first counter that this crate would not have written.
    fn verify(&self, is_name: impl Fn(u64) -> bool) -> Result<(), ImageError> {
        let mut last = None;
        for (identity, count) in self.iter() {
            let ascending = last < Some(identity);
            require("counter identity", identity, ascending && is_name(identity))?;
            require("counter value", count, count > 0)?;
            last = Some(identity);
        }
        Ok(())
    }
}

/// Changing counters in memory.
pub trait WriteCounters: ReadCounters<Exact: Default> + Clone + Default + PartialEq {
    /// The type of the counters of a file.
    type Stored<'a>: ReadCounters<Owned = Self, Exact: From<StoredExact<'a>> + ReadExact<Owned = Self::Exact>>;
    /// The counters in the records of a file.
    fn stored(records: &[u8]) -> Self::Stored<'_>;
    /// Whether there can be any counters. If not, the methods stay as they are here.
    const COUNTS: bool = false;
    /// Adds `times` to a count and returns the new count. Makes a counter if there are fewer than
    /// `limit`.
    ///
    /// # Errors
    /// [`FullError`] where there would be too many counters, or where the count would overflow.
    /// Nothing has changed then.
    fn add(&mut self, _identity: Identity, _times: u64, limit: u64) -> Result<u64, FullError> {
        Err(FullError::Counters { limit })
    }
    /// Adds `times` to a count, without a limit.
    fn add_all(&mut self, _identity: Identity, _times: u64) {}
    /// Removes the counter and returns its count, 0 without a counter.
    fn remove(&mut self, _identity: Identity) -> u64 {
        0
    }
    /// Subtracts one from a count. False without a counter.
    #[inline]
    fn take(&mut self, _identity: Identity) -> bool {
        false
    }
    /// Whether there may be a counter of this identity. Never false where there is one.
    #[inline]
    fn may_have(&self, _identity: Identity) -> bool {
        false
    }
    /// Bytes that the counters have allocated, about.
    fn allocated_bytes(&self) -> usize {
        0
    }
    /// What is behind the buckets of an empty filter.
    fn cleared(self) -> Self {
        Self::default()
    }
}

/// No counters: a maplet has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NoCounters;

impl ReadCounters for NoCounters {
    type Owned = Self;
    type Exact = NoExact;

    fn to_owned_counters(&self) -> Option<Self> {
        Some(Self)
    }

    fn len(&self) -> u64 {
        0
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        iter::empty()
    }
}

impl WriteCounters for NoCounters {
    type Stored<'a> = Self;

    fn stored(_: &[u8]) -> Self {
        Self
    }
}

/// The counters of an owned filter.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    counts: BTreeMap<Identity, u64>,
    marks: Marks,
}

/// Sets one of 4096 bits for each identity that got a counter. Every removal looks for a counter,
/// and most keys have none: the bit spares them the search of the tree. Many filters never get a
/// counter, so the bits come with the first one.
#[derive(Clone, Debug, Default)]
struct Marks(Option<Box<[u64; 64]>>);

impl Marks {
    /// The word and the bit of an identity: the top 12 bits of a product.
    #[inline]
    fn position(identity: Identity) -> (usize, u64) {
        let [.., second, first] = identity.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        (usize::from(first >> 2), 1 << ((first & 3) << 4 | second >> 4))
    }

    fn set(&mut self, identity: Identity) {
        let (word, bit) = Self::position(identity);
        self.0.get_or_insert_with(|| Box::new([0; 64]))[word] |= bit;
    }

    #[inline]
    fn is_set(&self, identity: Identity) -> bool {
        let (word, bit) = Self::position(identity);
        self.0.as_ref().is_some_and(|words| words[word] & bit != 0)
    }
}

/// Compares the counts only: marks may be left over from removed counters.
impl PartialEq for Counters {
    fn eq(&self, other: &Self) -> bool {
        self.counts == other.counts
    }
}

impl Counters {
    /// Whether the system has memory for so many counters, as far as it says so.
    pub(crate) fn fit(counters: u64) -> bool {
        usize::try_from(counters)
            .is_ok_and(|counters| is_available(counters.saturating_mul(BYTES_EACH)))
    }

    /// The counters of `records`, which the caller has checked.
    pub(crate) fn from_iter(records: impl Iterator<Item = (Identity, u64)>) -> Self {
        let mut counters = Self { counts: records.collect(), marks: Marks::default() };
        counters.counts.keys().for_each(|&identity| counters.marks.set(identity));
        counters
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn take_marked(&mut self, identity: Identity) -> bool {
        match self.counts.get_mut(&identity) {
            None => return false,
            Some(1) => {
                self.counts.remove(&identity);
                if self.counts.is_empty() {
                    self.clear();
                }
            }
            Some(count) => *count -= 1,
        }
        true
    }
}

impl WriteCounters for Counters {
    type Stored<'a> = StoredCounters<'a>;

    fn stored(records: &[u8]) -> StoredCounters<'_> {
        StoredCounters::new(records)
    }

    const COUNTS: bool = true;

    fn add(&mut self, identity: Identity, times: u64, limit: u64) -> Result<u64, FullError> {
        if let Some(count) = self.counts.get_mut(&identity) {
            *count = count.checked_add(times).ok_or(FullError::Overflow)?;
            return Ok(*count);
        }
        if self.len() >= limit {
            return Err(FullError::Counters { limit });
        }
        self.counts.insert(identity, times);
        self.marks.set(identity);
        Ok(times)
    }

    fn add_all(&mut self, identity: Identity, times: u64) {
        if times > 0 {
            let count = self.counts.entry(identity).or_insert(0);
            *count = count.saturating_add(times);
            self.marks.set(identity);
        }
    }

    fn remove(&mut self, identity: Identity) -> u64 {
        self.counts.remove(&identity).unwrap_or(0)
    }

    fn allocated_bytes(&self) -> usize {
        let marks = self.marks.0.as_ref().map_or(0, |words| size_of_val(&**words));
        marks + tree_bytes(self.counts.len())
    }

    #[inline]
    fn take(&mut self, identity: Identity) -> bool {
        self.may_have(identity) && self.take_marked(identity)
    }

    #[inline]
    fn may_have(&self, identity: Identity) -> bool {
        self.marks.is_set(identity)
    }
}

impl ReadCounters for Counters {
    type Owned = Self;
    type Exact = Exact;

    fn to_owned_counters(&self) -> Option<Self> {
        Self::fit(self.len()).then(|| self.clone())
    }

    fn get(&self, identity: u64) -> u64 {
        if self.marks.is_set(identity) {
            self.counts.get(&identity).copied().unwrap_or(0)
        } else {
            0
        }
    }

    fn len(&self) -> u64 {
        self.counts.len() as u64
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(&identity, &count)| (identity, count))
    }
}

/// The counters of a file, read in place.
#[derive(Clone, Copy, Debug)]
pub struct StoredCounters<'a> {
    records: &'a [[u8; RECORD_BYTES]],
}

impl<'a> StoredCounters<'a> {
    /// The counters in these bytes, whose length is a multiple of a record's.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { records: bytes.as_chunks().0 }
    }
}

impl<'a> ReadCounters for StoredCounters<'a> {
    type Owned = Counters;
    type Exact = StoredExact<'a>;

    fn to_owned_counters(&self) -> Option<Counters> {
        Counters::fit(self.len()).then(|| Counters::from_iter(self.iter()))
    }

    fn get(&self, identity: u64) -> u64 {
        let found = self.records.binary_search_by_key(&identity, |record| decode(record).0);
        found.map_or(0, |index| decode(&self.records[index]).1)
    }

    fn len(&self) -> u64 {
        self.records.len() as u64
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.records.iter().map(decode)
    }
}
