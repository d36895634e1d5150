//! Keys divided by the segment of the table that they belong to, and one segment filled after the
//! other.
//!
//! Both buckets of a key are in one segment, which the top bits of its address name. A [`Division`]
//! sorts a block of keys by these bits: it counts the keys of each segment, then puts each key in
//! its place, so that every segment has its keys in order. Bulk builds and pieces divide all their
//! keys (filter/parts.rs). Here, each segment of a table gets those of a block while the cache
//! holds it.
//!
//! The bytes are those of single inserts: keys of different segments never meet, and each segment
//! gets its keys in order. That is so as long as no rule looks at the table as a whole. So this is
//! done only where there are no second copies and no counters, and room for all keys.
//!
//! Cost: 5 MiB of memory until it returns. Takes a fifth off the time of ten million inserts
//! (docs/decisions/0029-python.md).

use alloc::vec::Vec;
use core::ops::Range;

use bytemuck::allocation::try_zeroed_vec;

use super::Body;
use crate::mem::buffer::Buffer;
use crate::mem::vector::{BLOCK, InstructionSet};
use crate::state::edit::UNIQUE;
use crate::table::blocks::Hashes;

/// Keys that are divided at once: several for each cache line of some segments.
pub(crate) const PART: usize = if cfg!(test) { 1 << 9 } else { 1 << 18 };
/// With fewer keys for each segment, most of its cache lines would be loaded for one key.
const FEW: usize = if cfg!(test) { 8 } else { 1 << 12 };

/// Divides a block of keys among segments.
pub(crate) struct Division {
    segment_bits: u32,
    /// The addresses in the order of the keys.
    addresses: Vec<u64>,
    /// Where the keys of each segment end.
    pub(crate) ends: Vec<u32>,
}

impl Division {
    /// Room for blocks of so many keys; `None` if there is no memory for it.
    pub(crate) fn new(keys: usize, segment_bits: u32) -> Option<Self> {
        let segments = 1_usize.checked_shl(segment_bits)?;
        let (addresses, ends) = (try_zeroed_vec(keys).ok()?, try_zeroed_vec(segments).ok()?);
        Some(Self { segment_bits, addresses, ends })
    }

    /// Calls `put` with the place that each of these keys gets among them, its number among them,
    /// and its address.
    pub(crate) fn divide(
        &mut self,
        hashes: impl Hashes,
        keys: Range<usize>,
        mut put: impl FnMut(usize, u32, u64),
    ) {
        let Self { segment_bits, addresses, ends } = self;
        let addresses = &mut addresses[..keys.len()];
        let set = InstructionSet::best();
        for (start, column) in keys.step_by(BLOCK).zip(addresses.chunks_mut(BLOCK)) {
            set.run(
                #[inline(always)]
                || hashes.write(start..start + column.len(), column),
            );
        }
        // One segment has no bits.
        let rest = u64::BITS - 1 - *segment_bits;
        let segment = |address: u64| (address >> 1 >> rest) as usize;
        ends.fill(0);
        for &address in &*addresses {
            ends[segment(address)] += 1;
        }
        let mut sum = 0;
        for end in &mut *ends {
            sum += core::mem::replace(end, sum);
        }
        // Each is now where its segment starts, and moves to where it ends.
        for (number, &address) in (0..).zip(&*addresses) {
            let end = &mut ends[segment(address)];
            put(*end as usize, number, address);
            *end += 1;
        }
    }
}

impl Body<Buffer> {
    /// Adds the first keys, as many as it pays for, unless an entry matches them. Notes in `added`
    /// which were added, and returns the number of keys for which that is done.
    ///
    /// If a segment has no room, some keys beyond that number are in, and noted.
    pub(super) fn insert_by_segment(&mut self, hashes: impl Hashes, added: &mut [bool]) -> usize {
        let mut done = 0;
        // Without room or memory, the other keys are inserted in their order.
        let _ = self.insert_blocks(hashes, added, &mut done);
        done
    }

    /// Adds a block of keys after the other, as long as there is room and memory.
    fn insert_blocks(
        &mut self,
        hashes: impl Hashes,
        added: &mut [bool],
        done: &mut usize,
    ) -> Option<()> {
        let (len, segment_bits) = (hashes.len(), self.divisible(hashes.len())?);
        let mut division = Division::new(len.min(PART), segment_bits)?;
        let mut sorted: Vec<u64> = try_zeroed_vec(len.min(PART)).ok()?;
        let mut numbers: Vec<u32> = try_zeroed_vec(len.min(PART)).ok()?;
        while len - *done >= FEW << segment_bits {
            let keys = *done..len.min(*done + PART);
            division.divide(hashes, keys.clone(), |place, number, address| {
                (sorted[place], numbers[place]) = (address, number);
            });
            let (mut start, added) = (0, &mut added[keys.clone()]);
            for &end in &division.ends {
                let run = start..end as usize;
                start = run.end;
                let (addresses, numbers) = (&sorted[run.clone()], &numbers[run]);
                let note = |keys: Range<usize>, is_new| {
                    for &number in &numbers[keys] {
                        added[number as usize] |= is_new;
                    }
                };
                self.insert_each_in_table::<UNIQUE>(addresses, 0, note).ok()?;
            }
            *done = keys.end;
        }
        Some(())
    }

