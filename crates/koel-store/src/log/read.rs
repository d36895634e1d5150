//! Reading: the index maps a hash to locations, a location leads to a record, and its key decides.
//!
//! A get of a present key usually takes one read of a segment, long enough for most records; a
//! longer record takes a second read. A get of an absent key reads nothing, unless the index has a
//! false candidate for it.
//!
//! A large value can be read as a stream, block by block, and each block is checked before the
//! caller gets a byte of it.
//!
//! **Damage.** A record may only replace one of the same key, so the keys are compared. If the old
//! record is damaged, the hint of its segment decides: it has 64 bits of a hash of the key, under a
//! checksum of its own. Two keys share that hash as rarely as wrong bytes have the right checksum.
//! So a damaged record does not make other keys unreadable, and its own key can be written or
//! deleted. Without a hint the damage stays an error.

use std::cell::RefCell;
use std::io::{self, Read};
use std::sync::Arc;

use super::hint::Note;
use super::index::Candidates;
use super::store::Store;
use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::memory;
use crate::kernel::record::{self, ALIGNMENT, Header, Kind};
use crate::kernel::scan::Record;
use crate::kernel::segment::Segment;

/// Maximum size of the buffer that a thread keeps from one read to the next.
const MAX_KEPT: usize = 1 << 20;

/// Bytes that are read of a damaged record for its key.
const MAX_UNCHECKED: u64 = 8 << 10;

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
pub(super) struct Hit<'a> {
    pub(super) segment: &'a Arc<Segment>,
    location: u64,
    pub(super) record: Record<'a>,
}

impl Hit<'_> {
    pub(super) fn located(&self) -> Located {
        let (segment, size) = (self.segment.clone(), self.record.header.size());
        Located { segment, location: self.location, size }
    }
}

