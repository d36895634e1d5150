//! Writing a table.

use super::{TableInfo, TableOptions};
use crate::Error;
use crate::kernel::files::Folder;
use crate::lsm::entry::Entry;

/// A table that is being written. If it is dropped before it is finished, the caller removes the
/// file (`file_names::table`).
#[derive(Debug)]
pub(in crate::lsm) struct TableBuilder;

impl TableBuilder {
    /// Creates the file of table `number`.
    pub(in crate::lsm) fn new(
        _folder: &dyn Folder,
        _number: u64,
        _options: &TableOptions,
    ) -> Result<Self, Error> {
        unimplemented!()
    }

    /// Adds an entry, which comes after all entries so far.
    pub(in crate::lsm) fn add(&mut self, _entry: Entry<'_>) -> Result<(), Error> {
        unimplemented!()
    }

    /// Returns the bytes of the file so far.
    pub(in crate::lsm) fn bytes(&self) -> u64 {
        unimplemented!()
    }

    /// Returns the number of entries so far.
    pub(in crate::lsm) fn entries(&self) -> u64 {
        unimplemented!()
    }

    /// Writes the rest and syncs the file, but not the folder. A table may be empty.
    pub(in crate::lsm) fn finish(self) -> Result<TableInfo, Error> {
        unimplemented!()
    }
}
