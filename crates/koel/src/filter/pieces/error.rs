//! Why a filter could not be built in pieces, as data and as a sentence.

use core::fmt;

use thiserror::Error;

use crate::error::FullError;
use crate::image::frame::MessageError;

/// A filter that could not be built in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PieceError {
    /// One of the parts cannot be used.
    #[error("part {number}, counted from 0, is {fault}")]
    Part {
        /// Its place among the parts, from 0 on.
        number: u64,
        /// What is wrong.
        fault: MessageError,
    },
    /// One of the pieces cannot be used.
    #[error("piece {number}, counted from 0, is {fault}")]
    Piece {
        /// Its place among the pieces, from 0 on.
        number: u64,
        /// What is wrong.
        fault: MessageError,
    },
    /// The plan has no such segment.
    #[error("there is no segment {segment}: the plan has {segments}, numbered from 0")]
    NoSegment {
        /// The segment that was asked for.
        segment: u64,
        /// How many there are.
        segments: u64,
    },
    /// Segments without a piece, where the number of keys is not known.
    #[error(fmt = write_missing)]
    Missing {
        /// The first of them.
        segment: u64,
        /// How many there are.
        missing: u64,
    },
    /// More or fewer keys went into the pieces than into the parts.
    #[error(
        "{got} keys are in the pieces, not {expected}: a part or a piece was lost, or came twice; \
         build the pieces again"
    )]
    Keys {
        /// The number of keys that the caller gave.
        expected: u64,
        /// The sum that the pieces give.
        got: u64,
    },
    /// The keys of a segment do not fit in it.
    #[error(
        "segment {segment} has no room for its {keys} keys ({full}); make the plan for more \
         distinct keys"
    )]
    Full {
        /// The segment.
        segment: u64,
        /// Keys that went to it, copies included.
        keys: u64,
        /// The error of the insert that failed.
        full: FullError,
    },
    /// The pieces together do not fit in one filter.
    #[error("the pieces do not fit in one filter: {0}")]
    TooMany(FullError),
    /// The system has no memory for the filter, or for a segment of it.
    #[error("the system has no memory for the keys of a segment, or for the filter")]
    NoMemory,
}

fn write_missing(segment: &u64, missing: &u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "segment {segment} has no piece")?;
    if *missing > 1 {
        write!(f, ", and neither have {} others", missing - 1)?;
    }
    f.write_str("; if it is empty, give the number of keys that went into the parts")
}
