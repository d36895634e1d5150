//! Exact counters for what the buckets do not hold: copies of a key beyond those in its slots,
//! counts too large for a slot of a counting filter.
//!
//! The name of a counter is the *identity* of the entry it belongs to: the smaller bucket number of
//! its pair and its fingerprint
//! ([`Location::identity`](crate::address::geometry::Location::identity)), or in a table that grows
//! a name that growth does not change (`LinearHashing::identity`). A counter exists only beside at
//! least one entry of that name in the buckets, so `contains` never looks here.
//!
//! In memory a B-tree: ordered, so that equal filters have equal bytes, O(log n) a step, about 25
//! bytes a counter. In a file an ascending array of 16-byte records, read in place by binary
//! search.

use alloc::collections::BTreeMap;
use core::iter;

use crate::error::{FullError, ImageError, require};
use crate::image::RECORD_BYTES;

/// What names a counter.
pub(crate) type Identity = u64;

/// Reading counters, in memory or in a file.
pub trait ReadCounters {
    /// The same in memory, where they can be changed.
    type Owned: WriteCounters;
    /// A copy in memory.
    fn to_owned_counters(&self) -> Self::Owned;
    /// Copies counted for this identity; 0 without a counter.
    fn get(&self, identity: u64) -> u64;
    /// How many counters there are.
    fn len(&self) -> u64;
    /// All counters, ascending.
    fn iter(&self) -> impl Iterator<Item = (u64, u64)>;

    /// The sum of all counts, each of an entry that `is_name` knows.
    ///
    /// # Errors
    /// [`ImageError`] for the first counter that this crate would not have written.
    fn verify(&self, is_name: impl Fn(u64) -> bool) -> Result<u128, ImageError> {
        let mut sum = 0;
        let mut last = None;
        for (identity, count) in self.iter() {
            let ascending = last < Some(identity);
            require("counter identity", identity, ascending && is_name(identity))?;
            require("counter value", count, count > 0)?;
            sum += u128::from(count);
            last = Some(identity);
        }
        Ok(sum)
    }
}

/// Changing counters in memory.
pub trait WriteCounters: ReadCounters + Clone + Default + PartialEq {
    /// Whether there can be any.
    const COUNTS: bool;
    /// Counts `times` more copies, or changes nothing. Returns the count then. A new counter must
    /// be one of at most `limit`.
    ///
    /// # Errors
    /// [`FullError`] where the counter would be one too many, or its count too large.
    fn add(&mut self, identity: Identity, times: u64, limit: u64) -> Result<u64, FullError>;
    /// Counts `times` more copies, without a limit.
    fn add_all(&mut self, identity: Identity, times: u64);
    /// Takes the whole counter out: its count, 0 without one.
    fn remove(&mut self, identity: Identity) -> u64;
    /// Counts one copy less; false without a counter.
    fn take(&mut self, identity: Identity) -> bool;
    /// False where there is no counter of this identity.
    fn may_have(&self, identity: Identity) -> bool;
}

/// No counters: those of a maplet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NoCounters;

impl ReadCounters for NoCounters {
    type Owned = Self;

    fn to_owned_counters(&self) -> Self {
        Self
    }

    fn get(&self, _: u64) -> u64 {
        0
    }

    fn len(&self) -> u64 {
        0
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        iter::empty()
    }
}

impl WriteCounters for NoCounters {
    const COUNTS: bool = false;

    fn add(&mut self, _: Identity, _: u64, limit: u64) -> Result<u64, FullError> {
        Err(FullError::Counters { limit })
    }

    fn add_all(&mut self, _: Identity, _: u64) {}

    fn remove(&mut self, _: Identity) -> u64 {
        0
    }

    #[inline]
    fn take(&mut self, _: Identity) -> bool {
        false
    }

    #[inline]
    fn may_have(&self, _: Identity) -> bool {
        false
    }
}

/// The counters of an owned filter.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    counts: BTreeMap<Identity, u64>,
    marks: Marks,
}

/// One bit of 4096 for each identity that got a counter, so that the many without one need no walk
/// down the tree: a removal asks for its counter each time, and in a large filter a few keys always
/// have one.
#[derive(Clone, Debug)]
struct Marks([u64; 64]);

impl Default for Marks {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Marks {
    /// Word and bit, by the top 12 bits of a product.
    #[inline]
    fn position(identity: Identity) -> (usize, u64) {
        let [.., second, first] = identity.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        (usize::from(first >> 2), 1 << ((first & 3) << 4 | second >> 4))
    }

    fn set(&mut self, identity: Identity) {
        let (word, bit) = Self::position(identity);
        self.0[word] |= bit;
    }

    #[inline]
    fn is_set(&self, identity: Identity) -> bool {
        let (word, bit) = Self::position(identity);
        self.0[word] & bit != 0
    }
}

/// Equal counts: marks may be left over from counters that are gone.
impl PartialEq for Counters {
    fn eq(&self, other: &Self) -> bool {
        self.counts == other.counts
    }
}

impl Counters {
    /// The counters of `records`; the caller has checked them.
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

    #[inline]
    fn take(&mut self, identity: Identity) -> bool {
        self.may_have(identity) && self.take_marked(identity)
    }

    #[inline]
    fn may_have(&self, identity: Identity) -> bool {
        !self.counts.is_empty() && self.marks.is_set(identity)
    }
}

impl ReadCounters for Counters {
    type Owned = Self;

    fn to_owned_counters(&self) -> Self {
        self.clone()
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

/// The counters of a file, read where they lie.
#[derive(Clone, Copy, Debug)]
pub struct StoredCounters<'a> {
    records: &'a [[u8; RECORD_BYTES]],
}

impl<'a> StoredCounters<'a> {
    /// Counters in these bytes; a rest shorter than a record is ignored, and the caller has seen to
    /// it that there is none.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { records: bytes.as_chunks().0 }
    }
}

fn decode(record: &[u8; RECORD_BYTES]) -> (u64, u64) {
    let halves = record.as_chunks::<8>().0;
    (u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1]))
}

/// The stored form of a counter.
pub(crate) fn encode((identity, count): (u64, u64)) -> [u8; RECORD_BYTES] {
    (u128::from(identity) | u128::from(count) << 64).to_le_bytes()
}

impl ReadCounters for StoredCounters<'_> {
    type Owned = Counters;

    fn to_owned_counters(&self) -> Counters {
        Counters::from_iter(self.iter())
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
