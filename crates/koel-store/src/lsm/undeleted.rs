//! The entries of a memtable or a table that a read sees behind its range deletions.
//!
//! If all of a table is older than the deletion of a range, the cursor passes the range in one
//! search. Other entries are passed one by one.

use std::sync::Arc;

use super::entry::{Cursor, Entry, LAST_SEQUENCE, Lost};
use super::range_deletions::{KeyRange, RangeDeletions};
use crate::Error;

/// A cursor without the entries that a read at `sequence` does not see because their range was
/// deleted.
#[derive(Debug)]
pub(super) struct Undeleted {
    entries: Box<dyn Cursor>,
    deletions: Arc<RangeDeletions>,
    sequence: u64,
    /// The greatest sequence number of an entry.
    last_sequence: u64,
}

/// An entry that is hidden.
enum Hidden<'a> {
    Entry,
    /// With all others of its range.
    Range(&'a KeyRange),
}

impl Undeleted {
    /// No entry comes after `last_sequence`.
    pub(super) fn new(
        entries: Box<dyn Cursor>,
        deletions: Arc<RangeDeletions>,
        sequence: u64,
        last_sequence: u64,
    ) -> Self {
        Self { entries, deletions, sequence, last_sequence }
    }

    fn skip_forward(&mut self) -> Result<(), Error> {
        while let Some(entry) = self.entries.entry() {
            match hidden(&self.deletions, entry, (self.sequence, self.last_sequence)) {
                None => break,
                Some(Hidden::Entry) => self.entries.next()?,
                Some(Hidden::Range(keys)) => match &keys.to {
                    Some(to) => self.entries.seek(to, LAST_SEQUENCE)?,
                    None => {
                        self.entries.last()?;
                        self.entries.next()?;
                    }
                },
            }
        }
        Ok(())
    }

    fn skip_backward(&mut self) -> Result<(), Error> {
        while let Some(entry) = self.entries.entry() {
            match hidden(&self.deletions, entry, (self.sequence, self.last_sequence)) {
                None => break,
                Some(Hidden::Entry) => self.entries.previous()?,
                Some(Hidden::Range(keys)) => self.entries.seek_before(&keys.from)?,
            }
        }
        Ok(())
    }
}

/// Returns whether an entry is hidden from a read at `sequence`, in a table whose last one is
/// `last_sequence`.
fn hidden<'a>(
    deletions: &'a RangeDeletions,
    entry: Entry<'_>,
    (sequence, last_sequence): (u64, u64),
) -> Option<Hidden<'a>> {
    let piece = deletions.piece_of(entry.key)?;
    let deleted = piece.newest(sequence);
    if deleted > last_sequence {
        Some(Hidden::Range(&piece.keys))
    } else {
        (deleted > entry.sequence).then_some(Hidden::Entry)
    }
}

impl Cursor for Undeleted {
    fn entry(&self) -> Option<Entry<'_>> {
        self.entries.entry()
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        self.entries.seek(key, sequence)?;
        self.skip_forward()
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        self.entries.seek_before(key)?;
        self.skip_backward()
    }

    fn first(&mut self) -> Result<(), Error> {
        self.entries.first()?;
        self.skip_forward()
    }

    fn last(&mut self) -> Result<(), Error> {
        self.entries.last()?;
        self.skip_backward()
    }

    fn next(&mut self) -> Result<(), Error> {
        self.entries.next()?;
        self.skip_forward()
    }

    fn previous(&mut self) -> Result<(), Error> {
        self.entries.previous()?;
        self.skip_backward()
    }

    fn lost(&self) -> Option<&Lost> {
        self.entries.lost()
    }
}
