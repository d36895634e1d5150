//! Many keys at once: the walk that filters, maplets and filters of many threads share.
//!
//! One key after the other, a lookup waits for two cache misses each time. Here the hashes of a
//! block of 64 keys are turned into places by vector code and their buckets asked for, while the
//! block *before* it is worked on, whose buckets have arrived by then. The keys are asked for a
//! block ahead too: read from memory in their turn they took a quarter of a lookup. Two blocks of
//! places on the stack are all the memory it takes.

use core::convert::Infallible;
use core::mem;
use core::ops::Range;

use crate::Key;
use crate::address::geometry::Locations;
use crate::address::route::Route;
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch_many;
use crate::mem::vector::{BLOCK, Column, InstructionSet};
use crate::table::{Addressing, BlockEdits, BucketPairMut, Buckets, Candidates, Table, Words};

/// From so many keys on a table that grows does so ahead of them. With fewer there is little to
/// gain, and where a stream is cut into slices does not show in the bytes.
pub(crate) const MANY: usize = 4096;

/// Keys between a look at whether a key will have to search, and the search.
const AHEAD: usize = 16;

/// A table of so many bytes is near enough to the processor for its searches not to be prepared.
/// Tests prepare them in small ones.
const CACHED: usize = if cfg!(test) { 1 << 10 } else { 16 << 20 };

/// A block of keys: their places, and how many there are.
pub(crate) struct Block {
    pub(crate) locations: Locations,
    pub(crate) len: usize,
}

impl Block {
    fn new() -> Self {
        Self { locations: Locations::new(), len: 0 }
    }

    /// The places of up to a block of the keys from number `start` on.
    #[inline]
    fn fill(
        &mut self,
        (set, table): (InstructionSet, &impl Buckets),
        start: usize,
        hashes: impl Hashes,
    ) {
        self.len = hashes.len().saturating_sub(start).min(BLOCK);
        let keys = start..start + self.len;
        if self.len == BLOCK {
            // The length known at compile time makes vector code of the hash.
            table.locate_many(
                set,
                #[inline(always)]
                |column| hashes.write(keys, &mut column[..BLOCK]),
                &mut self.locations,
            );
        } else if self.len > 0 {
            let len = self.len;
            table.locate_many(
                set,
                |column| hashes.write(keys, &mut column[..len]),
                &mut self.locations,
            );
        }
    }
}

/// Hands the places of the keys to `work`, a block at a time and in order: the table, the block,
/// the coming one, and the number of the first key. The buckets have been asked for; `work` asks
/// for those of the coming block, one place beside each of its own.
pub(crate) fn in_blocks<B: Buckets, E>(
    table: &mut B,
    hashes: impl Hashes,
    mut work: impl FnMut(&mut B, &Block, &Block, usize) -> Result<(), E>,
) -> Result<(), E> {
    let set = InstructionSet::best();
    let mut blocks = (Block::new(), Block::new());
    let (mut ready, mut coming) = (&mut blocks.0, &mut blocks.1);
    let mut start = 0;
    ready.fill((set, table), start, hashes);
    for i in 0..ready.len {
        table.prefetch_both(&ready.locations, i);
    }
    while ready.len > 0 {
        let next = start + ready.len;
        coming.fill((set, table), next, hashes);
        work(table, ready, coming, start)?;
        start = next;
        mem::swap(&mut ready, &mut coming);
    }
    Ok(())
}

/// Hands the places of the keys to `work` one by one and in order: the table, the number of the
/// key, and its place in a block.
#[cfg(all(feature = "std", target_has_atomic = "64"))]
#[inline(always)]
pub(crate) fn each_location<B: Buckets, E>(
    table: &mut B,
    hashes: impl Hashes,
    mut work: impl FnMut(&mut B, usize, &Locations, usize) -> Result<(), E>,
) -> Result<(), E> {
    in_blocks(table, hashes, |table, ready, coming, start| {
        for i in 0..ready.len {
            table.prefetch_both(&coming.locations, i);
            work(table, start + i, &ready.locations, i)?;
        }
        Ok(())
    })
}

