//! Bit operations that several packings share, and the number of slots of a bucket.

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
