#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod address;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
mod concurrent;
mod counting;
mod error;
mod face;
mod filter;
mod image;
pub mod map;
mod maplet;
mod mem;
mod packing;
#[cfg(feature = "serde")]
mod serde;
mod state;
mod table;

pub use address::hash::KeyHasher;
pub use address::key::{Key, KeyData, KeyHash};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub use concurrent::ConcurrentFilter;
pub use counting::{CountingBuilder, CountingFilter, CountingView};
pub use error::{
    BuildError, ConvertError, FullError, ImageError, InsertError, MemoryError, MergeError,
    ValueError,
};
pub use filter::{Builder, Comparison, CuckooFilter, Estimate, FilterEntry, FilterView, Plan};
pub use image::shape::Prefer;
pub use map::CuckooMap;
pub use maplet::{Maplet, MapletBuilder, MapletEntry, MapletView, Values};
pub use packing::{Codec, Layout};
pub use state::Merge;
pub use state::store::{Borrowed, Owned};
