//! The entries of a table in order.

use crate::Error;
use crate::lsm::cursor::Cursor;
use crate::lsm::entry::Entry;

/// A place in a table.
#[derive(Debug)]
pub(in crate::lsm) struct TableCursor;

impl Cursor for TableCursor {
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
