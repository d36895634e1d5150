//! Changing a bucket, by its number: an entry into an empty slot, out of its slot, over another one. `at.rs` does it for a key.

use alloc::vec::Vec;

use super::{Addressing, Table, byte_index, position};
use crate::buffer::Buffer;
use crate::layout::{Apart, Form, Quad, Word};

impl Table<Buffer> {
    /// The bytes of each segment, where segments are whole bytes.
    pub(crate) fn segments_mut(&mut self) -> Vec<&mut [u8]> {
        let bits = u64::from(self.geometry.segment_buckets()) * self.lanes.bucket_bits();
        let segments = 1 << self.geometry.segment_bits();
        debug_assert!(bits.is_multiple_of(8) || segments == 1);
        let bytes = self.bytes.as_mut();
        bytes.chunks_mut(byte_index(bits / 8)).take(segments).collect()
    }
}

impl<A: Addressing> Table<Buffer, A> {
    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        self.bytes.as_mut().fill(0);
    }

    /// Moves each entry of a plan, a bucket and what a slot of it holds, to where the next one is, the last one first, so that no entry is ever in no place; a copy of
    /// the last one is elsewhere already. `slot` goes to where the first one was.
    pub(crate) fn shift(&mut self, moves: &[(u64, u64)], slot: u64) {
        let arriving = moves.iter().rev().skip(1).map(|&(_, moved)| moved).chain([slot]);
        for (&(bucket, old), new) in moves.iter().rev().zip(arriving) {
            self.replace(bucket, old, new);
        }
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if there is none.
    ///
    /// With 0 for `old` this fills an empty slot, with 0 for `new` it empties one.
    pub(crate) fn replace(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        in_any_form!(self, replace_in(bucket, old, new))
    }

    #[inline(always)]
    pub(super) fn replace_in<W: Word, const SORTED: bool>(
        &mut self,
        bucket: u64,
        old: u64,
        new: u64,
    ) -> bool {
        if self.is_one_part::<W, SORTED>() {
            let with = self.part.whole_with(self.whole(bucket), old, new);
            if let Some(word) = with {
                self.store::<u128, true>(bucket, word);
            }
            return with.is_some();
        }
        let word = self.load::<W, SORTED>(bucket);
        let equal = self.lanes.equal::<W, SORTED>(word, self.lanes.pattern::<W, SORTED>(old));
        let found = equal != W::ZERO;
        if found {
            let change = self.lanes.change::<W, SORTED>(word, equal, old, new);
            if W::IS_STORED {
                self.change_at::<W, SORTED>(bucket * self.lanes.bucket_bits(), change);
            } else {
                self.store_apart(bucket, self.lanes.slots::<W, SORTED>(word ^ change));
            }
        }
        found
    }

    /// Writes a bucket of at most 64 bits.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn set_word(&mut self, bucket: u64, word: u64) {
        self.store::<u64, true>(bucket, word);
    }

    #[inline(always)]
    pub(super) fn store<W: Word, const SORTED: bool>(&mut self, bucket: u64, word: W) {
        let bit = bucket * self.lanes.bucket_bits();
        let change = self.load_at::<W, SORTED>(bit) ^ word;
        self.change_at::<W, SORTED>(bit, change & self.lanes.bucket::<W>());
    }

    #[inline(always)]
    fn change_at<W: Word, const SORTED: bool>(&mut self, bit: u64, change: W) {
        change_in::<W, SORTED>(self.bytes.as_mut(), bit, change);
    }
}

/// Turns over the bits of the bucket at bit `bit` of these bytes that are set in `change`.
#[inline(always)]
pub(super) fn change_in<W: Word, const SORTED: bool>(bytes: &mut [u8], bit: u64, change: W) {
    let (byte, shift) = position::<SORTED>(bit);
    (W::read(bytes, byte) ^ (change << shift)).write(bytes, byte);
}
