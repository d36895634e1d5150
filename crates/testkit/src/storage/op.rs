//! One operation of a store under trial.

use std::ops::Bound;

use super::{State, Write};

/// One operation. Only a store with keys in order has those after `Reopen`.
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
