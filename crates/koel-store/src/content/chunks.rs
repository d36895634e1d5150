//! Cutting a stream into chunks, and compressing them.
//!
//! * [`Chunking::Fixed`] cuts at every multiple of a size. It is the fastest, and enough for files
//!   that grow at the end or change in place.
//! * [`Chunking::ByContent`] cuts where the content says, so that an insertion moves the cuts with
//!   it, and chunks before and after it stay equal. A chunk has 1/4 to 4 times the average length.
//!
//! The cuts depend on the bytes alone, not on how many of them a read returned. Cost: one buffer of
//! 1 MiB, or of four chunks of maximum length if that is more, for all streams.
//!
//! Source: W. Xia et al., The Design of Fast Content-Defined Chunking for Data Deduplication (IEEE
//! TPDS 2020), by the crate `fastcdc`.
//!
//! A compressed chunk is stored under the hash of its plain bytes, with another key. Its value is
//! its plain length (u32) and a zstd frame. The length is limited before memory is taken.

use std::io::{self, Read};

use fastcdc::v2020::FastCDC;
use zstd::bulk::{Compressor, decompress};

use crate::kernel::access::fill;

/// How a file is cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunking {
    /// Chunks of this many bytes, 512 to 16 MiB.
    Fixed(usize),
    /// Chunks of this many bytes on average, 1 KiB to 4 MiB, cut by content.
    ByContent(usize),
}

impl Default for Chunking {
    fn default() -> Self {
        Self::Fixed(16 << 10)
    }
}

impl Chunking {
    /// Returns whether the size is within the limits.
    #[must_use]
    pub fn is_valid(self) -> bool {
        match self {
            Self::Fixed(size) => (512..=16 << 20).contains(&size),
            Self::ByContent(average) => (1 << 10..=4 << 20).contains(&average),
        }
    }

    fn max_len(self) -> usize {
        match self {
            Self::Fixed(size) => size,
            Self::ByContent(average) => bounds(average).2,
        }
    }

    /// Returns the length of the first chunk of `bytes`, which have the maximum length of a chunk,
    /// or end earlier because the stream does.
    fn cut(self, bytes: &[u8]) -> usize {
        match self {
            Self::Fixed(size) => size.min(bytes.len()),
            Self::ByContent(average) => {
                let (min, average, max) = bounds(average);
                FastCDC::new(bytes, min, average, max).cut(0, bytes.len()).1
            }
        }
    }
}

/// Returns the minimum, average and maximum length of a chunk. The cutter reads pairs of bytes, so
/// all are even.
fn bounds(average: usize) -> (usize, usize, usize) {
    let average = average & !7;
    (average / 4, average, average * 4)
}

/// Cuts a stream into chunks.
#[derive(Debug)]
pub(super) struct Cutter<'a, R> {
    reader: R,
    chunking: Chunking,
    buffer: &'a mut Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl<'a, R: Read> Cutter<'a, R> {
    /// `chunking` must be valid. `buffer` is memory to use.
    pub(super) fn new(reader: R, chunking: Chunking, buffer: &'a mut Vec<u8>) -> Self {
        let room = (1 << 20).max(4 * chunking.max_len());
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        Self { reader, chunking, buffer, start: 0, end: 0, ended: false }
    }

    /// Returns the next chunk, and whether the stream is known to end with it; `None` at the end.
    /// No chunk is empty.
    pub(super) fn next(&mut self) -> io::Result<Option<(&[u8], bool)>> {
        if self.end - self.start < self.chunking.max_len() && !self.ended {
            self.fill()?;
        }
        let rest = &self.buffer[self.start..self.end];
        if rest.is_empty() {
            return Ok(None);
        }
        let chunk = &rest[..self.chunking.cut(rest)];
        self.start += chunk.len();
        Ok(Some((chunk, self.ended && self.start == self.end)))
    }

    /// Moves the rest to the front, and reads until the buffer is full or the stream ends.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        self.end += fill(&mut self.buffer[self.end..], |rest, _| self.reader.read(rest))?;
        self.ended = self.end < self.buffer.len();
        Ok(())
    }
}

/// The longest chunk.
const MAX_CHUNK: usize = 16 << 20;

/// Returns the value for a chunk, or `None` if it would not save an eighth.
pub(super) fn pack(compressor: &mut Compressor<'_>, chunk: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(chunk.len()).ok()?;
    let frame = compressor.compress(chunk).ok()?;
    let is_smaller = frame.len() + 4 <= chunk.len() - chunk.len() / 8;
    is_smaller.then(|| [&length.to_le_bytes()[..], &frame].concat())
}

