//! Parts and pieces as bytes: docs/FORMAT.md, "Parts and pieces".
//!
//! ```text
//!     | frame, 48 bytes | content |
//!
//!     part   addresses, 8 bytes each
//!     piece  a segment, as the image of a filter of its own
//! ```
//!
//! The frame (image/frame.rs) has a checksum of everything else and a digest of the plan, so that
//! a damaged or foreign message is refused before its content is read.

use alloc::vec::Vec;

use super::error::PieceFault;
use crate::image::frame::{Frame, FrameFault};

const PART: Frame<3> = Frame(b"koelpart");
const PIECE: Frame<3> = Frame(b"koelsegm");
/// Bytes before the content.
pub(super) const FRAME_BYTES: usize = Frame::<3>::BYTES;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Part,
    Piece,
}

impl Message {
    const fn frame(self) -> &'static Frame<3> {
        match self {
            Self::Part => &PART,
            Self::Piece => &PIECE,
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
        let framed = message.frame().read(bytes).map_err(|fault| match fault {
            FrameFault::Other => PieceFault::Other { expected: message.name() },
            FrameFault::Version { version } => PieceFault::Version { version },
            FrameFault::Damaged => PieceFault::Damaged,
        })?;
        let ([plan, segment, keys], checksum) = (framed.words, framed.checksum);
        Ok(Self { plan, segment, keys, checksum, content: framed.content })
    }
}

/// Room for the frame of a message and `content` bytes; `None` if there is no memory for them.
pub(super) fn with_room(content: usize) -> Option<Vec<u8>> {
    Frame::<3>::with_room(content)
}

/// Writes the frame before the content that `bytes` has behind [`FRAME_BYTES`].
pub(super) fn seal(message: Message, (plan, segment, keys): (u64, u64, u64), bytes: &mut [u8]) {
    message.frame().seal([plan, segment, keys], bytes);
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
