//! Key bytes to 64 uniform bits.
//!
//! Two functions, both frozen by test vectors in docs/FORMAT.md: XXH3-64 with a seed, the default, and SipHash-1-3 with a 128-bit
//! secret key, for keys that an adversary may choose. The file says which one it was built with, so a filter opened anywhere
//! answers alike. Cost: about 1 ns for a short key with XXH3, a few with SipHash.
//!
//! XXH3 is not a keyed function: who can insert keys of their own choice can find keys that share a bucket pair, whatever the seed.

use core::fmt;
use core::hash::Hasher;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Key;

/// How keys become the 64-bit hashes that a filter works on.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHasher {
    /// XXH3-64 with a seed.
    Xxh3 {
        /// Any value; 0 unless the builder was given another one.
        seed: u64,
    },
    /// SipHash-1-3 with a 128-bit key, for keys chosen by an adversary who does not know it.
    Sip13 {
        /// The secret, which is stored in the filter's file as it is.
        key: [u8; 16],
    },
}

impl KeyHasher {
    /// The hash of `key`, as the `*_hash` methods of the filter take it.
    ///
    /// ```
    /// let mut filter = koel::CuckooFilter::with_capacity(100);
    /// let hash = filter.hasher().hash("example.org");
    /// filter.insert_hash(hash)?;
    /// assert!(filter.contains("example.org"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Key + ?Sized>(&self, key: &K) -> u64 {
        key.with_bytes(|bytes| match self {
            Self::Xxh3 { seed } => xxh3_64_with_seed(bytes, *seed),
            Self::Sip13 { key } => {
                let mut state = SipHasher13::new_with_key(key);
                state.write(bytes);
                state.finish()
            }
        })
    }
}

impl Default for KeyHasher {
    fn default() -> Self {
        Self::Xxh3 { seed: 0 }
    }
}

impl fmt::Display for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xxh3 { seed } => write!(f, "xxh3-64 seed {seed}"),
            Self::Sip13 { .. } => f.write_str("siphash-1-3 (keyed)"),
        }
    }
}

/// The same line as `Display`: a secret key never reaches a log.
impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
