//! The semi-sorted codec: one bit per slot for free.
//!
//! The order of the slots in a bucket means nothing, so it need not be stored. The low four bits of each slot (its nibble) are sorted; the
//! C(19, 4) = 3876 ascending sequences of four nibbles are numbered, and 12 bits hold the number instead of 16 for the
//! nibbles themselves. The rest of each slot follows its nibble in plain form.
//!
//! The number of `v0 <= v1 <= v2 <= v3` is `C(v0,1) + C(v1+1,2) + C(v2+2,3) + C(v3+3,4)`; four zeros are number 0, so an empty
//! bucket is all zeros. Slots with equal nibbles are ordered by their high bits: the word of a set of slots is unique.
//!
//! Reading turns the code into the four nibbles by one access to a table of 8 KiB, writing adds up the code of two numbers from 1 KiB. A slot that is replaced
//! is shifted out of its place and the new one in at its rank; only a bucket that is written as a whole is sorted, by five compare-exchanges.
//! Source: B. Fan et al., Cuckoo Filter: Practically Better Than Bloom (CoNEXT 2014), section 5.2; the numbering is the combinatorial
//! number system, so no table of 65,536 codes is needed.

use super::SLOTS;
use super::word::{self, Register, Word};
use crate::geometry::{low_half, product};

/// Bits of a slot that are stored in the code.
pub(super) const LOW_BITS: u32 = 4;
/// Sorted sequences of four nibbles.
const CODES: usize = 3876;
/// Codes that fit into the bits of a code; those from `CODES` on are never written and decode to zeros.
const CODE_SPACE: usize = 4096;

/// `C(v + i, i + 1)`: what nibble `v` in position `i` adds to the code.
static WEIGHTS: [[u16; 16]; SLOTS] = weights();
/// What two nibbles add, those in positions 0 and 1, and those in 2 and 3.
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

/// The four nibbles of a bucket whose lanes are `width` bits wide, position 0 lowest.
#[inline(always)]
pub(super) fn nibbles<W: Word>(word: W, width: u32) -> u64 {
    nibbles_of(u64::narrow((word >> (4 * width)).wide()))
}

/// The four nibbles of the code in the low bits of `above`.
#[inline(always)]
pub(super) fn nibbles_of(above: u64) -> u64 {
    u64::from(NIBBLES[low_half(above % CODE_SPACE as u64) as usize])
}

/// Four lanes, here beside their nibbles, with `new` instead of slot `old`, and the code that the nibbles have then. The slot is in lane `lane`, whose top bit is `top`. Nothing is
/// sorted: one slot is taken out and the other put in at its rank.
#[inline(always)]
pub(super) fn replace<W: Word>(
    (lanes, nibbles): (W, u64),
    width: u32,
    (top, lane): (W, u64),
    (old, new): (u64, u64),
) -> (W, u64) {
    let mut open = Open { lanes, nibbles };
    if old != 0 {
        open = open.without((top, lane), width);
    }
    if new != 0 {
        open = open.with(new, width);
    }
    open.close()
}

/// Four lanes, of which the lowest is empty, beside their nibbles, with `new` at its rank, and the code that the nibbles have then: by arithmetic alone, for vector code.
#[inline(always)]
pub(super) fn with((lanes, nibbles): (u64, u64), width: u32, new: u64) -> (u64, u64) {
    let Open { lanes, nibbles } = Open { lanes, nibbles }.with(new, width);
    (lanes, code_of(nibbles))
}

/// The same with slot `lane`, whose top bit is `top`, emptied.
#[inline(always)]
pub(super) fn without(
    (lanes, nibbles): (u64, u64),
    width: u32,
    (top, lane): (u64, u64),
) -> (u64, u64) {
    let Open { lanes, nibbles } = Open { lanes, nibbles }.without((top, lane), width);
    (lanes, code_of(nibbles))
}

/// The code of four ascending nibbles without a table. Numbers of 32 bits, for which processors have a product of all lanes at once.
#[inline(always)]
fn code_of(nibbles: u64) -> u64 {
    let [a, b, c, d] = [0, 4, 8, 12].map(|shift| (nibbles >> shift) & 15);
    // By 6 and by 24, as products: exact for numbers as small as these.
    let pairs = product(b, b + 1) >> 1;
    let triples = product(product(c, c + 1), c + 2);
    let triples = product(triples, 43_691) >> 18;
    let outer = product(d, d + 3);
    let fours = product(product(outer, outer + 2) >> 3, 43_691) >> 17;
    a + pairs + triples + fours
}

/// The same for a wide word, with all slots taken apart and put together again: shifting lanes in two registers would cost three times as much.
#[inline(always)]
pub(super) fn rewrite(word: u128, width: u32, old: u64, new: u64) -> u128 {
    let slot_bits = width + LOW_BITS;
    let mut slots = decode(word, slot_bits);
    if let Some(slot) = slots.iter_mut().find(|slot| **slot == old) {
        *slot = new;
    }
    encode(slots, slot_bits)
}

/// A bucket with its nibbles written out: both in the order of the slots.
struct Open<W> {
    lanes: W,
    nibbles: u64,
}

