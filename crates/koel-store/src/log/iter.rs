//! All keys and values of one moment, in the order in which they were written.

use std::sync::Arc;

use super::store::Store;
use super::view::View;
use crate::Error;
use crate::kernel::record::{self, Kind};
use crate::kernel::scan::{Found, Scan};
use crate::kernel::segment::Segment;

/// Yields every key with its value, as they were when the iterator was made. Made by [`LogStore::iter`](super::LogStore::iter).
#[derive(Debug)]
pub struct Iter<'a> {
    view: View<'a>,
    /// How many segments were begun.
    begun: usize,
    current: Option<(Arc<Segment>, Scan)>,
    /// Bytes of the segments that were read to their end.
    passed: u64,
    /// Bytes of all segments.
    all: u64,
}

impl<'a> Iter<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        let view = View::new(store);
        let all = view.segments.iter().map(|(_, end)| end).sum();
        Self { view, begun: 0, current: None, passed: 0, all }
    }

    /// The next live record, as `take` wants it.
    fn step<T>(
        &mut self,
        take: impl Fn(&Segment, &Found<'_>) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        let next = self.advance(take);
        if next.is_err() {
            self.current = None;
            self.begun = self.view.segments.len();
        }
        next.transpose()
    }

    fn advance<T>(
        &mut self,
        take: impl Fn(&Segment, &Found<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        loop {
            let Some((segment, scan)) = &mut self.current else {
                let Some((segment, end)) = self.view.segments.get(self.begun) else {
                    return Ok(None);
                };
                self.begun += 1;
                self.current = Some((segment.clone(), Scan::new(segment.clone(), *end)));
                continue;
            };
            let Some(found) = scan.next()? else {
                self.passed += scan.offset();
                self.current = None;
                continue;
            };
            if self.view.is_live(segment, &found) {
                return take(segment, &found).map(Some);
            }
        }
    }
}

/// The value of a record, large or not.
fn value_of(segment: &Segment, found: &Found<'_>) -> Result<Vec<u8>, Error> {
    let Found { offset, head, .. } = *found;
    if head.kind == Kind::Value {
        return Ok(found.value().to_vec());
    }
    let mut value = Vec::with_capacity(record::usize_of(head.value_len));
    let (mut at, mut buffer) = (offset + head.body(), Vec::new());
    for block in record::block_sizes(&head) {
        segment.block(at, block, &mut buffer)?;
        value.extend_from_slice(&buffer[..block.content]);
        at += block.stored as u64;
    }
    Ok(value)
}

impl Iterator for Iter<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    /// After an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        self.step(|segment, found| Ok((found.key().to_vec(), value_of(segment, found)?)))
    }
}

/// Yields every key, as they were when the iterator was made. Made by [`LogStore::keys`](super::LogStore::keys).
#[derive(Debug)]
pub struct Keys<'a>(Iter<'a>);

impl<'a> Keys<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self(Iter::new(store))
    }

    /// How many bytes of the log were read so far, of how many.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let begun = self.0.current.as_ref().map_or(0, |(_, scan)| scan.offset());
        (self.0.passed + begun, self.0.all)
    }
}

impl Iterator for Keys<'_> {
    type Item = Result<Vec<u8>, Error>;

    /// After an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(|_, found| Ok(found.key().to_vec()))
    }
}
