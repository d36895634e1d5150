//! Shared by the tests of this workspace: models, key generators, edits of images, faulty folders,
//! and access to the sources. Never published.
//!
//! An oracle must be independent of the code it tests. [`addressing`] is a second implementation of
//! the addressing in docs/FORMAT.md, [`audit`] one of its rules for bytes, and [`model`] is an
//! exact multiset.
//!
//! Tests with random operations (proptest, fuzz targets, crash tests) use [`model::Model`]. For
//! filters from bytes of unknown origin there is [`exercise`], for maplets and counting filters
//! `maplets`, for expiring filters [`expiring`], for patches [`patches`], for parts and pieces of
//! filters `pieces`, and for the files of stores [`stores`], `ordered` and [`tables`]. [`fuzz`]
//! lists them.
//! Stores run in folders of [`storage`], with a history that defines what must survive. [`source`]
//! reads the Rust of the [`workspace`] for the tests of its layers and its words. [`trees`] makes
//! and describes folders of the disk, and [`threads`] ends threads. [`conformance`] runs the
//! scenarios that every door runs.

pub mod addressing;
pub mod audit;
pub mod cases;
pub mod claims;
pub mod conformance;
pub mod exercise;
pub mod expiring;
pub mod fuzz;
pub mod image;
pub mod keys;
mod maplets;
pub mod model;
mod ordered;
pub mod patches;
mod pieces;
pub mod seeds;
pub mod source;
pub mod storage;
pub mod stores;
pub mod tables;
pub mod threads;
#[cfg(unix)]
pub mod trees;
pub mod workspace;

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The example of what to do when a filter is full.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/CHOOSING.md")]
struct Choosing;
