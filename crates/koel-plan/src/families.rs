//! The memory of other filters, by the formulas of their papers.
//!
//! Bits per key `b` at false-positive rate `p`, without headers:
//! - Bloom: `b = log2(1/p) / ln 2 = 1.4427 log2(1/p)`, with the best number of hashes (Bloom 1970;
//!   Broder, Mitzenmacher 2004, 2.2).
//! - Blocked Bloom, 512-bit blocks: a block holds Poisson(512/b) keys. A block with `i` keys of `k`
//!   bits each has the rate `(1 - (1 - 1/512)^(k i))^k`. `p` is the mean over `i` at the best `k`
//!   (Putze, Sanders, Singler 2007, section 3).
//! - Xor: `b = 1.23 L` and `p = 2^-L` for a fingerprint of `L` bits (Graf, Lemire 2020).
//! - Binary fuse, 3-wise: `b = 1.125 L` and `p = 2^-L` for large sets (Graf, Lemire 2022, table 1).
//!
//! Operations: Bloom filters accept new keys but no removals. Xor and fuse filters are built once
//! from all keys. None of them counts.

use std::f64::consts::LN_2;

const BLOCK_BITS: f64 = 512.0;
/// With fewer bits per key a block has more than 512 keys, and nearly every answer is positive.
const FEWEST_BITS: f64 = 1.0;
const XOR_BITS: f64 = 1.23;
const FUSE_BITS: f64 = 1.125;

/// A kind of filter that Koel is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// One bit array, several hashes.
    Bloom,
    /// All bits of a key in one block of 512 bits.
    BlockedBloom,
    /// Fingerprints, each the sum of three cells of a static table.
    Xor,
    /// The same in a smaller table.
    BinaryFuse,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bloom, Self::BlockedBloom, Self::Xor, Self::BinaryFuse];

    /// What a table calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bloom => "Bloom",
            Self::BlockedBloom => "blocked Bloom, 512-bit",
            Self::Xor => "xor",
            Self::BinaryFuse => "binary fuse",
        }
    }

    /// Whether keys can be added after construction.
    #[must_use]
    pub fn can_add(self) -> bool {
        matches!(self, Self::Bloom | Self::BlockedBloom)
    }

    /// Bits per key for a false-positive rate; `None` if the family cannot reach it.
    #[must_use]
    pub fn bits_per_key(self, rate: f64) -> Option<f64> {
        match self {
            Self::Bloom => Some(-rate.log2() / LN_2),
            Self::BlockedBloom => blocked_bloom_bits(rate),
            Self::Xor => Some(XOR_BITS * whole_bits(rate)),
            Self::BinaryFuse => Some(FUSE_BITS * whole_bits(rate)),
        }
    }

    /// The false-positive rate for bits per key; `None` if they are too few.
    #[must_use]
    pub fn rate(self, bits_per_key: f64) -> Option<f64> {
        let rate = match self {
            Self::Bloom => (-bits_per_key * LN_2).exp2(),
            Self::BlockedBloom => blocked_bloom_rate(bits_per_key),
            Self::Xor => (-(bits_per_key / XOR_BITS).floor()).exp2(),
            Self::BinaryFuse => (-(bits_per_key / FUSE_BITS).floor()).exp2(),
        };
        (rate < 1.0).then_some(rate)
    }
}

/// The fingerprint width in whole bits. The tolerance keeps powers of two from rounding up.
fn whole_bits(rate: f64) -> f64 {
    (-rate.log2() - 1e-9).ceil()
}

/// The false-positive rate with the best number of hashes.
fn blocked_bloom_rate(bits_per_key: f64) -> f64 {
    if bits_per_key < FEWEST_BITS {
        return 1.0;
    }
    // More than one block per key gains nothing.
    let mean = (BLOCK_BITS / bits_per_key).max(1.0);
    (1..=40).map(|hashes| mean_block_rate(mean, hashes)).fold(1.0, f64::min)
}

/// The mean false-positive rate of blocks that hold Poisson(`mean`) keys of `hashes` bits each.
fn mean_block_rate(mean: f64, hashes: i32) -> f64 {
    let kept = (1.0 - 1.0 / BLOCK_BITS).powi(hashes);
    let mut probability = (-mean).exp();
    let mut zeros = 1.0;
    let mut sum = 0.0;
    let mut keys = 0.0;
    // Sums to 12 standard deviations above the mean; the rest is below 1e-30.
    while keys < mean + 12.0 * mean.sqrt() + 40.0 {
        sum += probability * (1.0_f64 - zeros).powi(hashes);
        keys += 1.0;
        probability *= mean / keys;
        zeros *= kept;
    }
    sum
}

fn blocked_bloom_bits(rate: f64) -> Option<f64> {
    let (mut too_few, mut enough) = (FEWEST_BITS, BLOCK_BITS);
    if blocked_bloom_rate(enough) > rate {
        return None;
    }
    for _ in 0..60 {
        let middle = (too_few + enough) / 2.0;
        if blocked_bloom_rate(middle) > rate { too_few = middle } else { enough = middle }
    }
    Some(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_per_key_and_rate_are_inverse_functions() {
        for family in Family::ALL {
            for exponent in 3..20 {
                let rate = f64::from(-exponent).exp2();
                let bits = family.bits_per_key(rate).unwrap();
                let back = family.rate(bits + 1e-9).unwrap();
                assert!((back / rate - 1.0).abs() < 1e-6, "{family:?} {rate} {bits} {back}");
            }
        }
    }

    #[test]
    fn the_formulas_match_the_figures_of_the_papers() {
        let bits = |family: Family, rate: f64| family.bits_per_key(rate).unwrap();
        assert!((bits(Family::Bloom, 0.01) - 9.585).abs() < 0.001);
        assert!((bits(Family::Xor, 1.0 / 256.0) - 9.84).abs() < 1e-9);
        assert!((bits(Family::BinaryFuse, 1.0 / 256.0) - 9.0).abs() < 1e-9);
    }

    #[test]
    fn the_blocked_bloom_formula_matches_a_simulation() {
        // 12 bits per key, 8 hashes: insert keys into 4096 blocks, then look up absent keys.
        let (blocks, keys, hashes) = (4096_u64, 174_763, 8);
        let mut table = vec![[0_u64; 8]; 4096];
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        let index = |word: u64| usize::try_from(word).unwrap();
        for _ in 0..keys {
            let block = &mut table[index(next() % blocks)];
            for _ in 0..hashes {
                let bit = next() % 512;
                block[index(bit / 64)] |= 1 << (bit % 64);
            }
        }
        let asked = 1_000_000;
        let wrong = (0..asked)
            .filter(|_| {
                let block = table[index(next() % blocks)];
                // Draws every bit, so that the random numbers do not depend on the answers.
                (0..hashes).fold(true, |all, _| {
                    let bit = next() % 512;
                    all & (block[index(bit / 64)] >> (bit % 64) & 1 == 1)
                })
            })
            .count();
        let expected = mean_block_rate(512.0 / 12.0, hashes) * f64::from(asked);
        let deviation = (wrong as f64 - expected).abs() / expected.sqrt();
        assert!(deviation < 5.0, "{wrong} false positives, {expected} expected");
    }
}
