//! The counting filter: how often each key came, in little more space than a filter takes.
//!
//! A maplet whose values are counts. A key has one entry, and the value beside its fingerprint is its count; the largest value says: so many, and what the counter of this
//! entry says besides (`counters.rs`). The invariant: an entry has a counter only where its value is the largest one.
//!
//! Beside the copies of a [`CuckooFilter`](crate::CuckooFilter) it takes a sixth of the memory and half of the time where most keys repeat, and more memory where they do not
//! (docs/decisions/0007-maplet.md has the figures). This file has the type and its questions; `edit.rs` changes it, `merge.rs` unites two, `file.rs` turns it into bytes and back, `builder.rs` sizes it.

mod builder;
mod edit;
mod file;
mod merge;

use core::convert::Infallible;
use core::fmt;
use core::ops::Range;

use super::{Maplet, MapletView};
use crate::blocks::{copies_of, each_hash, hashes_of};
use crate::counters::{Identity, RECORD_BYTES, ReadCounters};
use crate::geometry::Place;
use crate::growth::Grown;
use crate::image;
use crate::layout::Layout;
use crate::sizing;
use crate::store::{Borrowed, Owned, Store};
use crate::table::{Match, Site};
use crate::{Key, KeyHasher};

pub use builder::CountingBuilder;

/// How often keys came, exactly but for fingerprints that collide: for streams in which some keys come very often.
///
/// [`count`](Self::count) is never too low. It is too high, by the count of another key with the same fingerprint in the same buckets, with at most the probability that the
/// filter was built for. A filter built for n keys takes n distinct keys, each any number of times, up to 2^64 - 1 of all together.
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
/// That one counts too, with a slot for the second copy of a key and a counter of some 25 bytes from the third on. Where fewer than one key in 18 comes a third time it is
/// smaller; where more do, this one is, and an insert takes less time. This one has no copies in its slots.
///
/// # What it does not do
/// It does not hold the keys, so it cannot list them. **Remove only what was inserted**: removing an absent key takes, with the probability of a false positive, one from
/// the count of another key.
///
/// # Cost
/// Every operation reads two buckets; a key that came more often than its slot can say has a counter besides, in O(log of the number of counters). The
/// first insert of a key into a filter nearly full looks at some hundred more slots, at most 4096.
pub struct CountingFilter<S: Store = Owned> {
    /// Counts by key, up to the largest value.
    maplet: Maplet<S>,
    /// What keys came more often than that.
    counters: S::Counters,
    /// Keys inserted and not removed, each as often as it was inserted.
    len: u64,
}

/// A counting filter read where its bytes lie, of any alignment: a memory-mapped file, a part of a message.
///
/// It answers every question that [`CountingFilter`] does, and changes nothing. [`CountingView::open`] makes one.
pub type CountingView<'a> = CountingFilter<Borrowed<'a>>;

/// The entry that counts a key; in a filter that grows, the one of several that knows most of it.
struct Held {
    slot: u64,
    /// What the slot says.
    count: u64,
    identity: Identity,
    at: At,
}

impl Held {
    /// How many bits of the string of its keys it knows, in a table that has grown.
    fn length(&self) -> u32 {
        match self.at {
            At::Built(_) => 0,
            At::Grown(entry) => entry.prefix.length,
        }
    }
}

/// Where an entry is.
#[derive(Clone, Copy)]
enum At {
    /// In the pair of buckets at these bits.
    Built([u64; 2]),
    Grown(Match),
}

impl CountingFilter {
    /// Settings for a filter of `capacity` distinct keys, whose counts are wrong for at most `false_positive_rate` of all keys when it is full.
    pub fn builder(capacity: u64, false_positive_rate: f64) -> CountingBuilder {
        CountingBuilder::new(capacity, false_positive_rate)
    }
}

