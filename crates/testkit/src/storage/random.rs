//! Pseudo-random numbers determined by a seed: SplitMix64.

use crate::keys::splitmix64;

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    /// Returns the sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed: splitmix64(seed), drawn: 0 }
    }

    /// Returns the next number of 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.drawn += 1;
        splitmix64(self.seed.wrapping_add(self.drawn))
    }

    /// Returns the next number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next_u64() % limit as u64).expect("below a usize")
    }

    /// Returns true in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.next_u64() % 100 < u64::from(percent)
    }

    /// Returns `count` incompressible bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = count.div_ceil(8);
        let mut bytes: Vec<u8> = (0..words).flat_map(|_| self.next_u64().to_le_bytes()).collect();
        bytes.truncate(count);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_and_chances_are_right() {
        let draw = |seed| Random::new(seed).bytes(100);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut random = Random::new(3);
        let kept = (0..10_000).filter(|_| random.chance(25)).count();
        assert!((2_300..2_700).contains(&kept), "{kept}");
        assert!((0..100).all(|_| !random.chance(0) && random.chance(100)));
    }
}
