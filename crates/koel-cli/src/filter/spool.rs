//! Keeps the hashes of keys that can be read only once, until their number is known.
//!
//! A fixed filter needs the number of keys before the first key is inserted, and a pipe tells it
//! only at its end. A filter treats the hash of a key like the key ([`KeyHash`]), so the filter is
//! byte for byte the one that a file of these keys would give.
//!
//! Layout: 8 bytes per key, little-endian, in the order of the keys. The hashes are in memory up to
//! [`MEMORY`], and above it in an unnamed file in `TMPDIR`. The system deletes that file when the
//! process ends, even if it is killed. Cost: one hash and two copies of 8 bytes per key.
//!
//! **The number of keys.** The first copy of a key takes a slot, and so does a second one if there
//! are many slots. A counter counts all further copies. So a capacity of twice the distinct keys is
//! always enough, and with `--unique` that of the distinct keys. Where few keys repeat, the exact
//! number of keys is smaller.
//!
//! Source: `HyperLogLog` (Flajolet, Fusy, Gandouet, Meunier 2007). A register holds the longest
//! run of zeros of the hashes that name it. The standard error is `1.04 / sqrt(registers)`. Cost:
//! 16 KiB of memory, and ten instructions per key, a fifth of those of crates with packed
//! registers.

use std::io::{self, BufWriter, Read, Seek, Write};

use koel::{KeyHash, KeyHasher};
use tempfile::SpooledTempFile;

use crate::failure::{self, Failure};
use crate::progress::{Progress, Stdout};
use crate::quantity;

/// The bytes of hashes that are kept in memory: those of two million keys.
const MEMORY: usize = 16 << 20;
/// Bytes per write and per read: a whole number of hashes.
const BUFFER: usize = 256 << 10;
pub(crate) const HASH_BYTES: u64 = 8;

/// Hashes in the order in which they came.
#[derive(Debug)]
pub(crate) struct Spool {
    hashes: BufWriter<SpooledTempFile>,
    len: u64,
}

impl Spool {
    pub(crate) fn new() -> Self {
        Self { hashes: BufWriter::with_capacity(BUFFER, SpooledTempFile::new(MEMORY)), len: 0 }
    }

    pub(crate) fn push(&mut self, hashes: &[KeyHash]) -> Result<(), Failure> {
        self.len += hashes.len() as u64;
        let mut bytes = hashes.iter().map(|hash| hash.get().to_le_bytes());
        bytes.try_for_each(|hash| self.hashes.write_all(&hash)).map_err(|error| failure(&error))
    }

    /// Passes every hash to `take`, in groups. May be called again.
    pub(crate) fn each(
        &mut self,
        label: &'static str,
        mut take: impl FnMut(&[KeyHash]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let progress = Progress::start(label, Some(self.len * HASH_BYTES), Stdout::Silent);
        // Writes what is buffered first.
        self.hashes.rewind().map_err(|error| failure(&error))?;
        let mut hashes = progress.meter(self.hashes.get_mut());
        loop {
            let group = read_hashes(&mut hashes).map_err(|error| failure(&error))?;
            if group.is_empty() {
                return Ok(());
            }
            take(&group)?;
        }
    }
}

/// The next hashes of a file; none at its end.
pub(crate) fn read_hashes(file: &mut impl Read) -> io::Result<Vec<KeyHash>> {
    let mut bytes = Vec::with_capacity(BUFFER);
    file.by_ref().take(BUFFER as u64).read_to_end(&mut bytes)?;
    let words = bytes.as_chunks().0.iter();
    Ok(words.map(|&word| KeyHash::new(u64::from_le_bytes(word))).collect())
}

/// The hash of each key.
pub(crate) fn hash_each(hasher: KeyHasher, keys: &[&[u8]]) -> Vec<KeyHash> {
    keys.iter().map(|key| hasher.hash(key)).collect()
}

fn failure(error: &io::Error) -> Failure {
    Failure::Usage(format!(
        "cannot keep the hashes of the keys in a temporary file in {}: {}; set TMPDIR to a folder \
         with 8 free bytes per key, or give --keys or --grow",
        std::env::temp_dir().display(),
        failure::describe(error)
    ))
}

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

    #[test]
    fn hashes_come_back_in_order_as_often_as_asked_from_memory_and_from_a_file() {
        let in_memory = (MEMORY as u64) / HASH_BYTES;
        for len in [0, 1, 100_000, in_memory, in_memory + 1, in_memory + 100_000] {
            let mut spool = Spool::new();
            let hashes: Vec<KeyHash> = (0..len).map(|hash| KeyHash::new(!hash)).collect();
            hashes.chunks(1000).try_for_each(|group| spool.push(group)).unwrap();
            for _ in 0..2 {
                let mut next = 0;
                let read = spool.each("reading", |group| {
                    for hash in group {
                        assert_eq!(hash.get(), !next);
                        next += 1;
                    }
                    Ok(())
                });
                read.unwrap();
                assert_eq!(next, len);
            }
            assert_eq!(spool.hashes.get_ref().is_rolled(), len > in_memory);
        }
    }

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
