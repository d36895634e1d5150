//! Addresses divided by the segment of a table that they belong to, for bulk builds.
//!
//! All addresses are in one buffer, with room for the share of each segment and four standard
//! deviations more. One buffer is large enough for huge pages, and much of the time of a bulk build
//! goes to touching memory for the first time. If keys repeat, a segment may get any number more:
//! those go to a list of the segment.

use alloc::vec::Vec;
use core::ops::Range;

use crate::CuckooFilter;
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch_many;
use crate::mem::vector::{BLOCK, InstructionSet};
use crate::state::insert::COPIES;
use crate::table::blocks::Hashes;

/// The addresses of some keys by segment, without the bits that name the segment. Each segment has
/// them in the order of the keys.
pub(super) struct Parts {
    /// Room for `room` addresses of each segment.
    bytes: Buffer,
    room: usize,
    segments: Vec<Segment>,
}

#[derive(Clone, Default)]
struct Segment {
    /// Addresses in the buffer.
    len: usize,
    /// Addresses for which the buffer has no room.
    beyond: Vec<u64>,
}

impl Parts {
    /// Divides the addresses of `keys` among `1 << segment_bits` segments; `None` if there is no
    /// memory for them.
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
            parts.add(column, segment_bits)?;
        }
        Some(parts)
    }

    fn new(segments: usize, keys: usize) -> Option<Self> {
        let share = keys / segments;
        let room = share + 4 * share.isqrt() + BLOCK;
        let bytes = segments.checked_mul(room)?.checked_mul(size_of::<u64>())?;
        let mut empty = Vec::new();
        empty.try_reserve_exact(segments).ok()?;
        empty.resize(segments, Segment::default());
        Some(Self { bytes: Buffer::zeroed(bytes, false)?, room, segments: empty })
    }

    fn add(&mut self, addresses: &[u64], segment_bits: u32) -> Option<()> {
        let stored = self.bytes.as_mut().as_chunks_mut().0;
        for &address in addresses {
            let index = address >> (u64::BITS - segment_bits);
            let index = usize::try_from(index).expect("fewer segments than bytes");
            let rest = address << segment_bits;
            let segment = &mut self.segments[index];
            if segment.len < self.room {
                stored[index * self.room + segment.len] = rest.to_le_bytes();
                segment.len += 1;
            } else {
                segment.beyond.try_reserve(1).ok()?;
                segment.beyond.push(rest);
            }
        }
        Some(())
    }

    /// Inserts the addresses of a segment into a filter of one segment; `None` if they do not fit.
    pub(super) fn insert_into(&self, filter: &mut CuckooFilter, segment: usize) -> Option<()> {
        let Segment { len, beyond } = &self.segments[segment];
        let stored = &self.bytes.as_ref().as_chunks().0[segment * self.room..][..*len];
        filter.body.insert_each::<COPIES>(stored, &mut []).ok()?;
        filter.body.insert_each::<COPIES>(&**beyond, &mut []).ok()
    }
}

/// Addresses as bytes.
impl Hashes for &[[u8; 8]] {
    #[inline(always)]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline(always)]
    fn write(&self, range: Range<usize>, addresses: &mut [u64]) {
        prefetch_many(self, range.end, BLOCK);
        for (address, bytes) in addresses.iter_mut().zip(&self[range]) {
            *address = u64::from_le_bytes(*bytes);
        }
    }
}
