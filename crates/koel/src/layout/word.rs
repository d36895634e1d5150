//! The register that a bucket is loaded into.
//!
//! A bucket of at most 64 bits is worked on in a `u64`, a wider one in a `u128`; the arithmetic is the same. Slots of 64 bits, as maplets of large
//! values have them, are four numbers side by side, one lane each.

use core::array;
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
    fn narrow(wide: u128) -> Self;
    /// The difference, without what it borrows from above the register.
    fn less(self, other: Self) -> Self;
}

/// An unsigned register that holds a bucket: `u64`, `u128`, or four numbers of 64 bits.
pub(crate) trait Word: Register + From<u64> + PartialOrd {
    /// Two words side by side, as the two buckets of a key are worked on.
    type Pair: Register + From<[Self; 2]> + Into<[Self; 2]>;
    const BITS: u32;
    const ZERO: Self;
    /// Whether buckets are stored as they are in the register.
    const IS_STORED: bool = true;
    /// The same number in the widest register.
    fn wide(self) -> u128;
    /// So many ones, fewer than the register has bits.
    fn low_ones(bits: u32) -> Self;
    /// The low half of the product.
    fn times(self, other: Self) -> Self;
    /// The lowest bit that is set, alone; 0 of 0.
    fn lowest(self) -> Self;
    /// The sum of all lanes of a few low bits each, in the lane that [`Lanes`](super::Lanes) gathers sums in; `ones` are the lanes' lowest bits.
    #[inline]
    fn total(self, ones: Self) -> Self {
        self.times(ones)
    }
    /// A lane of `width` bits.
    #[inline]
    fn lane(self, index: u32, width: u32) -> u64 {
        u64::narrow(((self >> (index * width)) & Self::low_ones(width)).wide())
    }
    /// Both side by side.
    #[inline(always)]
    fn pair(words: [Self; 2]) -> Self::Pair {
        words.into()
    }
    /// Both apart again.
    #[inline(always)]
    fn apart(pair: Self::Pair) -> [Self; 2] {
        pair.into()
    }
    /// The register's width of bytes from `at`, little-endian.
    fn read(bytes: &[u8], at: usize) -> Self;
    /// Writes the register over the bytes from `at`, little-endian.
    fn write(self, bytes: &mut [u8], at: usize);
}

