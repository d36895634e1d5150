//! The hashes of the keys of a table.

use super::Table;
use crate::Error;

/// The hashes of the distinct keys of a table, in the order of the keys.
#[derive(Debug)]
pub(in crate::lsm) struct Hashes<'a>(&'a Table);

impl Hashes<'_> {
    /// Replaces the contents of `into` by the next hashes. Returns false at the end.
    pub(in crate::lsm) fn next(&mut self, _into: &mut Vec<u64>) -> Result<bool, Error> {
        unimplemented!()
    }
}
