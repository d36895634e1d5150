//! Distinct keys for a table of several segments, one segment after the other.
//!
//! Both buckets of a key are in one segment. Some hundred thousand keys at a time are divided among
//! the segments, and each segment gets its keys while the cache holds it.
//!
//! The bytes are those of single inserts: keys of different segments never meet, and each segment
//! gets its keys in order. That is so as long as no rule looks at the table as a whole. So this is
//! done only where there are no second copies and no counters, and room for all keys.
//!
//! Cost: 5 MiB of memory until it returns. Takes a fifth off the time of ten million inserts
//! (docs/decisions/0029-python.md).

use alloc::vec::Vec;
use core::ops::Range;

use super::{Body, changing};
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::mem::vector::{BLOCK, InstructionSet};
use crate::state::counters::{Counters, ReadCounters};
use crate::state::insert::UNIQUE;
use crate::table::blocks::Hashes;

/// Keys that are divided at once: several for each cache line of some segments.
const PART: usize = if cfg!(test) { 1 << 9 } else { 1 << 18 };
/// With fewer keys for each segment, most of its cache lines would be loaded for one key.
const FEW: usize = if cfg!(test) { 8 } else { 1 << 12 };

/// Some keys, divided among the segments.
struct Part {
    addresses: Vec<u64>,
    /// The addresses by segment, and the number that each key has in the part.
    sorted: Vec<u64>,
    numbers: Vec<u32>,
    /// Where the keys of each segment end.
    ends: Vec<u32>,
}

impl Body<Buffer, Counters> {
    /// Adds the first keys, as many as it pays for, unless an entry matches them. Notes in `added`
    /// which were added, and returns the number of keys for which that is done.
    ///
    /// If a segment has no room, some keys beyond that number are in, and noted.
    pub(super) fn insert_by_segment(&mut self, hashes: impl Hashes, added: &mut [bool]) -> usize {
        let Some(segment_bits) = self.divisible(hashes.len()) else { return 0 };
        let Some(mut part) = Part::new(hashes.len().min(PART), segment_bits) else { return 0 };
        let mut done = 0;
        while hashes.len() - done >= FEW << segment_bits {
            let keys = done..hashes.len().min(done + PART);
            part.divide(hashes, keys.clone(), segment_bits);
            if self.insert_part(&part, &mut added[keys.clone()]).is_err() {
                break;
            }
            done = keys.end;
        }
        done
    }

    /// The number of bits that name a segment, if so many new keys may come segment by segment.
    fn divisible(&self, keys: usize) -> Option<u32> {
        let state = &self.state;
        let segment_bits = self.buckets.fixed()?.geometry().segment_bits();
        let has_copies = state.spares > 0 || state.counters.len() > 0;
        let has_room = state.entries.checked_add(keys as u64)? <= state.profile.capacity;
        let is_large = segment_bits > 0 && segment_bits < 16 && FEW << segment_bits <= PART;
        (is_large && has_room && !has_copies).then_some(segment_bits)
    }

    fn insert_part(&mut self, part: &Part, added: &mut [bool]) -> Result<(), FullError> {
        let mut start = 0;
        for &end in &part.ends {
            let keys = start..end as usize;
            start = keys.end;
            let (addresses, numbers) = (&part.sorted[keys.clone()], &part.numbers[keys]);
            let note = |keys: Range<usize>, is_new| {
                for &number in &numbers[keys] {
                    added[number as usize] |= is_new;
                }
            };
            changing!(self, writer => writer.insert_each::<UNIQUE>(addresses, 0, note))?;
        }
        Ok(())
    }
}

impl Part {
    /// Room for so many keys; `None` if there is no memory for it.
    fn new(keys: usize, segment_bits: u32) -> Option<Self> {
        Some(Self {
            addresses: zeros(keys)?,
            sorted: zeros(keys)?,
            numbers: zeros(keys)?,
            ends: zeros(1 << segment_bits)?,
        })
    }

    /// Divides keys among the segments, each in order.
    fn divide(&mut self, hashes: impl Hashes, keys: Range<usize>, segment_bits: u32) {
        let set = InstructionSet::best();
        let addresses = &mut self.addresses[..keys.len()];
        for (start, column) in keys.step_by(BLOCK).zip(addresses.chunks_mut(BLOCK)) {
            set.run(
                #[inline(always)]
                || hashes.write(start..start + column.len(), column),
            );
        }
        #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 65,536 segments")]
        let segment = |address: u64| (address >> (u64::BITS - segment_bits)) as usize;
        self.ends.fill(0);
        for &address in &*addresses {
            self.ends[segment(address)] += 1;
        }
        let mut sum = 0;
        for end in &mut self.ends {
            sum += core::mem::replace(end, sum);
        }
        // Each is now where its segment starts, and moves to where it ends.
        for (number, &address) in (0..).zip(&*addresses) {
            let end = &mut self.ends[segment(address)];
            let at = *end as usize;
            (self.sorted[at], self.numbers[at]) = (address, number);
            *end += 1;
        }
    }
}

/// `None` if there is no memory for them.
fn zeros<T: Copy + Default>(len: usize) -> Option<Vec<T>> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(len).ok()?;
    zeros.resize(len, T::default());
    Some(zeros)
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
        let shape = Shape::of(plain.body.buckets.fixed().unwrap().geometry(), plain.layout());
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
