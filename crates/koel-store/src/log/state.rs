//! The plain data of an open store: what it keeps at the end of its log, what was counted, and what
//! opening found; and which records stopped being live since a view was made.

use std::collections::HashSet;
use std::sync::{Mutex, Weak};

use super::hint::Notes;
use crate::kernel::log_end::LogEnd;
use crate::kernel::recovery::TornEnd;
use crate::kernel::threads::{Counter, lock};

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

/// What opening a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOpenReport {
    /// The incomplete end of the log, if the store was not closed and there was one.
    pub torn: Option<TornEnd>,
    /// The store was closed before, or is new.
    pub was_closed: bool,
    /// The number of segments whose hints were used.
    pub hinted: u64,
    /// Bytes of segments that were read because no hint covers them.
    pub scanned: u64,
    /// Files that a crash had left behind, and that were removed.
    pub removed: Vec<String>,
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
