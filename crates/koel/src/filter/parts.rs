//! Keys by the segment of a table that they belong to: what a bulk build sorts them into.
//!
//! All hashes are in one piece of memory, with room for the share of each segment and four standard
//! deviations: large enough that systems give huge pages for it, since much of the time of a bulk
//! build goes to memory that is touched first. Where keys repeat, a segment may get any number
//! more; those have a list of their own.

use alloc::{vec, vec::Vec};
use core::ops::Range;

use crate::CuckooFilter;
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch_many;
use crate::mem::vector::{BLOCK, InstructionSet};
use crate::table::blocks::Hashes;

/// Hashes without the bits that name their segment, in the order of the keys.
pub(super) struct Parts {
    bytes: Buffer,
    /// Hashes of each segment that `bytes` has room for.
    room: usize,
    /// How many of them are there.
    lens: Vec<usize>,
    beyond: Vec<Vec<u64>>,
}

impl Parts {
    /// Those of these keys, by `1 << segment_bits` segments; `None` where the memory cannot be had.
    pub(super) fn of(hashes: impl Hashes, keys: Range<usize>, segment_bits: u32) -> Option<Self> {
        let set = InstructionSet::best();
        let mut parts = Self::new(1 << segment_bits, keys.len())?;
        let mut column = [0; BLOCK];
        for start in keys.clone().step_by(BLOCK) {
            let block = start..keys.end.min(start + BLOCK);
            let column = &mut column[..block.len()];
            set.run(
                #[inline(always)]
                || hashes.write(block, column),
            );
            parts.add(column, segment_bits);
        }
        Some(parts)
    }

    fn new(segments: usize, keys: usize) -> Option<Self> {
        let share = keys / segments;
        let room = share + 4 * share.isqrt() + BLOCK;
        let bytes = segments.checked_mul(room)?.checked_mul(size_of::<u64>())?;
        let (lens, beyond) = (vec![0; segments], vec![Vec::new(); segments]);
        Some(Self { bytes: Buffer::zeroed(bytes, false)?, room, lens, beyond })
    }

    fn add(&mut self, hashes: &[u64], segment_bits: u32) {
        let locations = self.bytes.as_mut().as_chunks_mut().0;
        for &hash in hashes {
            let segment = hash >> (u64::BITS - segment_bits);
            let segment = usize::try_from(segment).expect("fewer segments than bytes");
            let rest = hash << segment_bits;
            let len = &mut self.lens[segment];
            if *len < self.room {
                locations[segment * self.room + *len] = rest.to_le_bytes();
                *len += 1;
            } else {
                self.beyond[segment].push(rest);
            }
        }
    }

    /// Adds those of a segment to a filter like it.
    pub(super) fn insert_into(
        &self,
        filter: &mut CuckooFilter,
        segment: usize,
    ) -> Result<(), FullError> {
        let locations = self.bytes.as_ref().as_chunks().0;
        filter.insert_each(&locations[segment * self.room..][..self.lens[segment]])?;
        filter.insert_each(&*self.beyond[segment])
    }
}

/// Hashes as bytes.
impl Hashes for &[[u8; 8]] {
    #[inline(always)]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline(always)]
    fn write(&self, range: Range<usize>, hashes: &mut [u64]) {
        prefetch_many(self, range.end, BLOCK);
        for (hash, bytes) in hashes.iter_mut().zip(&self[range]) {
            *hash = u64::from_le_bytes(*bytes);
        }
    }
}
