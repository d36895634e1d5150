//! Semi-sorting: one bit per slot for free.
//!
//! The order of the slots in a bucket means nothing, so it need not be stored. The low four bits of
//! each slot, its nibble, are sorted. There are C(19, 4) = 3876 ascending sequences of four
//! nibbles, and 12 bits hold the number of one instead of 16 for the nibbles themselves. The rest
//! of each slot follows in plain form, in the order of the nibbles.
//!
//! The number of `v0 <= v1 <= v2 <= v3` is `C(v0,1) + C(v1+1,2) + C(v2+2,3) + C(v3+3,4)`. Four
//! zeros are number 0, so an empty bucket is all zeros. Slots with equal nibbles are ordered by
//! their high bits, so the word of a set of slots is unique, and empty slots come first.
//!
//! Cost: decoding reads a table of 8 KiB once, encoding adds two numbers from 1 KiB. A changed slot
//! is shifted out and the new one in at its rank. Only a bucket that is written as a whole is
//! sorted, by five compare-exchanges. Source: B. Fan et al., Cuckoo Filter: Practically Better Than
//! Bloom (CoNEXT 2014), section 5.2. The numbering is the combinatorial number system, so no table
//! of 65,536 codes is needed.

use super::SLOTS;
use super::slot_coding::{Coding, Plain};
use super::swar::{low_ones, low_word};
use crate::address::geometry::{low_half, product};

/// Bits of a slot that are stored in the code.
pub(super) const LOW_BITS: u32 = 4;
/// Bits of a code.
pub(super) const CODE_BITS: u32 = 12;
/// Sorted sequences of four nibbles.
const CODES: usize = 3876;
/// Codes that fit into the bits of a code. Those from `CODES` on are never written and decode to
/// zeros.
const CODE_SPACE: usize = 1 << CODE_BITS;

/// `C(v + i, i + 1)`: what nibble `v` in position `i` adds to the code.
static WEIGHTS: [[u16; 16]; SLOTS] = weights();
/// What two nibbles add: those in positions 0 and 1, and those in 2 and 3.
static PAIR_WEIGHTS: [[u16; 256]; 2] = [pair_weights(0), pair_weights(2)];
/// Four nibbles, position 0 lowest, for each code.
static NIBBLES: [u16; CODE_SPACE] = all_nibbles();

/// Pascal's rule: each weight is the one for the nibble below plus the one a position earlier.
const fn weights() -> [[u16; 16]; SLOTS] {
    let mut table = [[0; 16]; SLOTS];
    let mut v = 1;
    while v < 16 {
        table[0][v] = table[0][v - 1] + 1;
        table[1][v] = table[1][v - 1] + table[0][v];
        table[2][v] = table[2][v - 1] + table[1][v];
        table[3][v] = table[3][v - 1] + table[2][v];
        v += 1;
    }
    table
}

const fn pair_weights(lower: usize) -> [u16; 256] {
    let weights = weights();
    let mut table = [0; 256];
    let mut pair = 0;
    while pair < 256 {
        table[pair] = weights[lower][pair & 15] + weights[lower + 1][pair >> 4];
        pair += 1;
    }
    table
}

const fn all_nibbles() -> [u16; CODE_SPACE] {
    let weights = weights();
    let mut table = [0; CODE_SPACE];
    let mut packed: u16 = 0;
    loop {
        let (v0, v1) = (packed & 15, (packed >> 4) & 15);
        let (v2, v3) = ((packed >> 8) & 15, packed >> 12);
        if v0 <= v1 && v1 <= v2 && v2 <= v3 {
            let code = weights[0][v0 as usize]
                + weights[1][v1 as usize]
                + weights[2][v2 as usize]
                + weights[3][v3 as usize];
            assert!((code as usize) < CODES);
            table[code as usize] = packed;
        }
        if packed == u16::MAX {
            return table;
        }
        packed += 1;
    }
}

/// The four nibbles of the code in the low bits of `above`, position 0 lowest.
#[inline]
pub(super) fn nibbles(above: u64) -> u64 {
    u64::from(NIBBLES[low_half(above % CODE_SPACE as u64) as usize])
}

/// The code of four ascending nibbles, from a table.
#[inline]
pub(super) fn code_of(nibbles: u64) -> u64 {
    let pair = |i: u32| low_half(nibbles >> (8 * i) & 255) as usize;
    u64::from(PAIR_WEIGHTS[0][pair(0)] + PAIR_WEIGHTS[1][pair(1)])
}

/// The code of four ascending nibbles without a table, for vector code. Numbers of 32 bits, for
/// which processors multiply all lanes at once.
#[inline(always)]
pub(super) fn computed_code_of(nibbles: u64) -> u64 {
    let [a, b, c, d] = [0, 4, 8, 12].map(|shift| (nibbles >> shift) & 15);
    // By 6 and by 24, as products: exact for numbers as small as these.
    let pairs = product(b, b + 1) >> 1;
    let triples = product(product(c, c + 1), c + 2);
    let triples = product(triples, 43_691) >> 18;
    let outer = product(d, d + 3);
    let fours = product(product(outer, outer + 2) >> 3, 43_691) >> 17;
    a + pairs + triples + fours
}

