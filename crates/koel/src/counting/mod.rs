//! The counting filter: how often each key came, in little more space than a filter takes.
//!
//! A maplet whose values are counts. A key has one entry, and the value beside its fingerprint is
//! its count; the largest value says: so many, and what the counter of this entry says besides
//! (`counters.rs`). The invariant: an entry has a counter only where its value is the largest one.
//!
//! Beside the copies of a [`CuckooFilter`](crate::CuckooFilter) it takes a sixth of the memory and
//! half of the time where most keys repeat, and more memory where they do not
//! (docs/decisions/0007-maplet.md has the figures). This file has the type and its questions;
//! `edit.rs` changes it, `merge.rs` unites two, `file.rs` is for bytes, `builder.rs` sizes it. The
//! rules are in `state/count.rs`.

mod builder;
mod edit;
mod file;
mod merge;

use core::fmt;

use crate::address::route::Route;
use crate::image;
use crate::image::shape;
use crate::packing::Layout;
use crate::state::counters::ReadCounters;
use crate::state::store::{Borrowed, Owned, Store};
use crate::state::{Body, reading};
use crate::table::blocks::{Hashed, Hashes};
use crate::{Key, KeyHasher};

/// How often keys came, exactly but for fingerprints that collide: for streams in which some keys
/// come very often.
///
/// [`count`](Self::count) is never too low. It is too high, by the count of another key with the
/// same fingerprint in the same buckets, with at most the probability that the filter was built
/// for. A filter built for n keys takes n distinct keys, each any number of times, up to 2^64 - 1
/// of all together.
///
/// ```
/// use koel::CountingFilter;
///
/// let mut visits = CountingFilter::builder(10_000, 0.001).build()?;
/// assert_eq!(visits.insert("ada")?, 1);
/// assert_eq!(visits.insert("ada")?, 2);
/// assert_eq!(visits.add("grace", 1_000_000)?, 1_000_000);
/// assert!(visits.remove("ada"));
/// assert_eq!((visits.count("ada"), visits.count("mary")), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Or a `CuckooFilter`?
/// That one counts too, with a slot for the second copy of a key and a counter of some 25 bytes
/// from the third on. Where fewer than one key in 18 comes a third time it is smaller; where more
/// do, this one is, and an insert takes less time. This one has no copies in its slots.
///
/// # What it does not do
/// It does not hold the keys, so it cannot list them. **Remove only what was inserted**: removing
/// an absent key takes, with the probability of a false positive, one from the count of another
/// key.
///
/// # Cost
/// Every operation reads two buckets; a key that came more often than its slot can say has a
/// counter besides, in O(log of the number of counters). The first insert of a key into a filter
/// nearly full looks at some hundred more slots, at most 4096.
pub struct CountingFilter<S: Store = Owned> {
    pub(crate) body: Body<S::Buckets, S::Counters>,
}

/// A counting filter read where its bytes lie, of any alignment: a memory-mapped file, a part of a
/// message.
///
/// It answers every question that [`CountingFilter`] does, and changes nothing.
/// [`CountingView::open`] makes one.
pub type CountingView<'a> = CountingFilter<Borrowed<'a>>;

/// Questions, of filters and views alike.
impl<S: Store> CountingFilter<S> {
    /// How often `key` was inserted and not removed; 0 for one that was not, but with probability
    /// [`false_positive_rate`](Self::false_positive_rate). O(1) for counts that slots can say,
    /// O(log of the number of counters) for others.
    #[inline]
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_at(self.route().address(key))
    }

    /// [`count`](Self::count) at the address of a key.
    fn count_at(&self, address: u64) -> u64 {
        reading!(self.body, reader => reader.count_key(address))
    }

    /// [`count`](Self::count) for each of `keys`, about twice as fast in a filter that no cache
    /// holds.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        self.count_each(Hashed(*self.route(), keys), counts);
    }

    /// Whether `key` was inserted and not removed: never wrong if it was, wrong with probability
    /// [`false_positive_rate`](Self::false_positive_rate) if not. O(1).
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.body.buckets.contains(self.route().address(key))
    }

    /// The counts of all keys, in no particular order; those of keys with one fingerprint are one
    /// count. O(buckets).
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        (0..self.body.buckets.count()).flat_map(move |bucket| {
            let slots = self.body.buckets.read(bucket).0.into_iter().filter(|&slot| slot != 0);
            slots.map(move |slot| reading!(self.body, reader => reader.count_in(bucket, slot)))
        })
    }

    /// Keys inserted and not removed, each as often as it was inserted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.body.state.len
    }

    /// Whether nothing is in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many different keys are in: an estimate, from the number of entries, as precise as that
    /// of [`CuckooFilter`](crate::CuckooFilter::distinct_estimate).
    #[must_use]
    pub fn distinct_estimate(&self) -> f64 {
        let entries = self.body.state.entries;
        if self.body.buckets.growing().is_some() {
            return entries as f64;
        }
        shape::distinct_keys(entries, self.body.possible_entries())
    }

    /// How many distinct keys the filter was built for: so many always fit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.body.state.profile.capacity
    }

    /// The share of slots in use, 0 to 1.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.body.load_factor()
    }

    /// Probability that an absent key has a count, as the filter is now; of a present one, that its
    /// count is too high.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.body.false_candidates().min(1.0)
    }

    /// The rate the filter was built for.
    #[must_use]
    pub fn requested_false_positive_rate(&self) -> f64 {
        self.body.state.profile.rate
    }

    /// How many keys came more often than a slot can say.
    #[must_use]
    pub fn distinct_counters(&self) -> u64 {
        self.body.state.counters.len()
    }

    /// The widths of fingerprint and count.
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

    /// Bytes of the filter as a file: header, buckets and counters. In memory a counter takes about
    /// 25 bytes instead of 16.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.body.size_in_bytes()
    }

    /// Bits of [`size_in_bytes`](Self::size_in_bytes) for each key of the
    /// [`capacity`](Self::capacity); in a filter that [grows](crate::Builder::grow_from), for each
    /// of the different keys that are in now.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        let grows = self.body.buckets.growing().is_some();
        let keys = if grows { self.distinct_estimate() } else { self.capacity() as f64 };
        image::bits_per_key(self.size_in_bytes(), keys)
    }

    fn count_each(&self, hashes: impl Hashes, counts: &mut [u64]) {
        assert_eq!(hashes.len(), counts.len(), "one answer for each key");
        reading!(self.body, reader => reader.count_each(hashes, counts));
    }
}

/// One line; never the table.
impl<S: Store> fmt::Debug for CountingFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CountingFilter({} keys, about {:.0} different, capacity {}, {}, load {:.3}, {} bytes)",
            self.len(),
            self.distinct_estimate(),
            self.capacity(),
            self.layout(),
            self.load_factor(),
            self.size_in_bytes()
        )
    }
}

impl Clone for CountingFilter {
    fn clone(&self) -> Self {
        Self { body: self.body.clone() }
    }
}

/// Equal bytes: built alike, and changed alike since.
impl PartialEq for CountingFilter {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}
