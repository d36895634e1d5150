//! A filter that many machines build in pieces. Its bytes depend on the plan and the keys alone.
//!
//! Both buckets of a key lie in one segment of the table, which the top bits of its address name.
//! Segments do not depend on each other, and a file is the segments in a row. So machines exchange
//! addresses by segment, and no two filters are ever merged:
//!
//! ```text
//!     keys   -> split    a part for each segment: the addresses of some keys
//!     parts  -> build    a piece: one segment, from all its parts
//!     pieces -> join     the filter       (or file/pieces.rs: its file, in constant memory)
//! ```
//!
//! * `plan`: what all machines agree on. `message`: the frame of parts and pieces (docs/FORMAT.md).
//! * **Equal bytes.** A segment gets its addresses in the order of their low bits. So its bytes
//!   depend on the keys alone: not on how they were divided, and not on the order of parts. A task
//!   that runs twice makes an equal piece.
//! * **Nothing is lost silently.** A part that is missing looks like keys that never came. So parts
//!   and pieces say how many keys went in, and their sum is compared at the end.
//!
//! Cost: docs/CLUSTER.md. The choices: docs/decisions/0040-pieces.md.

mod build;
mod error;
mod join;
mod message;
mod plan;
#[cfg(test)]
mod tests;

pub use error::PieceError;
#[cfg(feature = "std")]
pub(crate) use join::Arrivals;
pub use message::{Part, Piece};
pub use plan::PiecePlan;
