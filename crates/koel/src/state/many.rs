//! Batches: the changes of `insert.rs` and `value.rs` for many keys, in blocks of 64.
//!
//! The buckets of each key are prefetched a block ahead. Where it pays, the edits of a whole block
//! are planned in vector code (table/edits.rs). The bytes are those of single changes.

use core::convert::Infallible;
use core::ops::Range;

use super::{Reader, Writer};
use crate::address::geometry::Locations;
use crate::error::FullError;
use crate::mem::prefetch::prefetch;
use crate::mem::vector::BLOCK;
use crate::state::counters::{ReadCounters, WriteCounters};
use crate::table::blocks::{Blocks, Hashes};
use crate::table::{
    Addressing, BlockEdits, Buckets, Cuckoo, CuckooMut, LocationOf, PUTS, TAKES, grows,
};

/// Each key gets an entry.
const NEW: bool = true;
/// A key may have an entry, or get none.
const ANY: bool = false;
/// A growing table grows ahead of a batch of at least this many keys. With fewer keys there is
/// little to gain, and the bytes should not depend on how a stream is cut into slices.
const MANY: usize = 4096;

/// Values and changes are prefetched this many keys ahead. A processor that fetches buckets from
/// all over the table does not detect that these are read in order (docs/decisions/0007-maplet.md).
const VALUES_AHEAD: usize = BLOCK;

/// The buckets that a search will look at first are prefetched this many keys ahead.
const SEARCH_AHEAD: usize = 16;

/// Searches are prepared in tables of more bytes than this, which no cache holds. Tests prepare
/// them in small tables.
const CACHED: usize = if cfg!(test) { 1 << 10 } else { 16 << 20 };

