//! From a key to its two buckets: key -> bytes -> hash -> address -> buckets and fingerprint.
//!
//! * `key`: what can be a key, and which bytes stand for it.
//! * `hash`: the hash functions, XXH3-64 and SipHash-1-3.
//! * `route`: from a hash to an address of 64 uniform bits, stored in the header.
//! * `geometry`: from an address to two buckets and a fingerprint, single or in blocks of 64.
//! * `wide_product`: the product of two words in two words.

pub(crate) mod geometry;
pub(crate) mod hash;
pub(crate) mod key;
pub(crate) mod route;
pub(crate) mod wide_product;
