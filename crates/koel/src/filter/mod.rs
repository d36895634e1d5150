//! The filter: a multiset of keys that answers "have I seen this key?" with a small, known chance
//! of a wrong yes.
//!
//! This file has the type and its questions, for filters and views alike. `many.rs` is for many
//! keys at once, `edit.rs` changes a filter key by key, `bulk.rs` builds it from all keys,
//! `merge.rs` and `compare.rs` are for two filters, `file.rs` for bytes and `grow.rs` for growth.
//! All of them are thin: the rules are in `state/`, the buckets in `table/`.

mod builder;
mod bulk;
mod compare;
mod edit;
mod file;
mod grow;
mod many;
mod merge;
mod parts;

use core::fmt;

use crate::Key;
use crate::address::hash::KeyHasher;
use crate::address::route::Route;
use crate::image::shape::{self, Profile, Shape};
use crate::image::{self, Kind};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::mem::buffer::Buffer;
use crate::packing::{Layout, SLOTS};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::state::counters::Counters;
use crate::state::counters::ReadCounters;
use crate::state::store::{Borrowed, Owned, Store};
use crate::state::{Body, reading};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::state::{Buckets, State};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::table::Table;

pub use builder::Plan;
pub use compare::{Comparison, Estimate, FilterEntry};

/// A set of keys in a few bits per key, that can also forget: a cuckoo filter.
///
/// [`contains`](Self::contains) never says no for a key that is in the set, and says yes for one
/// that is not with the probability [`false_positive_rate`](Self::false_positive_rate). A filter
/// built for n keys takes n distinct keys, each any number of times. An [`insert`](Self::insert)
/// that fails changes nothing, but that a filter which grows may be larger afterwards.
///
/// ```
/// use koel::CuckooFilter;
///
/// let mut seen = CuckooFilter::builder(10_000, 0.001).build()?;
/// seen.insert("ada@example.org")?;
/// assert!(seen.contains("ada@example.org"));
/// assert!(seen.remove("ada@example.org"));
/// assert!(!seen.contains("ada@example.org"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What it does not do
/// It does not hold the keys, so it cannot list them. And it cannot tell a key from another one
/// with the same fingerprint: **remove only keys that were inserted**. Removing an absent key
/// removes, with the probability of a false positive, a copy that belongs to another key. No filter
/// can do better in the space (arXiv 2412.19249).
///
/// # Copies
/// The filter is a multiset: a key inserted twice must be removed twice. At most two copies of a
/// key stay in the buckets, the others in a counter of 16 bytes, so copies never take room from
/// distinct keys.
///
/// # Cost
/// Every operation reads two buckets. An insert into a filter nearly full looks at some hundred
/// more, at most 4096.
///
/// Source: B. Fan, D. Andersen, M. Kaminsky, M. Mitzenmacher, Cuckoo Filter: Practically Better
/// Than Bloom (CoNEXT 2014).
pub struct CuckooFilter<S: Store = Owned> {
    pub(crate) body: Body<S::Buckets, S::Counters>,
}

/// A filter read where its bytes lie, of any alignment: a memory-mapped file, a part of a message.
///
/// It answers every question that [`CuckooFilter`] does, and changes nothing. [`FilterView::open`]
/// makes one.
pub type FilterView<'a> = CuckooFilter<Borrowed<'a>>;

impl CuckooFilter {
    /// An empty filter; `None` where its bytes could not be addressed.
    pub(crate) fn empty(shape: Shape, profile: Profile) -> Option<Self> {
        Body::empty(Kind::Filter, shape, profile).map(|body| Self { body })
    }

    /// The filter with these buckets and counters, whose totals are counted. O(buckets).
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn from_parts(table: Table<Buffer>, counters: Counters, profile: Profile) -> Self {
        let entries: u64 = table.iter().map(|bucket| bucket.entries().count() as u64).sum();
        let counted = counters.iter().map(|(_, count)| count);
        let len = counted.fold(entries, u64::saturating_add);
        let spares = entries - table.distinct_entries().count() as u64;
        let mut state = State::new(Kind::Filter, profile, counters);
        (state.len, state.entries, state.spares) = (len, entries, spares);
        Self { body: Body::new(Buckets::Fixed(table), state) }
    }

    /// What [`from_parts`](Self::from_parts) takes; `None` where the filter has grown.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn into_parts(self) -> Option<(Table<Buffer>, Counters, Profile)> {
        let (state, table) = (self.body.state, self.body.buckets.into_fixed()?);
        Some((table, state.counters, state.profile))
    }
}

