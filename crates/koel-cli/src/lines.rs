//! Splits bytes into keys at each terminator, `\n` or NUL.
//!
//! A key is the exact bytes of its line: UTF-8 is not required, a carriage return is kept, and an
//! empty line is the empty key. Bytes after the last terminator are a key too, if there are any.
//!
//! ```text
//! buffer   [ returned | key being searched | read, not searched | free ]
//!                     ^ start              ^ searched           ^ filled
//! ```
//!
//! Cost: one vectorised search over each byte, no allocation and no copy per key. Each refill moves
//! the unfinished key to the front of the buffer. Memory: 256 KiB, or twice the longest key.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, Read, Result};
use std::ops::Range;

/// With reads of this size, system calls cost little compared with copying.
const BUFFER: usize = 256 * 1024;

/// The most keys in a group: enough for the filter to prefetch, few enough to stay in the cache.
const GROUP: usize = 1024;

/// The keys of one reader, borrowed in groups.
pub(crate) struct Keys<R> {
    reader: R,
    terminator: u8,
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
}

impl<R: Read> Keys<R> {
    pub(crate) fn new(reader: R, terminator: u8) -> Self {
        Self { reader, terminator, buffer: vec![0; BUFFER], start: 0, filled: 0 }
    }

    /// The next complete keys in the buffer, at least one; none at the end of the input.
    pub(crate) fn next_group(&mut self) -> Result<Vec<&[u8]>> {
        let mut group = Vec::with_capacity(GROUP);
        group.extend(self.next()?);
        if !group.is_empty() {
            let rest = self.start;
            let ends = memchr::memchr_iter(self.terminator, &self.buffer[rest..self.filled]);
            for end in ends.take(GROUP - 1) {
                group.push(self.start..rest + end);
                self.start = rest + end + 1;
            }
        }
        Ok(group.into_iter().map(|key| &self.buffer[key]).collect())
    }

    /// The range of the next key in the buffer; `None` at the end of the input.
    fn next(&mut self) -> Result<Option<Range<usize>>> {
        let mut searched = self.start;
        loop {
            if let Some(length) =
                memchr::memchr(self.terminator, &self.buffer[searched..self.filled])
            {
                let key = self.start..searched + length;
                self.start = key.end + 1;
                return Ok(Some(key));
            }
            searched = self.filled - self.start;
            if !self.refill()? {
                let rest = self.start..self.filled;
                self.start = self.filled;
                return Ok((!rest.is_empty()).then_some(rest));
            }
        }
    }

    /// Moves the unfinished key to the front and reads more after it.
    ///
    /// Returns false at the end of the input.
    fn refill(&mut self) -> Result<bool> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        let got = read_some(&mut self.reader, &mut self.buffer[self.filled..])?;
        self.filled += got;
        Ok(got > 0)
    }
}

/// Counts the keys that [`Keys`] would return, without splitting the input.
pub(crate) fn count_keys(mut reader: impl Read, terminator: u8) -> Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut keys = 0;
    let mut last = terminator;
    loop {
        let got = read_some(&mut reader, &mut buffer)?;
        let Some(&end) = buffer[..got].last() else {
            return Ok(keys + u64::from(last != terminator));
        };
        keys += memchr::memchr_iter(terminator, &buffer[..got]).count() as u64;
        last = end;
    }
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
mod tests {
    use super::*;

    /// Returns at most `step` bytes per read, so that keys span several reads.
    struct Drip<'a> {
        bytes: &'a [u8],
        step: usize,
    }

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let taken = self.step.min(buffer.len()).min(self.bytes.len());
            buffer[..taken].copy_from_slice(&self.bytes[..taken]);
            self.bytes = &self.bytes[taken..];
            Ok(taken)
        }
    }

    /// The same rule, written with the standard library.
    fn expected(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut keys: Vec<Vec<u8>> =
            bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        keys.pop_if(|last| last.is_empty());
        keys
    }

    #[test]
    fn keys_are_the_bytes_between_terminators_whatever_the_size_of_reads() {
        let long = [vec![b'x'; 3 * BUFFER], b"\ny".to_vec()].concat();
        let many = b"k\n".repeat(3 * GROUP + 1);
        let inputs: [&[u8]; 9] =
            [b"", b"\n", b"\n\n", b"a", b"a\n", b"a\r\n\nb\0c\xff", b"\nab\n\ncd", &long, &many];
        for input in inputs {
            for step in [1, 2, 3, BUFFER - 1, usize::MAX] {
                let mut keys = Keys::new(Drip { bytes: input, step }, b'\n');
                let mut got = Vec::new();
                loop {
                    let group = keys.next_group().unwrap();
                    if group.is_empty() {
                        break;
                    }
                    assert!(group.len() <= GROUP);
                    got.extend(group.into_iter().map(<[u8]>::to_vec));
                }
                assert!(got == expected(input), "step {step}, {} bytes", input.len());
                let counted = count_keys(Drip { bytes: input, step }, b'\n').unwrap();
                assert_eq!(counted, got.len() as u64);
            }
        }
    }
}
