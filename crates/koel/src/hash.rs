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
        key.with_bytes(
            #[inline(always)]
            |bytes| match self {
                Self::Xxh3 { seed } => xxh3(bytes, *seed),
                Self::Sip13 { key } => sip13(bytes, key),
            },
        )
    }
}

impl KeyHasher {
    /// The hash of `key` by the usual function, XXH3; `None` where it takes the other one, for who would rather have a path of its own for that.
    #[inline(always)]
    pub(crate) fn usual<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        match self {
            Self::Xxh3 { seed } => Some(key.with_bytes(
                #[inline(always)]
                |bytes| xxh3(bytes, *seed),
            )),
            Self::Sip13 { .. } => None,
        }
    }
}

/// SipHash-1-3; not inlined, so that the loops around it keep their registers for the usual hash.
#[inline(never)]
fn sip13(bytes: &[u8], key: &[u8; 16]) -> u64 {
    let mut state = SipHasher13::new_with_key(key);
    state.write(bytes);
    state.finish()
}

/// XXH3-64 with a seed. The library's function is a call, and too large to be inlined; for the four to eight bytes of an integer the few
/// operations of the specification stand here, where the compiler knows the length and can work on several keys at once.
#[inline(always)]
fn xxh3(bytes: &[u8], seed: u64) -> u64 {
    if let (4..=8, Some(first), Some(last)) = (bytes.len(), bytes.first_chunk(), bytes.last_chunk())
    {
        let [first, last] = [first, last].map(|&half| u64::from(u32::from_le_bytes(half)));
        return xxh3_of_4_to_8(last | first << 32, bytes.len() as u64, seed);
    }
    xxh3_64_with_seed(bytes, seed)
}

/// Section "4-8 bytes of input" of the XXH3 specification, with its default secret.
#[inline(always)]
fn xxh3_of_4_to_8(halves: u64, len: u64, seed: u64) -> u64 {
    let seed = seed ^ (seed & 0xffff_ffff).swap_bytes();
    let mixed = halves ^ SECRET_8_TO_24.wrapping_sub(seed);
    let mixed = mixed ^ mixed.rotate_left(49) ^ mixed.rotate_left(24);
    let mixed = mixed.wrapping_mul(0x9fb2_1c65_1e98_df25);
    let mixed = (mixed ^ ((mixed >> 35) + len)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    mixed ^ (mixed >> 28)
}

/// Bytes 8 to 15 of the default secret, exclusive or bytes 16 to 23.
const SECRET_8_TO_24: u64 = 0x1cad_21f7_2c81_017c ^ 0xdb97_9083_e96d_d4de;

impl KeyHasher {
    /// The hash of each of `keys`. Inlined into vector code, several integers at once.
    #[inline(always)]
    pub(crate) fn hash_each<K: Key>(&self, keys: &[K], hashes: &mut [u64]) {
        match self {
            Self::Xxh3 { seed } => {
                for (key, hash) in keys.iter().zip(hashes) {
                    *hash = key.with_bytes(
                        #[inline(always)]
                        |bytes| xxh3(bytes, *seed),
                    );
                }
            }
            Self::Sip13 { key: secret } => {
                for (key, hash) in keys.iter().zip(hashes) {
                    *hash = key.with_bytes(|bytes| sip13(bytes, secret));
                }
            }
        }
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