impl<T: Cuckoo, C: ReadCounters> Reader<'_, T, C> {
    /// How often each key is in.
    pub(crate) fn count_each(self, hashes: impl Hashes, counts: &mut [u64]) {
        let table = self.table.table();
        let mut blocks = Blocks::new(table, hashes, 0);
        while let Some((ready, coming, start)) = blocks.next(table) {
            for i in 0..ready.len {
                table.prefetch_both(&coming.locations, i);
                counts[start + i] =
                    self.count(&table.geometry().locate_in_block(&ready.locations, i));
            }
        }
    }
}

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Calls `work` with each address from number `first` on.
    pub(crate) fn one_by_one<E>(
        self,
        hashes: impl Hashes,
        first: usize,
        mut work: impl FnMut(Writer<'_, T, C>, usize, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_key::<ANY, E>(hashes, first, |writer, key, locations, i| {
            work(writer, key, locations.address(i))
        })
    }

    /// Calls `work` with the number of each key, and its number in a block of locations. Where
    /// keys are `NEW`, the searches for room are prepared.
    #[inline(always)]
    fn each_key<const NEW: bool, E>(
        mut self,
        hashes: impl Hashes,
        first: usize,
        mut work: impl FnMut(Writer<'_, T, C>, usize, &Locations, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let table = self.table.table();
        let prepares = NEW && !grows::<T>() && table.bytes().len() > CACHED;
        let mut blocks = Blocks::new(table, hashes, first);
        while let Some((ready, coming, start)) = blocks.next(self.table.table()) {
            for i in 0..ready.len {
                let table = self.table.table();
                table.prefetch_both(&coming.locations, i);
                if prepares {
                    let ahead = if i + SEARCH_AHEAD < BLOCK { ready } else { coming };
                    let number = (i + SEARCH_AHEAD) % BLOCK;
                    table.prefetch_frontier(&self.locate(&ahead.locations, number));
                }
                work(self.reborrow(), start + i, &ready.locations, i)?;
            }
        }
        Ok(())
    }

    /// Plans the edits of each block, from key number `first` on. Calls `work` with the numbers of
    /// keys in a row whose edits were made as planned, and the location of the next key, whose edit
    /// is left to make, if there is one. Where `TAKES`, entries are taken out, otherwise put in.
    #[inline(always)]
    fn each_planned<const TAKES: bool, W, E>(
        mut self,
        hashes: impl Hashes,
        first: usize,
        mut work: W,
    ) -> Result<(), E>
    where
        W: FnMut(Writer<'_, T, C>, Range<usize>, Option<LocationOf<T>>) -> Result<(), E>,
    {
        let bits = self.layout().fingerprint_bits();
        let mut edits = BlockEdits::<TAKES>::new();
        let mut blocks = Blocks::new(self.table.table(), hashes, first);
        while let Some((ready, coming, start)) = blocks.next(self.table.table()) {
            let (len, ready) = (ready.len, &ready.locations);
            self.table.table().plan_edits(ready, &coming.locations, &mut edits);
            let mut next = 0;
            while next < len {
                // A counted copy is taken first.
                let counters = &self.state.counters;
                let wanted = |i| !TAKES || !counters.may_have(ready.identity(i, bits));
                let stop = self.table.table_mut().apply_edits(next..len, ready, &edits, wanted);
                let made = (stop - next) as u64;
                let change = |count: u64| if TAKES { count - made } else { count + made };
                self.state.len = change(self.state.len);
                self.state.entries = change(self.state.entries);
                let rest = (stop < len).then(|| self.locate(ready, stop));
                work(self.reborrow(), start + next..start + stop, rest)?;
                next = stop + 1;
            }
        }
        Ok(())
    }

    fn locate(&self, locations: &Locations, i: usize) -> LocationOf<T> {
        self.table.table().geometry().locate_in_block(locations, i)
    }

    /// Adds the keys from number `first` on; where `UNIQUE`, those that no entry matches. Calls
    /// `note` with the numbers of keys that were handled, and whether they were added.
    pub(crate) fn insert_each<const UNIQUE: bool>(
        self,
        hashes: impl Hashes,
        first: usize,
        mut note: impl FnMut(Range<usize>, bool),
    ) -> Result<(), FullError> {
        let len = hashes.len();
        let is_countable = self.state.len.checked_add(len as u64).is_some();
        if is_countable && self.table.table().plans_edits::<PUTS>() {
            return self.each_planned::<PUTS, _, _>(hashes, first, |writer, keys, next| {
                let key = keys.end;
                note(keys, true);
                if let Some(location) = next {
                    note(key..key + 1, writer.insert_at::<UNIQUE>(location)?);
                }
                Ok(())
            });
        }
        let grows_ahead = grows::<T>() && !UNIQUE && len >= MANY;
        let mut ahead = if grows_ahead { first } else { len };
        self.each_key::<NEW, _>(hashes, first, |mut writer, key, locations, i| {
            if key == ahead {
                ahead += writer.make_way(len - key);
            }
            let location = writer.locate(locations, i);
            note(key..key + 1, writer.insert_at::<UNIQUE>(location)?);
            Ok(())
        })
    }

    /// Takes out the keys from number `first` on, and writes to `removed` whether each was taken
    /// out.
    pub(crate) fn remove_each(self, hashes: impl Hashes, first: usize, removed: &mut [bool]) {
        let Ok(()) = if self.table.table().plans_edits::<TAKES>() {
            self.each_planned::<TAKES, _, _>(hashes, first, |writer, keys, next| {
                let key = keys.end;
                removed[keys].fill(true);
                if let Some(location) = next {
                    removed[key] = writer.remove_at(location, 0);
                }
                Ok::<(), Infallible>(())
            })
        } else {
            self.each_key::<ANY, _>(hashes, first, |writer, key, locations, i| {
                let location = writer.locate(locations, i);
                removed[key] = writer.remove_at(location, 0);
                Ok(())
            })
        };
    }

    /// Adds the pairs of the keys and these values.
    pub(crate) fn insert_pairs(
        mut self,
        hashes: impl Hashes,
        values: &[u64],
    ) -> Result<(), FullError> {
        // Each pair takes a slot, which is found sooner in a table that is less full.
        if values.len() >= MANY {
            self.keep_load(values.len() as u64);
        }
        self.each_key::<NEW, _>(hashes, 0, |writer, key, locations, i| {
            prefetch(values, key + VALUES_AHEAD);
            let location = writer.locate(locations, i);
            writer.insert_pair_at(location, values[key])
        })
    }

    /// Changes values of the keys, and writes to `replaced` whether each was changed.
    pub(crate) fn replace_each(
        self,
        hashes: impl Hashes,
        changes: &[(u64, u64)],
        replaced: &mut [bool],
    ) {
        let largest = self.layout().largest_value();
        let Ok(()) = self.each_key::<ANY, _>(hashes, 0, |writer, key, locations, i| {
            prefetch(changes, key + VALUES_AHEAD);
            let location = writer.locate(locations, i);
            let (old, new) = changes[key];
            replaced[key] = old <= largest && writer.table.revalue(&location, old, new);
            Ok::<(), Infallible>(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CuckooFilter, Prefer};
    use alloc::vec::Vec;
    use testkit::keys::hashes;

    #[test]
    fn prepared_searches_find_the_paths_of_others() {
        let keys: Vec<u64> = hashes(1, 20_000).collect();
        for prefer in [Prefer::Fast, Prefer::Small] {
            for rate in [0.03, 0.002, 1e-6] {
                let builder = CuckooFilter::builder(20_000, rate).prefer(prefer);
                let (mut many, mut single) = (builder.build().unwrap(), builder.build().unwrap());
                assert!(many.size_in_bytes() > CACHED);
                many.insert_many(&keys).unwrap();
                keys.iter().for_each(|key| single.insert(key).unwrap());
                assert!(many == single, "{prefer:?}, {rate}");
            }
        }
    }
}
