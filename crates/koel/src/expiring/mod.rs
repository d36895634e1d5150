//! The expiring filter: whether a key came within a window of time.
//!
//! A maplet whose values are time stamps: each entry has the step, modulo a power of two, at which
//! its key came. `image/clock.rs` has the arithmetic of time, and `state/expire.rs` the rules. This
//! file has the type and its lookups; `face.rs` has what it shares with other types. `edit.rs`
//! changes an expiring filter, and `builder.rs` sizes one. Threads share one behind locks
//! (`examples/consumer.rs`).
//! docs/decisions/0028-expiring.md has the choices and the figures.

mod builder;
mod edit;

use crate::Key;
use crate::builder::Expires;
use crate::face::face;
use crate::host::hosted_face;
use crate::image;
use crate::state::Body;
use crate::state::store::{Borrowed, Owned, Store};

pub use crate::builder::WhenFull;

/// Answers "have I seen this key within the last T?".
///
/// A key is in from its insert on, for at least the window and at most one step more. Then it is
/// forgotten, and its slot is free for others. [`contains`](Self::contains) never misses a key
/// within the window; it reports an absent key as present at the false-positive rate that the
/// filter was built for.
///
/// ```
/// use koel::ExpiringFilter;
///
/// // Ten minutes, in milliseconds.
/// let mut seen = ExpiringFilter::builder(1_000_000, 0.001).window(600_000).build()?;
/// seen.advance(1_000_000);
/// assert!(seen.insert_unique("message 1")?); // new: handle it
/// assert!(!seen.insert_unique("message 1")?); // seen: drop it
///
/// seen.advance(1_500_000);
/// assert!(seen.contains("message 1"));
/// seen.advance(1_700_000);
/// assert!(!seen.contains("message 1") && seen.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Time
/// * **Time comes from the caller**: [`advance`](Self::advance) takes it in ticks of any length,
///   and nothing else changes it. So tests need no clock, and the same calls make the same bytes.
/// * The window is divided into steps. An entry has the number of its step in a few bits; that is
///   all that it stores of time.
/// * A tick before the present step changes nothing: after a clock went back, keys live longer, and
///   none is forgotten early. [`rebase`](Self::rebase) tells the new time.
/// * A tick far ahead ends the life of every key. Where a clock or a message may be wrong, use
///   [`advance_within`](Self::advance_within), which refuses it.
///
/// # Fixed or sliding window
/// [`insert_unique`](Self::insert_unique) keeps the first stamp of a key: it expires a window after
/// its first insert. [`insert`](Self::insert) renews it: the key expires a window after its last
/// insert. [`insert_with_ttl`](Self::insert_with_ttl) gives a key less than the window. Calls of
/// all three may be mixed. Lookups renew nothing.
///
/// # Capacity
/// The builder takes the number of distinct keys in a window. Expired entries take no room from
/// them. If more come, an insert fails and changes nothing, or evicts an old entry: see
/// [`WhenFull`].
///
/// With the builder's [`grow_from`](crate::Builder::grow_from) the filter starts small and grows
/// instead, whenever the live entries exceed its load. It does not become smaller by itself: see
/// [`shrink_to_fit`](Self::shrink_to_fit).
///
/// # Limits
/// * Keys of one fingerprint and bucket share an entry. So [`remove`](Self::remove) also forgets
///   any other key with that entry. **Remove only keys that were inserted.**
/// * A key whose insert was taken for a repeated one has the time of another key. With
///   `insert_unique` it may be forgotten before its own window ends.
/// * The default hash is for keys that nobody chooses to do harm. Otherwise use
///   [`sip_key`](crate::Builder::sip_key), and for replay protection [`WhenFull::Fail`].
/// * It has no `refute`: entries expire and others come, so a correction would have to expire too.
///
/// # Cost
/// An operation reads two buckets, and an insert into a nearly full filter some hundred more, at
/// most 16384 slots. Before an entry is written to a group of 16 buckets, the expired ones there
/// are swept out: once in seven steps at most, with 24 steps in the window.
/// [`advance`](Self::advance) sweeps nothing, so no call ever takes long, also after a pause.
/// At a rate of 0.1 % and with 24 steps, a key takes 20.0 bits; in a filter that grows about 25.
pub struct ExpiringFilter<S: Store = Owned> {
    pub(crate) body: Body<S::Bytes>,
}

