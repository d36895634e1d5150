//! Reading one key: the memtables, then the runs that the guide names, youngest first.
//!
//! The state is loaded before the sequence number that is read at. So everything that was visible
//! when the state was loaded is in it, and a merge that drops an old version is not in it yet. Of
//! what became visible since, a read sees the entries of its memtables. A range deletion among
//! that is not in the state: then both are loaded again.

use std::ops::Bound;
use std::sync::Arc;

use super::entry::Lookup;
use super::iter::Range;
use super::memtable::Take;
use super::store::Store;
use super::version::{Mask, State, StateSources, Version, with_unguided};
use crate::Error;
use crate::kernel::memory;

/// Reads without a guide after which one is built.
const UNGUIDED_READS: u64 = 256;

/// Returns the value that a read looks for if a memtable has a version of it: `None` in it if that
/// is deleted.
fn get_in_memory(
    state: &State,
    lookup: Lookup<'_>,
    take: Take,
) -> Option<Result<Option<Vec<u8>>, Error>> {
    state.memtables().find_map(|memtable| memtable.get(lookup, take))
}

fn lookup<'a>(state: &State, key: &'a [u8], hash: u64, sequence: u64) -> Lookup<'a> {
    Lookup { key, hash, sequence, deleted: state.range_deletions.newest(key, sequence) }
}

impl Store {
    /// Returns the state of this moment, and the sequence number to read it at.
    #[inline]
    pub(super) fn now(&self) -> (Arc<State>, u64) {
        loop {
            let (state, sequence) = (self.state.load(), self.snapshots.visible());
            if state.last_range_deletion >= self.snapshots.last_range_deletion() {
                return (state, sequence);
            }
        }
    }

    /// Returns the value of `key` now.
    pub(super) fn get(&self, key: &[u8], take: Take) -> Result<Option<Vec<u8>>, Error> {
        let (state, sequence) = self.now();
        self.get_in(&state, key, sequence, take)
    }

    /// Returns the value that `key` had at `sequence`, which is that of a live snapshot, or was
    /// visible after `state` was loaded.
    pub(super) fn get_in(
        &self,
        state: &State,
        key: &[u8],
        sequence: u64,
        take: Take,
    ) -> Result<Option<Vec<u8>>, Error> {
        let hash = self.hash(key);
        let lookup = lookup(state, key, hash, sequence);
        if let Some(found) = get_in_memory(state, lookup, take) {
            return found;
        }
        if state.version.guide.is_none() {
            self.note_unguided(&state.version);
        }
        let candidates = state.version.candidates(hash);
        self.get_in_runs(state, lookup, candidates)
    }

    /// Returns the values of several keys now. All buckets of the guide are fetched at once.
    pub(super) fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let (state, sequence) = self.now();
        let (mut hashes, mut candidates) = (Vec::new(), Vec::new());
        memory::reserve(&mut hashes, keys.len())?;
        memory::reserve(&mut candidates, keys.len())?;
        hashes.extend(keys.iter().map(|key| self.hash(key.as_ref())));
        match &state.version.guide {
            Some(guide) => guide.candidates_of_many(&hashes, |ids| {
                candidates.push(with_unguided(ids));
            }),
            None => {
                self.note_unguided(&state.version);
                candidates.resize(keys.len(), Mask::MAX);
            }
        }
        let mut values = Vec::new();
        memory::reserve(&mut values, keys.len())?;
        for ((key, &hash), &ids) in keys.iter().zip(&hashes).zip(&candidates) {
            let lookup = lookup(&state, key.as_ref(), hash, sequence);
            let value = match get_in_memory(&state, lookup, Take::Value) {
                Some(found) => found?,
                None => self.get_in_runs(&state, lookup, ids)?,
            };
            values.push(value);
        }
        Ok(values)
    }

    fn get_in_runs(
        &self,
        state: &State,
        lookup: Lookup<'_>,
        candidates: Mask,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Version { runs, guide, .. } = &*state.version;
        for run in runs {
            if !run.is_in(candidates) {
                continue;
            }
            if run.table.info().last_sequence < lookup.deleted {
                break;
            }
            if let Some(found) = run.table.get(lookup)? {
                return Ok(found.value);
            }
            if guide.is_some() && run.is_guided() {
                self.counts.false_candidates.add(1);
            }
        }
        Ok(None)
    }

    /// Counts a read without a guide. Asks for one if that happens often.
    #[cold]
    fn note_unguided(&self, version: &Version) {
        if self.options.id_bits > 0 && version.runs.len() > 1 {
            self.counts.unguided.add(1);
            if self.counts.unguided.get().is_multiple_of(UNGUIDED_READS) {
                self.request_guide();
            }
        }
    }

    /// Returns the entries between two bounds that a read at `sequence` sees.
    pub(super) fn range_in(
        &self,
        state: Arc<State>,
        sequence: u64,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<Range, Error> {
        Range::new(Box::new(StateSources { state, sequence }), sequence, from, to)
    }

    /// Returns the entries whose keys start with `prefix` that a read at `sequence` sees.
    pub(super) fn prefix_in(
        &self,
        state: Arc<State>,
        sequence: u64,
        prefix: &[u8],
    ) -> Result<Range, Error> {
        Range::prefix(Box::new(StateSources { state, sequence }), sequence, prefix)
    }
}
