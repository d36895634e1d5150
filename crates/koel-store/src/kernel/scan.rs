//! The records of a segment, one after the other, each checked in full.
//!
//! Reads ahead in pieces of [`AHEAD`] bytes. A length that is damaged cannot ask for more memory than the segment has bytes: no record is believed to end behind the end of
//! the segment.

use std::sync::Arc;

use super::record::{self, Head, Kind, UNIT};
use super::segment::{FIRST, Segment};
use crate::Error;

const AHEAD: usize = 1 << 20;

/// A walk over the records from `at` to `end`.
#[derive(Debug)]
pub(crate) struct Scan {
    segment: Arc<Segment>,
    at: u64,
    end: u64,
    sequence: u64,
    buffer: Vec<u8>,
    /// Offset of the first byte of the buffer.
    start: u64,
}

/// A record, with its key, and its value unless that is large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) offset: u64,
    pub(crate) head: Head,
    /// The record as it lies in the file, the blocks of a large value excepted.
    pub(crate) body: &'a [u8],
}

impl<'a> Found<'a> {
    pub(crate) fn key(&self) -> &'a [u8] {
        self.head.key(self.body)
    }

    /// The value; nothing of a large one.
    pub(crate) fn value(&self) -> &'a [u8] {
        self.head.value(self.body)
    }
}

impl Scan {
    /// All records in front of `end`.
    pub(crate) fn new(segment: Arc<Segment>, end: u64) -> Self {
        Self::from(segment, FIRST, end)
    }

    /// The records from `at`, where one starts, to `end`; none where that is in front of it.
    pub(crate) fn from(segment: Arc<Segment>, at: u64, end: u64) -> Self {
        Self { segment, at, end: end.max(at), sequence: 0, buffer: Vec::new(), start: at }
    }

    /// Where the next record starts.
    pub(crate) fn offset(&self) -> u64 {
        self.at
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Damaged`] where no sound record begins; the walk stays in front of it.
    pub(crate) fn next(&mut self) -> Result<Option<Found<'_>>, Error> {
        let offset = self.at;
        if offset == self.end {
            return Ok(None);
        }
        let segment = self.segment.clone();
        let damaged = |what| segment.damaged(offset, what);
        if self.end - offset < record::HEAD as u64 {
            return Err(damaged("too few bytes for a record"));
        }
        let head = Head::read(self.bytes(offset, record::HEAD)?)
            .filter(|head| head.size() <= self.end - offset)
            .filter(|head| head.sequence > self.sequence)
            .ok_or_else(|| damaged("no record begins here"))?;
        let body = record::usize_of(head.body());
        if !record::is_sound(self.bytes(offset, body)?, &segment.place(offset)) {
            return Err(damaged("the checksum of a record does not match"));
        }
        segment.each_block(offset, &head, |_, _| Ok(()))?;
        self.at = offset + head.size();
        self.sequence = head.sequence;
        let from = record::usize_of(offset - self.start);
        Ok(Some(Found { offset, head, body: &self.buffer[from..][..body] }))
    }

    /// Goes on to the next sound record, or to the end, after damage.
    pub(crate) fn resume(&mut self) -> Result<(), Error> {
        while self.at + UNIT < self.end {
            self.at += UNIT;
            let (at, sequence) = (self.at, self.sequence);
            match self.next() {
                Ok(_) => {
                    (self.at, self.sequence) = (at, sequence);
                    return Ok(());
                }
                Err(Error::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.at = self.end;
        Ok(())
    }

    /// The bytes from `offset` on, which are in the segment.
    fn bytes(&mut self, offset: u64, len: usize) -> Result<&[u8], Error> {
        let inside = offset - self.start;
        if inside + len as u64 > self.buffer.len() as u64 {
            let kept = record::usize_of(inside).min(self.buffer.len());
            self.buffer.drain(..kept);
            self.start = offset;
            let have = self.buffer.len();
            let left = record::usize_of(self.end - offset);
            self.buffer.resize(len.max(AHEAD).min(left), 0);
            self.segment.read(&mut self.buffer[have..], offset + have as u64)?;
        }
        Ok(&self.buffer[record::usize_of(offset - self.start)..][..len])
    }
}

/// The furthest offset that a mark behind `from` says was durable; 0 without one. Looks at every place where a record could start, because what is in front of
/// a mark may be unreadable.
pub(crate) fn furthest_mark(segment: &Segment, from: u64, end: u64) -> Result<u64, Error> {
    const MARK: usize = 32;
    let mut furthest = 0;
    let mut at = from.next_multiple_of(UNIT);
    let mut buffer = vec![0; AHEAD];
    while at + MARK as u64 <= end {
        let want = record::usize_of(end - at).min(AHEAD);
        segment.read(&mut buffer[..want], at)?;
        let starts = (want - MARK) / 8 + 1;
        for start in (0..starts * 8).step_by(8) {
            let bytes = &buffer[start..start + MARK];
            let place = segment.place(at + start as u64);
            let is_sound_mark =
                |head: &Head| head.kind == Kind::Mark && record::is_sound(bytes, &place);
            if let Some(head) = Head::read(bytes).filter(is_sound_mark) {
                furthest = furthest.max(super::access::u64_at(head.value(bytes), 0));
            }
        }
        at += starts as u64 * UNIT;
    }
    Ok(furthest)
}

#[cfg(test)]
mod tests;
