//! The map's default hash: SipHash-1-3 under a 128-bit key, as in std.
//!
//! Why this one: the map promises a bounded lookup, and the bound is only as good as the hash. Who
//! can choose keys that share all their buckets fills the overflow list, which is searched from end
//! to end. A keyed hash takes that away from everyone who does not know the key; XXH3 would be
//! faster and cannot (see `hash.rs`).
//!
//! Cost: some 7 ns for an integer, less than one of the cache misses of a lookup in a large map.

use core::fmt;
use core::hash::{BuildHasher, Hasher};
use core::ptr;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_128;

/// Hashes with SipHash-1-3 under a 128-bit key: the default of [`CuckooMap`](crate::CuckooMap).
///
/// [`SipState::default`] makes its key from addresses in this process, the only thing that differs
/// between runs where there is no standard library. With address space layout randomisation, the
/// rule on today's systems, nobody outside can easily guess it, and the order of iteration differs
/// from run to run. Without, as on bare metal, the key is the same in every run, and who knows the
/// program can find keys that collide. A program with std that must not rely on that takes
/// `std::hash::RandomState` in its place; one with a secret of its own takes
/// [`SipState::with_key`].
///
/// ```
/// use std::hash::RandomState;
/// use koel::{CuckooMap, map::SipState};
///
/// let state = SipState::with_key(*b"sixteen bytes ok");
/// let mut reproducible = CuckooMap::<_, _, _>::with_hasher(state);
/// reproducible.insert("ada", 1815);
/// let mut random = CuckooMap::<&str, u32, RandomState>::default();
/// random.insert("ada", 1815);
/// ```
#[derive(Clone)]
pub struct SipState {
    start: SipHasher13,
}

impl SipState {
    /// The hash under this key: the same in every run, and on every machine of this byte order and
    /// width of `usize`.
    #[must_use]
    pub fn with_key(key: [u8; 16]) -> Self {
        Self { start: SipHasher13::new_with_key(&key) }
    }
}

impl Default for SipState {
    /// A key made from addresses; see the type.
    fn default() -> Self {
        static PROGRAM: u8 = 0;
        let stack = 0_u8;
        let [program, stack] = [&PROGRAM, &stack].map(|byte| ptr::from_ref(byte).addr() as u64);
        let seed = (u128::from(program) << 64) | u128::from(stack);
        Self::with_key(xxh3_128(&seed.to_le_bytes()).to_le_bytes())
    }
}

/// Without the key, which is secret.
impl fmt::Debug for SipState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SipState").finish_non_exhaustive()
    }
}

impl BuildHasher for SipState {
    type Hasher = SipHasher;

    #[inline]
    fn build_hasher(&self) -> SipHasher {
        SipHasher(self.start)
    }
}

/// The running hash of one key, made by [`SipState`].
#[derive(Clone)]
pub struct SipHasher(SipHasher13);

/// Without its state, from which the key could be worked out.
impl fmt::Debug for SipHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SipHasher").finish_non_exhaustive()
    }
}

/// Integers of up to 64 bits have a shorter way than slices of bytes.
impl Hasher for SipHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.0.write_u8(word);
    }

    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.0.write_u16(word);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.0.write_u32(word);
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0.write_u64(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.0.write_usize(word);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}
