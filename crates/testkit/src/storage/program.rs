//! Random programs for a store: writes, reads, syncs, compactions and reopenings over a few keys,
//! which are therefore reused often.
//!
//! A program is endless and determined by its seed. Keys are 0 to 40 bytes long. Most values are
//! short, some span several sectors, and a few are longer than a small segment. Values are random
//! bytes, so no two of eight bytes or more are equal by chance.

use std::ops::Bound;

use super::{Random, State, Write};

/// One operation. Only a store with keys in order has those after `Checkpoint`.
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
    /// Makes a copy, and reads everything in it.
    Checkpoint,
    /// Reads several keys at once.
    GetMany(Vec<Vec<u8>>),
    /// Reads a range of keys. Each step is true to read from the front, false from the back.
    Range {
        /// The bounds.
        bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        /// Where each entry is taken; when they are used up, the rest is taken from the front.
        steps: Vec<bool>,
    },
    /// Reads all keys that start with this.
    Prefix(Vec<u8>),
    /// Takes a snapshot.
    Snapshot,
    /// Reads everything through the oldest snapshot, and drops it.
    ReadSnapshot,
    /// Writes everything in memory into tables.
    Flush,
    /// Adds sorted entries at once.
    Ingest(State),
    /// Deletes a range of keys.
    DeleteRange {
        /// The bounds.
        bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        /// Whether it must be durable when the call returns.
        synced: bool,
    },
    /// Deletes all keys that start with this.
    DeletePrefix(Vec<u8>),
}

impl Op {
    /// Returns what it writes.
    #[must_use]
    pub fn changes(&self) -> Write {
        match self {
            Self::Write { changes, .. } => changes.clone(),
            Self::Ingest(entries) => {
                entries.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
            }
            _ => Write::new(),
        }
    }
}

