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
//!
//! **The next segment.** A segment is full if the next write would exceed its size; only a single
//! record may. It is synced before the next segment starts, so only the last segment can have a
//! torn end. Most of it is durable by then: a thread syncs it while it fills (`background.rs`).
//! Until the manifest names the next one nothing has changed: a failure before that refuses the
//! write.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, RwLock, Weak};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::hint::{self, HintCache, Notes};
use super::index::Index;
use super::segments::Segments;
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::log_end::{Log, LogEnd};
use crate::kernel::manifest::{LogEntry, Manifest};
use crate::kernel::recovery::OpenReport;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::store_files::StoreKind;
use crate::kernel::threads::{Counter, Signal, Wakeup, lock};

/// An open store.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) folder: Arc<dyn Folder>,
    pub(super) salt: u64,
    pub(super) seed: u64,
    /// The seed in the options, for the same bytes every time.
    pub(super) fixed_seed: Option<u64>,
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
    pub(super) open_report: OpenReport,
}

impl Store {
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }

    /// Returns the manifest for this moment and these segments.
    pub(super) fn manifest(&self, end: &End, segments: &[Arc<Segment>], clean: bool) -> Manifest {
        let (durable, last) = (self.log.durable(), segments.len().saturating_sub(1));
        let entry = |(place, segment): (usize, &Arc<Segment>)| {
            let is_last_durable = durable.segment == segment.number;
            let known = if is_last_durable { durable.offset } else { FIRST_RECORD };
            LogEntry {
                number: segment.number,
                end: if clean || place < last { segment.end() } else { known },
                cleaned: segment.cleaned.get(),
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

/// Statistics of a store at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStats {
    /// The number of keys that have a value.
    pub keys: u64,
    /// Bytes of memory that the index takes.
    pub index_bytes: u64,
    /// The number of segments.
    pub segments: u64,
    /// Bytes of all segments.
    pub log_bytes: u64,
    /// Bytes of records that were overwritten or deleted.
    pub dead_bytes: u64,
    /// Bytes of tombstones.
    pub tombstone_bytes: u64,
    /// Bytes of keys and values written since the store was opened.
    pub user_bytes: u64,
    /// Bytes appended to the log for them.
    pub appended_bytes: u64,
    /// Bytes written by compaction since the store was opened.
    pub compacted_bytes: u64,
    /// Records read since the store was opened to compare their keys.
    pub reads: u64,
    /// A write failed, and the store takes no more writes.
    pub poisoned: bool,
    /// Why the last compaction in the background failed, if it did. No data is lost by that.
    pub compaction_failed: Option<String>,
}

impl Store {
    pub(super) fn stats(&self) -> LogStats {
        let segments = self.segments.all();
        LogStats {
            keys: self.index.len(),
            index_bytes: self.index.bytes(),
            segments: segments.len() as u64,
            log_bytes: segments.iter().map(|segment| segment.end()).sum(),
            dead_bytes: segments.iter().map(|segment| segment.dead.get()).sum(),
            tombstone_bytes: segments.iter().map(|segment| segment.tombstones.get()).sum(),
            user_bytes: self.counts.user.get(),
            appended_bytes: self.counts.appended.get(),
            compacted_bytes: self.counts.compacted.get(),
            reads: self.index.reads(),
            poisoned: self.log.poison.has_failed(),
            compaction_failed: lock(&self.compaction_failure).clone(),
        }
    }
}

impl Store {
    /// Returns a segment with room for this many bytes, starting a new one if needed.
    pub(super) fn segment_with_room(
        &self,
        end: &mut End,
        bytes: u64,
    ) -> Result<Arc<Segment>, Error> {
        let has_room = |last: &&Arc<Segment>| {
            last.end() == FIRST_RECORD || last.end() + bytes <= self.segment_bytes
        };
        let Some(last) = end.file.as_ref().filter(has_room).cloned() else {
            return self.start_segment(end);
        };
        if !end.announced {
            self.announce(end, &self.segments.all(), [])?;
        }
        Ok(last)
    }

    /// Seals the last segment, durably and with its hint, and starts the next one.
    pub(super) fn start_segment(&self, end: &mut End) -> Result<Arc<Segment>, Error> {
        self.log.seal(end)?;
        let created = self.create_segment(end)?;
        created.make_durable(&*self.folder)?;
        let mut order = self.segments.all();
        order.push(created.clone());
        self.announce(end, &order, [&created])?;
        if let Some(sealed) = end.file.take() {
            end.own.notes.write(&*self.folder, &sealed);
            self.segment_filled.send(Signal::Work);
        }
        end.own.notes.clear();
        self.log.go_on_in(end, created.clone());
        self.segments.push(created.clone());
        Ok(created)
    }

    /// Creates the file of a segment with a free number. The number is never used again.
    pub(super) fn create_segment(&self, end: &mut End) -> Result<Arc<Segment>, Error> {
        let number = self.segments.free_number(end.own.number)?;
        end.own.number = number + 1;
        let created = Arc::new(Segment::create(&*self.folder, self.salt, number)?);
        self.segments.reserve(&created);
        Ok(created)
    }

    /// Makes everything durable, and writes a manifest with exact ends.
    pub(super) fn close(&self) -> Result<(), Error> {
        self.log.close(|end| {
            if !end.announced {
                return;
            }
            if let Some(last) = &end.file {
                end.own.notes.write(&*self.folder, last);
            }
            let manifest = self.manifest(end, &self.segments.all(), true);
            end.announced = manifest.store(&*self.folder, &self.log.poison).is_err();
        })
    }
}

/// What the store keeps under the lock of the end of the log.
#[derive(Debug, Default)]
pub(super) struct AtEnd {
    /// The next segment has this number or a greater one.
    pub(super) number: u64,
    /// The notes for the hint of the last segment.
    pub(super) notes: Notes,
    /// Iterators that need to know which records stop being live.
    pub(super) watches: Vec<Weak<Watch>>,
}

/// The end of the log.
pub(super) type End = LogEnd<AtEnd>;

/// Bytes written since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Bytes of keys and values.
    pub(super) user: Counter,
    /// Bytes appended to the log for them.
    pub(super) appended: Counter,
    /// Bytes written by compaction.
    pub(super) compacted: Counter,
}

/// Locations that the index had when a view was made, or later, and that it has dropped since.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<HashSet<u64>>);

impl Watch {
    pub(super) fn contains(&self, location: u64) -> bool {
        lock(&self.0).contains(&location)
    }

    /// Tells every view that the index is about to drop a location.
    pub(super) fn notify(watches: &mut Vec<Weak<Watch>>, location: u64) {
        watches.retain(|watch| {
            let watch = watch.upgrade();
            watch.is_some_and(|watch| {
                lock(&watch.0).insert(location);
                true
            })
        });
    }
}
