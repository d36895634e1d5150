//! A place in a memtable.
//!
//! A cursor copies references to the next few entries at a time. Entries that are inserted later
//! have greater sequence numbers than its reader sees, so it may miss them.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use super::super::entry::{Cursor, Entry, LAST_SEQUENCE};
use super::{Memtable, Place, Shared, Sought};
use crate::Error;

/// Entries that a cursor copies at a time, at least and at most.
const AHEAD: [usize; 2] = [2, 64];

/// A place in a memtable.
#[derive(Debug)]
pub(in crate::lsm) struct MemtableCursor {
    memtable: Arc<Memtable>,
    at: At,
    /// The entries that follow, in the direction of the last step.
    ahead: VecDeque<Shared>,
    forwards: bool,
    /// Entries to copy next.
    count: usize,
}

#[derive(Clone, Debug)]
enum At {
    Start,
    Entry(Shared),
    End,
}

impl MemtableCursor {
    pub(in crate::lsm) fn new(memtable: Arc<Memtable>) -> Self {
        let (at, ahead, forwards, count) = (At::Start, VecDeque::new(), true, AHEAD[0]);
        Self { memtable, at, ahead, forwards, count }
    }

    /// Moves to the first entry within `bound`, or in the other direction to the last one.
    fn jump(&mut self, bound: Bound<&dyn Place>, forwards: bool) {
        self.ahead.clear();
        self.forwards = forwards;
        self.count = AHEAD[0];
        self.fill(bound);
        self.take_ahead();
    }

    fn step(&mut self, forwards: bool) {
        if self.forwards != forwards {
            self.ahead.clear();
            self.forwards = forwards;
            self.count = AHEAD[0];
        }
        if self.ahead.is_empty() {
            match (self.at.clone(), forwards) {
                (At::Entry(entry), _) => self.fill(Bound::Excluded(&entry)),
                (At::Start, true) | (At::End, false) => self.fill(Bound::Unbounded),
                (At::Start, false) | (At::End, true) => {}
            }
        }
        self.take_ahead();
    }

    /// Copies references to the next entries.
    fn fill(&mut self, bound: Bound<&dyn Place>) {
        let entries = &self.memtable.entries;
        let mut next =
            if self.forwards { entries.lower_bound(bound) } else { entries.upper_bound(bound) };
        while let Some(entry) = next.filter(|_| self.ahead.len() < self.count) {
            self.ahead.push_back(entry.value().clone());
            next = if self.forwards { entry.next() } else { entry.prev() };
        }
        self.count = (self.count * 2).min(AHEAD[1]);
    }

    fn take_ahead(&mut self) {
        let past = if self.forwards { At::End } else { At::Start };
        self.at = self.ahead.pop_front().map_or(past, At::Entry);
    }
}

impl Cursor for MemtableCursor {
    fn entry(&self) -> Option<Entry<'_>> {
        match &self.at {
            At::Entry(entry) => Some(entry.stored.entry()),
            At::Start | At::End => None,
        }
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        self.jump(Bound::Included(&Sought::new(key, sequence)), true);
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        self.jump(Bound::Excluded(&Sought::new(key, LAST_SEQUENCE)), false);
        Ok(())
    }

    fn first(&mut self) -> Result<(), Error> {
        self.jump(Bound::Unbounded, true);
        Ok(())
    }

    fn last(&mut self) -> Result<(), Error> {
        self.jump(Bound::Unbounded, false);
        Ok(())
    }

    fn next(&mut self) -> Result<(), Error> {
        self.step(true);
        Ok(())
    }

    fn previous(&mut self) -> Result<(), Error> {
        self.step(false);
        Ok(())
    }
}
