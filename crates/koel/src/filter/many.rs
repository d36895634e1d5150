//! Many keys at once: the same answers in the same order, several times as fast.
//!
//! The blocks are those of `blocks.rs`; here is what a filter does with each.

use core::convert::Infallible;
use core::ops::Range;

use crate::blocks::{
    Hashed, Hashes, MANY, contains_each, each_change, each_hash, each_insert, each_place,
    each_planned,
};
use crate::body::Body;
use crate::buffer::Buffer;
use crate::counters::Counters;
use crate::error::Full;
use crate::filter::tally::Tally;
use crate::geometry::Places;
use crate::growth::Grown;
use crate::store::Store;
use crate::table::{At, Table};
use crate::{CuckooFilter, Key};

impl<S: Store> CuckooFilter<S> {
    /// [`contains`](Self::contains) for each of `keys`: the answer to `keys[i]` goes to `found[i]`.
    ///
    /// ```
    /// let mut filter = koel::CuckooFilter::with_capacity(1000);
    /// filter.insert_many(&["ada", "grace"])?;
    /// let mut found = [false; 3];
    /// filter.contains_many(&["ada", "mary", "grace"], &mut found);
    /// assert_eq!(found, [true, false, true]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn contains_many<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        self.contains_each(Hashed(*self.route(), keys), found);
    }

    /// [`count`](Self::count) for each of `keys`: the answer to `keys[i]` goes to `counts[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn count_many<K: Key>(&self, keys: &[K], counts: &mut [u64]) {
        self.count_each(Hashed(*self.route(), keys), counts);
    }

    pub(super) fn contains_each(&self, hashes: impl Hashes, found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer for each key");
        match &self.body {
            Body::Built(table) => contains_each(table, hashes, found),
            Body::Grown(grown) => contains_each(grown.table(), hashes, found),
        }
    }

    fn count_each(&self, hashes: impl Hashes, counts: &mut [u64]) {
        assert_eq!(hashes.len(), counts.len(), "one answer for each key");
        match &self.body {
            Body::Built(table) => {
                let count = |table: &mut &_, key: usize, places: &Places, i| {
                    counts[key] = self.tally.count_place(table, &places.get(i));
                    Ok::<(), Infallible>(())
                };
                let Ok(()) = each_place(&mut &*table, hashes, count);
            }
            Body::Grown(grown) => {
                let count = |grown: &mut &Grown<_>, key: usize, hash| {
                    counts[key] = self.tally.count_grown(grown, &grown.addresses().locate(hash));
                    Ok::<(), Infallible>(())
                };
                let prefetch = |grown: &&Grown<_>, hash| grown.prefetch(hash);
                let Ok(()) = each_hash(&mut &*grown, prefetch, hashes, 0, count);
            }
        }
    }
}

impl CuckooFilter {
    /// [`insert`](Self::insert) for each of `keys`, in order. For 4096 keys and more a filter that grows makes room ahead, for a quarter of its entries at a time. So they take half to two thirds
    /// of the time of inserts one by one; where they are copies of few, the filter may be a quarter larger afterwards than it need be. With fewer keys, or in a filter that does not grow, all
    /// bytes are those of inserts one by one.
    ///
    /// # Errors
    /// [`Full`] at the first key that finds no room; those before it are in, [`len`](Self::len) says how many.
    pub fn insert_many<K: Key>(&mut self, keys: &[K]) -> Result<(), Full> {
        let route = *self.route();
        self.insert_each(Hashed(route, keys))
    }

    /// [`insert_unique`](Self::insert_unique) for each of `keys`, in order: whether `keys[i]` was added goes to `added[i]`.
    ///
    /// # Errors
    /// [`Full`] at the first key that finds no room; those before it are in, and the answers from it on are false.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn insert_unique_many<K: Key>(
        &mut self,
        keys: &[K],
        added: &mut [bool],
    ) -> Result<(), Full> {
        let route = *self.route();
        self.insert_unique_each(Hashed(route, keys), added)
    }

    /// [`remove`](Self::remove) for each of `keys`, in order: whether `keys[i]` was taken out goes to `removed[i]`.
    ///
    /// # Panics
    /// Where the slices differ in length.
    pub fn remove_many<K: Key>(&mut self, keys: &[K], removed: &mut [bool]) {
        let route = *self.route();
        self.remove_each(Hashed(route, keys), removed);
    }

    pub(super) fn insert_each(&mut self, hashes: impl Hashes) -> Result<(), Full> {
        let before = self.len();
        if let Body::Built(table) = &mut self.body {
            match self.tally.insert_each(table, hashes) {
                Err(full) if self.tally.grows_instead(full) => {}
                result => return result,
            }
        }
        let done = usize::try_from(self.len() - before).expect("one for each key");
        let len = hashes.len();
        let mut ahead = if len < MANY { len } else { done };
        let (grown, tally) = self.start_to_grow()?;
        each_hash(grown, Grown::prefetch, hashes, done, |grown, key, hash| {
            if key == ahead {
                ahead += tally.make_way(grown, len - key);
            }
            tally.insert_grown(grown, hash)
        })
    }

    fn insert_unique_each(&mut self, hashes: impl Hashes, added: &mut [bool]) -> Result<(), Full> {
        assert_eq!(hashes.len(), added.len(), "one answer for each key");
        added.fill(false);
        let mut done = 0;
        if let Body::Built(table) = &mut self.body {
            match self.tally.insert_unique_each(table, hashes, added, &mut done) {
                Err(full) if self.tally.grows_instead(full) => {}
                result => return result,
            }
        }
        let (grown, tally) = self.start_to_grow()?;
        each_hash(grown, Grown::prefetch, hashes, done, |grown, key, hash| {
            added[key] = tally.insert_unique_grown(grown, hash)?;
            Ok(())
        })
    }

    fn remove_each(&mut self, hashes: impl Hashes, removed: &mut [bool]) {
        assert_eq!(hashes.len(), removed.len(), "one answer for each key");
        let tally = &mut self.tally;
        match &mut self.body {
            Body::Built(table) => {
                let Ok(()) = tally.remove_each(table, hashes, removed);
            }
            Body::Grown(grown) => {
                let Ok(()) = each_hash(grown, Grown::prefetch, hashes, 0, |grown, key, hash| {
                    removed[key] = tally.remove_grown(grown, hash);
                    Ok::<(), Infallible>(())
                });
            }
        }
    }
}

