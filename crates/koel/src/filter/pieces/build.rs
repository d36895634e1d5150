//! Builds a segment from all its parts.
//!
//! The addresses are sorted by their low bits. Sorted by the top ones they would fill bucket after
//! bucket, so that an insert takes half as long again, and a segment is full earlier
//! (docs/decisions/0040-pieces.md).
//!
//! Cost: 8 bytes of memory for each address, and twice those of the segment.

use alloc::vec::Vec;

use bytemuck::allocation::try_zeroed_vec;

use super::error::PieceError;
use super::message::{PART, PIECE, Part, Piece};
use super::plan::PiecePlan;
use crate::error::{FullError, ImageError};
use crate::filter::bulk::segment_of;
use crate::image::frame::{Framed, MessageError};
use crate::state::edit::{COPIES, UNIQUE};
use crate::{CuckooFilter, Key};

/// Turns an address so that its low bits are compared first.
const LOW_FIRST: u32 = 32;

impl PiecePlan {
    /// Builds a segment from all its parts, in any order. Without parts it is empty.
    ///
    /// O(keys log keys): up to 1.6 times what [`build_from`](crate::Builder::build_from) takes for
    /// a key. An equal key twice is two copies, unless the plan is [`unique`](Self::unique).
    ///
    /// # Errors
    /// [`PieceError::Part`] names the first part that is damaged or of another plan or segment.
    /// [`PieceError::Full`] if the keys do not fit, which does not happen up to
    /// [`capacity`](Self::capacity) distinct keys in all segments.
    pub fn build<P: AsRef<[u8]>>(
        &self,
        segment: u64,
        parts: impl IntoIterator<Item = P>,
    ) -> Result<Piece, PieceError> {
        if segment >= self.segments() {
            return Err(PieceError::NoSegment { segment, segments: self.segments() });
        }
        let (mut addresses, mut keys) = (Vec::new(), 0_u64);
        for (number, part) in (0..).zip(parts) {
            let more = self.take_in(segment, (number, part.as_ref()), &mut addresses)?;
            keys = keys.saturating_add(more);
        }
        let filter = self.filled_segment(&mut addresses).map_err(|full| match full {
            FullError::NoMemory => PieceError::NoMemory,
            full => PieceError::Full { segment, keys, full },
        })?;
        self.piece(segment, keys, &filter).ok_or(PieceError::NoMemory)
    }

    /// Builds all segments from all keys, on this machine.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_all<K: Key + Sync>(&self, keys: &[K]) -> Result<Vec<Piece>, PieceError> {
        let parts = self.split(keys)?;
        let mut parts = parts.iter().peekable();
        let mut of_next = |segment| parts.next_if(|part: &&Part| part.segment() == segment);
        (0..self.segments()).map(|segment| self.build(segment, of_next(segment))).collect()
    }

    /// Appends the addresses of a part of this plan and segment, turned. Returns the number of its
    /// keys.
    fn take_in(
        &self,
        segment: u64,
        (number, part): (u64, &[u8]),
        addresses: &mut Vec<u64>,
    ) -> Result<u64, PieceError> {
        let refused = |fault| PieceError::Part { number, fault };
        let Framed { words: [plan, of, keys], content, .. } = PART.read(part).map_err(refused)?;
        if plan != self.digest() {
            return Err(refused(MessageError::Foreign));
        }
        if of != segment {
            return Err(refused(MessageError::Misplaced { segment: of }));
        }
        let (stored, rest) = content.as_chunks();
        let first = addresses.len();
        addresses.try_reserve(stored.len()).map_err(|_| PieceError::NoMemory)?;
        addresses.extend(stored.iter().map(|&bytes| u64::from_le_bytes(bytes)));
        let added = &mut addresses[first..];
        let are_here = added.iter().fold(true, |all, &at| all & (self.segment_at(at) == segment));
        added.iter_mut().for_each(|address| *address = address.rotate_right(LOW_FIRST));
        if are_here && rest.is_empty() && stored.len() as u64 <= keys {
            return Ok(keys);
        }
        let fault = ImageError::Field { field: "address", got: stored.len() as u64 };
        Err(refused(MessageError::Forged(fault)))
    }

    /// A filter like the segment, with these turned addresses.
    fn filled_segment(&self, addresses: &mut Vec<u64>) -> Result<CuckooFilter, FullError> {
        addresses.sort_unstable();
        if self.unique {
            addresses.dedup();
        }
        for address in &mut *addresses {
            *address = address.rotate_left(LOW_FIRST) << self.shape.segment_bits;
        }
        let mut filter = segment_of(self.shape, self.profile).ok_or(FullError::NoMemory)?;
        let addresses = &addresses[..];
        if self.unique {
            let mut added = try_zeroed_vec(addresses.len()).map_err(|()| FullError::NoMemory)?;
            filter.body.insert_each::<UNIQUE>(addresses, &mut added)?;
        } else {
            filter.body.insert_each::<COPIES>(addresses, &mut [])?;
        }
        Ok(filter)
    }

    /// The message with a filled segment; `None` if there is no memory for it.
    fn piece(&self, segment: u64, keys: u64, filter: &CuckooFilter) -> Option<Piece> {
        let mut bytes = PIECE.with_room(filter.size_in_bytes())?;
        let Ok(()) = filter.write_to(|part| {
            bytes.extend_from_slice(part);
            Ok::<(), core::convert::Infallible>(())
        });
        PIECE.seal([self.digest(), segment, keys], &mut bytes);
        Some(Piece::new(segment, bytes))
    }
}
