//! Batches: a walk over many keys in blocks of 64.
//!
//! One key after the other, a lookup waits for two cache misses each time. A walk locates a block
//! of keys in vector code and prefetches their buckets, while the caller works on the block
//! *before* it, whose buckets have arrived by then. The keys are prefetched a block ahead too:
//! without that, reading them took a quarter of a lookup. The walk needs two blocks of locations on
//! the stack, and no other memory.

use core::ops::{ControlFlow, Range};

use super::{Buckets, Candidates, Table, Words};
use crate::Key;
use crate::address::geometry::Locations;
use crate::address::hash::Route;
use crate::mem::prefetch::prefetch_many;
use crate::mem::vector::{BLOCK, InstructionSet};
use crate::packing::{Exact, Matching, Prefixed};

/// The addresses of many keys, worked out a block at a time.
///
/// A trait rather than a closure, since its methods are inlined into vector code through any number
/// of calls.
pub(crate) trait Hashes: Copy {
    /// How many there are.
    fn len(&self) -> usize;

    /// Writes those of this range.
    fn write(&self, range: Range<usize>, addresses: &mut [u64]);
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
    fn write(&self, range: Range<usize>, addresses: &mut [u64]) {
        prefetch_many(self.1, range.end, BLOCK);
        self.0.address_each(&self.1[range], addresses);
    }
}

/// Addresses as they are stored.
impl Hashes for &[u64] {
    #[inline(always)]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline(always)]
    fn write(&self, range: Range<usize>, addresses: &mut [u64]) {
        prefetch_many(self, range.end, BLOCK);
        addresses.copy_from_slice(&self[range]);
    }
}

/// The first of some addresses, so many of them.
#[derive(Clone, Copy)]
pub(crate) struct Until<H>(pub(crate) H, pub(crate) usize);

impl<H: Hashes> Hashes for Until<H> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.1
    }

    #[inline(always)]
    fn write(&self, range: Range<usize>, addresses: &mut [u64]) {
        self.0.write(range, addresses);
    }
}

/// The address of one key.
pub(crate) fn address_of(hashes: impl Hashes, key: usize) -> u64 {
    let mut address = [0];
    hashes.write(key..key + 1, &mut address);
    address[0]
}

/// Calls `visit` with the number and the address of each of these keys until it breaks.
pub(crate) fn each_address<B>(
    hashes: impl Hashes,
    keys: Range<usize>,
    mut visit: impl FnMut(usize, u64) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let (set, mut addresses) = (InstructionSet::best(), [0; BLOCK]);
    for start in keys.clone().step_by(BLOCK) {
        let block = &mut addresses[..keys.end.min(start + BLOCK) - start];
        set.run(
            #[inline(always)]
            || hashes.write(start..start + block.len(), block),
        );
        (start..).zip(block).try_for_each(|(key, address)| visit(key, *address))?;
    }
    ControlFlow::Continue(())
}

/// A block of keys: their locations, and how many there are.
pub(crate) struct Block {
    pub(crate) locations: Locations,
    pub(crate) len: usize,
}

impl Block {
    fn new() -> Self {
        Self { locations: Locations::new(), len: 0 }
    }

    /// Locates up to a block of the keys from number `start` on.
    #[inline]
    fn fill(
        &mut self,
        (set, table): (InstructionSet, &impl Buckets),
        start: usize,
        hashes: impl Hashes,
    ) {
        self.len = hashes.len().saturating_sub(start).min(BLOCK);
        let (len, keys) = (self.len, start..start + self.len);
        if len == 0 {
            return;
        }
        table.locate_many(
            set,
            #[inline(always)]
            |column| match len {
                // The length known at compile time makes vector code of the hash.
                BLOCK => hashes.write(keys, &mut column[..BLOCK]),
                _ => hashes.write(keys, &mut column[..len]),
            },
            &mut self.locations,
        );
    }
}

/// A walk over keys, in order.
pub(crate) struct Blocks<H> {
    set: InstructionSet,
    hashes: H,
    /// The number of the first key of the coming block.
    start: usize,
    ready: Block,
    coming: Block,
    /// Whether the blocks have changed their places.
    is_swapped: bool,
}

impl<H: Hashes> Blocks<H> {
    /// A walk that starts at key number `first`.
    pub(crate) fn new(table: &impl Buckets, hashes: H, first: usize) -> Self {
        let (set, mut coming) = (InstructionSet::best(), Block::new());
        coming.fill((set, table), first, hashes);
        for i in 0..coming.len {
            table.prefetch_both(&coming.locations, i);
        }
        Self { set, hashes, start: first, ready: Block::new(), coming, is_swapped: false }
    }

    /// The next block, the one after it, and the number of the first key. The buckets of the block
    /// were prefetched. For each of its keys, the caller prefetches those of one key of the coming
    /// block.
    #[inline]
    pub(crate) fn next(&mut self, table: &impl Buckets) -> Option<(&Block, &Block, usize)> {
        self.is_swapped = !self.is_swapped;
        let (ready, coming) = if self.is_swapped {
            (&mut self.coming, &mut self.ready)
        } else {
            (&mut self.ready, &mut self.coming)
        };
        if ready.len == 0 {
            return None;
        }
        let start = self.start;
        self.start += ready.len;
        coming.fill((self.set, table), self.start, self.hashes);
        Some((ready, coming, start))
    }
}

/// Whether an entry of `table` matches each of the keys.
pub(crate) fn contains_each<B: AsRef<[u8]>>(
    table: &Table<B>,
    hashes: impl Hashes,
    found: &mut [bool],
) {
    each_answer(table, hashes, |block, start, answers| {
        found[start..start + block.len].copy_from_slice(&answers[..block.len]);
    });
}

/// Calls `found` with the number of each key that slots of `table` match, in order, its buckets and
/// the slots.
pub(crate) fn each_candidate<B: AsRef<[u8]>>(
    table: &Table<B>,
    hashes: impl Hashes,
    mut found: impl FnMut(usize, [u64; 2], Candidates),
) {
    each_answer(table, hashes, |block, start, answers| {
        let [home_keys, other_keys] = if table.grows() {
            Prefixed::keys(&block.locations)
        } else {
            Exact::keys(&block.locations)
        };
        for i in (0..block.len).filter(|&i| answers[i]) {
            let (keys, (home, other)) = ([home_keys[i], other_keys[i]], block.locations.buckets(i));
            found(start + i, [home, other], table.candidates((home, other), keys));
        }
    });
}

/// Calls `work` with each block, the number of its first key, and whether entries match its keys.
#[inline(always)]
fn each_answer<B: AsRef<[u8]>>(
    table: &Table<B>,
    hashes: impl Hashes,
    mut work: impl FnMut(&Block, usize, &[bool; BLOCK]),
) {
    let (mut words, mut answers) = ([Words::new(), Words::new()], [false; BLOCK]);
    let mut blocks = Blocks::new(table, hashes, 0);
    let set = blocks.set;
    while let Some((ready, coming, start)) = blocks.next(table) {
        let locations = (&ready.locations, &coming.locations);
        table.contains_block(set, locations, &mut words, &mut answers);
        work(ready, start, &answers);
    }
}
