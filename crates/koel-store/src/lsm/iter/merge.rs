//! The entries of several cursors in one order.

use crate::Error;
use crate::lsm::cursor::Cursor;
use crate::lsm::entry::Entry;

/// A place in the entries of several cursors.
#[derive(Debug)]
pub(in crate::lsm) struct MergeCursor;

impl MergeCursor {
    pub(in crate::lsm) fn new(_sources: Vec<Box<dyn Cursor>>) -> Self {
        unimplemented!()
    }
}

impl Cursor for MergeCursor {
    fn entry(&self) -> Option<Entry<'_>> {
        unimplemented!()
    }

    fn seek(&mut self, _key: &[u8], _sequence: u64) -> Result<(), Error> {
        unimplemented!()
    }

    fn seek_before(&mut self, _key: &[u8]) -> Result<(), Error> {
        unimplemented!()
    }

    fn first(&mut self) -> Result<(), Error> {
        unimplemented!()
    }

    fn last(&mut self) -> Result<(), Error> {
        unimplemented!()
    }

    fn next(&mut self) -> Result<(), Error> {
        unimplemented!()
    }

    fn previous(&mut self) -> Result<(), Error> {
        unimplemented!()
    }
}
