//! An expiring filter that threads share: shards, each an `ExpiringFilter` behind a lock.
//!
//! ```text
//!     address    | shard, k bits | address in the shard |
//! ```
//!
//! * A shard is a segment of a table, or several: both buckets of a key are in one, and the top k
//!   bits of an address name it (`address/geometry`). So the shards side by side are the table of a
//!   plain filter (`convert.rs`), which has the same file.
//! * An operation locks one shard. `advance` goes from shard to shard, and sweeps
//!   nothing. Only one thread at a time changes the time.
//! * Cost: a lock for each operation, and room in each shard for five standard deviations of keys
//!   more than its share: 4 % at most, except where one shard is enough. `many.rs` locks a shard
//!   once for all its keys of a block.

mod builder;
mod convert;
mod many;

use alloc::boxed::Box;
use core::fmt;

use super::{ExpiringFilter, WhenFull};
use crate::address::route::Route;
use crate::builder::{Builder, Expires};
use crate::concurrent::sync::{Mutex, lock};
use crate::error::{FullError, InsertError};
use crate::{Key, KeyHasher};

/// An [`ExpiringFilter`] that many threads use at once, through a shared reference.
///
/// It has the same methods and keeps the same promises. It consists of up to 64 expiring filters,
/// each behind a lock: an operation waits only while another thread uses the same one.
///
/// ```
/// use koel::ConcurrentExpiringFilter;
///
/// let seen = ConcurrentExpiringFilter::builder(1_000_000, 0.001).window(600).build()?;
/// seen.advance(1000);
/// let first = std::thread::scope(|scope| {
///     let threads = [0, 1].map(|_| scope.spawn(|| seen.insert_unique("message 1").unwrap()));
///     threads.map(|thread| thread.join().unwrap())
/// });
/// assert!(first[0] != first[1]); // one of them handles it
/// # Ok::<(), koel::BuildError>(())
/// ```
///
/// # Time
/// Any thread may call [`advance`](Self::advance); a tick before the present step changes nothing.
/// While one thread advances, others may find some keys at the old step and some at the new one.
///
/// # Files
/// [`snapshot`](Self::snapshot) copies it into an [`ExpiringFilter`], which has bytes and files.
/// `ConcurrentExpiringFilter::try_from` makes a shared filter of one. It does not grow.
pub struct ConcurrentExpiringFilter {
    /// A power of two of them.
    shards: Box<[Mutex<ExpiringFilter>]>,
    /// The tick at which the present step of all shards began. Locked while it changes, before any
    /// shard is.
    began: Mutex<u64>,
    step_ticks: u64,
    route: Route,
    capacity: u64,
}

impl Expires for ConcurrentExpiringFilter {}

impl ConcurrentExpiringFilter {
    /// Settings for a filter of `capacity` distinct keys in each window, as those of
    /// [`ExpiringFilter::builder`].
    pub fn builder(capacity: u64, false_positive_rate: f64) -> Builder<Self> {
        Builder::new(capacity, false_positive_rate, 0)
    }

    /// As [`ExpiringFilter::insert`].
    ///
    /// # Errors
    /// [`FullError::Window`], and then nothing has changed, if the shard of the key is full.
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<bool, FullError> {
        self.on_shard(key, |shard, address| shard.body.insert_stamped::<false>(address, 0))
    }

