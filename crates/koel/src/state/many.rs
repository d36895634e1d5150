//! Many keys at once: the changes of `insert.rs` and `value.rs`, block by block.
//!
//! A growing table takes one key after the other, with its buckets prefetched a block ahead. In a
//! table of one size the buckets of a block are known beforehand, and where it pays, a whole block
//! of changes is worked out in vector code (table/plans.rs). The bytes are those of single changes.

use core::convert::Infallible;
use core::ops::Range;

use super::{Reader, State, Writer};
use crate::address::geometry::Locations;
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::mem::vector::BLOCK;
use crate::state::counters::{ReadCounters, WriteCounters};
use crate::table::blocks::{Hashes, MANY, each_change, each_hash, each_insert, each_planned};
use crate::table::{BucketPairMut, Cuckoo, CuckooMut, Growing, Put, Removed, Table, Taken};

/// Values and changes are prefetched so many keys ahead: a processor that fetches buckets from all
/// over the table does not see by itself that they are read in order
/// (docs/decisions/0007-maplet.md).
const AHEAD: usize = BLOCK;

impl<T: Cuckoo, C: ReadCounters> Reader<'_, T, C> {
    /// How often each key is in.
    pub(crate) fn count_each(mut self, hashes: impl Hashes, counts: &mut [u64]) {
        let prefetch = |reader: &Self, hash| reader.table.table().prefetch_key(hash);
        let Ok(()) = each_hash(&mut self, prefetch, hashes, 0, |reader, key, hash| {
            counts[key] = reader.count_key(hash);
            Ok::<(), Infallible>(())
        });
    }
}

impl<T: CuckooMut, C: WriteCounters> Writer<'_, T, C> {
    /// Calls `work` with each hash from number `first` on.
    pub(crate) fn one_by_one<E>(
        mut self,
        hashes: impl Hashes,
        first: usize,
        mut work: impl FnMut(Writer<'_, T, C>, usize, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let prefetch = |writer: &Self, hash| writer.table.table().prefetch_key(hash);
        each_hash(&mut self, prefetch, hashes, first, |writer, key, hash| {
            work(writer.reborrow(), key, hash)
        })
    }
}

/// A table in which many keys are changed, in order: one by one, unless it knows better.
pub(crate) trait Batched: CuckooMut + Sized {
    /// Adds the keys from number `first` on; where `UNIQUE`, those that no entry matches. Calls
    /// `note` with the numbers of keys that are dealt with, and whether they were added.
    fn insert_each<const UNIQUE: bool, C: WriteCounters>(
        writer: Writer<'_, Self, C>,
        hashes: impl Hashes,
        first: usize,
        mut note: impl FnMut(Range<usize>, bool),
    ) -> Result<(), FullError> {
        let len = hashes.len();
        let mut ahead = if UNIQUE || len < MANY { len } else { first };
        writer.one_by_one(hashes, first, |mut writer, key, hash| {
            if key == ahead {
                ahead += writer.make_way(len - key);
            }
            note(key..key + 1, writer.insert::<UNIQUE>(hash)?);
            Ok(())
        })
    }

    /// Takes out the keys: whether it did goes to `removed`.
    fn remove_each<C: WriteCounters>(
        writer: Writer<'_, Self, C>,
        hashes: impl Hashes,
        removed: &mut [bool],
    ) {
        let Ok(()) = writer.one_by_one(hashes, 0, |writer, key, hash| {
            removed[key] = writer.remove(hash, 0);
            Ok::<(), Infallible>(())
        });
    }

    /// Adds the pairs of the keys and these values.
    fn insert_pairs<C: WriteCounters>(
        mut writer: Writer<'_, Self, C>,
        hashes: impl Hashes,
        values: &[u64],
    ) -> Result<(), FullError> {
        // Each takes a slot. In a table that is less full it is found sooner.
        if values.len() >= MANY {
            writer.keep_load(values.len() as u64);
        }
        writer.one_by_one(hashes, 0, |writer, key, hash| writer.insert_pair(hash, values[key]))
    }

    /// Changes values of the keys: whether it did goes to `replaced`.
    fn replace_each<C: WriteCounters>(
        writer: Writer<'_, Self, C>,
        hashes: impl Hashes,
        changes: &[(u64, u64)],
        replaced: &mut [bool],
    ) {
        let largest = writer.layout().largest_value();
        let Ok(()) = writer.one_by_one(hashes, 0, |writer, key, hash| {
            replaced[key] = changes[key].0 <= largest && writer.replace(hash, changes[key]);
            Ok::<(), Infallible>(())
        });
    }
}

impl Batched for Growing<Buffer> {}

