//! Key bytes to 64 uniform bits, and from there to the hash that users see.
//!
//! There are two functions, and test vectors in docs/FORMAT.md freeze both:
//!
//! * XXH3-64 with a seed, the default. An adversary who can insert chosen keys can find keys that
//!   share a bucket pair, whatever the seed, because XXH3 is not a keyed function.
//! * SipHash-1-3 with a 128-bit secret key, for keys that an adversary may choose.
//!
//! The header of a file names its function, so a filter gives the same answers on every machine.
//!
//! **Route.** From a key to its address, the 64 bits that `geometry` splits into bucket and
//! fingerprint, there is one rule: `address(key) = route(hash(key))`.
//!
//! * The default route is [`finalize`]. A hash may be skewed, or have served another purpose
//!   before: its address is still mixed.
//! * On the other route the hash is the address. The caller vouches for the hashes.
//!
//! [`KeyHasher::hash`] is `unfinalize(digest)`. On the default route the address of a key's bytes
//! is therefore their digest, and mixing costs nothing; and the bits of the public hash reveal
//! nothing about the address.
//!
//! Cost: about 1 ns for a short key with XXH3, a few ns with SipHash. A ready hash in a lookup
//! takes 13 instructions more on the default route than on the other
//! (docs/decisions/0010-hash-route.md).

use core::fmt;
use core::hash::Hasher;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::{Key, KeyData, KeyHash, KeyParts};

/// How keys become 64-bit hashes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHasher {
    /// XXH3-64 with a seed.
    Xxh3 {
        /// Any value. [`DEFAULT_SEED`](Self::DEFAULT_SEED) unless the builder sets another one.
        seed: u64,
    },
    /// SipHash-1-3 with a 128-bit key, for keys chosen by an adversary who does not know it.
    Sip13 {
        /// The secret. The filter's file stores it unencrypted.
        key: [u8; 16],
    },
}

impl KeyHasher {
    /// The seed of XXH3-64 unless another one is set: the bytes of "koelhash" as a little-endian
    /// number. It is not 0, because other systems shard keys by XXH3-64 with seed 0.
    pub const DEFAULT_SEED: u64 = u64::from_le_bytes(*b"koelhash");

    /// The hash of `key`. It is a key itself, and every filter with this hasher treats the two
    /// alike. Any of its bits may also shard keys among filters, without harm to the filters.
    ///
    /// ```
    /// let mut filter = koel::CuckooFilter::with_capacity(100);
    /// let hash = filter.hasher().hash("example.org");
    /// filter.insert(&hash)?;
    /// assert!(filter.contains("example.org"));
    /// # Ok::<(), koel::FullError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Key + ?Sized>(&self, key: &K) -> KeyHash {
        key.with(|data| match data {
            KeyData::Bytes(bytes) => KeyHash::new(unfinalize(self.digest(bytes))),
            KeyData::Parts(parts) => KeyHash::new(unfinalize(self.digest_of_parts(parts))),
            KeyData::Hash(hash) => hash,
        })
    }

    /// The 64 bits that the hash function returns for `bytes`.
    #[inline]
    pub(crate) fn digest(&self, bytes: &[u8]) -> u64 {
        match self {
            Self::Xxh3 { seed } => xxh3(bytes, *seed),
            Self::Sip13 { key } => sip13(bytes, key),
        }
    }

    /// The digest of all parts together.
    #[cold]
    #[inline(never)]
    pub(crate) fn digest_of_parts(&self, parts: KeyParts<'_>) -> u64 {
        match self {
            Self::Xxh3 { seed } => {
                let mut state = Xxh3::with_seed(*seed);
                parts.for_each(|part| state.update(part));
                state.digest()
            }
            Self::Sip13 { key } => {
                let mut state = SipHasher13::new_with_key(key);
                parts.for_each(|part| state.write(part));
                state.finish()
            }
        }
    }
}

/// SipHash-1-3. Not inlined, so that the loops around it keep their registers for XXH3.
#[inline(never)]
pub(crate) fn sip13(bytes: &[u8], key: &[u8; 16]) -> u64 {
    let mut state = SipHasher13::new_with_key(key);
    state.write(bytes);
    state.finish()
}

/// XXH3-64 with a seed.
///
/// The library's function is too large to inline. For the four to eight bytes of an integer this
/// file repeats the few operations of the specification. The compiler then knows the length, and
/// can work on several keys at once.
#[inline(always)]
pub(crate) fn xxh3(bytes: &[u8], seed: u64) -> u64 {
    if let (4..=8, Some(first), Some(last)) = (bytes.len(), bytes.first_chunk(), bytes.last_chunk())
    {
        let [first, last] = [first, last].map(|&half| u64::from(u32::from_le_bytes(half)));
        return xxh3_of_4_to_8(last | first << 32, bytes.len() as u64, seed);
    }
    xxh3_64_with_seed(bytes, seed)
}

