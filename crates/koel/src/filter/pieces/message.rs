//! Parts and pieces as bytes: docs/FORMAT.md, "Parts and pieces".
//!
//! ```text
//!     | frame, 48 bytes | content |
//!
//!     part   addresses, 8 bytes each
//!     piece  a segment, as the image of a filter of its own
//! ```
//!
//! The frame has a checksum of everything else, and a digest of the plan, so that a damaged or
//! foreign message is refused before its content is read.

use alloc::vec::Vec;

use xxhash_rust::xxh3::Xxh3;

use super::error::PieceFault;

/// Bytes before the content.
pub(super) const FRAME_BYTES: usize = 48;
const CHECKSUM_AT: usize = 40;
const VERSION: u16 = 1;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Part,
    Piece,
}

impl Message {
    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Part => b"koelpart",
            Self::Piece => b"koelsegm",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Part => "part",
            Self::Piece => "piece",
        }
    }
}

/// The frame of a message, and what is in it.
#[derive(Clone, Copy)]
pub(super) struct Framed<'a> {
    pub(super) plan: u64,
    pub(super) segment: u64,
    /// Keys that went in, copies included.
    pub(super) keys: u64,
    pub(super) checksum: u64,
    pub(super) content: &'a [u8],
}

impl<'a> Framed<'a> {
    /// Reads a message, and checks its frame and its checksum.
    pub(super) fn read(message: Message, bytes: &'a [u8]) -> Result<Self, PieceFault> {
        let start = &bytes[..bytes.len().min(message.magic().len())];
        if !message.magic().starts_with(start) {
            return Err(PieceFault::Other { expected: message.name() });
        }
        let (frame, content) =
            bytes.split_first_chunk::<FRAME_BYTES>().ok_or(PieceFault::Damaged)?;
        let version = u16::from_le_bytes([frame[8], frame[9]]);
        if version != VERSION {
            return Err(PieceFault::Version { version });
        }
        let [plan, segment, keys, checksum] = [16, 24, 32, CHECKSUM_AT].map(|at| word(frame, at));
        if checksum != checksum_of(frame, content) || frame[10..16] != [0; 6] {
            return Err(PieceFault::Damaged);
        }
        Ok(Self { plan, segment, keys, checksum, content })
    }
}

fn word(frame: &[u8; FRAME_BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&frame[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Room for the frame of a message and `content` bytes; `None` if there is no memory for them.
pub(super) fn with_room(content: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(FRAME_BYTES.checked_add(content)?).ok()?;
    bytes.extend_from_slice(&[0; FRAME_BYTES]);
    Some(bytes)
}

/// Writes the frame before the content that `bytes` has behind [`FRAME_BYTES`].
pub(super) fn seal(message: Message, (plan, segment, keys): (u64, u64, u64), bytes: &mut [u8]) {
    let Some((frame, content)) = bytes.split_first_chunk_mut::<FRAME_BYTES>() else { return };
    frame[..8].copy_from_slice(message.magic());
    frame[8..10].copy_from_slice(&VERSION.to_le_bytes());
    for (at, word) in [(16, plan), (24, segment), (32, keys)] {
        frame[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    let checksum = checksum_of(frame, content);
    frame[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
}

/// XXH3-64 of everything but the checksum itself.
fn checksum_of(frame: &[u8; FRAME_BYTES], content: &[u8]) -> u64 {
    let mut checksum = Xxh3::new();
    checksum.update(&frame[..CHECKSUM_AT]);
    checksum.update(content);
    checksum.digest()
}

/// Gives a type for messages of one kind its methods.
macro_rules! message {
    ($Type:ident) => {
        impl $Type {
            pub(super) fn new(segment: u64, bytes: Vec<u8>) -> Self {
                Self { segment, bytes }
            }

            /// The segment that it belongs to.
            #[must_use]
            pub fn segment(&self) -> u64 {
                self.segment
            }

            /// The bytes to send.
            #[must_use]
            pub fn into_bytes(self) -> Vec<u8> {
                self.bytes
            }
        }

        impl AsRef<[u8]> for $Type {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
    };
}

/// The addresses of some keys of one segment: what [`PiecePlan::split`](crate::PiecePlan::split)
/// makes for whoever builds that segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    segment: u64,
    bytes: Vec<u8>,
}

message!(Part);

/// One segment of a filter: what [`PiecePlan::build`](crate::PiecePlan::build) makes. Like the file
/// of the filter, it holds the secret if the plan has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    segment: u64,
    bytes: Vec<u8>,
}

message!(Piece);
