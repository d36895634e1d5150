//! A cheap hasher, for the rivals that accept one.
//!
//! Their default is SipHash, which costs more than the filter itself. With this hasher, the
//! comparison is not decided by the hash. It folds one 64x64-bit product per word and one at the
//! end: good enough for random keys, not a hash for other uses.

use std::hash::{BuildHasherDefault, Hasher};

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Default)]
pub(crate) struct Mix(u64);

pub(super) type BuildMix = BuildHasherDefault<Mix>;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let (low, high) = a.carrying_mul(b, 0);
    low ^ high
}

impl Hasher for Mix {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word ^ 0xa076_1d64_78bd_642f, ODD);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        fold(self.0 ^ 0xe703_7ed1_a0b4_28db, ODD)
    }
}