/// Questions, of filters and views alike.
impl<S: Store> CountingFilter<S> {
    /// How often `key` was inserted and not removed; 0 for one that was not, but with probability [`false_positive_rate`](Self::false_positive_rate). O(1) for
    /// counts that slots can say, O(log of the number of counters) for others.
    #[inline]
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_hash(self.hasher().hash(key))
    }

    /// [`count`](Self::count) for a key hashed beforehand: 64 uniform bits, by [`hasher`](Self::hasher) or by a hash of your own.
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> u64 {
        match &self.maplet.body.grown {
            None => self.held(hash).map_or(0, |held| self.total(held.slot, held.identity)),
            Some(grown) => self.count_grown(grown, &grown.addresses().locate(hash)),
        }
    }

    /// [`count`](Self::count) for each of `keys`, about twice as fast in a filter that no cache holds.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        self.count_each(hashes_of(self.hasher(), keys), counts);
    }

    /// [`count_many`](Self::count_many) for keys hashed beforehand.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many_hashes(&self, hashes: &[u64], counts: &mut [u64]) {
        self.count_each(copies_of(hashes), counts);
    }

    /// Whether `key` was inserted and not removed: never wrong if it was, wrong with probability [`false_positive_rate`](Self::false_positive_rate) if not. O(1).
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.maplet.contains(key)
    }

    /// [`contains`](Self::contains) for a key hashed beforehand.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.maplet.contains_hash(hash)
    }

    /// The counts of all keys, in no particular order; those of keys with one fingerprint are one count. O(buckets).
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        (0..self.maplet.body.buckets()).flat_map(move |bucket| {
            let slots = self.maplet.body.read(bucket).0.into_iter().filter(|&slot| slot != 0);
            slots.map(move |slot| self.total(slot, self.identity(bucket, slot)))
        })
    }

    /// Keys inserted and not removed, each as often as it was inserted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many different keys are in: an estimate, from the number of entries, as precise as that of [`CuckooFilter`](crate::CuckooFilter::distinct_estimate).
    #[must_use]
    pub fn distinct_estimate(&self) -> f64 {
        let entries = self.maplet.entries;
        if self.maplet.body.grown.is_some() {
            return entries as f64;
        }
        let possible =
            sizing::possible_entries(self.layout().fraction_bits(), self.maplet.body.buckets());
        sizing::distinct_keys(entries, possible)
    }

    /// How many distinct keys the filter was built for: so many always fit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.maplet.capacity()
    }

    /// The share of slots in use, 0 to 1.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.maplet.load_factor()
    }

    /// Probability that an absent key has a count, as the filter is now; of a present one, that its count is too high.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.maplet.false_candidates().min(1.0)
    }

    /// The rate the filter was built for.
    #[must_use]
    pub fn requested_false_positive_rate(&self) -> f64 {
        self.maplet.requested_false_positive_rate()
    }

    /// How many keys came more often than a slot can say.
    #[must_use]
    pub fn distinct_counters(&self) -> u64 {
        self.counters.len()
    }

    /// The widths of fingerprint and count.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.maplet.layout()
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hasher(&self) -> &KeyHasher {
        self.maplet.hasher()
    }

    /// Bytes of the filter as a file: header, buckets and counters. In memory a counter takes about 25 bytes instead of 16.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        let counters = usize::try_from(self.counters.len()).unwrap_or(usize::MAX);
        let records = counters.saturating_mul(RECORD_BYTES);
        self.maplet.size_in_bytes().saturating_add(records)
    }

    /// Bits of [`size_in_bytes`](Self::size_in_bytes) for each key of the [`capacity`](Self::capacity); in a filter that [grows](CountingBuilder::grow_from), for each
    /// of the different keys that are in now.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        let grows = self.maplet.body.grown.is_some();
        let keys = if grows { self.distinct_estimate() } else { self.capacity() as f64 };
        image::bits_per_key(self.size_in_bytes(), keys)
    }

    /// The largest count that a slot can say.
    fn most(&self) -> u64 {
        self.layout().largest_value()
    }

    /// The entry that counts the key with this hash.
    #[inline]
    fn held(&self, hash: u64) -> Option<Held> {
        match &self.maplet.body.grown {
            None => self.held_at(&self.maplet.body.table.geometry().locate(hash)),
            Some(grown) => self.held_at_site(&grown.addresses().locate(hash)),
        }
    }

    /// The entry at `place`, in a table as it was built.
    #[inline]
    fn held_at(&self, place: &Place) -> Option<Held> {
        let (table, layout) = (&self.maplet.body.table, self.layout());
        let slot = table.candidates(place.buckets(), [place.fingerprint; 2]).next()?;
        let (identity, at) =
            (place.identity(layout.fingerprint_bits()), At::Built(table.bits(place)));
        Some(Held { slot, count: layout.value_of(slot), identity, at })
    }

    /// The entry that knows most of the keys of `site`, in a table that has grown.
    fn held_at_site(&self, site: &Site) -> Option<Held> {
        let grown = self.maplet.body.grown.as_ref()?;
        let entry = grown.table().matches(site).max_by_key(|entry| entry.prefix.length)?;
        let identity = grown.addresses().identity(&entry.prefix);
        let count = self.layout().value_of(entry.slot);
        Some(Held { slot: entry.slot, count, identity, at: At::Grown(entry) })
    }

    /// What an entry counts: its slot, and its counter.
    #[inline]
    fn total(&self, slot: u64, identity: Identity) -> u64 {
        let count = self.layout().value_of(slot);
        count.saturating_add(self.counted(count, identity))
    }

    /// What the counter of an entry says whose slot says `count`.
    #[inline]
    fn counted(&self, count: u64, identity: Identity) -> u64 {
        if count == self.most() { self.counters.get(identity) } else { 0 }
    }

    /// The sum over all entries that match a key: those of one length have one name, and share a counter.
    fn count_grown(&self, grown: &Grown<S::Buckets>, site: &Site) -> u64 {
        let (mut seen, mut sum) = (0_u64, 0_u64);
        for entry in grown.table().matches(site) {
            let count = self.layout().value_of(entry.slot);
            let counted = self.counted(count, grown.addresses().identity(&entry.prefix));
            let bit = if counted > 0 { 1 << entry.prefix.length } else { 0 };
            sum = sum.saturating_add(count);
            sum = sum.saturating_add(if seen & bit == 0 { counted } else { 0 });
            seen |= bit;
        }
        sum
    }

    /// The name of the entry in a slot of a bucket.
    fn identity(&self, bucket: u64, slot: u64) -> Identity {
        let (body, layout) = (&self.maplet.body, self.layout());
        let fingerprint = layout.fingerprint_of(slot);
        match &body.grown {
            None => {
                let place = body.table.geometry().place_of(bucket, fingerprint);
                place.identity(layout.fingerprint_bits())
            }
            Some(grown) => {
                grown.addresses().identity(&grown.addresses().prefix(bucket, fingerprint))
            }
        }
    }

    fn count_each(&self, hashes: (usize, impl Fn(Range<usize>, &mut [u64])), counts: &mut [u64]) {
        assert_eq!(hashes.0, counts.len(), "one answer for each key");
        let count = |filter: &mut &Self, key: usize, hash| {
            counts[key] = filter.count_hash(hash);
            Ok::<(), Infallible>(())
        };
        let prefetch = |filter: &&Self, hash| filter.maplet.body.prefetch(hash);
        let Ok(()) = each_hash(&mut &*self, prefetch, hashes, 0, count);
    }
}

/// One line; never the table.
impl<S: Store> fmt::Debug for CountingFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CountingFilter({} keys, about {:.0} different, capacity {}, {}, load {:.3}, {} bytes)",
            self.len,
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
        Self { maplet: self.maplet.clone(), counters: self.counters.clone(), len: self.len }
    }
}

/// Equal bytes: built alike, and changed alike since.
impl PartialEq for CountingFilter {
    fn eq(&self, other: &Self) -> bool {
        self.maplet.profile == other.maplet.profile
            && self.maplet.body == other.maplet.body
            && self.counters == other.counters
            && self.len == other.len
    }
}
