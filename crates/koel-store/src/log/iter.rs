//! All keys and values of one moment, in the order in which they were written.

use std::sync::Arc;

use super::read::value_of;
use super::store::Store;
use super::view::View;
use crate::Error;
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
        if !matches!(next, Ok(_) | Err(Error::Damaged { .. })) {
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
            match scan.next() {
                Ok(Some(found)) if self.view.is_live(segment, &found) => {
                    return take(segment, &found).map(Some);
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.passed += scan.offset();
                    self.current = None;
                }
                Err(error @ Error::Damaged { .. }) => {
                    scan.resume()?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Iterator for Iter<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    /// Damage is an item, and what lies behind it comes next; after another error there is nothing more.
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

    /// As that of [`Iter`].
    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(|_, found| Ok(found.key().to_vec()))
    }
}
