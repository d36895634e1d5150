//! The way that a read of a key takes, step by step: for demonstrations, and to see why reads of a
//! store are slow.

use super::lsm_store::LsmStore;
use crate::Error;

/// The way that a read of a key takes. Returned by [`LsmStore::trace`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// Whether a memtable had the key, as a value or as deleted: then no run is asked.
    pub in_memory: bool,
    /// The number of runs.
    pub runs: u64,
    /// The runs that were asked: the candidates of the guide, youngest first, up to one that has
    /// the key.
    pub asked: Vec<Asked>,
    /// Whether the key has a value.
    pub found: bool,
}

/// A run that was asked for a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// Its place among the runs: 0 for the youngest.
    pub place: u64,
    /// The number of its file.
    pub number: u64,
    /// Whether it has the key. If not, it was a false candidate.
    pub has_key: bool,
}

impl LsmStore {
    /// Reads `key` as [`get`](Self::get) does, and returns the way instead of the value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn trace(&self, key: &[u8]) -> Result<Trace, Error> {
        let store = self.inner();
        let state = store.state.load();
        let sequence = store.snapshots.visible();
        let hash = store.hash(key);
        let runs = &state.version.runs;
        let mut trace = Trace { runs: runs.len() as u64, ..Trace::default() };
        for memtable in state.memtables() {
            if let Some(found) = memtable.get(key, hash, sequence, |entry| entry.value.is_some()) {
                (trace.in_memory, trace.found) = (true, found);
                return Ok(trace);
            }
        }
        let candidates = state.version.candidates(hash);
        for (run, place) in runs.iter().zip(0..) {
            if !run.is_in(candidates) {
                continue;
            }
            let found = run.table.get(key, hash, sequence)?;
            trace.asked.push(Asked { place, number: run.number(), has_key: found.is_some() });
            if let Some(found) = found {
                trace.found = found.value.is_some();
                break;
            }
        }
        Ok(trace)
    }
}
