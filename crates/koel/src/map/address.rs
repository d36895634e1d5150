//! Hash to buckets: where an entry of the map may lie, for any number of choices and of buckets.
//!
//! ```text
//!     hash     = mix(what the hasher gave), or 1 for 0
//!     choice i = high half of  fold(hash, i, buckets) * buckets    no modulus, no power of two
//!     tag      = top 8 bits of hash * odd, or 1 for 0          0 means "empty slot"
//! ```
//!
//! `mix` lets every bit of the hash depend on every bit that the hasher gave, so that one which
//! passes small integers through as they are does no harm. Choices may coincide; then the entry has
//! fewer.
//!
//! The number of buckets is folded in, so that no table has the order of another one. A map filled
//! in the order in which another one of the same hash lists its entries would otherwise get them
//! from its lowest bucket on: full there and empty elsewhere, it would overflow long before it is
//! full.
//!
//! Equal hashes have equal addresses in a table of any size: no growth separates them (`buckets.rs`
//! says what becomes of them).

use core::array;
use core::num::NonZeroU64;

use crate::address::wide_product::wide_product;

/// The mixed 64-bit hash of a key. It is stored beside the key, so that moving an entry calls no
/// code of the user. Never 0, so that an empty slot needs no room of its own.
pub(super) type KeyHash = NonZeroU64;

/// 2^64 by the golden ratio: odd, and its multiples lie far apart.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a hasher gave, mixed: the last steps of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA
/// 2014), which map 64 bits one to one.
#[inline]
pub(super) fn mix(hash: u64) -> KeyHash {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    KeyHash::new(hash ^ (hash >> 31)).unwrap_or(KeyHash::MIN)
}

/// The buckets of an entry, each below `buckets`.
#[inline]
pub(super) fn choices<const HASHES: usize>(hash: KeyHash, buckets: u32) -> [u32; HASHES] {
    let salted = hash.get() ^ u64::from(buckets).wrapping_mul(0x8ebc_6af0_9c88_c6e3);
    array::from_fn(|i| {
        let number = (i as u64 + 1).wrapping_mul(GOLDEN);
        scale(fold(salted ^ number, 0xa076_1d64_78bd_642f), buckets)
    })
}

/// The halves of a product on top of each other.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let (low, high) = wide_product(a, b);
    low ^ high
}

/// What stands for the entry in its bucket's tags. Never 0; two entries have the same one with a
/// probability of 1 in 254.
#[inline]
pub(super) fn tag(hash: KeyHash) -> u8 {
    hash.get().wrapping_mul(GOLDEN).to_le_bytes()[7].max(1)
}

/// The `fraction` of 2^64 that is this one of `count`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "less than `count`")]
fn scale(fraction: u64, count: u32) -> u32 {
    wide_product(fraction, u64::from(count)).1 as u32
}