/// An expiring filter that reads borrowed bytes of any alignment: a memory-mapped file, a part of a
/// message.
///
/// It answers all that an [`ExpiringFilter`] does, as of its last step, or with
/// [`contains_at`](ExpiringFilter::contains_at) as of a later tick. It cannot be changed.
/// [`ExpiringView::open`] makes one; [`ExpiringView::to_owned`] makes an expiring filter of it.
pub type ExpiringView<'a> = ExpiringFilter<Borrowed<'a>>;

impl Expires for ExpiringFilter {}

face!(ExpiringFilter, ExpiringView, Expiring);
hosted_face!(ExpiringFilter, ExpiringView);

impl<S: Store> ExpiringFilter<S> {
    /// Whether `key` came within the window. Never false for a key that did. True for another key
    /// with probability [`false_positive_rate`](Self::false_positive_rate). O(1): reads two
    /// buckets. An integer of another type is [another key](crate::Key).
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.age(key).is_some()
    }

    /// [`contains`](Self::contains), at tick `now` instead of the present step. The same as in a
    /// copy that [advanced](ExpiringFilter::advance) to `now`.
    #[inline]
    #[must_use]
    pub fn contains_at<K: Key + ?Sized>(&self, key: &K, now: u64) -> bool {
        let clock = self.body.clock();
        let later = |age: u64| age.saturating_add(clock.steps_until(now));
        self.body.age(self.body.address(key)).is_some_and(|age| clock.is_live(later(age)))
    }

    /// [`contains`](Self::contains) for each of `keys`. Writes the answer to `keys[i]` to
    /// `found[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        found.fill(false);
        self.body.each_age(self.body.hashed(keys), |key, _| found[key] = true);
    }

    /// How many steps ago `key` came, or was last renewed; `None` if that was not within the
    /// window. For a key with a shorter time to live: as if it had come earlier.
    #[inline]
    #[must_use]
    pub fn age<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        self.body.age(self.body.address(key))
    }

    /// [`age`](Self::age) for each of `keys`. Writes the answer to `keys[i]` to `ages[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn age_many<K: Key>(&self, keys: &[K], ages: &mut [Option<u64>]) {
        assert_eq!(keys.len(), ages.len(), "one answer for each key");
        ages.fill(None);
        self.body.each_age(self.body.hashed(keys), |key, age| ages[key] = Some(age));
    }

    /// The number of live entries. Keys that share an entry count once.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.body.state.len
    }

    /// Whether [`len`](Self::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The window in ticks, a whole number of steps: at least what the builder was given.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.body.clock().window()
    }

    /// The steps of the window.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.body.clock().steps
    }

    /// Ticks of a step.
    #[must_use]
    pub fn step_ticks(&self) -> u64 {
        self.body.clock().step_ticks
    }

    /// The tick at which the present step began.
    #[must_use]
    pub fn step_began(&self) -> u64 {
        self.body.clock().began
    }

    /// What an insert into the full filter does.
    #[must_use]
    pub fn when_full(&self) -> WhenFull {
        if self.body.clock().evicts { WhenFull::EvictOldest } else { WhenFull::Fail }
    }

    /// How many live entries inserts have evicted.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.body.clock().evicted
    }

    /// The age in steps of the youngest entry that was evicted; `None` if none was. Keys younger
    /// than that were all kept.
    #[must_use]
    pub fn youngest_evicted(&self) -> Option<u64> {
        self.body.clock().youngest_evicted
    }

    /// Bits of [`size_in_bytes`](Self::size_in_bytes) per key of the
    /// [`capacity`](Self::capacity). If it [grows](Self::is_growable), the size follows the keys:
    /// then per live entry.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        let keys = if self.is_growable() { self.len() } else { self.capacity() };
        image::bits_per_key(self.size_in_bytes(), keys as f64)
    }
}