impl Register for u64 {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "truncating is what it is for")]
    fn narrow(wide: u128) -> Self {
        wide as Self
    }

    #[inline]
    fn less(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

impl Register for u128 {
    #[inline]
    fn narrow(wide: u128) -> Self {
        wide
    }

    #[inline]
    fn less(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

/// Two registers of 64 bits: the vector unit of every x86-64 processor works on them at once.
impl Register for u64x2 {
    #[inline]
    fn narrow(wide: u128) -> Self {
        Self::new([u64::narrow(wide), u64::narrow(wide >> u64::BITS)])
    }

    #[inline]
    fn less(self, other: Self) -> Self {
        self - other
    }
}

impl Word for u64 {
    type Pair = u64x2;
    const BITS: u32 = Self::BITS;
    const ZERO: Self = 0;

    #[inline]
    fn wide(self) -> u128 {
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
    fn lowest(self) -> Self {
        self & self.wrapping_neg()
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
    type Pair = Side<Self, 2>;
    const BITS: u32 = Self::BITS;
    const ZERO: Self = 0;

    #[inline]
    fn wide(self) -> u128 {
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
    fn lowest(self) -> Self {
        self & self.wrapping_neg()
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

/// Words side by side: every operation is that of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) struct Side<W, const N: usize, const STORED: bool = true>([W; N]);

/// Four lanes of 64 bits.
pub(crate) type Quad = Side<u64, SLOTS>;
/// The same for buckets that are stored otherwise: as a table has them that is being widened.
pub(crate) type Apart = Side<u64, SLOTS, false>;

impl<W: Copy, const N: usize, const STORED: bool> Side<W, N, STORED> {
    #[inline(always)]
    fn with(self, other: Self, of: impl Fn(W, W) -> W) -> Self {
        Self(array::from_fn(|i| of(self.0[i], other.0[i])))
    }
}

/// Operators word by word.
macro_rules! word_by_word {
    ($($operator:ident::$method:ident),*) => {
        $(impl<W: Register, const N: usize, const STORED: bool> $operator for Side<W, N, STORED> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.with(other, W::$method)
            }
        })*
    };
    (all by one: $($operator:ident::$method:ident),*) => {
        $(impl<W: Register, const N: usize, const STORED: bool> $operator<u32> for Side<W, N, STORED> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, bits: u32) -> Self {
                Self(self.0.map(|word| word.$method(bits)))
            }
        })*
    };
}

word_by_word!(Add::add, BitAnd::bitand, BitOr::bitor, BitXor::bitxor, Sub::sub);
word_by_word!(all by one: Shl::shl, Shr::shr);

impl<W: Register, const N: usize, const STORED: bool> Not for Side<W, N, STORED> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0.map(W::not))
    }
}

/// The same mask for every word.
impl<W: Register, const N: usize, const STORED: bool> Register for Side<W, N, STORED> {
    #[inline(always)]
    fn narrow(wide: u128) -> Self {
        Self([W::narrow(wide); N])
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        self.with(other, W::less)
    }
}

impl<W, const N: usize, const STORED: bool> From<[W; N]> for Side<W, N, STORED> {
    #[inline(always)]
    fn from(words: [W; N]) -> Self {
        Self(words)
    }
}

impl<W, const N: usize, const STORED: bool> From<Side<W, N, STORED>> for [W; N] {
    #[inline(always)]
    fn from(side: Side<W, N, STORED>) -> Self {
        side.0
    }
}

impl<const STORED: bool> From<u64> for Side<u64, SLOTS, STORED> {
    #[inline(always)]
    fn from(lane: u64) -> Self {
        Self([lane; SLOTS])
    }
}

impl<const STORED: bool> Word for Side<u64, SLOTS, STORED> {
    type Pair = Side<Self, 2>;
    const BITS: u32 = 4 * u64::BITS;
    const ZERO: Self = Self([0; SLOTS]);
    const IS_STORED: bool = STORED;

    /// The first lane, where sums are.
    #[inline(always)]
    fn wide(self) -> u128 {
        u128::from(self.0[0])
    }

    #[inline(always)]
    fn low_ones(bits: u32) -> Self {
        Self::from(u64::low_ones(bits))
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.with(other, u64::wrapping_mul)
    }

    #[inline(always)]
    fn lowest(self) -> Self {
        let mut before = 0;
        Self(self.0.map(|lane| {
            let first = if before == 0 { lane.lowest() } else { 0 };
            before |= lane;
            first
        }))
    }

    #[inline(always)]
    fn total(self, _ones: Self) -> Self {
        Self([self.0.iter().sum(), 0, 0, 0])
    }

    #[inline(always)]
    fn lane(self, index: u32, _width: u32) -> u64 {
        self.0[index as usize]
    }

    #[inline(always)]
    fn read(bytes: &[u8], at: usize) -> Self {
        let bytes: &[u8; 32] = bytes[at..at + 32].try_into().expect("a range of 32 bytes");
        Self(array::from_fn(|i| u64::read(bytes, 8 * i)))
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8], at: usize) {
        let bytes = &mut bytes[at..at + 32];
        (0..SLOTS).for_each(|i| self.0[i].write(bytes, 8 * i));
    }
}

/// The four lanes, apart: two of them fit into 64 bits.
#[inline(always)]
pub(super) fn lanes(word: u128, width: u32) -> [u64; SLOTS] {
    let [low, high] = [word, word >> (2 * width)].map(u64::narrow);
    [low, low >> width, high, high >> width].map(|lane| lane & u64::low_ones(width))
}

/// The four lanes, together.
#[inline(always)]
pub(super) fn join([a, b, c, d]: [u64; SLOTS], width: u32) -> u128 {
    u128::from(a | b << width) | u128::from(c | d << width) << (2 * width)
}
