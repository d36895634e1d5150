//! What the parts of a store share: the folder, the segments, the index, and their locks.
//!
//! A thread takes locks in this order:
//!
//! 1. `compacting`: one compaction at a time.
//! 2. `relocating`: locations change.
//! 3. One sync of the log at a time.
//! 4. The end of the log, the manifest, and every change of the index.
//! 5. How far the log is durable, and the lock in `hint_cache`.
//!
//! Readers take none of these. They lock a shard of the index and the table of segments, each for a
//! moment.

use std::sync::{Arc, Mutex, RwLock};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::hint;
use super::hint_cache::HintCache;
use super::index::Index;
use super::segments::Segments;
use super::state::{AtEnd, Counts, End, LogOpenReport};
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::log_end::Log;
use crate::kernel::manifest::{LogEntry, Manifest, StoreKind};
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::wakeup::Wakeup;

/// An open store.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) folder: Arc<dyn Folder>,
    pub(super) salt: u64,
    pub(super) seed: u64,
    pub(super) segment_bytes: u64,
    pub(super) segments: Segments,
    pub(super) index: Index,
    pub(super) compacting: Mutex<()>,
    /// Why the last compaction in the background failed, if it did.
    pub(super) compaction_failure: Mutex<Option<String>>,
    /// Write-locked while the records of the log and the locations in the index do not match.
    pub(super) relocating: RwLock<()>,
    pub(super) log: Log<AtEnd>,
    pub(super) hint_cache: HintCache,
    pub(super) counts: Counts,
    /// Wakes the compaction thread when a segment is full.
    pub(super) segment_filled: Wakeup,
    pub(super) open_report: LogOpenReport,
}

impl Store {
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }

    /// Returns the manifest for this moment and these segments.
    pub(super) fn manifest(&self, end: &End, segments: &[Arc<Segment>], clean: bool) -> Manifest {
        let (durable, last) = (self.log.commits.durable(), segments.len().saturating_sub(1));
        let entry = |(place, segment): (usize, &Arc<Segment>)| {
            let is_last_durable = durable.segment == segment.number;
            let known = if is_last_durable { durable.offset } else { FIRST_RECORD };
            LogEntry {
                number: segment.number,
                end: if clean || place < last { segment.end() } else { known },
                cleaned: segment.cleaned(),
            }
        };
        Manifest {
            clean,
            sequence: end.sequence,
            number: end.own.number,
            keys: self.index.len(),
            logs: segments.iter().enumerate().map(entry).collect(),
            ..Manifest::new(StoreKind::Log, self.salt, self.seed, self.segment_bytes)
        }
    }

    /// Makes these the segments of the log; no manifest has named the `new` ones before. From now
    /// on the log may continue after the end that the manifest has.
    ///
    /// After a failure the new segments are removed, unless the manifest names them nevertheless.
    pub(super) fn announce<'a>(
        &self,
        end: &mut End,
        order: &[Arc<Segment>],
        new: impl IntoIterator<Item = &'a Arc<Segment>>,
    ) -> Result<(), Error> {
        let stored = self.manifest(end, order, false).store(&*self.folder, &self.log.poison);
        if let Err(error) = stored {
            if let Ok(Some(manifest)) = Manifest::load(StoreKind::Log, &*self.folder) {
                let is_named = |segment: &&Arc<Segment>| manifest.names(segment.number);
                for segment in new.into_iter().filter(|segment| !is_named(segment)) {
                    self.remove_new(segment);
                }
            }
            return Err(error);
        }
        end.announced = true;
        Ok(())
    }

    /// Removes a segment that no manifest names. What cannot be removed is when the store is next
    /// opened.
    pub(super) fn remove_new(&self, segment: &Segment) {
        drop(self.folder.remove(&segment.name));
        hint::remove(&*self.folder, segment.number);
    }
}