    /// The number of bits that name a segment, if so many new keys may come segment by segment.
    fn divisible(&self, keys: usize) -> Option<u32> {
        let state = &self.state;
        let segment_bits = self.table.base().segment_bits();
        let has_copies = state.spares > 0 || state.side.counters.len() > 0;
        let has_room = state.entries.checked_add(keys as u64)? <= state.profile.capacity;
        let is_large = !self.table.grows()
            && segment_bits > 0
            && segment_bits < 16
            && FEW << segment_bits <= PART;
        (is_large && has_room && !has_copies).then_some(segment_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::shape::Shape;
    use crate::{CuckooFilter, Prefer};
    use alloc::vec;
    use testkit::keys::hashes;

    /// Two empty filters for 4,000 keys in small segments, with a quarter more slots.
    fn filters(prefer: Prefer, rate: f64, segment_bits: u32) -> [CuckooFilter; 2] {
        let plain = CuckooFilter::builder(4000, rate).prefer(prefer).build().unwrap();
        let shape = plain.body.shape();
        let segment_buckets = (1250 >> segment_bits) + 1;
        let shape = Shape { segment_bits, segment_buckets, ..shape };
        let empty = || CuckooFilter::empty(shape, plain.body.state.profile).unwrap();
        [empty(), empty()]
    }

    #[test]
    fn the_bytes_and_answers_are_those_of_single_inserts() {
        // Odd keys come twice.
        let copies = |key: u64| if key.is_multiple_of(2) { 1 } else { 2 };
        let keys: Vec<u64> = hashes(1, 3000).flat_map(|key| vec![key; copies(key)]).collect();
        for prefer in [Prefer::Fast, Prefer::Small] {
            for (rate, segment_bits) in [(0.03, 1), (0.002, 3), (1e-6, 5)] {
                let [mut many, mut single] = filters(prefer, rate, segment_bits);
                let mut added = vec![false; 4000];
                let hashed = many.body.hashed(&keys[..4000]);
                let done = many.body.insert_by_segment(hashed, &mut added);
                assert!(done > 4000 - PART - (FEW << segment_bits), "{done}");
                for (key, &is_new) in keys[..done].iter().zip(&added) {
                    assert_eq!(single.insert_unique(key).unwrap(), is_new);
                }
                assert!(many == single, "{prefer:?}, {rate}");
                assert!(added[done..].iter().all(|&is_new| !is_new));
            }
        }
    }

    #[test]
    fn tables_with_copies_or_without_room_get_keys_in_order() {
        let keys: Vec<u64> = hashes(2, 4000).collect();
        let done = |prepare: &dyn Fn(&mut CuckooFilter), count: usize| {
            let [mut filter, _] = filters(Prefer::Fast, 0.002, 2);
            prepare(&mut filter);
            let hashed = filter.body.hashed(&keys[..count]);
            filter.body.insert_by_segment(hashed, &mut vec![false; count])
        };
        assert_eq!(done(&|_| (), 4000), 4000);
        assert_eq!(done(&|_| (), 31), 0);
        assert_eq!(done(&|filter| filter.insert(&1_u64).unwrap(), 4000), 0);
        let twice = |filter: &mut CuckooFilter| (0..2).for_each(|_| filter.insert(&1_u64).unwrap());
        assert_eq!(done(&twice, 3000), 0);
    }

    /// Keys that are all for one segment, which only ready hashes can be.
    #[test]
    fn a_segment_without_room_loses_nothing() {
        let [mut filter, _] = filters(Prefer::Fast, 0.002, 2);
        // No stash.
        filter.body.state.profile.counter_limit = 0;
        let addresses: Vec<u64> = hashes(3, 3000).map(|hash| hash >> 2).collect();
        let mut added = vec![false; 3000];
        assert!(filter.body.insert_each::<UNIQUE>(&addresses[..], &mut added).is_err());
        let count = added.iter().filter(|&&is_new| is_new).count();
        assert_eq!(count as u64, filter.len());
        assert!(count > 1000);
        let first = added.iter().rposition(|&is_new| is_new).unwrap();
        for &address in &addresses[..first] {
            assert!(!filter.body.insert::<UNIQUE>(address).unwrap_or(false));
        }
    }
}
