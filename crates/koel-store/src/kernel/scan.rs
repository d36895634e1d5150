//! The records of a segment in order, each checked in full.
//!
//! Reads ahead [`AHEAD`] bytes at a time. A longer record is checked in constant memory before it
//! is read, so a damaged length does not decide how much memory is taken.

use std::ops::Range;
use std::sync::Arc;

use super::bytes::{u64_at, usize_of};
use super::memory;
use super::record::{self, ALIGNMENT, HEADER, Header, Kind, MARK};
use super::segment::{FIRST_RECORD, Segment};
use crate::Error;
use crate::error::{Damage, collect_damage};

const AHEAD: usize = 1 << 20;

/// An iterator over the records from `at` to `end`.
#[derive(Debug)]
pub(crate) struct Scan {
    segment: Arc<Segment>,
    at: u64,
    end: u64,
    /// The sequence number of the last record.
    sequence: u64,
    buffer: Vec<u8>,
    /// Offset of the first byte of the buffer.
    start: u64,
}

/// A record with its key, and with its value unless that is large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) offset: u64,
    pub(crate) header: Header,
    /// The bytes of the record in the file, without the blocks of a large value.
    pub(crate) body: &'a [u8],
}

/// What [`Scan::each_sound`] found.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    Record(Record<'a>),
    Damage(Range<u64>),
}

impl<'a> Record<'a> {
    /// Returns the offset behind the record.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.header.size()
    }

    pub(crate) fn key(&self) -> &'a [u8] {
        self.header.key(self.body)
    }

    /// Returns the value; nothing if it is large.
    pub(crate) fn value(&self) -> &'a [u8] {
        self.header.value(self.body)
    }
}

impl Scan {
    /// Scans all records before `end`.
    pub(crate) fn new(segment: Arc<Segment>, end: u64) -> Self {
        Self::from(segment, FIRST_RECORD, end)
    }

    /// Scans the records from `at`, where one starts, to `end`; none if `end` is before `at`.
    pub(crate) fn from(segment: Arc<Segment>, at: u64, end: u64) -> Self {
        Self { segment, at, end: end.max(at), sequence: 0, buffer: Vec::new(), start: at }
    }

    /// Returns the offset at which the next record starts.
    pub(crate) fn offset(&self) -> u64 {
        self.at
    }

