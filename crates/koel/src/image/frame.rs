//! The frame of a message between programs: parts and pieces of a filter, and patches.
//!
//! ```text
//!     | magic, 8 bytes | version : 16 | 6 zeros | N words | checksum | content |
//! ```
//!
//! The checksum covers everything else, so that a damaged message is refused before its content is
//! read.

use alloc::vec::Vec;

use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

use crate::error::ImageError;

/// Where the words begin.
const WORDS_AT: usize = 16;

/// A kind of message, with `N` words in its frame: its magic number, its version and its name.
pub(crate) struct Frame<const N: usize>(
    pub(crate) &'static [u8; 8],
    pub(crate) u16,
    pub(crate) &'static str,
);

/// A message whose frame and checksum are sound.
#[derive(Clone, Copy)]
pub(crate) struct Framed<'a, const N: usize> {
    pub(crate) words: [u64; N],
    pub(crate) checksum: u64,
    pub(crate) content: &'a [u8],
}

/// What is wrong with a message: a patch, a part or a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The bytes do not start like a message of the expected kind.
    #[error("not a {expected}: its first bytes are not those of one")]
    Other {
        /// `patch`, `part` or `piece`.
        expected: &'static str,
    },
    /// Written in a version of the format that this version of the crate does not read.
    #[error(
        "of format version {version}, which this koel does not read; use the same version of koel \
         on all machines"
    )]
    Version {
        /// The version in the bytes.
        version: u16,
    },
    /// The checksum does not match the bytes, or they are cut short.
    #[error("damaged or cut short; make it or get it again")]
    Damaged,
    /// A part or piece that was made with another plan.
    #[error("of another plan; make the plan with the same settings on all machines")]
    Foreign,
    /// A part with the sound bytes of another segment than the one that is built.
    #[error("of segment {segment}, not of the one that is built; group parts by segment")]
    Misplaced {
        /// The segment of the part.
        segment: u64,
    },
    /// The bytes of a part or piece are consistent, and yet no program of this project has written
    /// them.
    #[error("forged, or a program has an error: {0}")]
    Forged(ImageError),
    /// Another piece of the same segment came before, with other keys.
    #[error("different from an earlier piece of segment {segment}; build that segment again")]
    Contradicts {
        /// The segment.
        segment: u64,
    },
}

impl<const N: usize> Frame<N> {
    const CHECKSUM_AT: usize = WORDS_AT + 8 * N;
    /// Bytes before the content.
    pub(crate) const BYTES: usize = Self::CHECKSUM_AT + 8;

    /// Reads a message, and checks its frame and its checksum.
    pub(crate) fn read<'a>(&self, bytes: &'a [u8]) -> Result<Framed<'a, N>, MessageError> {
        let start = &bytes[..bytes.len().min(self.0.len())];
        if !self.0.starts_with(start) {
            return Err(MessageError::Other { expected: self.2 });
        }
        let (frame, content) = bytes.split_at_checked(Self::BYTES).ok_or(MessageError::Damaged)?;
        let version = u16::from_le_bytes([frame[8], frame[9]]);
        if version != self.1 {
            return Err(MessageError::Version { version });
        }
        let mut words =
            frame[WORDS_AT..].as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
        let words_of_frame = [(); N].map(|()| words.next().unwrap_or(0));
        let checksum = words.next().unwrap_or(0);
        if checksum != Self::checksum(frame, content) || frame[10..WORDS_AT] != [0; 6] {
            return Err(MessageError::Damaged);
        }
        Ok(Framed { words: words_of_frame, checksum, content })
    }

    /// Room for the frame of a message and `content` bytes; `None` if there is no memory for them.
    pub(crate) fn with_room(&self, content: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(Self::BYTES.checked_add(content)?).ok()?;
        bytes.resize(Self::BYTES, 0);
        Some(bytes)
    }

    /// Writes the frame before the content that `bytes` has behind [`BYTES`](Self::BYTES).
    pub(crate) fn seal(&self, words: [u64; N], bytes: &mut [u8]) {
        let Some((frame, content)) = bytes.split_at_mut_checked(Self::BYTES) else { return };
        frame[..8].copy_from_slice(self.0);
        frame[8..10].copy_from_slice(&self.1.to_le_bytes());
        for (place, word) in frame[WORDS_AT..].as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        let checksum = Self::checksum(frame, content);
        frame[Self::CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    }

    /// XXH3-64 of everything but the checksum itself.
    fn checksum(frame: &[u8], content: &[u8]) -> u64 {
        let mut checksum = Xxh3::new();
        checksum.update(&frame[..Self::CHECKSUM_AT]);
        checksum.update(content);
        checksum.digest()
    }
}