/// Hands the buckets of the keys, which are to be changed, to `work` one by one and in order: with
/// the number of the key, and its place in a block.
#[inline(always)]
pub(crate) fn each_change<E>(
    table: &mut Table<Buffer>,
    hashes: impl Hashes,
    mut work: impl FnMut(BucketPairMut<'_>, usize, &Locations, usize) -> Result<(), E>,
) -> Result<(), E> {
    in_blocks(table, hashes, |table, ready, coming, start| {
        let mut each = table.at_each(&ready.locations);
        for i in 0..ready.len {
            each.table().prefetch_both(&coming.locations, i);
            work(each.get(i), start + i, &ready.locations, i)?;
        }
        Ok(())
    })
}

/// [`each_change`] for inserts: where both buckets of a key are full, those that its search will
/// look at first are asked for [`AHEAD`] keys before its turn.
#[inline(always)]
pub(crate) fn each_insert<E>(
    table: &mut Table<Buffer>,
    hashes: impl Hashes,
    mut work: impl FnMut(BucketPairMut<'_>, usize, &Locations, usize) -> Result<(), E>,
) -> Result<(), E> {
    let is_large = table.bytes().len() > CACHED;
    in_blocks(table, hashes, |table, ready, coming, start| {
        let mut each = table.at_each(&ready.locations);
        for i in 0..ready.len {
            each.table().prefetch_both(&coming.locations, i);
            if is_large {
                let ahead = if i + AHEAD < BLOCK { ready } else { coming };
                each.table().prefetch_frontier(&ahead.locations, (i + AHEAD) % BLOCK);
            }
            work(each.get(i), start + i, &ready.locations, i)?;
        }
        Ok(())
    })
}

/// [`each_change`] for a table in which blocks of changes [are planned](Table::has_plans), of
/// entries that are fingerprints, all put in or, where `TAKES`, taken out: those that `may` be as
/// planned, and whose plan holds. `work` is told the numbers of keys in a row that were, and gets
/// the buckets of the one after them, which was not, if there is one. Both are lent the `target`.
#[inline(always)]
pub(crate) fn each_planned<const TAKES: bool, T, E>(
    (target, table): (&mut T, &mut Table<Buffer>),
    hashes: impl Hashes,
    may: impl Fn(&T, &Locations, usize) -> bool,
    mut work: impl FnMut(
        &mut T,
        Range<usize>,
        Option<(BucketPairMut<'_>, &Locations, usize)>,
    ) -> Result<(), E>,
) -> Result<(), E> {
    let (set, mut plans) = (InstructionSet::best(), BlockEdits::<TAKES>::new());
    in_blocks(table, hashes, |table, ready, coming, start| {
        let mut each = table.at_each(&ready.locations);
        each.plan(set, &coming.locations, &mut plans);
        let mut next = 0;
        while next < ready.len {
            let wanted = |i| may(target, &ready.locations, i);
            let stop = each.carry_out(next..ready.len, &plans, wanted);
            let rest = (stop < ready.len).then(|| (each.get(stop), &ready.locations, stop));
            work(target, start + next..start + stop, rest)?;
            next = stop + 1;
        }
        Ok(())
    })
}

/// Whether an entry of `table` matches each of the keys.
pub(crate) fn contains_each<B: AsRef<[u8]>, A: Addressing>(
    mut table: &Table<B, A>,
    hashes: impl Hashes,
    found: &mut [bool],
) {
    let set = InstructionSet::best();
    let (mut words, mut answers) = ([Words::new(), Words::new()], [false; BLOCK]);
    let work = |table: &mut &Table<B, A>, ready: &Block, coming: &Block, start: usize| {
        let locations = (&ready.locations, &coming.locations);
        table.contains_block(set, locations, &mut words, &mut answers);
        found[start..start + ready.len].copy_from_slice(&answers[..ready.len]);
        Ok::<(), Infallible>(())
    };
    let Ok(()) = in_blocks(&mut table, hashes, work);
}

/// Passes the slots of `table` that match a key to `found`, for each key that has any, in order.
pub(crate) fn each_candidate<B: AsRef<[u8]>, A: Addressing>(
    mut table: &Table<B, A>,
    hashes: impl Hashes,
    mut found: impl FnMut(usize, Candidates),
) {
    let set = InstructionSet::best();
    let (mut words, mut answers) = ([Words::new(), Words::new()], [false; BLOCK]);
    let work = |table: &mut &Table<B, A>, ready: &Block, coming: &Block, start: usize| {
        table.contains_block(set, (&ready.locations, &coming.locations), &mut words, &mut answers);
        for i in (0..ready.len).filter(|&i| answers[i]) {
            let slots = table.candidates(ready.locations.buckets(i), A::keys(&ready.locations, i));
            found(start + i, slots);
        }
        Ok::<(), Infallible>(())
    };
    let Ok(()) = in_blocks(&mut table, hashes, work);
}

/// The addresses of many keys, worked out a block at a time: from the keys, or as they are stored.
///
/// A trait rather than a closure, since its methods are inlined into vector code through any number
/// of calls.
pub(crate) trait Hashes: Copy {
    /// How many there are.
    fn len(&self) -> usize;

    /// Writes those of this range.
    fn write(&self, range: Range<usize>, hashes: &mut [u64]);
}

/// Keys whose addresses are worked out when they are needed.
pub(crate) struct Hashed<'a, K>(pub(crate) Route, pub(crate) &'a [K]);

/// Not derived: a derived implementation would require that keys are `Clone`.
impl<K> Clone for Hashed<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Hashed<'_, K> {}

impl<K: Key> Hashes for Hashed<'_, K> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.1.len()
    }

    #[inline(always)]
    fn write(&self, range: Range<usize>, hashes: &mut [u64]) {
        prefetch_many(self.1, range.end, BLOCK);
        self.0.address_each(&self.1[range], hashes);
    }
}