impl Batched for Table<Buffer> {
    fn insert_each<const UNIQUE: bool, C: WriteCounters>(
        writer: Writer<'_, Self, C>,
        hashes: impl Hashes,
        first: usize,
        mut note: impl FnMut(Range<usize>, bool),
    ) -> Result<(), FullError> {
        let Writer { table, state } = writer;
        if state.len.checked_add(hashes.len() as u64).is_none() {
            // Each is looked at whether it can be counted.
            return Writer { table, state }.one_by_one(hashes, first, |writer, key, hash| {
                note(key..key + 1, writer.insert::<UNIQUE>(hash)?);
                Ok(())
            });
        }
        if !table.has_plans::<false>() {
            return each_insert(table, hashes, |at, key, locations, i| {
                note(key..key + 1, state.insert_at::<UNIQUE>(at, locations, i)?);
                Ok(())
            });
        }
        let any = |_: &State<C>, _: &Locations, _| true;
        each_planned::<false, _, _>((state, table), hashes, any, |state, keys, other| {
            state.len += keys.len() as u64;
            state.entries += keys.len() as u64;
            let key = keys.end;
            note(keys, true);
            if let Some((at, locations, i)) = other {
                note(key..key + 1, state.insert_at::<UNIQUE>(at, locations, i)?);
            }
            Ok(())
        })
    }

    fn remove_each<C: WriteCounters>(
        Writer { table, state }: Writer<'_, Self, C>,
        hashes: impl Hashes,
        removed: &mut [bool],
    ) {
        let bits = table.layout().fingerprint_bits();
        let remove_at = |state: &mut State<C>, at: BucketPairMut<'_>, locations: &Locations, i| {
            state.remove_at(at, locations.identity(i, bits), locations.fingerprints()[i])
        };
        if !table.has_plans::<true>() {
            let Ok(()) = each_change(table, hashes, |at, key, locations, i| {
                removed[key] = remove_at(state, at, locations, i);
                Ok::<(), Infallible>(())
            });
            return;
        }
        // A counted copy goes first.
        let is_not_counted = |state: &State<C>, locations: &Locations, i| {
            !state.counters.may_have(locations.identity(i, bits))
        };
        let target = (state, table);
        let Ok(()) =
            each_planned::<true, _, _>(target, hashes, is_not_counted, |state, keys, other| {
                state.len -= keys.len() as u64;
                state.entries -= keys.len() as u64;
                let key = keys.end;
                removed[keys].fill(true);
                if let Some((at, locations, i)) = other {
                    removed[key] = remove_at(state, at, locations, i);
                }
                Ok::<(), Infallible>(())
            });
    }

    fn insert_pairs<C: WriteCounters>(
        Writer { table, state }: Writer<'_, Self, C>,
        hashes: impl Hashes,
        values: &[u64],
    ) -> Result<(), FullError> {
        let layout = table.layout();
        each_insert(table, hashes, |mut at, key, locations, i| {
            prefetch(values, key + AHEAD);
            let value = values[key];
            if at.put(layout.slot(locations.fingerprints()[i], value), u64::MAX) != Put::Done {
                let writer = Writer { table: at.into_table(), state };
                return writer.insert_refused_pair(locations.get(i), value);
            }
            state.len += 1;
            state.entries += 1;
            Ok(())
        })
    }

    fn replace_each<C: WriteCounters>(
        Writer { table, .. }: Writer<'_, Self, C>,
        hashes: impl Hashes,
        changes: &[(u64, u64)],
        replaced: &mut [bool],
    ) {
        let layout = table.layout();
        let Ok(()) = each_change(table, hashes, |mut at, key, locations, i| {
            prefetch(changes, key + AHEAD);
            let (old, new) = changes[key];
            let slot = |value| layout.slot(locations.fingerprints()[i], value);
            replaced[key] = old <= layout.largest_value()
                && at.exchange(slot(old), slot(new)) != Taken::Nothing;
            Ok::<(), Infallible>(())
        });
    }
}

/// In a table of one size, of which the buckets of a key are at hand. That each key can be counted
/// is known.
impl<C: WriteCounters> State<C> {
    /// Adds a copy of the entry of place `i`; where `UNIQUE`, unless it is there.
    #[inline(always)]
    fn insert_at<const UNIQUE: bool>(
        &mut self,
        mut at: BucketPairMut<'_>,
        locations: &Locations,
        i: usize,
    ) -> Result<bool, FullError> {
        match at.put(locations.fingerprints()[i], 0) {
            Put::Done => {
                self.len += 1;
                self.entries += 1;
                Ok(true)
            }
            Put::Repeated(_) if UNIQUE => Ok(false),
            refused => {
                let writer = Writer { table: at.into_table(), state: self };
                writer.insert_refused(locations.get(i), refused).map(|()| true)
            }
        }
    }

    /// Takes out one copy of an entry of this name.
    #[inline(always)]
    fn remove_at(&mut self, mut at: BucketPairMut<'_>, name: u64, fingerprint: u64) -> bool {
        let removed =
            if self.counters.take(name) { Removed::Counted } else { at.take(fingerprint).into() };
        Writer { table: at.into_table(), state: self }.note_removed(removed)
    }
}
