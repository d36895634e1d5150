//! A counting filter as bytes, and bytes as a counting filter: the file of a maplet whose values
//! are counts, and the counters of a filter's file behind it (docs/FORMAT.md).
//!
//! The degrees of trust are those of a filter's file: [`CountingView::open`] checks the header and
//! the length, after which no query can leave the bytes; [`verify`](CountingFilter::verify) checks
//! the rest; [`CountingFilter::from_bytes`] does both.

use alloc::vec::Vec;

use super::{CountingFilter, CountingView};
use crate::error::ImageError;
use crate::image::{self, Kind};
use crate::state::Body;
use crate::state::counters::StoredCounters;
use crate::state::store::Store;

impl CountingFilter {
    /// The counting filter in `bytes`, which are copied and checked in full. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] for any bytes that are not a sound counting filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let view = CountingView::open(bytes)?;
        view.verify()?;
        Ok(Self { body: view.body.to_owned_body().ok_or(ImageError::NoMemory)? })
    }
}

impl<'a> CountingView<'a> {
    /// Opens the counting filter in `bytes` where it lies. O(1): reads the header only; call
    /// [`verify`](Self::verify) on bytes you do not trust.
    ///
    /// # Errors
    /// [`ImageError`] where the header is not one of a counting filter, or where the length does
    /// not fit it.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ImageError> {
        Ok(Self { body: Body::open(bytes, Kind::Counting, StoredCounters::new)? })
    }
}

impl<S: Store> CountingFilter<S> {
    /// The filter as one file image.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        image::collected(self.size_in_bytes(), |sink| self.write_to(sink))
    }

    /// Hands the bytes of [`to_bytes`](Self::to_bytes) to `sink`, part by part, without a copy of
    /// the buckets.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn write_to<E>(&self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.body.write_to(sink)
    }

    /// Checks everything that [`CountingView::open`] took on trust: the checksum of the body, that
    /// every slot and counter could have been written by this crate, and that they add up to what
    /// the header says. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] naming the first thing that is wrong.
    pub fn verify(&self) -> Result<(), ImageError> {
        self.body.verify()
    }
}