/// Addresses as they are stored.
impl Hashes for &[u64] {
    #[inline(always)]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline(always)]
    fn write(&self, range: Range<usize>, hashes: &mut [u64]) {
        prefetch_many(self, range.end, BLOCK);
        hashes.copy_from_slice(&self[range]);
    }
}

/// Hands the hashes from number `first` on to `work`, one by one and in order, for a table that may
/// grow meanwhile, so that places would not stay what they are. `prefetch` is called for each a
/// block before.
pub(crate) fn each_hash<T, E>(
    target: &mut T,
    prefetch: impl Fn(&T, u64),
    hashes: impl Hashes,
    first: usize,
    mut work: impl FnMut(&mut T, usize, u64) -> Result<(), E>,
) -> Result<(), E> {
    let len = hashes.len();
    let fill = |target: &T, block: &mut Column, start: usize| {
        let block = &mut block[..len.saturating_sub(start).min(BLOCK)];
        if !block.is_empty() {
            hashes.write(start..start + block.len(), block);
            block.iter().for_each(|&hash| prefetch(target, hash));
        }
    };
    let (mut ready, mut coming) = ([0; BLOCK], [0; BLOCK]);
    fill(target, &mut ready, first);
    for start in (first..len).step_by(BLOCK) {
        fill(target, &mut coming, start + BLOCK);
        for (i, &hash) in (start..len).zip(&ready) {
            work(target, i, hash)?;
        }
        mem::swap(&mut ready, &mut coming);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CuckooFilter, Prefer};
    use alloc::vec::Vec;
    use testkit::keys::hashes;

    #[test]
    fn searches_that_are_prepared_find_what_others_find() {
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
