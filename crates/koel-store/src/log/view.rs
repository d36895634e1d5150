//! The store as it was at one moment, while it is written to.
//!
//! A view is the segments and their ends. A record in front of its end was live at that moment if the index has its location now, or if it stopped being live since: for
//! the latter each view has a [`Watch`], to which a location is added *before* the index forgets it. So writers never wait for a view, and it costs one number for
//! each record that is overwritten, deleted or moved by a compaction while it is there. Segments that compaction drops stay open for it; while compaction moves locations, new views wait.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::store::{Store, lock};
use crate::kernel::record::Kind;
use crate::kernel::scan::Found;
use crate::kernel::segment::Segment;

/// Locations that were those of live records when a view was made, or later, and have left the index since.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<HashSet<u64>>);

/// Tells every view that a location is about to leave the index.
pub(super) fn watched(watches: &mut Vec<Weak<Watch>>, location: u64) {
    watches.retain(|watch| {
        let watch = watch.upgrade();
        watch.is_some_and(|watch| {
            lock(&watch.0).insert(location);
            true
        })
    });
}

/// A store at one moment.
#[derive(Debug)]
pub(super) struct View<'a> {
    store: &'a Store,
    watch: Arc<Watch>,
    /// Each segment and its end.
    pub(super) segments: Vec<(Arc<Segment>, u64)>,
    /// Live records.
    pub(super) keys: u64,
}

impl<'a> View<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        let watch = Arc::new(Watch::default());
        let _settled = store.moving.read().unwrap_or_else(PoisonError::into_inner);
        let mut writer = lock(&store.writer);
        writer.watches.retain(|watch| watch.strong_count() > 0);
        writer.watches.push(Arc::downgrade(&watch));
        let with_end = |segment: Arc<Segment>| {
            let end = segment.end();
            (segment, end)
        };
        let segments = store.segments.all().into_iter().map(with_end).collect();
        Self { store, watch, segments, keys: store.index.len() }
    }

    /// Whether a record was live at that moment. The index is asked first: what leaves it is in the watch before.
    pub(super) fn is_live(&self, segment: &Segment, found: &Found<'_>) -> bool {
        if !matches!(found.head.kind, Kind::Value | Kind::Large) {
            return false;
        }
        let location = self.store.segments.location(segment, found.offset);
        self.store.index.contains(self.store.hash(found.key()), location)
            || lock(&self.watch.0).contains(&location)
    }
}
