//! From a key to its address: the 64 bits that `geometry` splits into bucket and fingerprint.
//!
//! There is one rule: `address(key) = route(hash(key))`.
//!
//! * The default route is [`finalize`]. A hash may be skewed, or have served another purpose
//!   before: its address is still mixed.
//! * On the other route the hash is the address. The caller vouches for the hashes.
//!
//! [`KeyHasher::hash`] is `unfinalize(digest)`. On the default route the address of a key's bytes
//! is therefore their digest, and mixing costs nothing.
//!
//! Cost of a ready hash in a lookup: 13 instructions more on the default route than on the other
//! (docs/decisions/0010-hash-route.md).

use crate::address::hash::{finalize, sip13, unfinalize, xxh3};
use crate::{Key, KeyData, KeyHash, KeyHasher, KeyParts};

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
}
