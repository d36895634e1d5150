//! Merging beside a damaged block: it is skipped if nothing is lost by that.
//!
//! The hashes of a table say which keys it had. If each of those that cannot be read any more is in
//! a younger input of the merge, and no snapshot may need an older version, the merge drops what
//! the block had in any case. So damage ends with the next merge of all runs instead of preventing
//! it. 64 bits of hash stand for a key here, as in a salvage.
//!
//! Memory: 16 bytes for each key of the damaged table, for the time of the check.

use super::cursor::Cursor;
use super::store::Store;
use super::version::Run;
use crate::Error;
use crate::kernel::memory::{push, reserve};

impl Store {
    /// Returns whether each key that the run at `place` has lost is in a younger one of `inputs`.
    pub(super) fn is_overwritten(&self, inputs: &[Run], place: usize) -> Result<bool, Error> {
        if self.snapshots.boundaries()?.len() > 1 {
            return Ok(false);
        }
        let lost = self.lost_hashes(&inputs[place])?;
        let mut found = Vec::new();
        reserve(&mut found, lost.len())?;
        found.resize(lost.len(), false);
        for run in &inputs[..place] {
            let (mut hashes, mut piece) = (run.table.hashes(), Vec::new());
            while hashes.next(&mut piece)? {
                for at in piece.iter().filter_map(|hash| lost.binary_search(hash).ok()) {
                    found[at] = true;
                }
            }
        }
        Ok(found.into_iter().all(|is_found| is_found))
    }

    /// Returns the hashes of the keys of a run some version of which may be in a damaged block,
    /// ascending: those that are nowhere else and, if keys have several versions, those beside such
    /// a block.
    fn lost_hashes(&self, run: &Run) -> Result<Vec<u64>, Error> {
        let (mut had, mut piece, mut hashes) = (Vec::new(), Vec::new(), run.table.hashes());
        while hashes.next(&mut piece)? {
            reserve(&mut had, piece.len())?;
            had.extend_from_slice(&piece);
        }
        let info = run.table.info();
        let may_span = info.entries > info.keys;
        let (mut has, mut last, mut skipped) = (Vec::new(), None, 0);
        let mut cursor = run.table.cursor(false).skipping();
        cursor.first()?;
        while let Some(entry) = cursor.entry() {
            let hash = self.hash(entry.key);
            if may_span && cursor.skipped() > skipped {
                skipped = cursor.skipped();
                has.pop();
                last = Some(hash);
            }
            if last != Some(hash) {
                push(&mut has, hash)?;
                last = Some(hash);
            }
            cursor.next()?;
        }
        if may_span && cursor.skipped() > skipped {
            has.pop();
        }
        has.sort_unstable();
        had.sort_unstable();
        had.dedup();
        had.retain(|hash| has.binary_search(hash).is_err());
        Ok(had)
    }
}