/// Section "4-8 bytes of input" of the XXH3 specification, with its default secret.
#[inline]
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

/// The finalizer of SplitMix64 (D. Stafford's mix 13): a bijection in which every bit of the input
/// changes about half of the bits of the output.
#[inline]
pub(crate) fn finalize(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The inverse of [`finalize`]. The factors are the inverses of its factors modulo 2^64.
#[inline]
pub(crate) fn unfinalize(address: u64) -> u64 {
    let mixed = (address ^ address >> 31 ^ address >> 62).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let mixed = (mixed ^ mixed >> 27 ^ mixed >> 54).wrapping_mul(0x96de_1b17_3f11_9089);
    mixed ^ mixed >> 30 ^ mixed >> 60
}

impl Default for KeyHasher {
    fn default() -> Self {
        Self::Xxh3 { seed: Self::DEFAULT_SEED }
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

/// Prints the line of `Display`, so that a secret key never reaches a log.
impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How one filter turns keys into addresses: its hash function and its route.
///
/// The variants are chosen so that one comparison selects the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The XXH3 digest is the address of bytes. Ready hashes are finalized.
    Xxh3 { seed: u64 },
    /// The SipHash digest is the address of bytes. Ready hashes are finalized.
    Sip13 { key: [u8; 16] },
    /// Ready hashes are addresses, because the caller vouches for them.
    Trusted(KeyHasher),
}

impl Route {
    /// The route of this hasher.
    pub(crate) fn new(hasher: KeyHasher, trusts_hashes: bool) -> Self {
        match hasher {
            _ if trusts_hashes => Self::Trusted(hasher),
            KeyHasher::Xxh3 { seed } => Self::Xxh3 { seed },
            KeyHasher::Sip13 { key } => Self::Sip13 { key },
        }
    }

    /// The same route for another hasher.
    pub(crate) fn with_hasher(self, hasher: KeyHasher) -> Self {
        Self::new(hasher, self.trusts_hashes())
    }

    /// The route on which ready hashes are addresses.
    pub(crate) fn trusting(self) -> Self {
        Self::Trusted(self.hasher())
    }

    pub(crate) fn hasher(self) -> KeyHasher {
        match self {
            Self::Xxh3 { seed } => KeyHasher::Xxh3 { seed },
            Self::Sip13 { key } => KeyHasher::Sip13 { key },
            Self::Trusted(hasher) => hasher,
        }
    }

    pub(crate) fn trusts_hashes(self) -> bool {
        matches!(self, Self::Trusted(_))
    }

    /// The address of `key`.
    // Always inlined: as a call, it takes 16 instructions more.
    #[inline(always)]
    pub(crate) fn address<K: Key + ?Sized>(&self, key: &K) -> u64 {
        key.with(
            #[inline(always)]
            |data| match (self, data) {
                (_, KeyData::Hash(hash)) => self.address_of_hash(hash),
                (Self::Xxh3 { seed }, KeyData::Bytes(bytes)) => xxh3(bytes, *seed),
                (_, KeyData::Bytes(bytes)) => self.address_of_bytes(bytes),
                (_, KeyData::Parts(parts)) => self.address_of_parts(parts),
            },
        )
    }

    /// The address of `key` if it needs XXH3 alone or no hash function at all, and `None`
    /// otherwise. For callers that have a separate path for the other cases.
    #[inline(always)]
    pub(crate) fn xxh3_only<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        key.with(|data| match (self, data) {
            (_, KeyData::Hash(hash)) => Some(self.address_of_hash(hash)),
            (Self::Xxh3 { seed }, KeyData::Bytes(bytes)) => Some(xxh3(bytes, *seed)),
            _ => None,
        })
    }

    /// Writes the address of each key. Inlined into vector code, which hashes several keys at once.
    #[inline(always)]
    pub(crate) fn address_each<K: Key>(&self, keys: &[K], addresses: &mut [u64]) {
        let of_parts = |parts: KeyParts<'_>| self.address_of_parts(parts);
        match self {
            Self::Xxh3 { seed } => each(
                keys,
                addresses,
                #[inline(always)]
                |bytes| xxh3(bytes, *seed),
                finalize,
                of_parts,
            ),
            Self::Sip13 { key } => {
                each(keys, addresses, |bytes| sip13(bytes, key), finalize, of_parts);
            }
            Self::Trusted(_) => {
                each(keys, addresses, |bytes| self.address_of_bytes(bytes), |hash| hash, of_parts);
            }
        }
    }

    #[inline]
    fn address_of_hash(&self, hash: KeyHash) -> u64 {
        match self {
            Self::Trusted(_) => hash.get(),
            _ => finalize(hash.get()),
        }
    }

    /// Kept out of line, so that the loops around it keep their registers for XXH3.
    #[cold]
    #[inline(never)]
    fn address_of_bytes(&self, bytes: &[u8]) -> u64 {
        match self {
            Self::Xxh3 { seed } => xxh3(bytes, *seed),
            Self::Sip13 { key } => sip13(bytes, key),
            Self::Trusted(hasher) => unfinalize(hasher.digest(bytes)),
        }
    }

    #[cold]
    fn address_of_parts(&self, parts: KeyParts<'_>) -> u64 {
        let digest = self.hasher().digest_of_parts(parts);
        if self.trusts_hashes() { unfinalize(digest) } else { digest }
    }
}

impl Default for Route {
    fn default() -> Self {
        Self::new(KeyHasher::default(), false)
    }
}

/// Writes the address of each key: from its bytes by `of_bytes`, from its hash by `of_hash`, and
/// from the parts of a long key by `of_parts`.
#[inline(always)]
fn each<K: Key>(
    keys: &[K],
    addresses: &mut [u64],
    of_bytes: impl Fn(&[u8]) -> u64,
    of_hash: impl Fn(u64) -> u64,
    of_parts: impl Fn(KeyParts<'_>) -> u64,
) {
    for (key, address) in keys.iter().zip(addresses) {
        *address = key.with(
            #[inline(always)]
            |data| match data {
                KeyData::Bytes(bytes) => of_bytes(bytes),
                KeyData::Hash(hash) => of_hash(hash.get()),
                KeyData::Parts(parts) => of_parts(parts),
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::keys::splitmix64;

    const HASHERS: [KeyHasher; 2] =
        [KeyHasher::Xxh3 { seed: 3 }, KeyHasher::Sip13 { key: [3; 16] }];

    #[test]
    fn a_key_and_its_hash_have_one_address_on_every_route() {
        let keys = ["", "ada", "grace", "a key longer than sixteen bytes"];
        for hasher in HASHERS {
            for route in [Route::new(hasher, false), Route::new(hasher, true)] {
                let hashes = keys.map(|key| hasher.hash(key));
                let addresses = hashes.map(|hash| route.address(&hash));
                assert_eq!(keys.map(|key| route.address(key)), addresses);
                let (mut of_keys, mut of_hashes) = ([0; 4], [0; 4]);
                route.address_each(&keys, &mut of_keys);
                route.address_each(&hashes, &mut of_hashes);
                assert_eq!([of_keys, of_hashes], [addresses; 2]);
                let fast = hashes.map(|hash| route.xxh3_only(&hash));
                assert_eq!(fast, addresses.map(Some));
            }
        }
    }

    #[test]
    fn a_long_key_and_its_hash_have_one_address_on_every_route() {
        let keys: [[u64; 50]; 4] = core::array::from_fn(|seed| [seed as u64; 50]);
        for hasher in HASHERS {
            for route in [Route::new(hasher, false), Route::new(hasher, true)] {
                let addresses = keys.map(|key| route.address(&hasher.hash(&key)));
                let mut of_keys = [0; 4];
                route.address_each(&keys, &mut of_keys);
                assert_eq!([of_keys, keys.map(|key| route.address(&key))], [addresses; 2]);
            }
        }
    }

    #[test]
    fn the_default_route_keeps_digests_and_a_trusting_route_keeps_hashes() {
        for hasher in HASHERS {
            assert_eq!(Route::new(hasher, false).address("ada"), hasher.digest(b"ada"));
            assert_eq!(Route::new(hasher, true).address(&KeyHash::new(7)), 7);
            assert_ne!(Route::new(hasher, false).address(&KeyHash::new(7)), 7);
        }
    }

    #[test]
    fn the_order_of_the_settings_of_a_route_does_not_matter() {
        let [first, second] = HASHERS;
        let routes = [
            Route::new(first, false).with_hasher(second).trusting(),
            Route::new(first, false).trusting().with_hasher(second),
        ];
        assert_eq!(routes, [Route::new(second, true); 2]);
        assert!(routes[0].trusts_hashes() && routes[0].hasher() == second);
        assert!(!Route::default().trusts_hashes());
    }

    #[test]
    fn finalize_and_unfinalize_are_inverse() {
        let single_bits = (0..64).map(|bit| 1 << bit);
        for word in single_bits.chain([0, u64::MAX]).chain((0..10_000).map(splitmix64)) {
            assert_eq!(unfinalize(finalize(word)), word);
            assert_eq!(finalize(unfinalize(word)), word);
        }
    }
}
