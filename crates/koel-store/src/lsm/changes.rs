//! Whether something was written since a moment: what a transaction asks before its commit.
//!
//! Merges keep the newest version of a key and the newest range deletion, so a change of a key that
//! is there is never missed, nor is a deletion of one that was.
//!
//! Cost: for each key a search of the memtables, and of those runs that the guide names and that
//! were written since. For a range, its entries in these.

use super::entry::{Cursor, LAST_SEQUENCE, Lookup, Span};
use super::iter::{is_within, seek_to};
use super::store::Store;
use super::version::State;
use crate::Error;

impl Store {
    /// Checks that none of these keys, and nothing in these spans, was written after `sequence`.
    /// The caller holds the lock of the writer.
    ///
    /// # Errors
    /// [`Error::Conflict`] if something was.
    pub(super) fn check_unchanged<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Vec<u8>>,
        spans: &[Span],
        sequence: u64,
    ) -> Result<(), Error> {
        let state = self.state.load();
        for key in keys {
            if self.newest_in(&state, key, sequence)? > sequence {
                return Err(Error::Conflict);
            }
        }
        if spans.iter().any(|span| state.range_deletions.has_later(span, sequence)) {
            return Err(Error::Conflict);
        }
        for cursor in &mut state.cursors_after(sequence) {
            for span in spans {
                if has_later(&mut **cursor, span, sequence)? {
                    return Err(Error::Conflict);
                }
            }
        }
        Ok(())
    }

    /// Returns the sequence number of the newest version of `key`, or of its deletion, if that is
    /// after `sequence`; otherwise that or a lesser number.
    fn newest_in(&self, state: &State, key: &[u8], sequence: u64) -> Result<u64, Error> {
        let hash = self.hash(key);
        let deleted = state.range_deletions.newest(key, LAST_SEQUENCE);
        if deleted > sequence {
            return Ok(deleted);
        }
        if let Some(newest) = state.memtables().find_map(|memtable| memtable.newest(key, hash)) {
            return Ok(newest);
        }
        let candidates = state.version.candidates(hash);
        for run in state.version.runs.iter().filter(|run| run.is_in(candidates)) {
            if run.table.info().last_sequence <= sequence {
                break;
            }
            let lookup = Lookup { key, hash, sequence: LAST_SEQUENCE, deleted };
            if let Some(found) = run.table.get(lookup)? {
                return Ok(found.sequence);
            }
        }
        Ok(0)
    }
}

/// Returns whether there is an entry in a part of the keys that was written after `sequence`.
fn has_later(cursor: &mut dyn Cursor, (from, to): &Span, sequence: u64) -> Result<bool, Error> {
    seek_to(cursor, from)?;
    while let Some(entry) = cursor.entry() {
        if !is_within(to, entry.key, |key, to| key < to) {
            break;
        }
        if entry.sequence > sequence {
            return Ok(true);
        }
        cursor.next()?;
    }
    Ok(false)
}
