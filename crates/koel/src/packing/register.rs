//! Registers of lanes: one of 64 bits, or two side by side in a vector register.

use core::ops::{Add, BitAnd, BitOr, BitXor, Not, Shl, Shr, Sub};

use wide::u64x2;

use super::bits::low_word;

/// A register on which lane tests work.
pub(crate) trait Register:
    Copy
    + Add<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + Sub<Output = Self>
{
    /// The register with this mask, whose upper 64 bits equal its lower ones.
    fn of(mask: u128) -> Self;
    /// The difference modulo 2^64.
    fn less(self, other: Self) -> Self;
}

impl Register for u64 {
    #[inline]
    fn of(mask: u128) -> Self {
        low_word(mask)
    }

    #[inline]
    fn less(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

/// Every x86-64 processor has a vector unit that works on both words at once.
impl Register for u64x2 {
    #[inline]
    fn of(mask: u128) -> Self {
        Self::new([low_word(mask), low_word(mask >> u64::BITS)])
    }

    #[inline]
    fn less(self, other: Self) -> Self {
        self - other
    }
}

/// Lanes, and the packed nibbles of their slots; the nibbles of plain slots are 0.
pub(crate) type Opened<R> = (R, R);

/// A slot in every lane, to compare with opened words: its lanes, and its nibble at the low end of
/// each.
pub(crate) type Pattern<R> = (R, R);

/// Two words or two patterns side by side.
#[inline]
pub(super) fn pair([one, other]: [(u64, u64); 2]) -> (u64x2, u64x2) {
    (u64x2::new([one.0, other.0]), u64x2::new([one.1, other.1]))
}
