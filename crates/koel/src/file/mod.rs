//! What can be saved and loaded: filters, maplets, counting filters and expiring filters, each as
//! its file image (docs/FORMAT.md).
//!
//! * `disk`: paths, readers and writers. Needs the standard library, as `replace` and `pieces` do.
//! * `replace`: a file that replaces another one in one step; for any bytes.
//! * `pieces`: the file of a filter that many machines have built.
//! * `serde.rs` puts the same images into other messages.

#[cfg(feature = "std")]
mod disk;
#[cfg(feature = "std")]
mod pieces;
#[cfg(feature = "std")]
mod replace;

#[cfg(feature = "std")]
pub use disk::FileError;
#[cfg(feature = "std")]
pub use replace::{Readers, Replacement, folder_of};

use crate::error::ImageError;
use crate::image::{Header, Kind};
use crate::mem::buffer::Buffer;
use crate::state::Body;

/// A type that is made of the bytes of a file.
pub(crate) trait FileImage: Sized {
    /// What the header of its files says.
    const KIND: Kind;

    /// The filter or maplet of this body.
    fn of(body: Body<Buffer>) -> Self;

    /// The filter or maplet of these parts of a file, checked in full.
    fn of_parts(header: &Header, table: Buffer, trailer: &[u8]) -> Result<Self, ImageError> {
        Body::of_parts(header, table, trailer).map(Self::of)
    }
}
