//! An open table.

use std::sync::Arc;

use super::{BlockCache, Hashes, TableCursor, TableInfo};
use crate::Error;
use crate::kernel::files::Folder;

/// An open table.
#[derive(Debug)]
pub(in crate::lsm) struct Table;

/// The version of a key that a read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lsm) struct Found {
    pub(in crate::lsm) sequence: u64,
    /// `None` if the key was deleted.
    pub(in crate::lsm) value: Option<Vec<u8>>,
}

impl Table {
    /// Opens table `number` and checks everything but its entries.
    pub(in crate::lsm) fn open(
        _folder: &dyn Folder,
        _number: u64,
        _salt: u64,
        _cache: &Arc<BlockCache>,
    ) -> Result<Self, Error> {
        unimplemented!()
    }

    /// Returns the newest version of `key` whose sequence number is at most `sequence`.
    pub(in crate::lsm) fn get(
        &self,
        _key: &[u8],
        _hash: u64,
        _sequence: u64,
    ) -> Result<Option<Found>, Error> {
        unimplemented!()
    }

    /// Returns a cursor. It adds the blocks that it reads to the cache if `fill_cache` is set.
    pub(in crate::lsm) fn cursor(self: &Arc<Self>, _fill_cache: bool) -> TableCursor {
        unimplemented!()
    }

    pub(in crate::lsm) fn info(&self) -> &TableInfo {
        unimplemented!()
    }

    /// Returns the hashes of its distinct keys.
    pub(in crate::lsm) fn hashes(&self) -> Hashes<'_> {
        unimplemented!()
    }
}
