//! The register that a bucket is loaded into.
//!
//! A bucket of at most 64 bits is worked on in a `u64`, a wider one in a `u128`; the arithmetic is the same.

use core::ops::{Add, BitAnd, BitOr, BitXor, Not, Shl, Shr, Sub};

use wide::u64x2;

use super::SLOTS;

/// A register, or several side by side, that lanes are worked on in.
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
    /// The low bits of `wide`; the rest is known to be zero, or not wanted.
    fn truncate(wide: u128) -> Self;
}

/// An unsigned register that holds a bucket: `u64` or `u128`.
pub(crate) trait Word: Register + From<u64> + PartialOrd {
    const BITS: u32;
    const ZERO: Self;
    fn widen(self) -> u128;
    /// So many ones, fewer than the register has bits.
    fn low_ones(bits: u32) -> Self;
    /// The low half of the product.
    fn times(self, other: Self) -> Self;
    /// The register's width of bytes from `at`, little-endian.
    fn read(bytes: &[u8], at: usize) -> Self;
    /// Writes the register over the bytes from `at`, little-endian.
    fn write(self, bytes: &mut [u8], at: usize);
}

impl Register for u64 {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "truncating is what it is for")]
    fn truncate(wide: u128) -> Self {
        wide as Self
    }
}

impl Register for u128 {
    #[inline]
    fn truncate(wide: u128) -> Self {
        wide
    }
}

/// Two registers of 64 bits: the vector unit of every x86-64 processor works on them at once.
impl Register for u64x2 {
    #[inline]
    fn truncate(wide: u128) -> Self {
        Self::splat(u64::truncate(wide))
    }
}

impl Word for u64 {
    const BITS: u32 = Self::BITS;
    const ZERO: Self = 0;

    #[inline]
    fn widen(self) -> u128 {
        u128::from(self)
    }

    #[inline]
    fn low_ones(bits: u32) -> Self {
        !(Self::MAX << bits)
    }

    #[inline]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    #[inline]
    fn read(bytes: &[u8], at: usize) -> Self {
        Self::from_le_bytes(bytes[at..at + 8].try_into().expect("a range of 8 bytes"))
    }

    #[inline]
    fn write(self, bytes: &mut [u8], at: usize) {
        bytes[at..at + 8].copy_from_slice(&self.to_le_bytes());
    }
}

impl Word for u128 {
    const BITS: u32 = Self::BITS;
    const ZERO: Self = 0;

    #[inline]
    fn widen(self) -> u128 {
        self
    }

    #[inline]
    fn low_ones(bits: u32) -> Self {
        !(Self::MAX << bits)
    }

    #[inline]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    #[inline]
    fn read(bytes: &[u8], at: usize) -> Self {
        Self::from_le_bytes(bytes[at..at + 16].try_into().expect("a range of 16 bytes"))
    }

    #[inline]
    fn write(self, bytes: &mut [u8], at: usize) {
        bytes[at..at + 16].copy_from_slice(&self.to_le_bytes());
    }
}

#[inline(always)]
fn ones(bits: u32) -> u128 {
    !(u128::MAX << bits)
}

/// The four lanes, apart.
#[inline(always)]
pub(super) fn lanes(word: u128, width: u32) -> [u64; SLOTS] {
    [0, 1, 2, 3].map(|lane| u64::truncate((word >> (lane * width)) & ones(width)))
}

/// The four lanes, together.
#[inline(always)]
pub(super) fn join(lanes: [u64; SLOTS], width: u32) -> u128 {
    let [a, b, c, d] = lanes.map(u128::from);
    (a | (b << width)) | ((c | (d << width)) << (2 * width))
}
