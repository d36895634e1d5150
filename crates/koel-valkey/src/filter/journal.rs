//! What has changed in a filter since it was copied: items that were added and removed, in order.
//!
//! A union is built from a copy on a thread, while the filter goes on. What the journal has is then
//! done in the union too, and nothing is lost. Items that follow each other and were all added, or
//! all removed, are one *run*, which is one command for replicas.
//!
//! A journal takes 64 MiB in all, and knows items only: any other change ends it, as does
//! one that would take more. Then there is no way but another copy.

use std::collections::VecDeque;
use std::ops::Range;

/// What may be recorded. 64 MiB are some 3 million items of 16 bytes.
const MOST_BYTES: usize = 64 << 20;
/// A run ends with so many bytes or items: a command that takes a millisecond.
const RUN_BYTES: usize = 64 << 10;
const RUN_ITEMS: usize = 4096;
/// What a run takes beside its items, about.
const BYTES_BESIDE: usize = 64;

/// What was done with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A copy was added.
    Added,
    /// A copy was removed.
    Removed,
}

/// The changes since the journal began.
#[derive(Debug)]
pub(super) struct Journal {
    /// Tells it from others.
    pub(super) number: u64,
    runs: VecDeque<Run>,
    /// What all records took, also those that were taken since.
    recorded: usize,
}

/// Items with which the same was done.
#[derive(Debug)]
pub struct Run {
    /// What was done.
    pub change: Change,
    bytes: Vec<u8>,
    items: Vec<Range<usize>>,
}

impl Journal {
    pub(super) fn new(number: u64) -> Self {
        Self { number, runs: VecDeque::new(), recorded: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Records a change. False if it takes too much.
    pub(super) fn note(&mut self, change: Change, item: &[u8]) -> bool {
        let goes_on = |run: &&mut Run| {
            run.change == change && run.bytes.len() < RUN_BYTES && run.items.len() < RUN_ITEMS
        };
        let is_new = self.runs.back_mut().filter(goes_on).is_none();
        let each = size_of::<Range<usize>>() + item.len();
        self.recorded += each + usize::from(is_new) * (size_of::<Run>() + BYTES_BESIDE);
        if self.recorded > MOST_BYTES {
            return false;
        }
        if is_new {
            if let Some(last) = self.runs.back_mut() {
                last.bytes.shrink_to_fit();
                last.items.shrink_to_fit();
            }
            self.runs.push_back(Run { change, bytes: Vec::new(), items: Vec::new() });
        }
        if let Some(run) = self.runs.back_mut() {
            let start = run.bytes.len();
            run.bytes.extend_from_slice(item);
            run.items.push(start..run.bytes.len());
        }
        true
    }

    /// The first run, which is no longer in the journal then.
    pub(super) fn take(&mut self) -> Option<Run> {
        self.runs.pop_front()
    }
}

impl Run {
    /// Its items.
    #[must_use]
    pub fn items(&self) -> Vec<&[u8]> {
        self.items.iter().map(|range| &self.bytes[range.clone()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_has_every_change_in_order_up_to_its_limit() {
        let (mut journal, mut expected) = (Journal::new(1), Vec::new());
        let mut number: u32 = 0;
        loop {
            let change = if number % 1000 < 990 { Change::Added } else { Change::Removed };
            let item = vec![7; number as usize % 500];
            if !journal.note(change, &item) {
                break;
            }
            expected.push((change, item));
            number += 1;
        }
        assert!(number > 200_000);
        // The last run may have room for as much again.
        let of =
            |run: &Run| run.bytes.capacity() + size_of::<Range<usize>>() * run.items.capacity();
        let taken = journal.runs.iter().map(of).sum::<usize>();
        let taken = taken + journal.runs.capacity() * size_of::<Run>();
        assert!(taken < MOST_BYTES + 2 * RUN_BYTES, "{taken}");
        let mut found = Vec::new();
        while let Some(run) = journal.take() {
            assert!(run.bytes.len() < RUN_BYTES + 500);
            found.extend(run.items().iter().map(|item| (run.change, item.to_vec())));
        }
        assert!(found == expected && !journal.note(Change::Added, b"more"));
    }
}
