//! Reading: from the hash to locations, from a location to a record, and the key decides.
//!
//! A hit is one read of a segment as a rule: as many bytes from the location on as hold the whole of most records; a longer one takes a second read. A miss reads nothing, unless the index has
//! a wrong location for it.

use std::cell::RefCell;
use std::sync::Arc;

use super::index::Candidates;
use super::store::Store;
use super::value::ValueReader;
use crate::Error;
use crate::kernel::record::{self, Kind};
use crate::kernel::scan::Found;
use crate::kernel::segment::Segment;

/// A thread keeps a buffer of at most so many bytes from one read to the next.
const KEPT: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A live record.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) segment: Arc<Segment>,
    pub(super) location: u64,
    pub(super) size: u64,
}

/// A record of the key that was asked for.
struct Hit<'a> {
    segment: &'a Arc<Segment>,
    location: u64,
    found: Found<'a>,
}

impl Store {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.find(key, self.hash(key), |hit| value_of(hit.segment, &hit.found))
    }

    pub(super) fn reader(&self, key: &[u8]) -> Result<Option<ValueReader>, Error> {
        self.find(key, self.hash(key), |hit| Ok(ValueReader::new(hit.segment, &hit.found)))
    }

    /// Where the live record of a key is.
    pub(super) fn locate(&self, key: &[u8], hash: u64) -> Result<Option<Located>, Error> {
        self.find(key, hash, |hit| {
            let (segment, size) = (hit.segment.clone(), hit.found.head.size());
            Ok(Located { segment, location: hit.location, size })
        })
    }

    /// The key of the record at an offset.
    pub(super) fn key_at(&self, segment: &Segment, offset: u64) -> Result<Vec<u8>, Error> {
        let mut buffer = Vec::new();
        let head = segment.record(offset, &mut buffer)?;
        Ok(head.key(&buffer).to_vec())
    }

    /// Hands the live record of a key to `take`.
    #[inline]
    fn find<R>(
        &self,
        key: &[u8],
        hash: u64,
        take: impl Fn(Hit<'_>) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        loop {
            let generation = self.segments.generation();
            let Some(candidates) = self.index.candidates(hash) else { return Ok(None) };
            let found = self.find_among(candidates, key, hash, &take);
            if matches!(found, Ok(Some(_))) || self.segments.generation() == generation {
                return found;
            }
        }
    }

    /// Hands the record that has the key to `take`. Not inlined, so that an absent key does not pay for its registers.
    #[inline(never)]
    fn find_among<R>(
        &self,
        candidates: Candidates,
        key: &[u8],
        hash: u64,
        take: impl Fn(Hit<'_>) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let mut failure = None;
        for location in candidates {
            let Some((segment, offset)) = self.segments.at(location) else { continue };
            self.index.count_read(hash);
            match compare(&segment, location, offset, key, &take) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(None), Err)
    }
}

/// Reads the record at an offset, and hands it to `take` if it is that of `key`.
fn compare<R>(
    segment: &Arc<Segment>,
    location: u64,
    offset: u64,
    key: &[u8],
    take: impl Fn(Hit<'_>) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    BUFFER.with_borrow_mut(|buffer| {
        let head = segment.record(offset, buffer)?;
        let has_value = matches!(head.kind, Kind::Value | Kind::Large);
        let found = if has_value && head.key(buffer) == key {
            let body = &buffer[..record::usize_of(head.body())];
            let found = Found { offset, head, body };
            Some(take(Hit { segment, location, found })?)
        } else {
            None
        };
        if buffer.len() > KEPT {
            *buffer = Vec::new();
        }
        Ok(found)
    })
}

/// The value of a record, large or not.
pub(super) fn value_of(segment: &Segment, found: &Found<'_>) -> Result<Vec<u8>, Error> {
    match found.head.kind {
        Kind::Large => segment.large_value(found.offset, &found.head),
        _ => Ok(found.value().to_vec()),
    }
}
