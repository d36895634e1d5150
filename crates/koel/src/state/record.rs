//! The records behind the buckets of a file: two numbers each, a counter or a key in the stash.

use crate::image::RECORD_BYTES;

/// The two numbers of a record.
pub(crate) fn decode(record: &[u8; RECORD_BYTES]) -> (u64, u64) {
    let halves = record.as_chunks::<8>().0;
    (u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1]))
}

/// The record of a name or an address, and a count.
pub(crate) fn encode((name, count): (u64, u64)) -> [u8; RECORD_BYTES] {
    (u128::from(name) | u128::from(count) << 64).to_le_bytes()
}

/// Bytes that a tree of so many pairs of numbers takes: a leaf of 192 bytes for eight of them.
pub(crate) fn tree_bytes(pairs: usize) -> usize {
    pairs.div_ceil(8) * 192
}
