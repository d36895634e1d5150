//! An entry, and the order of entries: keys ascending, and the versions of a key from the last one
//! to the first.

use std::cmp::Ordering;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The sequence number that comes first among the entries of a key.
pub(super) const LAST_SEQUENCE: u64 = u64::MAX;

/// A version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a [u8],
    /// Greater than those of all earlier versions of the key.
    pub(super) sequence: u64,
    /// `None` if the key was deleted.
    pub(super) value: Option<&'a [u8]>,
}

impl Entry<'_> {
    /// Compares the place of this entry with that of a key and a sequence number.
    #[inline]
    pub(super) fn cmp_place(&self, key: &[u8], sequence: u64) -> Ordering {
        cmp_places((self.key, self.sequence), (key, sequence))
    }
}

/// Compares two places in the order of entries.
#[inline]
pub(super) fn cmp_places(one: (&[u8], u64), other: (&[u8], u64)) -> Ordering {
    one.0.cmp(other.0).then(other.1.cmp(&one.1))
}

/// Returns 8 bytes of `key` from `at` on as a number that compares as they do.
#[inline]
pub(super) fn word_at(key: &[u8], at: usize) -> u64 {
    let rest = key.get(at..).unwrap_or_default();
    let mut bytes = [0; 8];
    let len = rest.len().min(8);
    bytes[..len].copy_from_slice(&rest[..len]);
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns the hash of a key in a store with this seed.
#[inline]
pub(super) fn hash_of(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}
