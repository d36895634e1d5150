//! A maplet as bytes, and bytes as a maplet: the file of a filter, with values in its slots and no
//! counters (docs/FORMAT.md).
//!
//! The degrees of trust are those of a filter's file: [`MapletView::open`] checks the header and
//! the length, after which no query can leave the bytes; [`verify`](Maplet::verify) checks the
//! rest; [`Maplet::from_bytes`] does both.

use alloc::vec::Vec;

use super::{Maplet, MapletView};
use crate::error::ImageError;
use crate::image::{self, Kind};
use crate::state::Body;
use crate::state::counters::NoCounters;
use crate::state::store::Store;

impl Maplet {
    /// The maplet in `bytes`, which are copied and checked in full. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] for any bytes that are not a sound maplet.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let view = MapletView::open(bytes)?;
        view.verify()?;
        Ok(Self { body: view.body.to_owned_body().ok_or(ImageError::NoMemory)? })
    }
}

impl<'a> MapletView<'a> {
    /// Opens the maplet in `bytes` where it lies. O(1): reads the header only; call
    /// [`verify`](Self::verify) on bytes you do not trust.
    ///
    /// # Errors
    /// [`ImageError`] where the header is not one of a maplet, or where the length does not fit it.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ImageError> {
        Ok(Self { body: Body::open(bytes, Kind::Maplet, |_| NoCounters)? })
    }
}

impl<S: Store> Maplet<S> {
    /// The maplet as one file image.
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

    /// Checks everything that [`MapletView::open`] took on trust: the checksum of the body, that
    /// every slot could have been written by this crate, and that they are as many as the header
    /// says. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] naming the first thing that is wrong.
    pub fn verify(&self) -> Result<(), ImageError> {
        self.body.verify()
    }
}
