//! Reading: the index maps a hash to locations, a location leads to a record, and its key decides.
//!
//! A get of a present key usually takes one read of a segment, long enough for most records; a
//! longer record takes a second read. A get of an absent key reads nothing, unless the index has a
//! false candidate for it.

use std::cell::RefCell;
use std::sync::Arc;

use super::index::Candidates;
use super::store::Store;
use super::value::ValueReader;
use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::memory;
use crate::kernel::record::Kind;
use crate::kernel::scan::Record;
use crate::kernel::segment::Segment;

/// Maximum size of the buffer that a thread keeps from one read to the next.
const MAX_KEPT: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Where a live record is.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) segment: Arc<Segment>,
    pub(super) location: u64,
    pub(super) size: u64,
}

/// The live record of the key that was looked up.
struct Hit<'a> {
    segment: &'a Arc<Segment>,
    location: u64,
    record: Record<'a>,
}

impl Store {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.find(key, self.hash(key), |hit| value_of(hit.segment, &hit.record))
    }

    pub(super) fn reader(&self, key: &[u8]) -> Result<Option<ValueReader>, Error> {
        self.find(key, self.hash(key), |hit| Ok(ValueReader::new(hit.segment, &hit.record)))
    }

    /// Returns where the live record of a key is.
    pub(super) fn locate(&self, key: &[u8], hash: u64) -> Result<Option<Located>, Error> {
        self.find(key, hash, |hit| {
            let (segment, size) = (hit.segment.clone(), hit.record.header.size());
            Ok(Located { segment, location: hit.location, size })
        })
    }

    /// Returns the key of the record at an offset.
    pub(super) fn key_at(&self, segment: &Segment, offset: u64) -> Result<Vec<u8>, Error> {
        let mut buffer = Vec::new();
        let header = segment.record(offset, &mut buffer)?;
        memory::copy_of(header.key(&buffer))
    }

    /// Passes the live record of a key to `take`. The key is located in the index once, unless a
    /// segment went away meanwhile.
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

    /// Passes the record that has the key to `take`. Not inlined, so that a lookup of an absent key
    /// does not save registers for it.
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
            match take_if_key_matches(&segment, location, offset, key, &take) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(None), Err)
    }
}

/// Reads the record at an offset, and passes it to `take` if it has this key.
fn take_if_key_matches<R>(
    segment: &Arc<Segment>,
    location: u64,
    offset: u64,
    key: &[u8],
    take: impl Fn(Hit<'_>) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    BUFFER.with_borrow_mut(|buffer| {
        let header = segment.record(offset, buffer)?;
        let has_value = matches!(header.kind, Kind::Value | Kind::Large);
        let found = if has_value && header.key(buffer) == key {
            let body = &buffer[..usize_of(header.body())];
            let record = Record { offset, header, body };
            Some(take(Hit { segment, location, record })?)
        } else {
            None
        };
        if buffer.len() > MAX_KEPT {
            *buffer = Vec::new();
        }
        Ok(found)
    })
}

/// Returns the value of a record, large or not.
pub(super) fn value_of(segment: &Segment, record: &Record<'_>) -> Result<Vec<u8>, Error> {
    match record.header.kind {
        Kind::Large => segment.large_value(record.offset, &record.header),
        _ => Ok(record.value().to_vec()),
    }
}
