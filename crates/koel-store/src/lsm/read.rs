//! Reading one key: the memtables, then the runs that the guide names, youngest first.
//!
//! The state is loaded before the sequence number that is read at. So everything that was visible
//! when the state was loaded is in it, and a merge that drops an old version is not in it yet.

use std::ops::Bound;
use std::sync::Arc;

use super::iter::Range;
use super::memtable::Memtable;
use super::store::Store;
use super::version::{Mask, State, StateSources, Version, with_unguided};
use crate::Error;
use crate::kernel::memory;

/// Reads without a guide after which one is built.
const UNGUIDED_READS: u64 = 256;

/// What a read of a key returns.
pub(super) trait Take {
    type Value;
    /// Takes a value that is in memory.
    fn take(value: &[u8]) -> Result<Self::Value, Error>;
    /// Takes a value that was read.
    fn own(value: Vec<u8>) -> Self::Value;
}

/// Returns the value.
pub(super) struct CopiedValue;

/// Only looks whether there is a value.
pub(super) struct Presence;

impl Take for CopiedValue {
    type Value = Vec<u8>;

    fn take(value: &[u8]) -> Result<Vec<u8>, Error> {
        memory::copy_of(value)
    }

    fn own(value: Vec<u8>) -> Vec<u8> {
        value
    }
}

impl Take for Presence {
    type Value = ();

    fn take(_: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn own(_: Vec<u8>) {}
}

/// Returns the value of `key` at `sequence` if a memtable has a version of it: `None` in it if that
/// is a deletion.
fn get_in_memory<T: Take>(
    state: &State,
    key: &[u8],
    hash: u64,
    sequence: u64,
) -> Option<Result<Option<T::Value>, Error>> {
    let take = |memtable: &Arc<Memtable>| {
        memtable.get(key, hash, sequence, |entry| entry.value.map(T::take).transpose())
    };
    state.memtables().find_map(take)
}

impl Store {
    /// Returns the value of `key` now.
    pub(super) fn get<T: Take>(&self, key: &[u8]) -> Result<Option<T::Value>, Error> {
        let state = self.state.load();
        self.get_in::<T>(&state, key, self.snapshots.visible())
    }

    /// Returns the value that `key` had at `sequence`, which is that of a live snapshot, or was
    /// visible after `state` was loaded.
    pub(super) fn get_in<T: Take>(
        &self,
        state: &State,
        key: &[u8],
        sequence: u64,
    ) -> Result<Option<T::Value>, Error> {
        let hash = self.hash(key);
        if let Some(found) = get_in_memory::<T>(state, key, hash, sequence) {
            return found;
        }
        if state.version.guide.is_none() {
            self.note_unguided(&state.version);
        }
        let candidates = state.version.candidates(hash);
        self.get_in_runs::<T>(state, key, hash, candidates, sequence)
    }

    /// Returns the values of several keys now. All buckets of the guide are fetched at once.
    pub(super) fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let state = self.state.load();
        let sequence = self.snapshots.visible();
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
            let key = key.as_ref();
            let value = match get_in_memory::<CopiedValue>(&state, key, hash, sequence) {
                Some(found) => found?,
                None => self.get_in_runs::<CopiedValue>(&state, key, hash, ids, sequence)?,
            };
            values.push(value);
        }
        Ok(values)
    }

    fn get_in_runs<T: Take>(
        &self,
        state: &State,
        key: &[u8],
        hash: u64,
        candidates: Mask,
        sequence: u64,
    ) -> Result<Option<T::Value>, Error> {
        let Version { runs, guide, .. } = &*state.version;
        for run in runs {
            if !run.is_in(candidates) {
                continue;
            }
            if let Some(found) = run.table.get(key, hash, sequence)? {
                return Ok(found.value.map(T::own));
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

    /// Returns the entries between two bounds that are visible now.
    pub(super) fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<Range<'_>, Error> {
        let state = self.state.load();
        self.range_in(state, self.snapshots.visible(), from, to)
    }

    /// Returns the entries between two bounds that a read at `sequence` sees.
    pub(super) fn range_in(
        &self,
        state: Arc<State>,
        sequence: u64,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<Range<'_>, Error> {
        Range::new(Box::new(StateSources(state)), sequence, from, to)
    }

    /// Returns the entries whose keys start with `prefix` that a read at `sequence` sees.
    pub(super) fn prefix_in(
        &self,
        state: Arc<State>,
        sequence: u64,
        prefix: &[u8],
    ) -> Result<Range<'_>, Error> {
        Range::prefix(Box::new(StateSources(state)), sequence, prefix)
    }
}
