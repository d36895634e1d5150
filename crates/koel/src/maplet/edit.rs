//! Changing a maplet: insert, replace and remove pairs, single ones and many.
//!
//! A value that is too wide is refused here, before anything changes. So `state/` and `table/` see
//! only values that fit.

use core::convert::Infallible;
use core::hint::select_unpredictable;
use core::mem;

use crate::error::{InsertError, ValueError};
use crate::{Key, Maplet};

impl Maplet {
    /// Adds the pair of `key` and `value`. A pair that is in already gets another entry. O(1):
    /// reads at most 8192 slots, and makes up to two steps of growth, each of 4096 buckets.
    ///
    /// # Errors
    /// [`InsertError`], and then nothing has changed:
    /// * [`Value`](InsertError::Value) if the value has more bits than values of this maplet;
    /// * [`Full`](InsertError::Full) if the pair finds no room, which never happens up to
    ///   [`capacity`](Self::capacity) pairs. If the maplet is [growable](Self::is_growable), it
    ///   happens only where 32-bit bucket numbers or the memory end.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), InsertError> {
        self.check([value])?;
        let address = self.body.address(key);
        self.body.insert_pair(address, value)?;
        Ok(())
    }

    /// Changes one pair of `key` and `old` to `key` and `new`. Returns false, and changes nothing,
    /// if there is no such pair. O(1).
    ///
    /// # Errors
    /// [`ValueError`], and then nothing has changed, if `new` has more bits than values of this
    /// maplet.
    #[inline]
    pub fn replace<K: Key + ?Sized>(
        &mut self,
        key: &K,
        old: u64,
        new: u64,
    ) -> Result<bool, ValueError> {
        self.check([new])?;
        let address = self.body.address(key);
        Ok(self.fits(old) && self.body.replace(address, (old, new)))
    }

    /// Removes one pair of `key` and `value`. Returns false, and changes nothing, if there is none.
    /// O(1).
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> bool {
        let address = self.body.address(key);
        self.fits(value) && self.body.remove_pair(address, value)
    }

    /// Gives every pair whose value is in `old` the value `new`. Returns the number of those pairs.
    ///
    /// One pass over the table, without the keys: where [`replace`](Self::replace) takes two random
    /// reads a pair, this takes about as long as a copy of the maplet.
    ///
    /// ```
    /// let mut files = koel::Maplet::builder(1000, 0.004, 5).build()?;
    /// files.insert_many(&["ada", "grace", "mary"], &[1, 2, 3])?;
    /// // Files 1 and 2 were merged into file 4.
    /// assert_eq!(files.relabel(&[1, 2], 4)?, 2);
    /// assert!(files.get("grace").eq([4]) && files.get("mary").eq([3]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ValueError`], and then nothing has changed, if `new` has more bits than values of this
    /// maplet.
    pub fn relabel(&mut self, old: &[u64], new: u64) -> Result<u64, ValueError> {
        self.check([new])?;
        let layout = self.layout();
        // One bit for each of the values below 64, because most maplets of ids have no others.
        let small =
            old.iter().filter(|&&value| value < 64).fold(0_u64, |mask, &value| mask | 1 << value);
        let has_others = old.iter().any(|&value| value >= 64);
        let is_old = |value: u64| {
            if value < 64 { small >> value & 1 == 1 } else { has_others && old.contains(&value) }
        };
        let mut changed = 0;
        self.body.table.update_slots(|slot| {
            let is_old = is_old(layout.value_of(slot));
            changed += u64::from(is_old);
            let relabelled = layout.slot(layout.fingerprint_of(slot), new);
            select_unpredictable(is_old, relabelled, slot)
        });
        let stash = &mut self.body.state.side.stash;
        for ((address, value), copies) in mem::take(stash).iter() {
            changed = changed.saturating_add(if is_old(value) { copies } else { 0 });
            stash.add_all((address, if is_old(value) { new } else { value }), copies);
        }
        Ok(changed)
    }

    /// [`insert`](Self::insert) for each of `keys` with the value of the same index, in order.
    ///
    /// The bytes are those of single inserts, with one exception: for 4096 keys and more, a maplet
    /// that grows makes room for all of them first.
    ///
    /// # Errors
    /// * [`InsertError::Value`] if any value is too wide; then nothing has changed.
    /// * [`InsertError::Full`] at the first pair that finds no room. Those before it are in:
    ///   [`len`](Self::len) says how many.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn insert_many<K: Key>(&mut self, keys: &[K], values: &[u64]) -> Result<(), InsertError> {
        assert_eq!(keys.len(), values.len(), "one value for each key");
        self.check(values.iter().copied())?;
        let hashes = self.body.hashed(keys);
        self.body.insert_pairs(hashes, values)?;
        Ok(())
    }

    /// [`replace`](Self::replace) for each of `keys`, in order, with the old and the new value of
    /// the same index. Writes to `replaced[i]` whether a pair of `keys[i]` was changed.
    ///
    /// # Errors
    /// [`ValueError`], and then nothing has changed, if any new value is too wide.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn replace_many<K: Key>(
        &mut self,
        keys: &[K],
        changes: &[(u64, u64)],
        replaced: &mut [bool],
    ) -> Result<(), ValueError> {
        assert_eq!([changes.len(), replaced.len()], [keys.len(); 2], "a change for each key");
        self.check(changes.iter().map(|&(_, new)| new))?;
        let hashes = self.body.hashed(keys);
        self.body.replace_each(hashes, changes, replaced);
        Ok(())
    }

    /// [`remove`](Self::remove) for each of `keys` with the value of the same index, in order.
    /// Writes to `removed[i]` whether a pair of `keys[i]` was removed.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], values: &[u64], removed: &mut [bool]) {
        assert_eq!([values.len(), removed.len()], [keys.len(); 2], "a value for each key");
        let (hashes, layout) = (self.body.hashed(keys), self.layout());
        let Ok(()) = self.body.one_by_one(hashes, 0, |body, key, address| {
            let value = values[key];
            removed[key] = value <= layout.largest_value() && body.remove_pair(address, value);
            Ok::<(), Infallible>(())
        });
    }

    /// Inserts every pair of `pairs`, in order.
    ///
    /// # Errors
    /// [`InsertError`] at the first pair that cannot be inserted. Those before it are in:
    /// [`len`](Self::len) says how many.
    pub fn try_extend<K: Key>(
        &mut self,
        pairs: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<(), InsertError> {
        pairs.into_iter().try_for_each(|(key, value)| self.insert(&key, value))
    }

    #[inline]
    fn fits(&self, value: u64) -> bool {
        value <= self.layout().largest_value()
    }

    /// Refuses values that are too wide, by the largest.
    #[inline]
    fn check(&self, values: impl IntoIterator<Item = u64>) -> Result<(), ValueError> {
        let value = values.into_iter().max().unwrap_or(0);
        let value_bits = self.layout().value_bits();
        if self.fits(value) { Ok(()) } else { Err(ValueError { value, value_bits }) }
    }
}

/// For a maplet that [grows](Self::is_growable). Otherwise use [`try_extend`](Self::try_extend):
/// this panics if a pair finds no room, or if a value is too wide.
impl<K: Key> Extend<(K, u64)> for Maplet {
    fn extend<I: IntoIterator<Item = (K, u64)>>(&mut self, pairs: I) {
        self.try_extend(pairs).expect("room for every pair");
    }
}
