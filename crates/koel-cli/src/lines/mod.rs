//! Splits the bytes of an input into lines, in groups.
//!
//! A line ends at LF, at NUL, or, in CSV, at an LF outside quotes. Any bytes may be in it; they
//! need not be UTF-8. Bytes after the last line end are a line too, if there are any.
//!
//! UTF-8 byte order marks at the start of a line are dropped: `cat a.txt b.txt` leaves that of `b`
//! in the middle. Keys that end with NUL are exact bytes, and keep it.
//!
//! ```text
//! buffer   [ returned | line being searched | read, not searched | free ]
//!                     ^ start               ^ searched           ^ filled
//! ```
//!
//! The buffer grows up to the longest line that is allowed and its line end, so a longer line does
//! not fit and is refused. Cost: one vectorised search over each byte, no allocation and no copy
//! per line. Each refill moves the unfinished line to the front of the buffer. Memory: 256 KiB, or
//! twice the longest line.

pub(crate) mod decode;
pub(crate) mod text;

use std::io::{Error, ErrorKind, Read, Result};
use std::ops::Range;

use koel_lines::Records;

use crate::failure::Refused;
use crate::quantity;

/// With reads of this size, system calls cost little compared with copying.
const BUFFER: usize = 256 * 1024;

/// The most lines in a group: enough for the filter to prefetch, few enough to stay in the cache.
const GROUP: usize = 1024;

/// The byte order mark of UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// What ends a line.
pub(crate) enum LineEnd {
    Byte(u8),
    /// An LF outside the quotes of a CSV record.
    Record(Records),
}

/// The lines of one reader.
pub(crate) struct Lines<R> {
    reader: R,
    end: LineEnd,
    longest: usize,
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
    /// Line ends in all lines returned or skipped so far.
    passed: u64,
    /// Whether lines above the limit are skipped; how many were; whether one is being skipped.
    skips_long: bool,
    too_long: u64,
    is_in_long: bool,
    /// The most lines in a group.
    group: usize,
}

impl<R: Read> Lines<R> {
    /// Refuses or skips lines of more than `longest` bytes.
    pub(crate) fn new(reader: R, end: LineEnd, longest: usize, skips_long: bool) -> Self {
        let buffer = vec![0; BUFFER.min(longest.saturating_add(1))];
        let (start, filled, passed) = (0, 0, 0);
        let (too_long, is_in_long) = (0, false);
        Self {
            reader,
            end,
            longest,
            buffer,
            start,
            filled,
            passed,
            skips_long,
            too_long,
            is_in_long,
            group: GROUP,
        }
    }

    /// Groups with all lines of a read: some ten thousand, for whoever has to wait for each group.
    pub(crate) fn in_large_groups(self) -> Self {
        Self { group: usize::MAX, ..self }
    }

    /// Whether lines are records of CSV.
    pub(crate) fn is_csv(&self) -> bool {
        matches!(self.end, LineEnd::Record(_))
    }

    /// How many lines above the limit were skipped.
    pub(crate) fn too_long(&self) -> u64 {
        self.too_long
    }

    /// The next complete lines, at least one; none at the end of the input. Each is a range of
    /// [`bytes`](Self::bytes).
    pub(crate) fn next_group(&mut self) -> Result<Vec<Range<usize>>> {
        let mut group = Vec::with_capacity(GROUP);
        group.extend(self.next_line()?);
        if group.is_empty() {
            return Ok(group);
        }
        match self.end {
            LineEnd::Byte(byte) => {
                let rest = self.start;
                let ends = memchr::memchr_iter(byte, &self.buffer[rest..self.filled]);
                for end in ends.take(self.group - 1) {
                    group.push(self.after_marks(self.start)..rest + end);
                    self.start = rest + end + 1;
                }
                self.passed += group.len() as u64 - 1;
            }
            LineEnd::Record(_) => {
                while group.len() < self.group
                    && let Some(record) = self.whole_line(self.start)
                {
                    self.passed += self.lines_in(&record);
                    group.push(record);
                }
            }
        }
        Ok(group)
    }

    /// The next line. Like [`next_group`](Self::next_group), but never more than one.
    pub(crate) fn next_line(&mut self) -> Result<Option<Range<usize>>> {
        let line = self.next()?;
        self.passed += line.as_ref().map_or(0, |line| self.lines_in(line));
        Ok(line)
    }

    /// The numbers of the lines of the last group, counted from 1.
    pub(crate) fn numbers(&self, group: &[Range<usize>]) -> Vec<u64> {
        let lines = group.iter().map(|line| self.lines_in(line));
        let mut next = self.passed - lines.clone().sum::<u64>() + 1;
        let mut number = |lines| {
            next += lines;
            next - lines
        };
        lines.map(&mut number).collect()
    }

    /// The number of lines that a record of CSV takes, 1 for any other line.
    fn lines_in(&self, line: &Range<usize>) -> u64 {
        match self.end {
            LineEnd::Byte(_) => 1,
            LineEnd::Record(_) => 1 + count(b'\n', &self.buffer[line.clone()]),
        }
    }

