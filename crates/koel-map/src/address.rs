//! From a hash to buckets: where the map may store an entry, for any number of choices and buckets.
//!
//! ```text
//!     hash     = finalize(output of the hasher), or 1 instead of 0
//!     choice i = high half of  fold(hash, i, buckets) * buckets    no modulus, no power of two
//!     tag      = top 8 bits of hash * odd, or 1 instead of 0       0 means "empty slot"
//! ```
//!
//! With `finalize` every bit of the hash depends on every bit of the hasher's output, so a hasher
//! that returns small integers unchanged does no harm. Choices may coincide; the entry then has
//! fewer buckets.
//!
//! Folding in the number of buckets gives each table its own order. Otherwise, filling a map in the
//! iteration order of another one would fill the lowest buckets first, and the map would overflow
//! long before it is full.
//!
//! Equal hashes have equal buckets in a table of any size, so growth does not separate them.
//! `buckets.rs` describes where they go.

use core::array;
use core::num::NonZeroU64;

/// The mixed 64-bit hash of a key. It is stored beside the key, so moving an entry calls no user
/// code. It is never 0, so that an `Option` of an entry takes no extra space.
pub(super) type StoredHash = NonZeroU64;

/// 2^64 divided by the golden ratio. It is odd, and its multiples lie far apart.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output of a hasher, mixed.
#[inline]
pub(super) fn mix(hash: u64) -> StoredHash {
    StoredHash::new(finalize(hash)).unwrap_or(StoredHash::MIN)
}

/// The buckets of an entry, each below `buckets`.
#[inline]
pub(super) fn choices<const HASHES: usize>(hash: StoredHash, buckets: u32) -> [u32; HASHES] {
    let salted = hash.get() ^ u64::from(buckets).wrapping_mul(0x8ebc_6af0_9c88_c6e3);
    array::from_fn(|i| {
        let number = (i as u64 + 1).wrapping_mul(GOLDEN);
        scale(fold(salted ^ number, 0xa076_1d64_78bd_642f), buckets)
    })
}

/// The finalizer of SplitMix64 (D. Stafford's mix 13): a bijection in which every bit of the input
/// changes about half of the bits of the output.
#[inline]
pub(super) fn finalize(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Exclusive or of the halves of a product.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> u64::BITS) as u64
}

/// The tag of an entry in its bucket. It is never 0. Two entries have the same tag with probability
/// 1 in 254.
#[inline]
pub(super) fn tag(hash: StoredHash) -> u8 {
    hash.get().wrapping_mul(GOLDEN).to_le_bytes()[7].max(1)
}

/// The fraction `fraction / 2^64`, scaled to `0..count`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "less than `count`")]
fn scale(fraction: u64, count: u32) -> u32 {
    ((u128::from(fraction) * u128::from(count)) >> u64::BITS) as u32
}