/// Returns the chunk in a value, or `None` if it is not valid.
pub(super) fn unpack(value: &[u8]) -> Option<Vec<u8>> {
    let (length, frame) = value.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if length > MAX_CHUNK {
        return None;
    }
    decompress(frame, length).ok().filter(|chunk| chunk.len() == length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 * 7 % 1009 + 1;
            let count = self.1.min(into.len());
            self.0.read(&mut into[..count])
        }
    }

    fn lengths(reader: impl Read, chunking: Chunking) -> Vec<usize> {
        let mut buffer = Vec::new();
        let mut cutter = Cutter::new(reader, chunking, &mut buffer);
        std::iter::from_fn(|| cutter.next().unwrap().map(|(chunk, _)| chunk.len())).collect()
    }

    fn noise(count: usize) -> Vec<u8> {
        let mut output = vec![0; count];
        blake3::Hasher::new().update(b"noise").finalize_xof().fill(&mut output);
        output
    }

    #[test]
    fn fixed_chunks_are_full_except_for_the_last() {
        let cut = |count| lengths(&noise(count)[..], Chunking::Fixed(4096));
        assert!(cut(0).is_empty());
        assert_eq!(cut(1), [1]);
        assert_eq!(cut(4095), [4095]);
        assert_eq!(cut(4096), [4096]);
        assert_eq!(cut(4097), [4096, 1]);
        assert_eq!(cut(3 << 20), [4096; 768]);
    }

    #[test]
    fn cuts_do_not_depend_on_the_sizes_of_reads() {
        let bytes = noise(3_000_001);
        for chunking in [Chunking::Fixed(5000), Chunking::ByContent(1024), Chunking::default()] {
            let cut = lengths(&bytes[..], chunking);
            assert_eq!(cut, lengths(Trickle(&bytes, 1), chunking));
            assert_eq!(cut.iter().sum::<usize>(), bytes.len());
        }
    }

    #[test]
    fn chunks_by_content_keep_their_bounds_and_follow_an_insertion() {
        let bytes = noise(2 << 20);
        let chunking = Chunking::ByContent(8192);
        let before = lengths(&bytes[..], chunking);
        let (last, full) = before.split_last().unwrap();
        assert!(full.iter().all(|len| (2048..=32768).contains(len)) && *last <= 32768);
        assert!((150..=400).contains(&before.len()), "{}", before.len());
        let inserted = [&bytes[..1 << 20], b"inserted", &bytes[1 << 20..]].concat();
        let after = lengths(&inserted[..], chunking);
        let same_end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b);
        let same_start = before.iter().zip(&after).take_while(|(a, b)| a == b);
        assert!(same_start.count() + same_end.count() + 8 >= before.len());
    }

    #[test]
    fn sizes_outside_the_limits_are_not_valid() {
        for (chunking, valid) in [
            (Chunking::Fixed(511), false),
            (Chunking::Fixed(512), true),
            (Chunking::Fixed((16 << 20) + 1), false),
            (Chunking::ByContent(1023), false),
            (Chunking::ByContent(4 << 20), true),
        ] {
            assert_eq!(chunking.is_valid(), valid, "{chunking:?}");
        }
    }
}

#[cfg(test)]
mod compress_tests {
    use super::*;

    #[test]
    fn chunks_are_unpacked_as_they_were_and_noise_is_not_packed() {
        let mut compressor = Compressor::new(3).unwrap();
        for length in [16, 17, 1000, 16 << 10, MAX_CHUNK] {
            let chunk = vec![7; length];
            if let Some(packed) = pack(&mut compressor, &chunk) {
                assert!(packed.len() < length && unpack(&packed).as_deref() == Some(&chunk[..]));
            }
        }
        let mut noise = vec![0; 16 << 10];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        assert_eq!(pack(&mut compressor, &noise), None);
        assert_eq!(pack(&mut compressor, b""), None);
    }

    #[test]
    fn values_of_unknown_origin_are_refused_without_taking_memory() {
        let packed = pack(&mut Compressor::new(3).unwrap(), &[7; 10_000]).unwrap();
        for end in 0..packed.len() {
            assert_eq!(unpack(&packed[..end]), None, "{end}");
        }
        for length in [0_u32, 9_999, 10_001, u32::MAX] {
            let wrong = [&length.to_le_bytes()[..], &packed[4..]].concat();
            assert_eq!(unpack(&wrong), None, "{length}");
        }
    }
}
