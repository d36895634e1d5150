#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod blocks;
mod buffer;
mod builder;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
mod concurrent;
mod counters;
mod error;
mod filter;
mod geometry;
mod hash;
mod image;
mod key;
pub mod map;
mod maplet;
mod packing;
mod placement;
mod prefetch;
mod route;
#[cfg(feature = "serde")]
mod serde;
mod sizing;
mod state;
mod store;
mod table;
mod unchecked;
mod vector;
mod wide_product;

pub use builder::{Builder, Plan, Prefer};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub use concurrent::ConcurrentFilter;
pub use error::{BuildError, ConvertError, Full, ImageError, MergeError};
pub use filter::{Comparison, CuckooFilter, Entry, Estimate, FilterView, Merge};
pub use hash::KeyHasher;
pub use key::{Key, KeyData, KeyHash};
pub use map::CuckooMap;
pub use maplet::{CountingBuilder, CountingFilter, CountingView};
pub use maplet::{Maplet, MapletBuilder, MapletEntry, MapletView, Values};
pub use packing::{Codec, Layout};
pub use store::{Borrowed, Owned};
