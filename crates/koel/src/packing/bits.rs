//! Bits of words, and words of a row of bytes: what several packings share.
//!
//! Buckets are little-endian, one after the other without gaps. A bucket is read as whole
//! registers, so bits of the next one may follow it. Zeros behind the last bucket make that
//! possible for every bucket.

use core::hint::select_unpredictable;

/// Slots of a bucket.
pub(crate) const SLOTS: usize = 4;

/// The entry in a slot: `None` if the slot is empty.
#[inline]
pub(super) fn entry(slot: u64) -> Option<u64> {
    (slot != 0).then_some(slot)
}

/// The low 64 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "truncation is the purpose")]
pub(crate) const fn low_word(wide: u128) -> u64 {
    wide as u64
}

/// A word whose lowest `bits` bits are set; `bits` is less than 64.
#[inline]
pub(crate) const fn low_ones(bits: u32) -> u64 {
    !(u64::MAX << bits)
}

/// The lowest set bit of a word; 0 if the word is 0.
#[inline]
pub(crate) const fn lowest(word: u64) -> u64 {
    word & word.wrapping_neg()
}

/// The second of two values if `other` is true, without a branch.
///
/// Which bucket of a pair an entry is in is random, so a branch would be mispredicted half of the
/// time, and only after the memory has answered.
#[inline]
pub(crate) fn either<T>(other: bool, [home, alternate]: [T; 2]) -> T {
    select_unpredictable(other, alternate, home)
}

/// The second of two words if `other` is all ones, the first if it is 0.
#[inline]
pub(super) fn by_mask(other: u64, [one, two]: [u64; 2]) -> u64 {
    one ^ ((one ^ two) & other)
}

/// All ones if `condition` holds, otherwise 0.
#[inline]
pub(super) fn mask(condition: bool) -> u64 {
    u64::from(condition).wrapping_neg()
}

/// The number of a byte as an index.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the table is in memory, so its offsets fit")]
pub(crate) fn byte_index(byte: u64) -> usize {
    byte as usize
}

/// The position of a bit in its byte.
#[inline]
pub(crate) fn bit_in_byte(bit: u64) -> u32 {
    (bit % 8) as u32
}

/// The eight bytes from `at` on.
#[inline]
pub(crate) fn read(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a range of 8 bytes"))
}

/// Flips the bits of the eight bytes from `at` on that are set in `change`.
#[inline]
pub(crate) fn xor_at(bytes: &mut [u8], at: usize, change: u64) {
    let changed = read(bytes, at) ^ change;
    bytes[at..at + 8].copy_from_slice(&changed.to_le_bytes());
}

/// The `count` bits from bit `bit` on. With the bits before them in the first byte, at most 128.
#[inline]
pub(crate) fn load(bytes: &[u8], bit: u64, count: u32) -> u128 {
    let word = sixteen(bytes, byte_index(bit / 8)) >> bit_in_byte(bit);
    word & (u128::MAX >> (u128::BITS - count))
}

/// Writes `word` over the `count` bits from bit `bit` on.
#[inline]
pub(crate) fn store(bytes: &mut [u8], bit: u64, count: u32, word: u128) {
    let change = (load(bytes, bit, count) ^ word) << bit_in_byte(bit);
    let at = byte_index(bit / 8);
    let changed = sixteen(bytes, at) ^ change;
    bytes[at..at + 16].copy_from_slice(&changed.to_le_bytes());
}

#[inline]
fn sixteen(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().expect("a range of 16 bytes"))
}