    /// The bytes that the ranges of the last group refer to.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The range of the next line in the buffer; `None` at the end of the input.
    fn next(&mut self) -> Result<Option<Range<usize>>> {
        let mut searched = self.start;
        loop {
            if self.is_in_long {
                self.skip_to_line_end();
                searched = self.start;
            }
            if let Some(line) = self.whole_line(searched) {
                return Ok(Some(line));
            }
            searched = self.filled - self.start;
            if !self.refill()? {
                let rest = self.start..self.filled;
                if let LineEnd::Record(records) = &mut self.end
                    && records.is_open(&self.buffer[rest.clone()])
                {
                    let line = quantity::grouped(self.passed + 1);
                    return Err(Refused::error(format!(
                        "a quote in the record that begins in line {line} is not closed; correct \
                         the file, or leave out --csv if quotes have no meaning in it"
                    )));
                }
                self.start = self.filled;
                return Ok((!rest.is_empty()).then_some(rest));
            }
        }
    }

    /// The next line, if all of it is in the buffer.
    fn whole_line(&mut self, searched: usize) -> Option<Range<usize>> {
        self.start = self.after_marks(self.start);
        let end = self.end_of_line(searched.max(self.start))?;
        let line = self.start..end;
        self.start = end + 1;
        Some(line)
    }

    /// Where a line begins after its byte order marks. There may be two: an editor adds one to a
    /// file that has one.
    fn after_marks(&self, mut start: usize) -> usize {
        let is_exact = matches!(self.end, LineEnd::Byte(0));
        while !is_exact && self.buffer[start..self.filled].starts_with(MARK) {
            start += MARK.len();
        }
        start
    }

    /// Where the first line ends, of which the bytes before `searched` are known to be inside.
    fn end_of_line(&mut self, searched: usize) -> Option<usize> {
        match &mut self.end {
            LineEnd::Byte(byte) => {
                let end = memchr::memchr(*byte, &self.buffer[searched..self.filled])?;
                Some(searched + end)
            }
            // Quotes decide, so the search begins at the start of the record again.
            LineEnd::Record(records) => {
                let end = records.end(&self.buffer[self.start..self.filled])?;
                Some(self.start + end)
            }
        }
    }

    /// Moves the unfinished line to the front and reads more after it.
    ///
    /// Returns false at the end of the input.
    fn refill(&mut self) -> Result<bool> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        if self.filled == self.buffer.len() {
            if self.filled > self.longest {
                if !self.skips_long || matches!(self.end, LineEnd::Record(_)) {
                    return Err(self.too_long_error());
                }
                self.too_long += 1;
                self.is_in_long = true;
                self.filled = 0;
                return Ok(true);
            }
            let size = self.filled.saturating_mul(2).min(self.longest.saturating_add(1));
            // The size comes from the input, so there may be no memory for it.
            let memory = self.buffer.try_reserve_exact(size - self.filled);
            memory.map_err(|_| ErrorKind::OutOfMemory)?;
            self.buffer.resize(size, 0);
        }
        let got = read_some(&mut self.reader, &mut self.buffer[self.filled..])?;
        self.filled += got;
        Ok(got > 0)
    }

    /// Drops the rest of a line above the limit, as far as it was read.
    fn skip_to_line_end(&mut self) {
        let LineEnd::Byte(byte) = self.end else { return };
        match memchr::memchr(byte, &self.buffer[self.start..self.filled]) {
            Some(end) => {
                self.start += end + 1;
                self.passed += 1;
                self.is_in_long = false;
            }
            None => self.start = self.filled,
        }
    }

    fn too_long_error(&self) -> Error {
        let skip = ", or --skip-long";
        let (what, remedy, skip) = match self.end {
            LineEnd::Byte(b'\n') => ("line", "use -0 if NUL ends each key", skip),
            LineEnd::Byte(_) => ("key", "leave out -0 if keys are lines", skip),
            LineEnd::Record(_) => ("record in line", "look for a quote that is not closed", ""),
        };
        Refused::error(format!(
            "{what} {} is longer than {}; {remedy}, or give a larger --max-line{skip}",
            quantity::grouped(self.passed + 1),
            quantity::bytes(self.longest as u64)
        ))
    }
}

/// Counts the lines that [`Lines`] would return, without splitting the input.
pub(crate) fn count_lines(mut reader: impl Read, end: u8) -> Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut lines = 0;
    let mut last = end;
    loop {
        let got = read_some(&mut reader, &mut buffer)?;
        let Some(&byte) = buffer[..got].last() else {
            return Ok(lines + u64::from(last != end));
        };
        lines += count(end, &buffer[..got]);
        last = byte;
    }
}

fn count(byte: u8, bytes: &[u8]) -> u64 {
    memchr::memchr_iter(byte, bytes).count() as u64
}

/// Reads once; a signal does not interrupt it.
pub(crate) fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns at most `step` bytes per read, so that lines span several reads.
    pub(crate) struct Drip {
        bytes: Vec<u8>,
        step: usize,
        read: usize,
    }

    impl Drip {
        pub(crate) fn new(bytes: &[u8], step: usize) -> Self {
            Self { bytes: bytes.to_vec(), step, read: 0 }
        }
    }

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let rest = &self.bytes[self.read..];
            let taken = self.step.min(buffer.len()).min(rest.len());
            buffer[..taken].copy_from_slice(&rest[..taken]);
            self.read += taken;
            Ok(taken)
        }
    }
}
