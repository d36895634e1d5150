//! Changing an expiring filter: insert and remove, single keys and many, and time.

use super::ExpiringFilter;
use crate::Key;
use crate::error::{FullError, InsertError, JumpError};
use crate::state::expire::{KEEPS, RENEWS};

impl ExpiringFilter {
    /// Adds `key`, or renews it: it is in for a window from the present step on. True if it was not
    /// within the window before. O(1): reads at most 16384 slots, and sweeps
    /// at most some groups of 16 buckets.
    ///
    /// # Errors
    /// [`FullError::Window`], and then nothing has changed, if the filter is full. With at most
    /// [`capacity`](Self::capacity) distinct keys in each window that happens only if more than
    /// eight were chosen for one pair of buckets: see [`sip_key`](crate::Builder::sip_key). With
    /// [`WhenFull::EvictOldest`](crate::WhenFull::EvictOldest) it never happens. A filter that
    /// [grows](Self::is_growable) returns it only for such keys and where 32-bit bucket numbers
    /// end, and [`FullError::NoMemory`] where the memory ends.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        let address = self.body.address(key);
        self.body.insert_stamped::<RENEWS>(address, 0)
    }

    /// Adds `key` unless it came within the window, and says whether it was added. A key that is in
    /// keeps its time: it expires a window after its first insert.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, FullError> {
        let address = self.body.address(key);
        self.body.insert_stamped::<KEEPS>(address, 0)
    }

    /// Adds `key` for at least `ttl` ticks, and less than two steps more. A key that is in for
    /// longer stays so. True if it was not in before.
    ///
    /// # Errors
    /// [`InsertError`], and then nothing has changed:
    /// * [`TimeToLive`](InsertError::TimeToLive) if `ttl` is longer than the
    ///   [`window`](Self::window);
    /// * [`Full`](InsertError::Full) as for [`insert`](Self::insert).
    #[inline]
    pub fn insert_with_ttl<K: Key + ?Sized>(
        &mut self,
        key: &K,
        ttl: u64,
    ) -> Result<bool, InsertError> {
        let address = self.body.address(key);
        let window = self.window();
        let age = self.body.clock().age_for(ttl);
        let age = age.ok_or(InsertError::TimeToLive { ttl, window })?;
        Ok(self.insert_aged(address, age)?)
    }

    /// Removes `key`. False, and nothing changed, if it was not within the window. True does not
    /// prove that the key was in: see *Limits* of the type.
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        let address = self.body.address(key);
        self.body.remove_stamped(address)
    }

    /// [`insert`](Self::insert) for each of `keys`, in order. Writes to `added[i]` whether
    /// `keys[i]` was new.
    ///
    /// # Errors
    /// [`FullError`] at the first key that finds no room. Those before it are in; from it on
    /// `added` is false.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn insert_many<K: Key>(&mut self, keys: &[K], added: &mut [bool]) -> Result<(), FullError> {
        self.insert_each::<RENEWS, K>(keys, added)
    }

    /// [`insert_unique`](Self::insert_unique) for each of `keys`, in order. Writes to `added[i]`
    /// whether `keys[i]` was added.
    ///
    /// # Errors
    /// As [`insert_many`](Self::insert_many).
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn insert_unique_many<K: Key>(
        &mut self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), FullError> {
        self.insert_each::<KEEPS, K>(keys, added)
    }

    fn insert_each<const KEEPS: bool, K: Key>(
        &mut self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), FullError> {
        assert_eq!(keys.len(), added.len(), "one answer for each key");
        added.fill(false);
        let hashes = self.body.hashed(keys);
        self.body.insert_each_stamped::<KEEPS>(hashes, added)
    }

    /// [`remove`](Self::remove) for each of `keys`, in order. Writes to `removed[i]` whether
    /// `keys[i]` was removed.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        let hashes = self.body.hashed(keys);
        self.body.remove_each_stamped(hashes, removed);
    }

    /// Sets the time to tick `now`, unless that is before the present step. Returns how many
    /// entries expired.
    ///
    /// A time too far ahead cannot be taken back: all keys expire, and later ones live until a
    /// window after that time. [`advance_within`](Self::advance_within) refuses such a jump.
    ///
    /// O([`steps`](Self::steps)), however many steps it goes on: expired entries stay in the table
    /// until their slots are needed. Once in 16,384 steps it also looks at two bytes for each 16
    /// buckets.
    pub fn advance(&mut self, now: u64) -> u64 {
        self.body.advance(now)
    }

    /// [`advance`](Self::advance), unless `now` is more than `most` ticks after the begin of the
    /// present step. Where a clock or a message may be wrong: a time far ahead would end the life
    /// of every key, and let in what they keep out.
    ///
    /// ```
    /// let mut seen = koel::ExpiringFilter::builder(1000, 0.001).window(600).build()?;
    /// seen.advance(1_700_000_000);
    /// seen.insert("message 1")?;
    /// assert!(seen.advance_within(1_800_000_000, 600).is_err());
    /// assert!(seen.contains("message 1"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`JumpError`], and then nothing has changed.
    pub fn advance_within(&mut self, now: u64, most: u64) -> Result<u64, JumpError> {
        let ahead = now.saturating_sub(self.step_began());
        if ahead > most { Err(JumpError { now, ahead, most }) } else { Ok(self.advance(now)) }
    }

    /// [`insert`](Self::insert), as of tick `then`, the time of an event that comes late: the key
    /// expires with those that came then. A key that is in for longer stays so. A tick after the
    /// present step counts as the present. Where the window of `then` is over, nothing changes.
    /// True if the key was not in before.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_at<K: Key + ?Sized>(&mut self, key: &K, then: u64) -> Result<bool, FullError> {
        let clock = self.body.clock();
        let age = clock.age_at(then);
        if !clock.is_live(age) {
            return Ok(!self.contains(key));
        }
        self.insert_aged(self.body.address(key), age)
    }

    /// Adds a key at this age. Not inlined, so that [`insert`](Self::insert) is the only caller of
    /// what is inlined there.
    #[inline(never)]
    fn insert_aged(&mut self, address: u64, age: u64) -> Result<bool, FullError> {
        self.body.insert_stamped::<RENEWS>(address, age)
    }

    /// [`len`](Self::len), at tick `now` instead of the present step: the same as in a copy that
    /// [advanced](Self::advance) to `now`. O(1).
    #[must_use]
    pub fn len_at(&self, now: u64) -> u64 {
        let later = self.body.clock().steps_until(now);
        let expiry = self.body.state.time();
        if later == 0 { self.len() } else { expiry.map_or(0, |expiry| expiry.live_after(later)) }
    }

    /// Says that the present step began at tick `now`. No entry expires or gets older by that.
    ///
    /// For a clock that was set back, or ticks that start again: [`advance`](Self::advance) ignores
    /// a tick before the present step, so nothing would expire until the clock catches up.
    pub fn rebase(&mut self, now: u64) {
        self.body.rebase(now);
    }

    /// Moves the entries to the smallest table that holds them, but to none smaller than the one it
    /// was built with: for a filter that [grew](Self::has_grown) with a burst of keys. O(buckets),
    /// and needs the memory of both tables until it returns. Forgets no key. Entries lose bits for
    /// which the smaller table has no room, so it may report absent keys that it did not before.
    /// Keeps the table if there is no memory for the smaller one.
    pub fn shrink_to_fit(&mut self) {
        self.body.shrink_stamped();
    }
}