    /// Returns the next record, or `None` at the end.
    ///
    /// # Errors
    /// [`Error::Damaged`] if no sound record starts here; the scan does not move then.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        let offset = self.at;
        if offset == self.end {
            return Ok(None);
        }
        let segment = self.segment.clone();
        if self.end - offset < HEADER as u64 {
            return Err(segment.damaged(offset, "too few bytes for a record"));
        }
        let header = self.header_at(offset)?;
        let header = header.ok_or_else(|| segment.damaged(offset, "no record starts here"))?;
        let body = usize_of(header.body());
        if body > AHEAD {
            segment.check_long_body(offset, &header)?;
        }
        if !record::is_sound(self.bytes(offset, body)?, &segment.position(offset)) {
            return Err(segment.damaged(offset, "the checksum of a record does not match"));
        }
        segment.each_block(offset, &header, |_, _| Ok(()))?;
        self.at = offset + header.size();
        self.sequence = header.sequence;
        let from = usize_of(offset - self.start);
        Ok(Some(Record { offset, header, body: &self.buffer[from..][..body] }))
    }

    /// After damage, moves on to the next sound record, or to the end. The segment notes the bytes
    /// between as damaged.
    pub(crate) fn resume(&mut self, damage: &Error) -> Result<(), Error> {
        let from = self.at;
        self.find_next()?;
        self.segment.note_if_damage(from..self.at, damage);
        Ok(())
    }

    fn find_next(&mut self) -> Result<(), Error> {
        while self.at + ALIGNMENT < self.end {
            self.at += ALIGNMENT;
            self.skip_hole()?;
            let (at, sequence) = (self.at, self.sequence);
            // Most offsets are ruled out by their header, which costs far less than an error.
            let found = match self.header_at(at) {
                Ok(None) => continue,
                Ok(Some(_)) => self.next().map(drop),
                Err(error) => Err(error),
            };
            match found {
                Ok(()) => {
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

    /// Calls `each` with every sound record from here on. Damage is added to the list, and `each`
    /// gets the bytes that it takes.
    pub(crate) fn each_sound(
        &mut self,
        damages: &mut Vec<Damage>,
        mut each: impl FnMut(Found<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            match self.next() {
                Ok(Some(record)) => each(Found::Record(record))?,
                Ok(None) => return Ok(()),
                Err(error @ Error::Damaged { .. }) => {
                    let from = self.at;
                    self.resume(&error)?;
                    collect_damage::<()>(damages, Err(error))?;
                    each(Found::Damage(from..self.at))?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// In a hole of a sparse file, moves on to its end. Asks once for each buffer.
    fn skip_hole(&mut self) -> Result<(), Error> {
        let is_buffered = self.at + HEADER as u64 <= self.start + self.buffer.len() as u64;
        if !is_buffered {
            self.at = self.segment.next_data(self.at)?.map_or(self.end, |data| data.min(self.end));
        }
        Ok(())
    }

    /// Returns the header at `offset`, if a record that starts there would end before the end of
    /// the scan and come after the last record.
    fn header_at(&mut self, offset: u64) -> Result<Option<Header>, Error> {
        let left = self.end - offset;
        if left < HEADER as u64 {
            return Ok(None);
        }
        let header = Header::read(self.bytes(offset, HEADER)?);
        let fits = |header: &Header| header.size() <= left && header.sequence > self.sequence;
        Ok(header.filter(fits))
    }

    /// Returns `len` bytes at `offset`, which are before the end of the scan.
    fn bytes(&mut self, offset: u64, len: usize) -> Result<&[u8], Error> {
        let inside = offset - self.start;
        if inside + len as u64 > self.buffer.len() as u64 {
            let passed = usize_of(inside).min(self.buffer.len());
            self.buffer.drain(..passed);
            self.start = offset;
            let filled = self.buffer.len();
            let left = usize_of(self.end - offset);
            memory::grow_to(&mut self.buffer, len.max(AHEAD).min(left))?;
            let read = self.segment.read(&mut self.buffer[filled..], offset + filled as u64);
            read.inspect_err(|_| self.buffer.truncate(filled))?;
        }
        Ok(&self.buffer[usize_of(offset - self.start)..][..len])
    }
}

/// Returns the greatest offset that a mark after `from` says was durable, or 0 if there is no mark.
///
/// Looks at every offset where a record could start, because the records before a mark may be
/// unreadable.
pub(crate) fn last_durable_offset(segment: &Segment, from: u64, end: u64) -> Result<u64, Error> {
    let mut last = 0;
    let mut at = from.next_multiple_of(ALIGNMENT);
    let mut buffer = Vec::new();
    memory::grow_to(&mut buffer, AHEAD)?;
    while let Some(data) =
        segment.next_data(at)?.filter(|&data| data <= end.saturating_sub(MARK as u64))
    {
        at = data;
        let len = usize_of(end - at).min(AHEAD);
        segment.read(&mut buffer[..len], at)?;
        let starts = (len - MARK) / 8 + 1;
        for start in (0..starts * 8).step_by(8) {
            let bytes = &buffer[start..start + MARK];
            let position = segment.position(at + start as u64);
            let is_sound_mark =
                |header: &Header| header.kind == Kind::Mark && record::is_sound(bytes, &position);
            if let Some(header) = Header::read(bytes).filter(is_sound_mark) {
                last = last.max(u64_at(header.value(bytes), 0));
            }
        }
        at += starts as u64 * ALIGNMENT;
    }
    Ok(last)
}

#[cfg(test)]
mod tests;
