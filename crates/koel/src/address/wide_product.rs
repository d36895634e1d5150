//! The 128 bits of a product, in two halves.
//!
//! `u64::carrying_mul` is stable since Rust 1.91. The library compiles with 1.89.

/// The low and the high half of `a * b`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(crate) fn wide_product(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    (product as u64, (product >> u64::BITS) as u64)
}