    /// As [`ExpiringFilter::insert_unique`]. Of threads that insert one key at once, one gets true.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_unique<K: Key + ?Sized>(&self, key: &K) -> Result<bool, FullError> {
        self.on_shard(key, |shard, address| shard.body.insert_stamped::<true>(address, 0))
    }

    /// As [`ExpiringFilter::insert_with_ttl`].
    ///
    /// # Errors
    /// [`InsertError`], and then nothing has changed.
    pub fn insert_with_ttl<K: Key + ?Sized>(&self, key: &K, ttl: u64) -> Result<bool, InsertError> {
        self.on_shard(key, |shard, address| shard.insert_address_with_ttl(address, ttl))
    }

    /// As [`ExpiringFilter::contains`].
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.age(key).is_some()
    }

    /// As [`ExpiringFilter::age`].
    #[must_use]
    pub fn age<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        self.on_shard(key, |shard, address| shard.body.age(address))
    }

    /// As [`ExpiringFilter::remove`].
    pub fn remove<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.on_shard(key, |shard, address| shard.body.remove_stamped(address))
    }

    /// As [`ExpiringFilter::advance`], one shard after the other.
    pub fn advance(&self, now: u64) -> u64 {
        let mut began = lock(&self.began);
        if now.saturating_sub(*began) < self.step_ticks {
            return 0;
        }
        let expired = self.sum(|shard| shard.advance(now));
        *began = lock(&self.shards[0]).step_began();
        expired
    }

    /// As [`ExpiringFilter::rebase`], one shard after the other.
    pub fn rebase(&self, now: u64) {
        let mut began = lock(&self.began);
        self.shards.iter().for_each(|shard| lock(shard).rebase(now));
        *began = now;
    }

    /// Removes everything. The size and the time stay.
    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| lock(shard).clear());
    }

    /// The number of live entries, summed up one shard after the other.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.sum(|shard| shard.len())
    }

    /// Whether [`len`](Self::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of distinct keys of a window that it was built for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The window in ticks: at least what the builder was given.
    #[must_use]
    pub fn window(&self) -> u64 {
        lock(&self.shards[0]).window()
    }

    /// The steps of the window.
    #[must_use]
    pub fn steps(&self) -> u64 {
        lock(&self.shards[0]).steps()
    }

    /// Ticks of a step.
    #[must_use]
    pub fn step_ticks(&self) -> u64 {
        self.step_ticks
    }

    /// The tick at which the present step began.
    #[must_use]
    pub fn step_began(&self) -> u64 {
        *lock(&self.began)
    }

    /// How many live entries inserts have evicted.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.sum(|shard| shard.evicted())
    }

    /// The age in steps of the youngest entry that was evicted; `None` if none was.
    #[must_use]
    pub fn youngest_evicted(&self) -> Option<u64> {
        self.shards.iter().filter_map(|shard| lock(shard).youngest_evicted()).min()
    }

    /// The probability that [`contains`](Self::contains) is true for an absent key, as it is now.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        let rates = self.shards.iter().map(|shard| lock(shard).false_positive_rate());
        rates.sum::<f64>() / self.shards.len() as f64
    }

    /// Bytes of all shards.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).size_in_bytes()).sum()
    }

    /// What an insert into the full filter does.
    #[must_use]
    pub fn when_full(&self) -> WhenFull {
        lock(&self.shards[0]).when_full()
    }

    /// The hash function and its seed or secret.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        self.route.hasher()
    }

    /// Calls `work` with the shard of a key, locked, and its address there.
    fn on_shard<K: Key + ?Sized, R>(
        &self,
        key: &K,
        work: impl FnOnce(&mut ExpiringFilter, u64) -> R,
    ) -> R {
        let (shard, address) = self.divided(self.route.address(key));
        work(&mut lock(&self.shards[shard]), address)
    }

    /// The number of the shard of an address, and the address there.
    #[inline]
    fn divided(&self, address: u64) -> (usize, u64) {
        let bits = self.shards.len().trailing_zeros();
        // Two shifts, because one shard would shift by all 64 bits.
        let shard = (address >> 1) >> (63 - bits);
        (usize::from(shard.to_le_bytes()[0]), address << bits)
    }

    fn sum(&self, part: impl Fn(&mut ExpiringFilter) -> u64) -> u64 {
        self.shards.iter().map(|shard| part(&mut lock(shard))).sum()
    }
}

/// Sizes and settings, in one line.
impl fmt::Debug for ConcurrentExpiringFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentExpiringFilter")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .field("shards", &self.shards.len())
            .field("size_in_bytes", &self.size_in_bytes())
            .finish()
    }
}
