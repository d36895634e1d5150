//! The tests of the library's public API: one binary, so that it is linked once.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod alike;
mod allocated;
mod application;
mod bounds;
mod bulk;
#[cfg(feature = "serde")]
mod choosing;
mod compare;
mod concurrent;
mod conformance;
mod copies;
mod corrections;
mod counting;
mod damage;
mod errors;
mod expiring;
mod files;
mod format;
mod grow;
mod image;
mod key_types;
mod load;
mod many;
mod maplet;
#[cfg(target_os = "linux")]
mod memory;
mod model;
mod multiset;
mod patch;
mod pieces;
mod rates;
mod remote;
mod replace;
mod route;
#[cfg(feature = "serde")]
mod serde;
mod space;
mod subject;
mod support;
mod vectors;
