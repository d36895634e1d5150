//! Batches: the changes of `edit.rs` and `value.rs` for many keys, in blocks of 64.
//!
//! The buckets of each key are prefetched a block ahead. Where it pays, the edits of a whole block
//! are planned in vector code (table/edits.rs). The bytes are those of single changes.

use core::convert::Infallible;
use core::ops::Range;

use super::Body;
use crate::address::geometry::{Location, Locations};
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::mem::vector::BLOCK;
use crate::table::blocks::{Blocks, Hashes};
use crate::table::{BlockEdits, Buckets, PUTS, Place, TAKES, at_place};

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

impl<B: AsRef<[u8]>> Body<B> {
    /// How often each key is in.
    pub(crate) fn count_each(&self, hashes: impl Hashes, counts: &mut [u64]) {
        at_place!(self.table, P => self.count_each_at::<P>(hashes, counts));
    }

    fn count_each_at<P: Place>(&self, hashes: impl Hashes, counts: &mut [u64]) {
        let table = &self.table;
        let mut blocks = Blocks::new(table, hashes, 0);
        while let Some((ready, coming, start)) = blocks.next(table) {
            for i in 0..ready.len {
                table.prefetch_both(&coming.locations, i);
                let at = P::in_block(table.addresses(), &ready.locations, i);
                counts[start + i] = self.count_at(&at);
            }
        }
    }
}

