//! What `koel build` is asked for, and what it has read.
#![forbid(unsafe_code)]

use crate::filter::sizing::ShapeArgs;
use crate::lists::keys::Skipped;

/// The filter that is asked for.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) shape: ShapeArgs,
    pub(super) fpr: f64,
    pub(super) grow: bool,
    pub(super) unique: bool,
}

/// What was read: the number of keys, copies included, and what had no key.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) keys: u64,
    pub(super) skipped: Skipped,
}