impl<W: Word> Open<W> {
    /// Takes out slot `lane`, whose top bit is `top`: those below it move up, and the lowest is empty.
    #[inline(always)]
    fn without(self, (top, lane): (W, u64), width: u32) -> Self {
        // Differences without a borrow from above, for vector code takes something out where there is nothing too.
        let below = (top >> (width - 1)).less(W::from(1));
        let above = !(top | top.less(W::from(1)));
        let lanes = (self.lanes & above) | ((self.lanes & below) << width);
        let low = !(u64::MAX << (4 * lane));
        let nibbles = (self.nibbles & !(low << 4 | 15)) | ((self.nibbles & low) << 4);
        Self { lanes, nibbles }
    }

    /// Puts `slot` in the place of the empty lowest one: those less than it move down.
    #[inline(always)]
    fn with(self, slot: u64, width: u32) -> Self {
        let (high, nibble) = (slot >> LOW_BITS, slot & 15);
        let plain = W::low_ones(width);
        let key = |high: W, nibble: u64| high | (W::from(nibble) << width);
        let new = key(W::from(high), nibble);
        let less = |i: u32| {
            let held = key((self.lanes >> (i * width)) & plain, (self.nibbles >> (4 * i)) & 15);
            u32::from(held < new)
        };
        let rank = less(1) + less(2) + less(3);
        let put = |word: W, new: W, width: u32| {
            // Two shifts, because four lanes may be all bits of the register.
            let rest = !(W::from(1) << (rank * width) << width).less(W::from(1));
            let below = word & !rest;
            (word & rest) | (below >> width) | (new << (rank * width))
        };
        let nibbles = put(W::from(self.nibbles), W::from(nibble), LOW_BITS).wide();
        Self { lanes: put(self.lanes, W::from(high), width), nibbles: u64::narrow(nibbles) }
    }

    /// The lanes, and the number of the nibbles.
    #[inline(always)]
    fn close(self) -> (W, u64) {
        let pair = |i: u32| low_half(self.nibbles >> (8 * i) & 255) as usize;
        let code = PAIR_WEIGHTS[0][pair(0)] + PAIR_WEIGHTS[1][pair(1)];
        (self.lanes, u64::from(code))
    }
}

/// The four slots, by ascending low bits.
#[inline(always)]
pub(super) fn decode(word: u128, slot_bits: u32) -> [u64; SLOTS] {
    let lane = slot_bits - LOW_BITS;
    let nibbles = nibbles(word, lane);
    let mut slots = word::lanes(word, lane);
    for (i, slot) in slots.iter_mut().enumerate() {
        *slot = *slot << LOW_BITS | (nibbles >> (4 * i)) & 15;
    }
    slots
}

/// The one word for these slots, in whatever order they come.
#[inline(always)]
pub(super) fn encode(slots: [u64; SLOTS], slot_bits: u32) -> u128 {
    let lane = slot_bits - LOW_BITS;
    // Rotated, the low bits lead: ordering the whole number orders by nibble first.
    let sorted = sort(slots.map(|slot| slot.rotate_right(LOW_BITS)));
    let mut code = 0;
    for (weights, slot) in WEIGHTS.iter().zip(sorted) {
        code += weights[(slot >> (u64::BITS - LOW_BITS)) as usize];
    }
    let high = sorted.map(|slot| slot & (u64::MAX >> LOW_BITS));
    u128::from(code) << (4 * lane) | word::join(high, lane)
}

/// A sorting network of five compare-exchanges.
#[inline(always)]
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
            let code = usize::try_from(encode(nibbles, LOW_BITS + 1) >> 4).unwrap();
            assert!(!core::mem::replace(&mut seen[code], true));
            assert_eq!(decode(encode(nibbles, LOW_BITS + 1), LOW_BITS + 1), nibbles);
        }
        assert!(seen.iter().all(|&seen| seen));
        for nibbles in ascending() {
            let packed = nibbles.iter().rev().fold(0, |packed, nibble| packed << 4 | nibble);
            assert_eq!(u128::from(code_of(packed)), encode(nibbles, LOW_BITS + 1) >> 4);
        }
        assert_eq!(encode([0; SLOTS], 13), 0);
    }

    #[test]
    fn every_order_of_the_same_slots_gives_the_same_word_and_the_slots_back() {
        for slot_bits in [8, 9, 13, 17, 18, 33] {
            for nibbles in ascending().step_by(7) {
                let high = [3, 1, 2, 1].map(|high: u64| high % (1 << (slot_bits - LOW_BITS)));
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| high[i] << LOW_BITS | nibbles[i]);
                let word = encode([a, b, c, d], slot_bits);
                for order in [[b, a, c, d], [d, c, b, a], [c, d, a, b], [b, d, a, c]] {
                    assert_eq!(encode(order, slot_bits), word);
                }
                let (mut before, mut after) = ([a, b, c, d], decode(word, slot_bits));
                before.sort_unstable();
                after.sort_unstable();
                assert_eq!(before, after);
            }
        }
    }

    #[test]
    fn codes_that_are_never_written_decode_without_harm() {
        for code in CODES..CODE_SPACE {
            assert_eq!(decode((code as u128) << 36, 13), [0; SLOTS]);
        }
    }
}
