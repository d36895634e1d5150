//! How a slot lies in a bucket: as it is, or semi-sorted. All that lane tests and whole buckets
//! need to know of it, as types, so that hot code is compiled once for each.

use super::SLOTS;
use super::semisort::{self, LOW_BITS};
use super::swar::{low_ones, low_word};

/// The coding of four slots in a bucket.
pub(crate) trait Coding {
    /// Whether the low bits of the slots are sorted and stored as one code above the lanes.
    const SORTED: bool;
    /// So many low bits of a slot are not in its lane.
    const CUT: u32;

    /// Bits of a bucket whose lanes are `width` bits wide.
    fn bucket_bits(width: u32) -> u32;

    /// The word of a bucket. A semi-sorted word depends on which slots there are, not on their
    /// order.
    fn encode(slots: [u64; SLOTS], width: u32) -> u128;

    /// The four slots of a word whose lanes are `width` bits wide.
    fn decode(word: u128, width: u32) -> [u64; SLOTS];

    /// Where in its byte the bucket at bit `bit` of the table starts.
    fn shift(bit: u64) -> u32;

    /// The nibbles of the code in the low bits of `above`.
    fn nibbles(above: u64) -> u64;

    /// The slot with this lane, at this position among the nibbles.
    fn slot(lane: u64, nibbles: u64, position: u32) -> u64;
}

/// Each slot as it is.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Coding for Plain {
    const SORTED: bool = false;
    const CUT: u32 = 0;

    fn bucket_bits(width: u32) -> u32 {
        4 * width
    }

    #[inline]
    fn encode([a, b, c, d]: [u64; SLOTS], width: u32) -> u128 {
        u128::from(a | b << width) | u128::from(c | d << width) << (2 * width)
    }

    #[inline]
    fn decode(word: u128, width: u32) -> [u64; SLOTS] {
        let [low, high] = [word, word >> (2 * width)].map(low_word);
        [low, low >> width, high, high >> width].map(|lane| lane & low_ones(width))
    }

    /// Plain buckets are whole bytes.
    #[inline]
    fn shift(_bit: u64) -> u32 {
        0
    }

    #[inline]
    fn nibbles(_above: u64) -> u64 {
        0
    }

    #[inline]
    fn slot(lane: u64, _nibbles: u64, _position: u32) -> u64 {
        lane
    }
}

/// The low four bits of the slots sorted and stored as one code of 12 bits (`semisort.rs`).
#[derive(Clone, Copy)]
pub(crate) struct Sorted;

impl Coding for Sorted {
    const SORTED: bool = true;
    const CUT: u32 = LOW_BITS;

    fn bucket_bits(width: u32) -> u32 {
        4 * width + semisort::CODE_BITS
    }

    #[inline]
    fn encode(slots: [u64; SLOTS], width: u32) -> u128 {
        semisort::encode(slots, width)
    }

    #[inline]
    fn decode(word: u128, width: u32) -> [u64; SLOTS] {
        semisort::decode(word, width)
    }

    /// 0 or 4: a semi-sorted bucket is a multiple of four bits.
    #[inline]
    fn shift(bit: u64) -> u32 {
        super::bytes::bit_in_byte(bit)
    }

    #[inline]
    fn nibbles(above: u64) -> u64 {
        semisort::nibbles(above)
    }

    #[inline]
    fn slot(lane: u64, nibbles: u64, position: u32) -> u64 {
        lane << LOW_BITS | (nibbles >> (LOW_BITS * position)) & 15
    }
}
