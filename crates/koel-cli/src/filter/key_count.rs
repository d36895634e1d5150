//! Counts the keys of a filter to be built: all of them, and about how many distinct ones.
//!
//! The first copy of a key takes a slot, and so does a second one if there are many slots. A
//! counter counts all further copies. So a capacity of twice the distinct keys is always enough,
//! and with `--unique` that of the distinct keys. Where few keys repeat, the exact number of keys
//! is smaller.
//!
//! Source: `HyperLogLog` (Flajolet, Fusy, Gandouet, Meunier 2007). A register holds the longest
//! run of zeros of the hashes that name it. The standard error is `1.04 / sqrt(registers)`. Cost:
//! 16 KiB of memory, and ten instructions per key, a fifth of those of crates with packed
//! registers.

use koel::KeyHash;

use crate::quantity;

const REGISTERS: usize = 1 << 14;
/// Five standard errors.
const MARGIN: f64 = 5.0 * 1.04 / 128.0;
/// The estimate is used only if it saves a tenth: it is not exact.
const WORTHWHILE: f64 = 0.9;
/// Keys before the first look for repetition.
const FIRST_LOOK: u64 = 1 << 16;

/// The keys so far.
#[derive(Debug)]
pub(crate) struct KeyCount {
    keys: u64,
    registers: Box<[u8; REGISTERS]>,
    /// The number of keys at which the next look for repetition is due.
    next_look: u64,
}

impl KeyCount {
    pub(crate) fn new() -> Self {
        Self { keys: 0, registers: Box::new([0; REGISTERS]), next_look: FIRST_LOOK }
    }

    pub(crate) fn add(&mut self, keys: &[KeyHash]) {
        self.keys += keys.len() as u64;
        for key in keys {
            let [low, high, rest @ ..] = key.get().to_le_bytes();
            let register = usize::from(u16::from_le_bytes([low, high])) % REGISTERS;
            let [a, b, c, d, e, f] = rest;
            let zeros = u64::from_le_bytes([a, b, c, d, e, f, 1, 0]).trailing_zeros();
            let held = &mut self.registers[register];
            *held = (*held).max(zeros.to_le_bytes()[0] + 1);
        }
    }

    /// All keys, copies included.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// The capacity of a filter for these keys, of which copies count only if not `unique`.
    pub(crate) fn capacity(&self, unique: bool) -> u64 {
        let copies = if unique { 1.0 } else { 2.0 };
        let enough = copies * (1.0 + MARGIN) * self.distinct();
        if enough < WORTHWHILE * self.keys as f64 {
            quantity::to_u64(enough) + 1
        } else {
            self.keys
        }
    }

    /// Whether so many keys repeat that the capacity is smaller than their number. Looks each time
    /// that the number has doubled, and returns false in between.
    pub(crate) fn repeats(&mut self, unique: bool) -> bool {
        if self.keys < self.next_look {
            return false;
        }
        self.next_look = 2 * self.keys;
        self.capacity(unique) < self.keys
    }

    /// The estimated number of distinct keys.
    fn distinct(&self) -> f64 {
        let registers = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|&run| (-f64::from(run)).exp2()).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = self.registers.iter().filter(|&&run| run == 0).count();
        if estimate <= 2.5 * registers && empty > 0 {
            // Linear counting, which is more exact for few keys.
            registers * (registers / empty as f64).ln()
        } else {
            estimate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count of `distinct` keys that come `copies` times each.
    fn count(distinct: u64, copies: u64) -> KeyCount {
        let hasher = koel::KeyHasher::default();
        let hashes: Vec<KeyHash> = (0..distinct).map(|key| hasher.hash(&key)).collect();
        let mut count = KeyCount::new();
        (0..copies).for_each(|_| count.add(&hashes));
        count
    }

    #[test]
    fn a_list_without_copies_gets_exactly_its_size() {
        for keys in [0, 1, 7, 130, 5_000, 40_000, 60_000, 1_000_000] {
            for unique in [false, true] {
                assert_eq!(count(keys, 1).capacity(unique), keys);
            }
        }
    }

    #[test]
    fn a_list_with_copies_gets_room_for_each_distinct_key_and_little_more() {
        for distinct in [1, 7, 130, 5_000, 40_000, 60_000, 300_000] {
            let count = count(distinct, 5);
            for (unique, slots) in [(true, distinct), (false, 2 * distinct)] {
                let capacity = count.capacity(unique);
                let most = quantity::to_u64(slots as f64 * (1.0 + 2.0 * MARGIN)) + 2;
                assert!((slots..=most).contains(&capacity), "{capacity} for {slots}");
            }
        }
    }
}