impl Body<Buffer> {
    /// Calls `work` with each address from number `first` on.
    pub(crate) fn one_by_one<E>(
        &mut self,
        hashes: impl Hashes,
        first: usize,
        mut work: impl FnMut(&mut Self, usize, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_key::<ANY, E>(hashes, first, |body, key, locations, i| {
            work(body, key, locations.address(i))
        })
    }

    /// Calls `work` with the number of each key, and its number in a block of locations. Where
    /// keys are `NEW`, the searches for room are prepared.
    #[inline(always)]
    fn each_key<const NEW: bool, E>(
        &mut self,
        hashes: impl Hashes,
        first: usize,
        mut work: impl FnMut(&mut Self, usize, &Locations, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let prepares = NEW && !self.table.grows() && self.table.bytes().len() > CACHED;
        let mut blocks = Blocks::new(&self.table, hashes, first);
        while let Some((ready, coming, start)) = blocks.next(&self.table) {
            for i in 0..ready.len {
                let table = &self.table;
                table.prefetch_both(&coming.locations, i);
                if prepares {
                    let ahead = if i + SEARCH_AHEAD < BLOCK { ready } else { coming };
                    let number = (i + SEARCH_AHEAD) % BLOCK;
                    table.prefetch_frontier(&ahead.locations.get(number));
                }
                work(self, start + i, &ready.locations, i)?;
            }
        }
        Ok(())
    }

    /// Plans the edits of each block, from key number `first` on. Calls `work` with the numbers of
    /// keys in a row whose edits were made as planned, and the location of the next key, whose edit
    /// is left to make, if there is one. Where `TAKES`, entries are taken out, otherwise put in.
    #[inline(always)]
    fn each_planned<const TAKES: bool, W, E>(
        &mut self,
        hashes: impl Hashes,
        first: usize,
        mut work: W,
    ) -> Result<(), E>
    where
        W: FnMut(&mut Self, Range<usize>, Option<Location>) -> Result<(), E>,
    {
        let (geometry, mut edits) = (self.table.base().clone(), BlockEdits::<TAKES>::new());
        let mut blocks = Blocks::new(&self.table, hashes, first);
        while let Some((ready, coming, start)) = blocks.next(&self.table) {
            let (len, ready) = (ready.len, &ready.locations);
            self.table.plan_edits(ready, &coming.locations, &mut edits);
            let mut next = 0;
            while next < len {
                // A counted copy is taken first.
                let counters = &self.state.side.counters;
                let has_none = |i| !counters.may_have(ready.name(i, &geometry));
                let stop = if TAKES && counters.len() > 0 {
                    self.table.apply_edits(next..len, ready, &edits, has_none)
                } else {
                    self.table.apply_edits(next..len, ready, &edits, |_| true)
                };
                let made = (stop - next) as u64;
                let change = |count: u64| if TAKES { count - made } else { count + made };
                self.state.len = change(self.state.len);
                self.state.entries = change(self.state.entries);
                let rest = (stop < len).then(|| ready.get(stop));
                work(self, start + next..start + stop, rest)?;
                next = stop + 1;
            }
        }
        Ok(())
    }

    /// Adds the keys from number `first` on; where `UNIQUE`, those that no entry matches. Calls
    /// `note` with the numbers of keys that were handled, and whether they were added.
    pub(crate) fn insert_each_in_table<const UNIQUE: bool>(
        &mut self,
        hashes: impl Hashes,
        first: usize,
        mut note: impl FnMut(Range<usize>, bool),
    ) -> Result<(), FullError> {
        let len = hashes.len();
        let is_countable = self.state.len.checked_add(len as u64).is_some();
        if is_countable && self.table.plans_edits::<PUTS>() {
            return self.each_planned::<PUTS, _, _>(hashes, first, |body, keys, next| {
                let key = keys.end;
                note(keys, true);
                if let Some(at) = next {
                    note(key..key + 1, body.insert_at::<UNIQUE>(at)?);
                }
                Ok(())
            });
        }
        let grows_ahead = self.table.grows() && !UNIQUE && len >= MANY;
        let mut ahead = if grows_ahead { first } else { len };
        at_place!(self.table, P => self.each_key::<NEW, _>(hashes, first, |body, key, block, i| {
            if key == ahead {
                ahead += body.make_way(len - key);
            }
            let at = P::in_block(body.table.addresses(), block, i);
            note(key..key + 1, body.insert_at::<UNIQUE>(at)?);
            Ok(())
        }))
    }

    /// Takes out the keys from number `first` on, and writes to `removed` whether each was taken
    /// out.
    pub(crate) fn remove_each_from_table(
        &mut self,
        hashes: impl Hashes,
        first: usize,
        removed: &mut [bool],
    ) {
        let Ok(()) = if self.table.plans_edits::<TAKES>() {
            self.each_planned::<TAKES, _, _>(hashes, first, |body, keys, next| {
                let key = keys.end;
                removed[keys].fill(true);
                if let Some(at) = next {
                    removed[key] = body.remove_alone(at);
                }
                Ok::<(), Infallible>(())
            })
        } else {
            at_place!(self.table, P => self.each_key::<ANY, _>(hashes, first, |body, key, block, i| {
                let at = P::in_block(body.table.addresses(), block, i);
                removed[key] = body.remove_at(at, 0);
                Ok(())
            }))
        };
    }

    /// Takes out a key that was not planned. A function of its own, so that the loop over planned
    /// keys has the registers.
    #[inline(never)]
    fn remove_alone(&mut self, at: Location) -> bool {
        self.remove_at(at, 0)
    }

    /// Adds the pairs of the keys and these values.
    pub(crate) fn insert_pairs(
        &mut self,
        hashes: impl Hashes,
        values: &[u64],
    ) -> Result<(), FullError> {
        // Each pair takes a slot, which is found sooner in a table that is less full.
        if values.len() >= MANY {
            self.keep_load(values.len() as u64);
        }
        at_place!(self.table, P => self.each_key::<NEW, _>(hashes, 0, |body, key, block, i| {
            prefetch(values, key + VALUES_AHEAD);
            let at = P::in_block(body.table.addresses(), block, i);
            body.insert_pair_at(at, (block.address(i), values[key]))
        }))
    }

    /// Changes values of the keys, and writes to `replaced` whether each was changed.
    pub(crate) fn replace_each(
        &mut self,
        hashes: impl Hashes,
        changes: &[(u64, u64)],
        replaced: &mut [bool],
    ) {
        let largest = self.layout().largest_value();
        at_place!(self.table, P => {
            let Ok(()) = self.each_key::<ANY, _>(hashes, 0, |body, key, block, i| {
                prefetch(changes, key + VALUES_AHEAD);
                let at = P::in_block(body.table.addresses(), block, i);
                let is_value = changes[key].0 <= largest;
                replaced[key] =
                    is_value && body.replace_at(&at, block.address(i), changes[key]);
                Ok::<(), Infallible>(())
            });
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