/// In the table that the filter was built with.
impl Tally<Counters> {
    /// Adds the keys in order.
    fn insert_each(&mut self, table: &mut Table<Buffer>, hashes: impl Hashes) -> Result<(), Full> {
        if self.can_plan_puts(table, hashes) {
            return self.put_planned(table, hashes, |tally, _, other| {
                let Some((at, places, i)) = other else { return Ok(()) };
                tally.add_one(at, places.fingerprints()[i], || places.get(i))
            });
        }
        each_insert(table, hashes, |at, _, places, i| {
            self.add_one(at, places.fingerprints()[i], || places.get(i))
        })
    }

    /// Adds those that are not there, in order; the first `done` keys are dealt with, after an error too.
    fn insert_unique_each(
        &mut self,
        table: &mut Table<Buffer>,
        hashes: impl Hashes,
        added: &mut [bool],
        done: &mut usize,
    ) -> Result<(), Full> {
        if self.can_plan_puts(table, hashes) {
            return self.put_planned(table, hashes, |tally, keys, other| {
                *done = keys.end;
                added[keys].fill(true);
                let Some((at, places, i)) = other else { return Ok(()) };
                added[*done] = tally.add_unique(at, places.fingerprints()[i], || places.get(i))?;
                *done += 1;
                Ok(())
            });
        }
        each_insert(table, hashes, |at, key, places, i| {
            added[key] = self.add_unique(at, places.fingerprints()[i], || places.get(i))?;
            *done += 1;
            Ok(())
        })
    }

    /// Takes out the keys in order: whether it did goes to `removed`.
    fn remove_each(
        &mut self,
        table: &mut Table<Buffer>,
        hashes: impl Hashes,
        removed: &mut [bool],
    ) -> Result<(), Infallible> {
        let fingerprint_bits = table.layout().fingerprint_bits();
        let take_one = |tally: &mut Self, at: At<'_>, places: &Places, i| {
            let (home, alternate) = places.buckets(i);
            tally.take_one(at, home.min(alternate), places.fingerprints()[i])
        };
        if !table.has_plans::<true>() {
            return each_change(table, hashes, |at, key, places, i| {
                removed[key] = take_one(self, at, places, i);
                Ok(())
            });
        }
        // A counted copy goes first.
        let is_not_counted = |tally: &Self, places: &Places, i| {
            !tally.counters.may_have(places.identity(i, fingerprint_bits))
        };
        each_planned::<true, _, _>((self, table), hashes, is_not_counted, |tally, keys, other| {
            tally.note_taken(keys.len() as u64);
            let key = keys.end;
            removed[keys].fill(true);
            if let Some((at, places, i)) = other {
                removed[key] = take_one(tally, at, places, i);
            }
            Ok(())
        })
    }

    /// Puts new keys in as [planned](each_planned), and counts them. `work` gets their numbers, and what was not planned.
    #[inline(always)]
    fn put_planned(
        &mut self,
        table: &mut Table<Buffer>,
        hashes: impl Hashes,
        mut work: impl FnMut(
            &mut Self,
            Range<usize>,
            Option<(At<'_>, &Places, usize)>,
        ) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let any = |_: &Self, _: &Places, _| true;
        each_planned::<false, _, _>((self, table), hashes, any, |tally, keys, other| {
            tally.note_new(keys.len() as u64);
            work(tally, keys, other)
        })
    }

    /// Whether blocks of new keys can be planned: each of them can be counted.
    fn can_plan_puts(&self, table: &Table<Buffer>, hashes: impl Hashes) -> bool {
        table.has_plans::<false>() && self.len.checked_add(hashes.len() as u64).is_some()
    }
}
