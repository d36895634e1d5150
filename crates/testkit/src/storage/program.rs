//! Random programs for a store: writes, reads, syncs, compactions and reopenings over a few keys,
//! which are therefore reused often.
//!
//! A program is endless and determined by its seed. Keys are 0 to 40 bytes long. Most values are
//! short, some span several sectors, and a few are longer than a small segment. Values are random
//! bytes, so no two of eight bytes or more are equal by chance.

use super::{Random, Write};

/// One operation.
#[derive(Clone, Debug)]
pub enum Op {
    /// A put, a delete, or a batch of both.
    Write {
        /// The changes.
        changes: Write,
        /// Whether it must be durable when the call returns.
        synced: bool,
    },
    /// Reads one key.
    Get(Vec<u8>),
    /// Makes everything durable.
    Sync,
    /// Compacts the segments with dead bytes.
    Compact,
    /// Iterates over everything.
    Iterate,
    /// Closes and reopens the store.
    Reopen,
}

/// An endless sequence of operations.
#[derive(Clone, Debug)]
pub struct Program {
    random: Random,
    keys: Vec<Vec<u8>>,
    longest: usize,
    /// Half of all programs sync ten times as often as the others.
    patient: bool,
}

impl Program {
    /// The program of `seed` over `keys` keys. Few values are longer than 600 bytes, none is longer
    /// than `longest`.
    #[must_use]
    pub fn new(seed: u64, keys: usize, longest: usize) -> Self {
        let mut random = Random::new(seed);
        // The number in front makes them distinct; the first key is empty.
        let key = |number: usize| {
            let mut key = number.to_string().into_bytes();
            let filler = random.below(36);
            key.extend(random.bytes(filler));
            if number == 0 { Vec::new() } else { key }
        };
        let keys = (0..keys).map(key).collect();
        let patient = random.chance(50);
        Self { random, keys, longest, patient }
    }

    /// All keys that the program uses.
    #[must_use]
    pub fn keys(&self) -> &[Vec<u8>] {
        &self.keys
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(self.keys.len());
        self.keys[number].clone()
    }

    fn value(&mut self) -> Vec<u8> {
        let limit = match self.random.below(100) {
            0..70 => 40,
            70..98 => 600,
            _ => self.longest,
        };
        let len = self.random.below(limit.min(self.longest) + 1);
        self.random.bytes(len)
    }

    fn change(&mut self) -> (Vec<u8>, Option<Vec<u8>>) {
        let key = self.key();
        let value = if self.random.chance(70) { Some(self.value()) } else { None };
        (key, value)
    }

    fn write(&mut self) -> Op {
        let count = if self.random.chance(80) { 1 } else { self.random.below(9) };
        let changes = (0..count).map(|_| self.change()).collect();
        Op::Write { changes, synced: self.random.chance(if self.patient { 20 } else { 2 }) }
    }
}

impl Iterator for Program {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        Some(match self.random.below(200) {
            0..150 => self.write(),
            150..185 => Op::Get(self.key()),
            185..192 if !self.patient => Op::Get(self.key()),
            185..193 => Op::Sync,
            193..196 => Op::Iterate,
            196..198 => Op::Compact,
            _ => Op::Reopen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_program_is_deterministic_and_has_every_operation() {
        let text =
            |seed| format!("{:?}", Program::new(seed, 20, 5_000).take(500).collect::<Vec<_>>());
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
        let syncs = |seed| text(seed).matches("synced: true").count();
        let counts: Vec<usize> = (1..20).map(syncs).collect();
        assert!(counts.iter().any(|&few| few < 20) && counts.iter().any(|&many| many > 50));
        for word in ["Get", "Sync", "Compact", "Iterate", "Reopen", "synced: true", "None)"] {
            assert!(text(1).contains(word), "{word}");
        }
        let program = Program::new(3, 20, 5_000);
        let keys: BTreeSet<_> = program.keys().iter().cloned().collect();
        assert!(keys.len() == 20 && keys.contains(&Vec::new()));
        let writes: Vec<Write> = program
            .take(5_000)
            .filter_map(|op| match op {
                Op::Write { changes, .. } => Some(changes),
                _ => None,
            })
            .collect();
        let longest = writes.iter().flatten().filter_map(|(_, value)| value.as_ref()).map(Vec::len);
        assert!((4_000..=5_000).contains(&longest.max().unwrap()));
        assert!(writes.iter().any(Vec::is_empty) && writes.iter().any(|write| write.len() > 4));
    }
}
