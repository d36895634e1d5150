//! Semi-sorting: one bit per slot for free.
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

use super::bits::{SLOTS, low_ones};
use crate::address::geometry::{low_half, product};

/// Bits of a nibble.
pub(super) const LOW_BITS: u32 = 4;
/// Bits of a code.
pub(super) const CODE_BITS: u32 = 12;
/// All numbers of 12 bits. Those from 3876 on are never written, and decode to zeros.
const CODE_SPACE: usize = 1 << CODE_BITS;

/// The part of the code that two nibbles give: those in positions 0 and 1, and in 2 and 3.
static PAIR_CODES: [[u16; 256]; 2] = [pair_codes(0), pair_codes(8)];
/// Four nibbles, position 0 lowest, for each code.
static NIBBLES: [u16; CODE_SPACE] = all_nibbles();

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
pub(super) fn nibbles(above: u64) -> u64 {
    u64::from(NIBBLES[low_half(above % CODE_SPACE as u64) as usize])
}

/// The code of four ascending nibbles, from a table.
#[inline]
pub(super) fn code_of(nibbles: u64) -> u64 {
    let pair = |i: u32| low_half(nibbles >> (8 * i) & 255) as usize;
    u64::from(PAIR_CODES[0][pair(0)] + PAIR_CODES[1][pair(1)])
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
