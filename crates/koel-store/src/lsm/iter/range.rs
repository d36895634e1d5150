//! The keys of a range with their values, as of one moment.

use std::fmt::Debug;
use std::ops::Bound;

use crate::Error;
use crate::lsm::cursor::Cursor;

/// What a range reads: the memtables and tables of one moment, which exist as long as this does.
pub(in crate::lsm) trait Sources: Debug + Send {
    /// Returns a cursor for each memtable and table.
    fn cursors(&self) -> Vec<Box<dyn Cursor>>;
}

/// An iterator over the keys of a range and their values, from both ends.
#[derive(Debug)]
pub struct Range {
    sources: Box<dyn Sources>,
}

impl Range {
    /// Returns the entries between two bounds that a read at `sequence` sees.
    pub(in crate::lsm) fn new(
        _sources: Box<dyn Sources>,
        _sequence: u64,
        _from: Bound<&[u8]>,
        _to: Bound<&[u8]>,
    ) -> Result<Self, Error> {
        unimplemented!()
    }

    /// Returns the entries whose key starts with `prefix`.
    pub(in crate::lsm) fn prefix(
        _sources: Box<dyn Sources>,
        _sequence: u64,
        _prefix: &[u8],
    ) -> Result<Self, Error> {
        unimplemented!()
    }
}

impl Iterator for Range {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        unimplemented!()
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        unimplemented!()
    }
}
