//! A filter as bytes, and bytes as a filter.
//!
//! Three degrees of trust: [`FilterView::open`] checks the header and the length, after which no
//! query can read outside the bytes whatever they are; [`verify`](CuckooFilter::verify) checks the
//! checksum and every bucket and counter; [`CuckooFilter::from_bytes`] does both, since an owned
//! filter is going to be changed.

use alloc::vec::Vec;

use crate::CuckooFilter;
use crate::error::ImageError;
use crate::filter::FilterView;
use crate::image::{self, Kind};
use crate::state::Body;
use crate::state::counters::StoredCounters;
use crate::state::store::Store;

impl CuckooFilter {
    /// The filter in `bytes`, which are copied and checked in full. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] for any bytes that are not a sound filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let view = FilterView::open(bytes)?;
        view.verify()?;
        Ok(Self { body: view.body.to_owned_body().ok_or(ImageError::NoMemory)? })
    }
}

impl<'a> FilterView<'a> {
    /// Opens the filter in `bytes` where it lies. O(1): reads the header only; call
    /// [`verify`](Self::verify) on bytes you do not trust.
    ///
    /// # Errors
    /// [`ImageError`] where the header is not one, or where the length does not fit it.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ImageError> {
        Ok(Self { body: Body::open(bytes, Kind::Filter, StoredCounters::new)? })
    }
}

impl<S: Store> CuckooFilter<S> {
    /// The filter as one file image (docs/FORMAT.md).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        image::collected(self.size_in_bytes(), |sink| self.write_to(sink))
    }

    /// Hands the bytes of [`to_bytes`](Self::to_bytes) to `sink`, part by part, without a copy of
    /// the buckets, unless growth has just begun and is in the midst of widening them.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn write_to<E>(&self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.body.write_to(sink)
    }

    /// Checks everything that [`FilterView::open`] took on trust: the checksum of the body, that
    /// every bucket and counter could have been written by this crate, and that they add up to what
    /// the header says. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] naming the first thing that is wrong.
    pub fn verify(&self) -> Result<(), ImageError> {
        self.body.verify()
    }
}
