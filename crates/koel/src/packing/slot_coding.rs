//! How a slot lies in a bucket: plain or semi-sorted. The two codings are types, so that hot code
//! is compiled once for each.

use super::bits::{SLOTS, low_ones, low_word};
use super::bytes::bit_in_byte;
use super::semisort::{self, CODE_BITS, LOW_BITS};

/// The coding of four slots in a bucket.
pub(crate) trait Coding {
    /// How many low bits of a slot are not in its lane: those of the nibble, or none.
    const CUT: u32;

    /// Whether nibbles are sorted and stored as one code above the lanes.
    const SORTED: bool = Self::CUT > 0;

    /// Bits of a bucket whose lanes are `width` bits wide.
    #[inline]
    fn bucket_bits(width: u32) -> u32 {
        4 * width + if Self::SORTED { CODE_BITS } else { 0 }
    }

    /// The bit of its byte at which the bucket at bit `bit` of the table starts. Plain buckets are
    /// whole bytes; semi-sorted ones start at bit 0 or 4.
    #[inline]
    fn shift(bit: u64) -> u32 {
        if Self::SORTED { bit_in_byte(bit) } else { 0 }
    }

    /// The nibbles of the code in the low bits of `above`; 0 for plain slots.
    #[inline]
    fn nibbles(above: u64) -> u64 {
        if Self::SORTED { semisort::nibbles(above) } else { 0 }
    }

    /// The slot with this lane and the nibble at `position`.
    #[inline]
    fn slot(lane: u64, nibbles: u64, position: u32) -> u64 {
        lane << Self::CUT | (nibbles >> (Self::CUT * position)) & low_ones(Self::CUT)
    }

    /// The word of a bucket. A semi-sorted word depends on the set of slots, not on their order.
    #[inline]
    fn encode(slots: [u64; SLOTS], width: u32) -> u128 {
        let (lanes, code) = if Self::SORTED { semisort::sort(slots) } else { (slots, 0) };
        let [a, b, c, d] = lanes;
        let lanes = u128::from(a | b << width) | u128::from(c | d << width) << (2 * width);
        if Self::SORTED { lanes | u128::from(code) << (4 * width) } else { lanes }
    }

    /// The four slots of a word whose lanes are `width` bits wide.
    #[inline]
    fn decode(word: u128, width: u32) -> [u64; SLOTS] {
        let [low, high] = [word, word >> (2 * width)].map(low_word);
        let nibbles = Self::nibbles(low_word(word >> (2 * width) >> (2 * width)));
        let slot = |lane: u64, i| Self::slot(lane & low_ones(width), nibbles, i);
        [slot(low, 0), slot(low >> width, 1), slot(high, 2), slot(high >> width, 3)]
    }
}

/// Each slot as it is.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Coding for Plain {
    const CUT: u32 = 0;
}

/// Nibbles sorted and stored as one code of 12 bits (`semisort.rs`).
#[derive(Clone, Copy)]
pub(crate) struct Sorted;

impl Coding for Sorted {
    const CUT: u32 = LOW_BITS;
}

#[cfg(test)]
mod tests {
    use super::semisort::{code_of, computed_code_of};
    use super::*;

    /// Ascending sequences of four nibbles.
    const CODES: usize = 3876;

    fn encode(slots: [u64; SLOTS], width: u32) -> u128 {
        Sorted::encode(slots, width)
    }

    fn decode(word: u128, width: u32) -> [u64; SLOTS] {
        Sorted::decode(word, width)
    }

    /// All ascending sequences of four nibbles.
    fn ascending() -> impl Iterator<Item = [u64; SLOTS]> {
        (0..16_u64.pow(4))
            .map(|packed| [packed & 15, (packed >> 4) & 15, (packed >> 8) & 15, packed >> 12])
            .filter(|nibbles| nibbles.is_sorted())
    }

    /// The binomial coefficient `C(n, k)`.
    fn choose(n: u64, k: u64) -> u64 {
        (0..k).fold(1, |product, i| product * n.saturating_sub(i) / (i + 1))
    }

    #[test]
    fn the_code_is_a_bijection_onto_0_to_3875() {
        let mut seen = [false; CODES];
        for nibbles in ascending() {
            let code = usize::try_from(encode(nibbles, 1) >> 4).unwrap();
            assert!(!core::mem::replace(&mut seen[code], true));
            assert_eq!(decode(encode(nibbles, 1), 1), nibbles);
        }
        assert!(seen.iter().all(|&seen| seen));
        for nibbles in ascending() {
            let packed = nibbles.iter().rev().fold(0, |packed, nibble| packed << 4 | nibble);
            assert_eq!(u128::from(code_of(packed)), encode(nibbles, 1) >> 4);
            assert_eq!(computed_code_of(packed), code_of(packed));
            let [a, b, c, d] = nibbles;
            assert_eq!(code_of(packed), a + choose(b + 1, 2) + choose(c + 2, 3) + choose(d + 3, 4));
        }
        assert_eq!(encode([0; SLOTS], 9), 0);
    }

    #[test]
    fn slots_in_any_order_have_one_word_and_are_decoded_from_it() {
        for width in [4, 5, 9, 13, 14, 29] {
            for nibbles in ascending().step_by(7) {
                let high = [3, 1, 2, 1].map(|high: u64| high % (1 << width));
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| high[i] << LOW_BITS | nibbles[i]);
                let word = encode([a, b, c, d], width);
                for order in [[b, a, c, d], [d, c, b, a], [c, d, a, b], [b, d, a, c]] {
                    assert_eq!(encode(order, width), word);
                }
                let (mut before, mut after) = ([a, b, c, d], decode(word, width));
                before.sort_unstable();
                after.sort_unstable();
                assert_eq!(before, after);
            }
        }
    }

    #[test]
    fn codes_that_are_never_written_decode_without_harm() {
        for code in CODES..1 << CODE_BITS {
            assert_eq!(decode((code as u128) << 36, 9), [0; SLOTS]);
        }
    }
}
