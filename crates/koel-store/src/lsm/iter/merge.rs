//! The entries of several cursors in one order.
//!
//! A heap has the cursors that are at an entry, the one at the next entry first. A step moves one
//! cursor and compares its key with those of two or so others. To turn around, every cursor is
//! placed anew, at the other side of the current entry.

use std::cmp::Ordering;

use crate::Error;
use crate::kernel::memory;
use crate::lsm::entry::{Cursor, Entry, cmp_places};

/// A place in the entries of several cursors. No two of them have an entry with the same key and
/// sequence number.
#[derive(Debug)]
pub(in crate::lsm) struct MergeCursor {
    sources: Vec<Box<dyn Cursor>>,
    /// The sources that are at an entry. No source of the heap comes before its parent, where the
    /// parent of `heap[i]` is `heap[(i - 1) / 2]`; if the cursor goes backward, none comes after
    /// it.
    heap: Vec<usize>,
    /// Which way the sources are placed: each at its first entry at or after the cursor, or at its
    /// last one at or before it.
    backward: bool,
    /// Where the cursor is if the heap is empty: after the last entry, or before the first.
    is_after: bool,
    /// Memory for a key.
    key: Vec<u8>,
}

impl MergeCursor {
    pub(in crate::lsm) fn new(sources: Vec<Box<dyn Cursor>>) -> Self {
        let (heap, key) = (Vec::new(), Vec::new());
        Self { sources, heap, backward: false, is_after: false, key }
    }

    /// Returns the number of the source that has the current entry.
    pub(in crate::lsm) fn source(&self) -> Option<usize> {
        self.heap.first().copied()
    }

    /// Places every source with `place`, and the cursor at the first of their entries, or at the
    /// last one if the cursor goes backward.
    fn place(
        &mut self,
        backward: bool,
        mut place: impl FnMut(&mut dyn Cursor) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.heap.clear();
        (self.backward, self.is_after) = (backward, !backward);
        memory::reserve(&mut self.heap, self.sources.len())?;
        for source in &mut self.sources {
            place(&mut **source)?;
        }
        for (index, source) in self.sources.iter().enumerate() {
            if source.entry().is_some() {
                self.heap.push(index);
            }
        }
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
        Ok(())
    }

    /// Returns whether the entry of one source comes before that of another on the way.
    #[inline]
    fn comes_first(&self, one: usize, other: usize) -> bool {
        let place = |source: usize| {
            let entry = self.sources[source].entry();
            entry.map_or((&[][..], 0), |entry| (entry.key, entry.sequence))
        };
        let order = if self.backward { Ordering::Greater } else { Ordering::Less };
        cmp_places(place(one), place(other)) == order
    }

    /// Moves a source down the heap until none below comes first.
    #[inline]
    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                return;
            }
            let other = child + 1;
            if other < self.heap.len() && self.comes_first(self.heap[other], self.heap[child]) {
                child = other;
            }
            if !self.comes_first(self.heap[child], self.heap[at]) {
                return;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// Moves the source at the current entry one step, and the cursor with it.
    #[inline]
    fn step(&mut self) -> Result<(), Error> {
        let Some(&source) = self.heap.first() else { return Ok(()) };
        let cursor = &mut self.sources[source];
        let moved = if self.backward { cursor.previous() } else { cursor.next() };
        if moved.is_err() || cursor.entry().is_none() {
            self.heap.swap_remove(0);
        }
        if moved.is_err() {
            self.heap.clear();
        }
        self.sift_down(0);
        moved
    }

    /// Takes a step in the other direction: places every source behind the current entry, seen that
    /// way.
    fn turn_around(&mut self, entry: usize) -> Result<(), Error> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let mut sequence = 0;
        if let Some(entry) = self.sources[entry].entry() {
            memory::copy_into(&mut key, entry.key)?;
            sequence = entry.sequence;
        }
        let backward = !self.backward;
        let turned = self.place(backward, |source| {
            source.seek(&key, sequence)?;
            let is_there = |entry: Entry<'_>| entry.cmp_place(&key, sequence).is_eq();
            if backward {
                source.previous()
            } else if source.entry().is_some_and(is_there) {
                source.next()
            } else {
                Ok(())
            }
        });
        self.key = key;
        turned
    }
}

impl Cursor for MergeCursor {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.sources[*self.heap.first()?].entry()
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        self.place(false, |source| source.seek(key, sequence))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        self.place(true, |source| source.seek_before(key))
    }

    fn first(&mut self) -> Result<(), Error> {
        self.place(false, |source| source.first())
    }

    fn last(&mut self) -> Result<(), Error> {
        self.place(true, |source| source.last())
    }

    #[inline]
    fn next(&mut self) -> Result<(), Error> {
        match self.heap.first() {
            Some(_) if !self.backward => self.step(),
            Some(&entry) => self.turn_around(entry),
            None if self.is_after => Ok(()),
            None => self.first(),
        }
    }

    #[inline]
    fn previous(&mut self) -> Result<(), Error> {
        match self.heap.first() {
            Some(_) if self.backward => self.step(),
            Some(&entry) => self.turn_around(entry),
            None if self.is_after => self.last(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::storage::Random;

    use super::*;
    use crate::lsm::entry::check::{self, Owned, entry_of};

    /// Entries in memory: 0 is before the first, `len + 1` after the last.
    #[derive(Debug)]
    struct InMemory(Vec<Owned>, usize);

    impl Cursor for InMemory {
        fn entry(&self) -> Option<Entry<'_>> {
            self.0.get(self.1.checked_sub(1)?).map(entry_of)
        }

        fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
            let is_before = |entry: &Owned| entry_of(entry).cmp_place(key, sequence).is_lt();
            self.1 = self.0.partition_point(is_before) + 1;
            Ok(())
        }

        fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
            self.1 = self.0.partition_point(|entry| entry.0[..] < *key);
            Ok(())
        }

        fn first(&mut self) -> Result<(), Error> {
            self.1 = 1;
            Ok(())
        }

        fn last(&mut self) -> Result<(), Error> {
            self.1 = self.0.len();
            Ok(())
        }

        fn next(&mut self) -> Result<(), Error> {
            self.1 = (self.1 + 1).min(self.0.len() + 1);
            Ok(())
        }

        fn previous(&mut self) -> Result<(), Error> {
            self.1 = self.1.saturating_sub(1);
            Ok(())
        }
    }

    #[test]
    fn several_cursors_move_as_one_over_all_their_entries() -> Result<(), Error> {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let count = [0, 1, 5, 300][random.below(4)];
            let entries = check::entries(&mut random, count);
            let mut sources = vec![Vec::new(); random.below(7)];
            if sources.is_empty() {
                check::walk(&mut MergeCursor::new(Vec::new()), &[], &mut random, 200)?;
                continue;
            }
            for entry in &entries {
                let source = random.below(sources.len());
                sources[source].push(entry.clone());
            }
            let cursor = |entries| Box::new(InMemory(entries, 0)) as Box<dyn Cursor>;
            let mut merged = MergeCursor::new(sources.into_iter().map(cursor).collect());
            check::walk(&mut merged, &entries, &mut random, 2000)?;
        }
        Ok(())
    }
}