/// A bucket of lanes that fit into 64 bits, `width` bits each, with its nibbles decoded. Both are
/// in the order of the slots.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) lanes: u64,
    pub(super) nibbles: u64,
    pub(super) width: u32,
}

impl Open {
    /// Replaces slot `old`, which is in lane `lane` with top bit `top`, by `new`. 0 is no slot.
    #[inline]
    pub(super) fn replace(self, (top, lane): (u64, u64), old: u64, new: u64) -> Self {
        let rest = if old == 0 { self } else { self.without((top, lane)) };
        if new == 0 { rest } else { rest.with(new) }
    }

    /// Takes out slot `lane`, whose top bit is `top`. Those below it move up; the lowest is empty.
    #[inline(always)]
    pub(super) fn without(self, (top, lane): (u64, u64)) -> Self {
        // Vector code takes a slot out where there is none too, so differences wrap.
        let below = (top >> (self.width - 1)).wrapping_sub(1);
        let above = !(top | top.wrapping_sub(1));
        let lanes = (self.lanes & above) | ((self.lanes & below) << self.width);
        let low = !(u64::MAX << (4 * lane));
        let nibbles = (self.nibbles & !(low << 4 | 15)) | ((self.nibbles & low) << 4);
        Self { lanes, nibbles, ..self }
    }

    /// Puts `slot` in place of the empty lowest one. Those less than it move down.
    #[inline(always)]
    pub(super) fn with(self, slot: u64) -> Self {
        let Self { lanes, nibbles, width } = self;
        let (high, nibble) = (slot >> LOW_BITS, slot & 15);
        let key = |high: u64, nibble: u64| high | (nibble << width);
        let new = key(high, nibble);
        let less = |i: u32| {
            let lane = (lanes >> (i * width)) & low_ones(width);
            u32::from(key(lane, (nibbles >> (4 * i)) & 15) < new)
        };
        let rank = less(1) + less(2) + less(3);
        let put = |word: u64, new: u64, width: u32| {
            // Two shifts, because four lanes may be all bits of the register.
            let rest = !(1_u64 << (rank * width) << width).wrapping_sub(1);
            (word & rest) | ((word & !rest) >> width) | (new << (rank * width))
        };
        Self { lanes: put(lanes, high, width), nibbles: put(nibbles, nibble, LOW_BITS), width }
    }

    /// The lanes of 64 bits and `code` above them, as a bucket of at most 64 bits.
    #[inline]
    pub(super) fn close(self, code: u64) -> u64 {
        let end = 4 * self.width;
        self.lanes & low_ones(end) | code << end
    }
}

/// The four slots, by ascending low bits.
#[inline]
pub(super) fn decode(word: u128, width: u32) -> [u64; SLOTS] {
    let nibbles = nibbles(low_word(word >> (4 * width)));
    let mut slots = Plain::decode(word, width);
    for (i, slot) in slots.iter_mut().enumerate() {
        *slot = *slot << LOW_BITS | (nibbles >> (4 * i)) & 15;
    }
    slots
}

/// The one word for these slots, in whatever order they come.
#[inline]
pub(super) fn encode(slots: [u64; SLOTS], width: u32) -> u128 {
    // Rotated, the low bits lead: ordering the whole number orders by nibble first.
    let sorted = sort(slots.map(|slot| slot.rotate_right(LOW_BITS)));
    let mut code = 0;
    for (weights, slot) in WEIGHTS.iter().zip(sorted) {
        code += weights[(slot >> (u64::BITS - LOW_BITS)) as usize];
    }
    let high = sorted.map(|slot| slot & (u64::MAX >> LOW_BITS));
    u128::from(code) << (4 * width) | Plain::encode(high, width)
}

/// A sorting network of five compare-exchanges.
#[inline]
fn sort([a, b, c, d]: [u64; SLOTS]) -> [u64; SLOTS] {
    let (a, b) = (a.min(b), a.max(b));
    let (c, d) = (c.min(d), c.max(d));
    let (a, c) = (a.min(c), a.max(c));
    let (b, d) = (b.min(d), b.max(d));
    [a, b.min(c), b.max(c), d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ascending sequences of four nibbles.
    fn ascending() -> impl Iterator<Item = [u64; SLOTS]> {
        (0..16_u64.pow(4))
            .map(|packed| [packed & 15, (packed >> 4) & 15, (packed >> 8) & 15, packed >> 12])
            .filter(|nibbles| nibbles.is_sorted())
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
        }
        assert_eq!(encode([0; SLOTS], 9), 0);
    }

    #[test]
    fn every_order_of_the_same_slots_gives_the_same_word_and_the_slots_back() {
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
        for code in CODES..CODE_SPACE {
            assert_eq!(decode((code as u128) << 36, 9), [0; SLOTS]);
        }
    }
}