impl Store {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.find(key, self.hash(key), |hit| value_of(hit.segment, &hit.record))
    }

    pub(super) fn reader(&self, key: &[u8]) -> Result<Option<ValueReader>, Error> {
        self.find(key, self.hash(key), |hit| ValueReader::new(hit.segment, &hit.record))
    }

    /// Returns where the live record of a key is.
    pub(super) fn locate(&self, key: &[u8], hash: u64) -> Result<Option<Located>, Error> {
        self.find(key, hash, |hit| Ok(hit.located()))
    }

    /// Returns whether a key may have a value, without reading. At most 1 of 100,000 absent keys
    /// may. A record that is known to be damaged does not count.
    #[cfg(unix)]
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        self.index.candidates(self.hash(key)).into_iter().flatten().any(|location| {
            let record = self.segments.at(location);
            record.is_some_and(|(segment, offset)| !segment.is_damaged_at(offset))
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
    pub(super) fn find<R>(
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
    let taken = BUFFER.with_borrow_mut(|buffer| {
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
    });
    taken.inspect_err(|error| {
        segment.note_if_damage(offset..offset + ALIGNMENT, error);
    })
}

/// Returns the value of a record, large or not.
pub(super) fn value_of(segment: &Segment, record: &Record<'_>) -> Result<Vec<u8>, Error> {
    match record.header.kind {
        Kind::Large => segment.large_value(record.offset, &record.header),
        _ => memory::copy_of(record.value()),
    }
}

/// Reads a value in at most 64 KiB of memory. Later writes do not change what it reads.
///
/// A read of damaged bytes fails with [`io::ErrorKind::InvalidData`], which wraps
/// [`Error::Damaged`].
#[derive(Debug)]
pub struct ValueReader {
    segment: Arc<Segment>,
    /// Offset of the next block.
    offset: u64,
    len: u64,
    /// Bytes of the value after the block in memory.
    left: usize,
    block: Vec<u8>,
    /// The unread part of the block.
    from: usize,
    to: usize,
}

impl ValueReader {
    pub(super) fn new(segment: &Arc<Segment>, record: &Record<'_>) -> Result<Self, Error> {
        let Record { offset, header, .. } = *record;
        let block = memory::copy_of(record.value())?;
        Ok(Self {
            segment: segment.clone(),
            offset: offset + header.body(),
            len: header.value_len,
            left: if header.kind == Kind::Large { usize_of(header.value_len) } else { 0 },
            from: 0,
            to: block.len(),
            block,
        })
    }

    /// Returns the length of the whole value in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the value has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the next block if the present one is used up. Returns false at the end.
    fn fill(&mut self) -> Result<bool, Error> {
        if self.from == self.to && self.left > 0 {
            let block = record::block_size(self.left);
            self.segment.block(self.offset, block, &mut self.block)?;
            self.offset += block.stored as u64;
            self.left -= block.content;
            (self.from, self.to) = (0, block.content);
        }
        Ok(self.from < self.to)
    }
}

impl Read for ValueReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.fill() {
            Ok(true) => {
                let read = (&self.block[self.from..self.to]).read(into)?;
                self.from += read;
                Ok(read)
            }
            Ok(false) => Ok(0),
            Err(Error::Io { error, .. }) => Err(error),
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}

impl Store {
    /// Returns the live record of a key that is about to be replaced or deleted. `located` is the
    /// result of reading it.
    pub(super) fn resolve_damaged(
        &self,
        located: Result<Option<Located>, Error>,
        hash: u64,
    ) -> Result<Option<Located>, Error> {
        match located {
            Err(Error::Damaged { .. }) => self.locate_by_hash(hash),
            located => located,
        }
    }

    /// Returns the live record of the key with this hash, without comparing keys.
    fn locate_by_hash(&self, hash: u64) -> Result<Option<Located>, Error> {
        for location in self.index.candidates(hash).into_iter().flatten() {
            let Some((segment, offset)) = self.segments.at(location) else { continue };
            let (record_hash, size) = self.hash_at(&segment, offset)?;
            if record_hash == hash {
                return Ok(Some(Located { segment, location, size }));
            }
        }
        Ok(None)
    }

    /// Returns the keys of live records that are known to be damaged, as far as their bytes still
    /// have the hash that the hint says.
    pub(super) fn keys_of_damaged(&self) -> Result<Vec<Vec<u8>>, Error> {
        let mut keys = Vec::new();
        for segment in self.segments.all() {
            for bytes in segment.damaged_places() {
                let cache = &self.hint_cache;
                let notes = cache.notes_in(&*self.folder, &segment, self.segment_bytes, bytes);
                for note in notes.into_iter().flatten().filter(|note| !note.is_tombstone()) {
                    let location = self.segments.location(&segment, note.offset());
                    if self.index.contains(note.hash, location) {
                        keys.extend(self.unchecked_key(&segment, &note)?);
                    }
                }
            }
        }
        Ok(keys)
    }

    /// Returns the key of a damaged record, if it has the hash of the note.
    fn unchecked_key(&self, segment: &Segment, note: &Note) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = vec![0; usize_of(note.size().min(MAX_UNCHECKED))];
        segment.read(&mut bytes, note.offset())?;
        let Some(header) = Header::read(&bytes) else { return Ok(None) };
        let key = header.unchecked_key(&bytes);
        Ok(key.filter(|key| self.hash(key) == note.hash).map(<[u8]>::to_vec))
    }

    /// Returns the hash of the key of a record, and its size. They come from the hint if the record
    /// is damaged.
    fn hash_at(&self, segment: &Segment, offset: u64) -> Result<(u64, u64), Error> {
        let mut buffer = Vec::new();
        match segment.record(offset, &mut buffer) {
            Ok(header) => Ok((self.hash(header.key(&buffer)), header.size())),
            Err(error @ Error::Damaged { .. }) => {
                let cache = &self.hint_cache;
                let note = cache.note_at(&*self.folder, segment, self.segment_bytes, offset);
                note.map(|note| (note.hash, note.size())).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }
}
