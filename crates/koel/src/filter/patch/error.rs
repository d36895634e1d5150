//! Why a patch cannot be made or applied, as data and as a sentence.

use thiserror::Error;

use super::bits::NoMemory;
use crate::error::{FullError, ImageError, MemoryError, MergeError};
use crate::image::frame::MessageError;

/// A patch that cannot be made or applied. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The two filters were built with different settings, so that their entries have different
    /// names.
    #[error(
        "the filters differ in {field}; build the new one with the settings, the capacity and the \
         secret of the old one"
    )]
    Incompatible {
        /// What differs: `layout`, `hash`, `route`, `application bytes`, `rate`, `counter limit` or
        /// `growth`.
        field: &'static str,
    },
    /// The two filters were built for different numbers of keys.
    #[error(
        "the old filter was built for {old} keys and the new one for {new}; build both for one \
         fixed number of keys, with room for the list to grow"
    )]
    Sizes {
        /// The capacity of the old filter.
        old: u64,
        /// The capacity of the new one.
        new: u64,
    },
    /// The new filter has grown by more than 16 bytes for each byte of the patch.
    #[error(
        "the new filter has {buckets} buckets for {entries} entries, more than so few bytes of a \
         patch may make; shrink it and make the patch again, or publish the whole filter"
    )]
    Sparse {
        /// Distinct entries of the new filter.
        entries: u64,
        /// Its buckets, of four slots each.
        buckets: u64,
    },
    /// The bytes are not a patch, or are damaged.
    #[error("the patch is {0}")]
    Message(MessageError),
    /// The patch was made for a filter with other settings.
    #[error("the patch is for a filter with other settings; get the whole new filter")]
    OtherSettings,
    /// The patch was made for other content.
    #[error(
        "the patch is for a filter of {expected} keys with other content than this one, which has \
         {found}; apply all patches in their order, or get the whole new filter"
    )]
    WrongBase {
        /// Keys of the filter that it was made for, copies included.
        expected: u64,
        /// Keys of the filter that was to be patched.
        found: u64,
    },
    /// The filter is what the patch would make of it.
    #[error("the filter has the changes of this patch already")]
    Applied,
    /// The new keys find no room, or no counter.
    #[error("the new filter does not fit: {0}; use the whole new filter instead of a patch")]
    Full(FullError),
    /// The checksum of the patch holds, and yet no program of this project has written it.
    #[error("the patch is forged, or a program has an error; get the whole new filter")]
    Forged,
    /// A filter is a view of bytes that are not sound.
    #[error("the filter is {0}")]
    Unsound(ImageError),
    /// The system has no memory for the new filter or the patch.
    #[error("the system has no memory for the new filter or the patch")]
    NoMemory,
}

impl From<NoMemory> for PatchError {
    fn from(_: NoMemory) -> Self {
        Self::NoMemory
    }
}

impl From<MemoryError> for PatchError {
    fn from(_: MemoryError) -> Self {
        Self::NoMemory
    }
}

impl From<FullError> for PatchError {
    fn from(full: FullError) -> Self {
        if full == FullError::NoMemory { Self::NoMemory } else { Self::Full(full) }
    }
}

impl From<ImageError> for PatchError {
    fn from(error: ImageError) -> Self {
        MergeError::from(error).into()
    }
}

impl From<MergeError> for PatchError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Incompatible { field } => Self::Incompatible { field },
            MergeError::Sizes { ours, theirs } => Self::Sizes { old: ours, new: theirs },
            MergeError::Full(full) => full.into(),
            MergeError::Unsound(error) => Self::Unsound(error),
            MergeError::NoMemory => Self::NoMemory,
        }
    }
}