/// An endless sequence of operations.
#[derive(Clone, Debug)]
pub struct Program {
    random: Random,
    keys: Vec<Vec<u8>>,
    longest: usize,
    /// Half of all programs sync ten times as often as the others.
    patient: bool,
    /// What chooses when to make a copy. It is apart, so that all else is as it would be without.
    copies: Random,
    /// What chooses operations of a store with keys in order, if it is for one.
    ordered: Option<Random>,
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
        let copies = Random::new(seed ^ 0x636f_7069_6573_0000);
        Self { random, keys, longest, patient, copies, ordered: None }
    }

    /// The same for a store with keys in order: its operations come between those of any store.
    #[must_use]
    pub fn ordered(seed: u64, keys: usize, longest: usize) -> Self {
        let random = Random::new(seed ^ 0x6f72_6465_7265_6400);
        Self { ordered: Some(random), ..Self::new(seed, keys, longest) }
    }

    /// All keys that the program uses.
    #[must_use]
    pub fn keys(&self) -> &[Vec<u8>] {
        &self.keys
    }

    fn key(&mut self) -> Vec<u8> {
        key(&mut self.random, &self.keys)
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
        if let Some(random) = &mut self.ordered
            && let Some(op) = ordered(random, &self.keys)
        {
            return Some(op);
        }
        if self.copies.below(400) == 0 {
            return Some(Op::Checkpoint);
        }
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

/// Returns an operation that only a store with keys in order has, about once in nine times.
fn ordered(random: &mut Random, keys: &[Vec<u8>]) -> Option<Op> {
    Some(match random.below(400) {
        0..4 => Op::Flush,
        4..6 => ingest(random, keys),
        6..8 => Op::Snapshot,
        8..10 => Op::ReadSnapshot,
        10..30 => range(random, keys),
        30..36 => {
            let mut prefix = key(random, keys);
            prefix.truncate(random.below(4));
            Op::Prefix(prefix)
        }
        36..46 => Op::GetMany((0..random.below(20)).map(|_| key(random, keys)).collect()),
        46..50 => delete_range(random, keys),
        50 => {
            let mut prefix = key(random, keys);
            prefix.truncate(1 + random.below(3));
            Op::DeletePrefix(prefix)
        }
        _ => return None,
    })
}

fn key(random: &mut Random, keys: &[Vec<u8>]) -> Vec<u8> {
    keys[random.below(keys.len())].clone()
}

fn bound(random: &mut Random, keys: &[Vec<u8>]) -> Bound<Vec<u8>> {
    let key = key(random, keys);
    let key = if random.chance(70) { key } else { random.bytes(2) };
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

fn range(random: &mut Random, keys: &[Vec<u8>]) -> Op {
    let bounds = (bound(random, keys), bound(random, keys));
    let count = random.below(20);
    let back = [0, 100, 50][random.below(3)];
    let steps = (0..count).map(|_| !random.chance(back)).collect();
    Op::Range { bounds, steps }
}

/// Most ranges are short: otherwise the store would have few entries.
fn delete_range(random: &mut Random, keys: &[Vec<u8>]) -> Op {
    let mut bounds = (bound(random, keys), bound(random, keys));
    if random.chance(80) {
        let mut all: Vec<_> = keys.iter().collect();
        all.sort_unstable();
        let first = random.below(all.len());
        let last = all[(first + random.below(6)).min(all.len() - 1)].clone();
        bounds = (Bound::Included(all[first].clone()), Bound::Included(last));
    }
    Op::DeleteRange { bounds, synced: random.chance(20) }
}

fn ingest(random: &mut Random, keys: &[Vec<u8>]) -> Op {
    let count = random.below(30);
    let mut entry = || {
        let len = random.below(300);
        (key(random, keys), random.bytes(len))
    };
    Op::Ingest((0..count).map(|_| entry()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn text(program: Program) -> String {
        format!("{:?}", program.take(2_000).collect::<Vec<_>>())
    }

    #[test]
    fn a_program_is_deterministic_and_has_every_operation() {
        let of_seed = |seed| text(Program::new(seed, 20, 5_000));
        assert_eq!(of_seed(1), of_seed(1));
        assert_ne!(of_seed(1), of_seed(2));
        let syncs = |seed| of_seed(seed).matches("synced: true").count();
        let counts: Vec<usize> = (1..20).map(syncs).collect();
        assert!(counts.iter().any(|&few| few < 80) && counts.iter().any(|&many| many > 200));
        let ordered = text(Program::ordered(1, 20, 5_000));
        let all =
            ["Get(", "Sync", "Compact", "Iterate", "Reopen", "Checkpoint", "synced: true", "None)"];
        for word in all {
            assert!(of_seed(1).contains(word) && ordered.contains(word), "{word}");
        }
        let ordered_only = ["GetMany", "Range", "Prefix", " Snapshot", "ReadSnapshot", "Flush"];
        for word in ordered_only.into_iter().chain(["Ingest", "DeleteRange", "DeletePrefix"]) {
            assert!(ordered.contains(word) && !of_seed(1).contains(word), "{word}");
        }
        for word in ["Unbounded", "Excluded", "Included"] {
            assert!(ordered.contains(word), "{word}");
        }
    }

    #[test]
    fn keys_and_values_have_the_lengths_asked_for() {
        let program = Program::new(3, 20, 5_000);
        let keys: BTreeSet<_> = program.keys().iter().cloned().collect();
        assert!(keys.len() == 20 && keys.contains(&Vec::new()));
        let is_write = |op: &Op| matches!(op, Op::Write { .. });
        let writes: Vec<Write> =
            program.take(5_000).filter(is_write).map(|op| op.changes()).collect();
        let longest = writes.iter().flatten().filter_map(|(_, value)| value.as_ref()).map(Vec::len);
        assert!((4_000..=5_000).contains(&longest.max().unwrap()));
        assert!(writes.iter().any(Vec::is_empty) && writes.iter().any(|write| write.len() > 4));
    }
}
