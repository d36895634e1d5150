//! A place in entries that are in order, which moves both ways.

use std::fmt::Debug;

use super::entry::Entry;
use crate::Error;

/// A place in entries that are in order. A new cursor is before the first entry.
///
/// After an error the cursor is at no entry, and has to be placed again with one of the calls that
/// do not depend on its place.
pub(super) trait Cursor: Debug + Send {
    /// Returns the entry at the cursor. `None` before the first one and after the last one.
    fn entry(&self) -> Option<Entry<'_>>;

    /// Moves to the first entry at or after a place: the newest version of `key` whose sequence
    /// number is at most `sequence`, or the first entry of a greater key.
    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error>;

    /// Moves to the last entry whose key is less than `key`.
    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error>;

    /// Moves to the first entry.
    fn first(&mut self) -> Result<(), Error>;

    /// Moves to the last entry.
    fn last(&mut self) -> Result<(), Error>;

    /// Moves to the next entry: to the first one if the cursor is before it.
    fn next(&mut self) -> Result<(), Error>;

    /// Moves to the previous entry: to the last one if the cursor is after it.
    fn previous(&mut self) -> Result<(), Error>;
}
