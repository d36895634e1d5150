//! What the tests of this workspace share: models, key generators, image surgery, folders that
//! fail, and the sources themselves. Never published.
//!
//! An oracle is worth having only if it is not the code it judges: [`places`] computes addresses
//! from docs/FORMAT.md anew, [`audit`] reads its bytes anew, and [`model`] is an exact multiset.
//! Whatever drives a filter through random operations (proptest, the fuzz targets, a crash test)
//! drives it through [`model::Model`] or, where the filter came from bytes of unknown origin,
//! through [`exercise`]; for the bytes of a maplet there is [`maplets`], for those of a counting
//! filter [`counting`], for the files of a store [`stores`]. Stores are tried in folders of
//! [`storage`], beside a history that says what must survive. [`source`] reads the Rust of the
//! [`workspace`] for the tests of its layers and its words.
#![forbid(unsafe_code)]

pub mod audit;
pub mod cases;
pub mod counting;
pub mod exercise;
pub mod image;
pub mod keys;
pub mod maplets;
pub mod model;
pub mod places;
pub mod source;
pub mod storage;
pub mod stores;
pub mod workspace;

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
