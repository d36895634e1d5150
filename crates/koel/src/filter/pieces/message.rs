//! Parts and pieces as bytes: docs/FORMAT.md, "Parts and pieces".
//!
//! ```text
//!     | frame, 48 bytes: a digest of the plan, the segment, its keys | content |
//!
//!     part   addresses, 8 bytes each
//!     piece  a segment, as the image of a filter of its own
//! ```
//!
//! The frame (image/frame.rs) has a checksum of everything else and the digest, so that a damaged
//! or foreign message is refused before its content is read. Keys are those that went in, copies
//! included.

use alloc::vec::Vec;

use crate::image::frame::Frame;

pub(super) const PART: Frame<3> = Frame(b"koelpart", 2, "part");
pub(super) const PIECE: Frame<3> = Frame(b"koelsegm", 2, "piece");
/// Bytes before the content.
pub(super) const FRAME_BYTES: usize = Frame::<3>::BYTES;

/// Defines the type of a kind of message.
macro_rules! message {
    ($(#[$doc:meta])* $Type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Type {
            segment: u64,
            bytes: Vec<u8>,
        }

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

message! {
    /// The addresses of some keys of one segment: what
    /// [`PiecePlan::split`](crate::PiecePlan::split) makes for whoever builds that segment.
    Part
}

message! {
    /// One segment of a filter: what [`PiecePlan::build`](crate::PiecePlan::build) makes. Like the
    /// file of the filter, it holds the secret if the plan has one.
    Piece
}
