//! From a key to its two buckets: key -> bytes -> hash -> address -> buckets and fingerprint.
//!
//! * `key`: the types that are keys, and the bytes of each.
//! * `hash`: the hash functions, XXH3-64 and SipHash-1-3, and the route from a hash to an address
//!   of 64 uniform bits. The header stores both.
//! * `geometry`: from an address to two buckets and a fingerprint, single or in blocks of 64.

pub(crate) mod geometry;
pub(crate) mod hash;
pub(crate) mod key;
