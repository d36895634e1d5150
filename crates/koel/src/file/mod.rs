//! What can be saved and loaded: filters, maplets, counting filters and expiring filters, each as
//! its file image (docs/FORMAT.md).
//!
//! * `disk`: paths, readers and writers. Needs the standard library, as `pieces` does.
//! * `pieces`: the file of a filter that many machines have built.
//! * `serde.rs` puts the same images into other messages.

#[cfg(feature = "std")]
mod disk;
#[cfg(feature = "std")]
mod pieces;

#[cfg(feature = "std")]
pub use disk::FileError;

use crate::error::ImageError;
use crate::image::{Header, Kind};
use crate::mem::buffer::Buffer;
use crate::state::Body;
use crate::state::counters::{Counters, NoCounters, WriteCounters};
use crate::state::sweeps::Sweeps;
use crate::{CountingFilter, CuckooFilter, ExpiringFilter, Maplet};

/// A type that is made of the bytes of a file.
pub(crate) trait FileImage: Sized {
    /// What the header of its files says.
    const KIND: Kind;
    type Counters: WriteCounters;

    /// The filter or maplet of this body.
    fn of(body: Body<Buffer, Self::Counters>) -> Self;

    /// The filter or maplet of these parts of a file, checked in full.
    fn of_parts(header: &Header, table: Buffer, trailer: &[u8]) -> Result<Self, ImageError> {
        Body::of_parts(header, table, trailer).map(Self::of)
    }
}

impl FileImage for CuckooFilter {
    const KIND: Kind = Kind::Filter;
    type Counters = Counters;

    fn of(body: Body<Buffer, Counters>) -> Self {
        Self { body }
    }
}

impl FileImage for Maplet {
    const KIND: Kind = Kind::Maplet;
    type Counters = NoCounters;

    fn of(body: Body<Buffer, NoCounters>) -> Self {
        Self { body }
    }
}

impl FileImage for CountingFilter {
    const KIND: Kind = Kind::Counting;
    type Counters = Counters;

    fn of(body: Body<Buffer, Counters>) -> Self {
        Self { body }
    }
}

impl FileImage for ExpiringFilter {
    const KIND: Kind = Kind::Expiring;
    type Counters = Sweeps;

    fn of(body: Body<Buffer, Sweeps>) -> Self {
        Self { body }
    }
}
