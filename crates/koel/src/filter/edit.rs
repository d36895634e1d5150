//! Changing a filter: inserts and removals, of single keys and of many.

use crate::error::{FullError, RefuteError};
use crate::image::sizing;
use crate::state::edit::{COPIES, UNIQUE};
use crate::{CuckooFilter, Key};

impl CuckooFilter {
    /// Adds a copy of `key`. O(1), or O(log [`distinct_counters`](Self::distinct_counters)) if it
    /// has a counter. Whatever the keys, at most two searches, each of 8192 slots, and two steps of
    /// growth, each of 4096 buckets. A key for which no way leads to an empty slot is
    /// kept in the stash: see [`stashed_keys`](Self::stashed_keys).
    ///
    /// # Errors
    /// [`FullError`], and then no byte has changed. Up to [`capacity`](Self::capacity) distinct
    /// keys an insert never fails, unless [`counter_limit`](Self::counter_limit) is lower, and keys
    /// repeat or somebody chose them for the same buckets.
    ///
    /// A [growable](Self::is_growable) filter grows instead. It fails only
    /// * beyond its [`growth_limit`](Self::growth_limit) of several billion keys, where 32-bit
    ///   bucket numbers end;
    /// * where one absent key in ten is reported present, which only a union of many filters
    ///   reaches;
    /// * where the system has no memory for more buckets.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), FullError> {
        self.body.insert::<COPIES>(self.body.address(key)).map(|_| ())
    }

    /// Adds `key` unless [`contains`](Self::contains) is true for it. Returns whether it was added.
    ///
    /// A false positive is not added either. Such a key shares the entry of another key, so do not
    /// remove keys from a filter filled this way.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        self.body.insert::<UNIQUE>(self.body.address(key))
    }

    /// Removes one copy of `key`. Returns false, and changes nothing, if no entry matches it. O(log
    /// [`distinct_counters`](Self::distinct_counters)).
    ///
    /// True does not prove that the key was in: see *Limits* of the type.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.body.remove(self.body.address(key))
    }

    /// Tells the filter that `key` was not inserted. If it is reported as present, it gets a
    /// *correction*: from then on [`contains`](Self::contains) is false for it. Returns whether it
    /// got one.
    ///
    /// * **Never refute a key that is in**: it would be hidden. The filter cannot tell it from a
    ///   false positive, unless it is in the stash.
    /// * Inserting the key takes its correction back. So no key that is inserted is ever absent,
    ///   but for keys whose 64-bit hashes are equal: with n keys in the filter, the probability is
    ///   n / 2^64 for each correction. With the default hash anybody can find such keys; with a
    ///   secret nobody can.
    /// * A key that is absent now may be reported after later inserts: refute it again.
    /// * [`merge`](Self::merge) keeps a correction unless the other filter reports the key. Growth,
    ///   shrinking and files keep all.
    ///
    /// ```
    /// let mut blocked = koel::CuckooFilter::builder(1000, 0.03).build()?;
    /// (0..1000_u64).try_for_each(|key| blocked.insert(&key))?;
    /// for allowed in 1000..2000_u64 {
    ///     blocked.refute(&allowed)?;
    /// }
    /// assert!((1000..2000_u64).all(|allowed| !blocked.contains(&allowed)));
    /// assert!((0..1000_u64).all(|key| blocked.contains(&key)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A correction takes 8 bytes of the file image and about 30 in memory. O(log corrections).
    ///
    /// # Errors
    /// [`FullError::Corrections`] if there are as many corrections as slots. Nothing has changed
    /// then.
    pub fn refute<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        self.body.refute(self.body.address(key))
    }

    /// [`refute`](Self::refute) for each of `keys`, all or none. Returns how many corrections were
    /// made: a key that comes twice gets one.
    ///
    /// If keys that are in are among them, more are reported than chance explains. Then none is
    /// refuted. A single key, or a handful, may be even so: see
    /// [`check_refutation`](Self::check_refutation).
    ///
    /// ```
    /// let mut blocked = koel::CuckooFilter::with_capacity(1000);
    /// let listed: Vec<u64> = (0..1000).collect();
    /// blocked.insert_many(&listed)?;
    /// assert!(blocked.refute_many(&listed).is_err());
    /// assert!(listed.iter().all(|key| blocked.contains(key)));
    /// # Ok::<(), koel::FullError>(())
    /// ```
    ///
    /// # Errors
    /// [`RefuteError::Members`] if more keys are reported than chance explains, and
    /// [`RefuteError::Full`] if there would be more corrections than slots, or without memory.
    /// Nothing has changed then.
    pub fn refute_many<K: Key>(&mut self, keys: &[K]) -> Result<u64, RefuteError> {
        let reported = self.body.reported(self.body.hashed(keys))?;
        self.check_refutation(keys.len() as u64, reported.len() as u64)?;
        self.body.correct_each(&reported)?;
        Ok(reported.len() as u64)
    }

    /// [`refute_many`](Self::refute_many) for keys that are known to be absent, however many are
    /// reported: those that [`contains`](Self::contains) was asked for first, say. A key that is in
    /// is hidden.
    ///
    /// # Errors
    /// [`FullError::Corrections`] if there would be more corrections than slots, and
    /// [`FullError::NoMemory`]. Nothing has changed then.
    pub fn force_refute_many<K: Key>(&mut self, keys: &[K]) -> Result<u64, FullError> {
        let reported = self.body.reported(self.body.hashed(keys))?;
        self.body.correct_each(&reported)?;
        Ok(reported.len() as u64)
    }

    /// Whether chance explains that the filter reports so many different ones of `asked` absent
    /// keys. For keys that come in parts: [`refute_many`](Self::refute_many) asks this too.
    ///
    /// The number expected is `asked` times the [false-positive
    /// rate](Self::false_positive_rate). Five times its square root and four more are allowed: of
    /// batches without a key that is in, one in three million has more.
    ///
    /// # Errors
    /// [`RefuteError::Members`].
    pub fn check_refutation(&self, asked: u64, reported: u64) -> Result<(), RefuteError> {
        let expected = asked as f64 * self.false_positive_rate();
        // The square root is one of whole numbers.
        let deviation = sizing::square_root(expected * 1e6) / 1e3;
        if reported as f64 <= expected + 5.0 * deviation + 4.0 {
            return Ok(());
        }
        Err(RefuteError::Members { asked, reported, expected: sizing::round_up(expected) })
    }

    /// Removes all keys, and keeps the [corrections](Self::refute). The size stays. A list that is
    /// built anew in such a filter goes on denying what was refuted, except for the keys that it
    /// has: inserting a key takes its correction back.
    pub fn clear_keys(&mut self) {
        self.body.clear_keys();
    }

    /// [`insert`](Self::insert) for each of `keys`, in order.
    ///
    /// The bytes are those of single inserts, with one exception: for 4096 keys and more, a filter
    /// that [has grown](Self::has_grown) makes room ahead, for a quarter of its entries at a time.
    /// That takes a third to a half of the time off. If most of the keys are copies, the filter may
    /// end up a quarter larger than it needs to be.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room. Those before it are in:
    /// [`len`](Self::len) says how many. Room that was made ahead stays.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), FullError> {
        self.body.insert_each::<COPIES>(self.body.hashed(keys), &mut [])
    }

    /// [`insert_unique`](Self::insert_unique) for each of `keys`, in order. Writes to `added[i]`
    /// whether `keys[i]` was added.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room. Those before it are in. Of many keys for
    /// a large filter, some of those after it may be in as well; `added` is true for them.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn insert_unique_many<K: Key>(
        &mut self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), FullError> {
        assert_eq!(keys.len(), added.len(), "one answer for each key");
        added.fill(false);
        self.body.insert_each::<UNIQUE>(self.body.hashed(keys), added)
    }

    /// [`remove`](Self::remove) for each of `keys`, in order. Writes to `removed[i]` whether a copy
    /// of `keys[i]` was removed.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        self.body.remove_each(self.body.hashed(keys), removed);
    }
}
