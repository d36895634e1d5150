//! The store as it was at one moment, while it is written to.
//!
//! A view has the segments and their ends. A record before such an end was live at that moment if
//! the index has its location now, or has dropped it since. For the latter each view has a
//! [`Watch`], to which a location is added *before* the index drops it.
//!
//! So writers never wait for a view. While a view exists, it costs one number for each record that
//! is overwritten, deleted or moved by a compaction. Segments that compaction drops stay open for
//! it, and new views wait while a compaction changes locations.

use std::sync::{Arc, PoisonError};

use super::store::Store;
use super::watch::Watch;
use crate::kernel::record::Kind;
use crate::kernel::scan::Record;
use crate::kernel::segment::Segment;

/// A store at one moment.
#[derive(Debug)]
pub(super) struct View<'a> {
    store: &'a Store,
    watch: Arc<Watch>,
    /// Each segment and its end.
    pub(super) segments: Vec<(Arc<Segment>, u64)>,
    /// The number of live records.
    pub(super) keys: u64,
}

impl<'a> View<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        let watch = Arc::new(Watch::default());
        let _no_relocation = store.relocating.read().unwrap_or_else(PoisonError::into_inner);
        let mut end = store.log.end();
        end.own.watches.retain(|watch| watch.strong_count() > 0);
        end.own.watches.push(Arc::downgrade(&watch));
        let with_end = |segment: Arc<Segment>| {
            let end = segment.end();
            (segment, end)
        };
        let segments = store.segments.all().into_iter().map(with_end).collect();
        Self { store, watch, segments, keys: store.index.len() }
    }

    /// Returns whether a record was live at that moment.
    pub(super) fn is_live(&self, segment: &Segment, record: &Record<'_>) -> bool {
        if !matches!(record.header.kind, Kind::Value | Kind::Large) {
            return false;
        }
        let location = self.store.segments.location(segment, record.offset);
        // In this order: the watch has a location before the index drops it.
        self.store.index.contains(self.store.hash(record.key()), location)
            || self.watch.contains(location)
    }
}
