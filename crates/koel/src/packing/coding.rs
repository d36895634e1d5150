//! How a slot lies in a bucket: plain, or semi-sorted, which is one bit per slot for free. The two
//! codings are types, so that hot code is compiled once for each.
//!
//! The order of the slots in a bucket carries no information, so it need not be stored. The low
//! four bits of each slot, its *nibble*, are sorted. There are C(19, 4) = 3876 ascending sequences
//! of four nibbles. A code of 12 bits numbers them, where the nibbles themselves take 16 bits. The
//! rest of each slot, its *lane*, is stored as it is, in the order of the nibbles.
//!
//! * The code of `v0 <= v1 <= v2 <= v3` is `C(v0,1) + C(v1+1,2) + C(v2+2,3) + C(v3+3,4)`.
//! * Four zeros have code 0, so an empty bucket is all zeros.
//! * Slots with equal nibbles are ordered by their lanes. So a set of slots has exactly one word,
//!   and empty slots come first.
//!
//! Cost: decoding reads a table of 8 KiB once, encoding adds two numbers from 1 KiB. A change of
//! one slot shifts the old slot out and the new one in at its rank. Only a bucket that is written
//! as a whole is sorted, by five compare-exchanges. Source: B. Fan et al., Cuckoo Filter:
//! Practically Better Than Bloom (CoNEXT 2014), section 5.2. The codes are the combinatorial number
//! system, which needs no table of 65,536 codes.

#[cfg(not(feature = "fast"))]
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
#[cfg(not(feature = "fast"))]
use core::sync::atomic::{AtomicBool, AtomicU16};

