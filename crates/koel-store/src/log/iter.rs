//! Iterators over all keys and values of one moment, in the order in which they were written.
//!
//! A *view* is the store as it was at one moment, while it is written to. It has the segments and
//! their ends. A record before such an end was live at that moment if the index has its location
//! now, or has dropped it since. For the latter each view has a [`Watch`], to which a location is
//! added *before* the index drops it.
//!
//! So writers never wait for a view. While a view exists, it costs one number for each record that
//! is overwritten, deleted or moved by a compaction. Segments that compaction drops stay open for
//! it, and new views wait while a compaction changes locations.

use std::sync::{Arc, PoisonError};

use super::read::value_of;
use super::store::{Store, Watch};
use crate::Error;
use crate::kernel::memory;
use crate::kernel::record::Kind;
use crate::kernel::scan::{Record, Scan};
use crate::kernel::segment::Segment;

/// Yields every key with its value, as of the moment when the iterator was made. Returned by
/// [`LogStore::iter`](super::LogStore::iter).
#[derive(Debug)]
pub struct Iter<'a> {
    view: View<'a>,
    /// The number of segments that were started.
    started: usize,
    current: Option<(Arc<Segment>, Scan)>,
    /// Bytes of the segments that were read completely.
    passed: u64,
    /// Bytes of all segments.
    total: u64,
}

impl<'a> Iter<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        let view = View::new(store);
        let total = view.segments.iter().map(|(_, end)| end).sum();
        Self { view, started: 0, current: None, passed: 0, total }
    }

    /// Returns what `take` makes of the next live record.
    fn step<T>(
        &mut self,
        take: impl Fn(&Segment, &Record<'_>) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        let next = self.advance(take);
        if !matches!(next, Ok(_) | Err(Error::Damaged { .. })) {
            self.current = None;
            self.started = self.view.segments.len();
        }
        next.transpose()
    }

    fn advance<T>(
        &mut self,
        take: impl Fn(&Segment, &Record<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        loop {
            let Some((segment, scan)) = &mut self.current else {
                let Some((segment, end)) = self.view.segments.get(self.started) else {
                    return Ok(None);
                };
                self.started += 1;
                self.current = Some((segment.clone(), Scan::new(segment.clone(), *end)));
                continue;
            };
            match scan.next() {
                Ok(Some(record)) if self.view.is_live(segment, &record) => {
                    return take(segment, &record).map(Some);
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.passed += scan.offset();
                    self.current = None;
                }
                Err(error @ Error::Damaged { .. }) => {
                    scan.resume(&error)?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Iterator for Iter<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    /// Damage is yielded as an error, and the iterator goes on after it. Any other error ends it.
    fn next(&mut self) -> Option<Self::Item> {
        self.step(|segment, record| {
            Ok((memory::copy_of(record.key())?, value_of(segment, record)?))
        })
    }
}

/// Yields every key, as of the moment when the iterator was made. Returned by
/// [`LogStore::keys`](super::LogStore::keys).
#[derive(Debug)]
pub struct Keys<'a>(Iter<'a>);

impl<'a> Keys<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self(Iter::new(store))
    }

    /// Returns the bytes of the log read so far, and the bytes in total.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let in_current = self.0.current.as_ref().map_or(0, |(_, scan)| scan.offset());
        (self.0.passed + in_current, self.0.total)
    }
}

impl Iterator for Keys<'_> {
    type Item = Result<Vec<u8>, Error>;

    /// Damage is yielded as an error, and the iterator goes on after it. Any other error ends it.
    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(|_, record| memory::copy_of(record.key()))
    }
}

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
