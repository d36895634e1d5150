//! Four lanes in one register.
//!
//! A bucket of at most 64 bits is tested in a `u64`, a wider one in a `u128`; the arithmetic is the same. A lane is `width` bits
//! wide, lane 0 lowest; bits above the fourth lane (the code of a semi-sorted bucket) are ignored.
//!
//! Zero lanes are found without carries between lanes: adding 0111..1 to a lane's low bits sets its top bit exactly
//! when one of them is set. Source: H. Warren, Hacker's Delight, section 6-1.

use core::ops::{Add, BitAnd, BitOr, BitXor, Not, Shl, Shr};

use super::SLOTS;

/// An unsigned register that holds a bucket: `u64` or `u128`.
pub(crate) trait Word:
    Copy
    + From<u64>
    + PartialEq
    + Add<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const ZERO: Self;
    /// The low bits of `wide`; the rest is known to be zero, or not wanted.
    fn truncate(wide: u128) -> Self;
    fn widen(self) -> u128;
    /// The register's width of bytes from `at`, little-endian.
    fn read(bytes: &[u8], at: usize) -> Self;
    /// Writes the register over the bytes from `at`, little-endian.
    fn write(self, bytes: &mut [u8], at: usize);
}

impl Word for u64 {
    const ZERO: Self = 0;

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "truncating is what it is for")]
    fn truncate(wide: u128) -> Self {
        wide as Self
    }

    #[inline]
    fn widen(self) -> u128 {
        u128::from(self)
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
    const ZERO: Self = 0;

    #[inline]
    fn truncate(wide: u128) -> Self {
        wide
    }

    #[inline]
    fn widen(self) -> u128 {
        self
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

/// `pattern` in each of the four lanes.
#[inline(always)]
fn broadcast(pattern: u128, width: u32) -> u128 {
    let pair = pattern | (pattern << width);
    pair | (pair << (2 * width))
}

#[inline(always)]
fn ones(bits: u32) -> u128 {
    !(u128::MAX << bits)
}

/// The top bit of every lane whose low `compared` bits equal `pattern`.
#[inline(always)]
pub(super) fn equal_lanes<W: Word>(word: W, pattern: u64, width: u32, compared: u32) -> W {
    let mask = W::truncate(broadcast(ones(compared), width));
    let below_top = W::truncate(broadcast(ones(width - 1), width));
    let top = W::truncate(broadcast(1 << (width - 1), width));
    let difference = (word ^ W::truncate(broadcast(u128::from(pattern), width))) & mask;
    !(((difference & below_top) + below_top) | difference) & top
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
