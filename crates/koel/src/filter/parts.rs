//! The addresses of many keys by the segment of a table that they belong to, for bulk builds and
//! pieces.
//!
//! All addresses are in one buffer, sorted by segment within each block of keys
//! ([`Division`]). One buffer is large enough for huge pages, and much of the time of a bulk build
//! goes to touching memory for the first time.

use alloc::vec::Vec;
use core::ops::Range;

use crate::CuckooFilter;
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch_many;
use crate::mem::vector::BLOCK;
use crate::state::edit::COPIES;
use crate::state::segments::{Division, PART};
use crate::table::blocks::Hashes;

/// The addresses of some keys by segment. Each segment has them in the order of the keys.
pub(super) struct Parts {
    segment_bits: u32,
    addresses: Buffer,
    /// Addresses of a block, but for the last one.
    block: usize,
    /// Where the addresses of each segment end in each block.
    ends: Vec<u32>,
}

impl Parts {
    /// Divides the addresses of `keys` among `1 << segment_bits` segments; `None` if there is no
    /// memory for them.
    pub(super) fn of(hashes: impl Hashes, keys: Range<usize>, segment_bits: u32) -> Option<Self> {
        // Several keys for each segment, so that their ends take little memory.
        let block = PART.max(64 << segment_bits.min(24));
        let mut addresses = Buffer::zeroed(keys.len().checked_mul(size_of::<u64>())?, false)?;
        let mut division = Division::new(keys.len().min(block), segment_bits)?;
        let mut ends = Vec::new();
        ends.try_reserve_exact(keys.len().div_ceil(block) << segment_bits).ok()?;
        let stored = addresses.as_mut().as_chunks_mut().0;
        for (start, stored) in keys.clone().step_by(block).zip(stored.chunks_mut(block)) {
            division.divide(hashes, start..start + stored.len(), |place, _, address| {
                stored[place] = address.to_le_bytes();
            });
            ends.extend_from_slice(&division.ends);
        }
        Some(Self { segment_bits, addresses, block, ends })
    }

    /// The addresses of a segment, as bytes, from block to block.
    pub(super) fn of_segment(&self, segment: usize) -> impl Iterator<Item = &[[u8; 8]]> {
        let blocks = self.addresses.as_ref().as_chunks().0.chunks(self.block);
        blocks.zip(self.ends.chunks_exact(1 << self.segment_bits)).map(move |(block, ends)| {
            let start = segment.checked_sub(1).map_or(0, |before| ends[before]);
            &block[start as usize..ends[segment] as usize]
        })
    }

    /// Inserts the addresses of a segment into a filter of one segment, without the bits that name
    /// the segment; `None` if they do not fit.
    pub(super) fn insert_into(&self, filter: &mut CuckooFilter, segment: usize) -> Option<()> {
        let mut runs = self.of_segment(segment).map(|stored| Rest(stored, self.segment_bits));
        runs.try_for_each(|run| filter.body.insert_each::<COPIES>(run, &mut [])).ok()
    }
}

/// Addresses as bytes, without their top bits.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a [[u8; 8]], u32);

impl Hashes for Rest<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn write(&self, range: Range<usize>, addresses: &mut [u64]) {
        prefetch_many(self.0, range.end, BLOCK);
        for (address, bytes) in addresses.iter_mut().zip(&self.0[range]) {
            *address = u64::from_le_bytes(*bytes) << self.1;
        }
    }
}
