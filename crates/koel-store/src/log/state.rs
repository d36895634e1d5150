//! The plain data of an open store: where its log ends, what was counted, and what opening found.

use std::sync::{Arc, Weak};

use super::hint::Notes;
use super::watch::Watch;
use crate::kernel::counter::Counter;
use crate::kernel::durability::LogPosition;
use crate::kernel::segment::Segment;
use crate::kernel::torn::TornEnd;

/// The end of the log.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The last segment; none before the first write.
    pub(super) active: Option<Arc<Segment>>,
    /// The sequence number of the next record.
    pub(super) sequence: u64,
    /// The next segment has this number or a greater one.
    pub(super) number: u64,
    /// The last mark in the active segment says that everything before this offset is durable.
    pub(super) marked: u64,
    /// The offset in the active segment at which the sync thread was last woken.
    pub(super) sync_requested: u64,
    /// The manifest says that the log may continue after the end in it.
    pub(super) announced: bool,
    /// The notes for the hint of the active segment.
    pub(super) notes: Notes,
    /// Iterators that need to know which records stop being live.
    pub(super) watches: Vec<Weak<Watch>>,
    /// Memory for new records, reused from one write to the next.
    pub(super) buffer: Vec<u8>,
}

impl Writer {
    /// Returns the end of the log.
    pub(super) fn position(&self) -> LogPosition {
        self.active.as_ref().map_or(LogPosition::default(), |active| LogPosition {
            segment: active.number,
            offset: active.end(),
        })
    }

    /// Keeps a buffer for the next write, but at most 1 MiB of it.
    pub(super) fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(1 << 20);
        self.buffer = buffer;
    }
}

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
pub struct OpenReport {
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
