//! Random programs for an ordered store: those of any store, and snapshots, ranges, flushes,
//! ingestions and checkpoints among them.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Op, Program, Random, State};

/// One operation of an ordered store.
#[derive(Clone, Debug)]
pub enum OrderedOp {
    /// An operation that every store has.
    Common(Op),
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
    /// Makes a copy, and reads everything in it.
    Checkpoint,
}

/// An endless sequence of operations.
#[derive(Clone, Debug)]
pub struct OrderedProgram {
    program: Program,
    random: Random,
}

impl OrderedProgram {
    /// The program of `seed` over `keys` keys, with values of up to `longest` bytes.
    #[must_use]
    pub fn new(seed: u64, keys: usize, longest: usize) -> Self {
        let random = Random::new(seed ^ 0x6f72_6465_7265_6400);
        Self { program: Program::new(seed, keys, longest), random }
    }

    /// All keys that the program uses.
    #[must_use]
    pub fn keys(&self) -> &[Vec<u8>] {
        self.program.keys()
    }

    fn key(&mut self) -> Vec<u8> {
        let keys = self.program.keys();
        keys[self.random.below(keys.len())].clone()
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        let key = self.key();
        let key = if self.random.chance(70) { key } else { self.random.bytes(2) };
        match self.random.below(5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Excluded(key),
            _ => Bound::Included(key),
        }
    }

    fn range(&mut self) -> OrderedOp {
        let bounds = (self.bound(), self.bound());
        let count = self.random.below(20);
        let back = [0, 100, 50][self.random.below(3)];
        let steps = (0..count).map(|_| !self.random.chance(back)).collect();
        OrderedOp::Range { bounds, steps }
    }

    fn prefix(&mut self) -> OrderedOp {
        let mut prefix = self.key();
        prefix.truncate(self.random.below(4));
        OrderedOp::Prefix(prefix)
    }

    fn ingest(&mut self) -> OrderedOp {
        let count = self.random.below(30);
        let entries: BTreeMap<_, _> = (0..count)
            .map(|_| {
                let len = self.random.below(300);
                (self.key(), self.random.bytes(len))
            })
            .collect();
        OrderedOp::Ingest(entries)
    }
}

impl Iterator for OrderedProgram {
    type Item = OrderedOp;

    fn next(&mut self) -> Option<OrderedOp> {
        Some(match self.random.below(400) {
            0..4 => OrderedOp::Flush,
            4..6 => self.ingest(),
            6..8 => OrderedOp::Snapshot,
            8..10 => OrderedOp::ReadSnapshot,
            10..30 => self.range(),
            30..36 => self.prefix(),
            36..46 => {
                let count = self.random.below(20);
                OrderedOp::GetMany((0..count).map(|_| self.key()).collect())
            }
            46 => OrderedOp::Checkpoint,
            _ => OrderedOp::Common(self.program.next()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_deterministic_and_has_every_operation() {
        let text = |seed| {
            let program = OrderedProgram::new(seed, 20, 5_000);
            format!("{:?}", program.take(2_000).collect::<Vec<_>>())
        };
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
        for word in [
            "Common(Get(",
            "GetMany",
            "Range",
            "Prefix",
            " Snapshot",
            "ReadSnapshot",
            "Flush",
            "Ingest",
            "Checkpoint",
            "Unbounded",
            "Excluded",
            "Included",
        ] {
            assert!(text(1).contains(word), "{word}");
        }
    }
}