use super::bits::{SLOTS, bit_in_byte, low_ones, low_word};
use crate::address::geometry::{low_half, product};

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
        if Self::SORTED { decoded(above) } else { 0 }
    }

    /// The slot with this lane and the nibble at `position`.
    #[inline]
    fn slot(lane: u64, nibbles: u64, position: u32) -> u64 {
        lane << Self::CUT | (nibbles >> (Self::CUT * position)) & low_ones(Self::CUT)
    }

    /// The word of a bucket. A semi-sorted word depends on the set of slots, not on their order.
    #[inline]
    fn encode(slots: [u64; SLOTS], width: u32) -> u128 {
        let (lanes, code) = if Self::SORTED { sort(slots) } else { (slots, 0) };
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

/// Nibbles sorted and stored as one code of 12 bits (see above).
#[derive(Clone, Copy)]
pub(crate) struct Sorted;

impl Coding for Sorted {
    const CUT: u32 = LOW_BITS;
}

/// Bits of a nibble.
pub(super) const LOW_BITS: u32 = 4;
/// Bits of a code.
pub(super) const CODE_BITS: u32 = 12;
/// All numbers of 12 bits. Those from 3876 on are never written, and decode to zeros.
const CODE_SPACE: usize = 1 << CODE_BITS;

/// The part of the code that two nibbles give: those in positions 0 and 1, and in 2 and 3.
#[cfg(feature = "fast")]
static PAIR_CODES: [[u16; 256]; 2] = [pair_codes(0), pair_codes(8)];
/// Four nibbles, position 0 lowest, for each code.
#[cfg(feature = "fast")]
static NIBBLES: [u16; CODE_SPACE] = all_nibbles();

/// The nibbles of a code.
#[cfg(feature = "fast")]
#[inline]
fn nibbles_at(code: usize) -> u16 {
    NIBBLES[code]
}

/// The nibbles of a code, from a table that the first call fills: in the program it would be 8 KB
/// that hardly compress. Threads that fill it at once write the same numbers.
#[cfg(not(feature = "fast"))]
#[inline]
fn nibbles_at(code: usize) -> u16 {
    static NIBBLES: [AtomicU16; CODE_SPACE] = [const { AtomicU16::new(0) }; CODE_SPACE];
    static IS_FILLED: AtomicBool = AtomicBool::new(false);
    if !IS_FILLED.load(Acquire) {
        for (place, nibbles) in NIBBLES.iter().zip(all_nibbles()) {
            place.store(nibbles, Relaxed);
        }
        IS_FILLED.store(true, Release);
    }
    NIBBLES[code].load(Relaxed)
}

#[cfg(feature = "fast")]
#[expect(clippy::cast_possible_truncation, reason = "codes have 12 bits")]
const fn pair_codes(shift: u32) -> [u16; 256] {
    let mut table = [0; 256];
    let mut pair = 0;
    while pair < 256 {
        table[pair] = computed_code_of((pair as u64) << shift) as u16;
        pair += 1;
    }
    table
}

#[expect(clippy::cast_possible_truncation, reason = "a code is below `CODE_SPACE`")]
const fn all_nibbles() -> [u16; CODE_SPACE] {
    let mut table = [0; CODE_SPACE];
    let mut packed: u16 = 0;
    loop {
        let [low, high] = packed.to_le_bytes();
        if low & 15 <= low >> 4 && low >> 4 <= high & 15 && high & 15 <= high >> 4 {
            table[computed_code_of(packed as u64) as usize] = packed;
        }
        if packed == u16::MAX {
            return table;
        }
        packed += 1;
    }
}

/// The four nibbles of the code in the low bits of `above`, position 0 lowest.
#[inline]
fn decoded(above: u64) -> u64 {
    u64::from(nibbles_at(low_half(above % CODE_SPACE as u64) as usize))
}

/// The code of four ascending nibbles, from a table.
#[inline]
pub(super) fn code_of(nibbles: u64) -> u64 {
    #[cfg(not(feature = "fast"))]
    return computed_code_of(nibbles);
    #[cfg(feature = "fast")]
    {
        let pair = |i: u32| low_half(nibbles >> (8 * i) & 255) as usize;
        u64::from(PAIR_CODES[0][pair(0)] + PAIR_CODES[1][pair(1)])
    }
}

/// The code of four ascending nibbles without a table, for vector code. All factors have 32 bits,
/// because processors multiply those in all lanes at once.
#[inline(always)]
pub(super) const fn computed_code_of(nibbles: u64) -> u64 {
    let (a, b) = (nibbles & 15, (nibbles >> 4) & 15);
    let (c, d) = ((nibbles >> 8) & 15, (nibbles >> 12) & 15);
    // The divisions by 6 and by 24 are products, which are exact for such small numbers.
    let pairs = product(b, b + 1) >> 1;
    let triples = product(product(c, c + 1), c + 2);
    let triples = product(triples, 43_691) >> 18;
    let outer = product(d, d + 3);
    let fours = product(product(outer, outer + 2) >> 3, 43_691) >> 17;
    a + pairs + triples + fours
}

/// Sorts four slots by nibble, then by lane. Returns their lanes in that order, and the code.
#[inline]
pub(super) fn sort(slots: [u64; SLOTS]) -> ([u64; SLOTS], u64) {
    // Rotated, a slot starts with its nibble: ordering whole numbers orders by nibble first.
    let [a, b, c, d] = slots.map(|slot| slot.rotate_right(LOW_BITS));
    let (a, b) = (a.min(b), a.max(b));
    let (c, d) = (c.min(d), c.max(d));
    let (a, c) = (a.min(c), a.max(c));
    let (b, d) = (b.min(d), b.max(d));
    let sorted = [a, b.min(c), b.max(c), d];
    let nibbles = sorted.iter().rev().fold(0, |nibbles, slot| nibbles << 4 | slot >> 60);
    (sorted.map(|slot| slot & (u64::MAX >> LOW_BITS)), code_of(nibbles))
}

/// The lanes of a bucket, `width` bits each in one register, and its decoded nibbles. Both are in
/// the order of the slots.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) lanes: u64,
    pub(super) nibbles: u64,
    pub(super) width: u32,
}

impl Open {
    /// Takes out slot `lane`, whose top bit is `top`. The slots below it move up; the lowest
    /// becomes empty.
    #[inline(always)]
    pub(super) fn without(self, (top, lane): (u64, u64)) -> Self {
        // Vector code calls this where there is no such slot, too: differences wrap.
        let below = (top >> (self.width - 1)).wrapping_sub(1);
        let above = !(top | top.wrapping_sub(1));
        let lanes = (self.lanes & above) | ((self.lanes & below) << self.width);
        let low = !(u64::MAX << (4 * lane));
        let nibbles = (self.nibbles & !(low << 4 | 15)) | ((self.nibbles & low) << 4);
        Self { lanes, nibbles, ..self }
    }

    /// Puts `slot` in place of the empty lowest one. The slots less than it move down.
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
            // Two shifts, because four lanes may fill the register.
            let rest = !(1_u64 << (rank * width) << width).wrapping_sub(1);
            (word & rest) | ((word & !rest) >> width) | (new << (rank * width))
        };
        Self { lanes: put(lanes, high, width), nibbles: put(nibbles, nibble, LOW_BITS), width }
    }
}

#[cfg(test)]
mod tests {
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