/// Questions, of filters and views alike.
impl<S: Store> CuckooFilter<S> {
    /// Whether `key` is in the set: never wrong if it is, wrong with probability
    /// [`false_positive_rate`](Self::false_positive_rate) if it is not. O(1): two buckets read.
    // Always inlined: as a call, a lookup of a ready hash takes a quarter more instructions.
    #[inline(always)]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        match self.route().xxh3_only(key) {
            Some(address) => self.contains_at(address),
            None => self.contains_other(key),
        }
    }

    /// Kept out of line, so that no loop over lookups saves its registers for a call.
    #[cold]
    #[inline(never)]
    fn contains_other<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_at(self.route().address(key))
    }

    /// [`contains`](Self::contains) at the address of a key.
    #[inline]
    fn contains_at(&self, address: u64) -> bool {
        self.body.buckets.contains(address)
    }

    /// How often `key` was inserted and not removed. Never too low; too high, by the count of
    /// another key with the same fingerprint in the same buckets, with probability
    /// [`false_positive_rate`](Self::false_positive_rate). O(log of the number of counters).
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_at(self.route().address(key))
    }

    /// [`count`](Self::count) at the address of a key.
    fn count_at(&self, address: u64) -> u64 {
        reading!(self.body, reader => reader.count_key(address))
    }

    /// Keys inserted and not removed, each as often as it was inserted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.body.state.len
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.state.len == 0
    }

    /// How many distinct keys the filter was built for: so many always fit, and then the
    /// false-positive rate is at most the requested one.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.body.state.profile.capacity
    }

    /// Buckets of four slots.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.body.buckets.count()
    }

    /// Parts of equal size of the filter as it was built; until it grows, both buckets of a key are
    /// in the same one.
    #[must_use]
    pub fn segments(&self) -> u64 {
        1 << self.body.buckets.base().segment_bits()
    }

    /// Slots of all buckets.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.body.slots()
    }

    /// Slots that hold an entry.
    #[must_use]
    pub fn slots_in_use(&self) -> u64 {
        self.body.state.entries
    }

    /// The share of slots in use, 0 to 1.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.body.load_factor()
    }

    /// How many different keys are in the set: an estimate, from the number `d` of different
    /// entries among the `U` that keys can have: half as many as there are buckets times
    /// fingerprints. Its standard error is about `d / sqrt(2 U)`: 22 for a million keys at a rate
    /// of 0.1 %. In a filter that has grown it is too high, by some percent and more at error rates
    /// above 1 %, because entries that growth has left without bits of their own are there several
    /// times; but never above [`len`](Self::len).
    #[must_use]
    pub fn distinct_estimate(&self) -> f64 {
        let estimate =
            shape::distinct_keys(self.body.state.distinct(), self.body.possible_entries());
        if self.has_grown() { estimate.min(self.body.state.len as f64) } else { estimate }
    }

    /// Probability that an absent key is reported present, as the filter is now: `d / U`, with `d`
    /// different entries of the `U` that keys can have. Copies do not raise it.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        (self.body.state.distinct() as f64 / self.body.possible_entries()).min(1.0)
    }

    /// The rate the filter was built for.
    #[must_use]
    pub fn requested_false_positive_rate(&self) -> f64 {
        self.body.state.profile.rate
    }

    /// Bytes of the filter as a file: header, buckets and counters. In memory a counter takes about
    /// 25 bytes instead of 16.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.body.size_in_bytes()
    }

    /// Bits of [`size_in_bytes`](Self::size_in_bytes) for each key of the
    /// [`capacity`](Self::capacity). In a filter that [has grown](Self::has_grown), or was built to
    /// [grow from few keys](crate::Builder::grow_from), the size follows the keys and the capacity says
    /// nothing of it: there, for each of the different keys that are in now, as
    /// [`distinct_estimate`](Self::distinct_estimate) has them.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        let keys = if self.has_grown() { self.distinct_estimate() } else { self.capacity() as f64 };
        image::bits_per_key(self.size_in_bytes(), keys)
    }

    /// How many keys have a counter for copies beyond those in the buckets.
    #[must_use]
    pub fn distinct_counters(&self) -> u64 {
        self.body.state.counters.len()
    }

    /// How many keys may have a counter.
    #[must_use]
    pub fn counter_limit(&self) -> u64 {
        self.body.state.profile.counter_limit
    }

    /// The packing of the buckets.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.body.buckets.layout()
    }

    /// The function that hashes keys.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        self.route().hasher()
    }

    /// Whether the filter takes ready hashes as they are: see
    /// [`trust_hashes`](crate::Builder::trust_hashes).
    #[must_use]
    pub fn trusts_hashes(&self) -> bool {
        self.route().trusts_hashes()
    }

    #[inline(always)]
    fn route(&self) -> &Route {
        &self.body.state.profile.route
    }

    /// Whether the filter grows when it is full, instead of refusing keys.
    #[must_use]
    pub fn is_growable(&self) -> bool {
        self.body.state.profile.growable
    }

    /// Whether the filter has grown beyond the table it was built with, or was built by
    /// [`grow_from`](crate::Builder::grow_from) to grow from the start.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.body.buckets.growing().is_some()
    }

    /// How many buckets hold 0, 1, 2, 3 and 4 entries. O(buckets).
    #[must_use]
    pub fn occupancy(&self) -> [u64; SLOTS + 1] {
        let mut buckets = [0; SLOTS + 1];
        for bucket in 0..self.buckets() {
            buckets[self.body.buckets.read(bucket).entries().count()] += 1;
        }
        buckets
    }
}

/// One line; never the table.
impl<S: Store> fmt::Debug for CuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CuckooFilter({} keys, capacity {}, {}, load {:.3}, {} bytes)",
            self.body.state.len,
            self.capacity(),
            self.layout(),
            self.load_factor(),
            self.size_in_bytes()
        )
    }
}

impl Clone for CuckooFilter {
    fn clone(&self) -> Self {
        Self { body: self.body.clone() }
    }
}

/// Equal bytes: built alike, and changed alike since.
impl PartialEq for CuckooFilter {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}
