#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(
    not(all(feature = "kinds", feature = "fast")),
    allow(
        dead_code,
        unreachable_code,
        unused,
        reason = "what only other kinds or other packings need"
    )
)]

extern crate alloc;

mod address;
mod builder;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
mod concurrent;
#[cfg(feature = "kinds")]
mod counting;
mod error;
#[cfg(feature = "kinds")]
mod expiring;
mod face;
#[cfg(any(feature = "std", feature = "serde"))]
pub mod file;
mod filter;
mod host;
mod image;
#[cfg(feature = "kinds")]
mod maplet;
mod mem;
mod packing;
mod remote;
#[cfg(feature = "serde")]
mod serde;
mod side;
mod state;
mod table;

/// Whether large tables are memory maps of their own, with huge pages where the system has them:
/// the feature `huge-pages`. An allocator does not see that memory.
pub const HUGE_PAGES: bool = cfg!(feature = "huge-pages");

pub use address::hash::KeyHasher;
pub use address::key::{HashedKey, Key, KeyData, KeyHash, KeyParts};
pub use builder::Builder;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub use concurrent::ConcurrentFilter;
#[cfg(feature = "kinds")]
pub use counting::{CountingFilter, CountingView};
pub use error::{
    BuildError, ConvertError, FullError, ImageError, InsertError, JumpError, MemoryError,
    MergeError, RefuteError, RemoteError, Unconverted, ValueError,
};
#[cfg(feature = "kinds")]
pub use expiring::{ExpiringFilter, ExpiringView, WhenFull};
#[cfg(feature = "std")]
pub use file::FileError;
pub use filter::{
    Comparison, CuckooFilter, Estimate, FilterEntry, FilterView, Part, PatchError, PatchSummary,
    Piece, PieceError, PiecePlan, Plan,
};
pub use image::frame::MessageError;
pub use image::shape::Prefer;
#[cfg(feature = "kinds")]
pub use maplet::{Maplet, MapletEntry, MapletView, Values};
pub use packing::{Codec, Layout};
pub use remote::{Batch, Remote, RemoteOptions};
pub use state::Merge;
pub use state::store::{Borrowed, Owned, Store};
