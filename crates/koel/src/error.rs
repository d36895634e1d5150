//! The errors of the library: what failed, as data and as a sentence.
//!
//! A sentence says what to do where the library knows it. Advice about a command belongs to that
//! command.

use core::fmt;

use crate::image::{HEADER_BYTES, VERSION};
use crate::packing::MAX_VALUE_BITS;

/// An insert that found no free slot or counter. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullError {
    /// No empty slot can be reached.
    Slots {
        /// Entries in the table.
        in_use: u64,
        /// Distinct keys the filter or maplet was built for.
        capacity: u64,
    },
    /// Every counter for copies of a key is in use.
    Counters {
        /// Counters that the filter may have.
        limit: u64,
    },
    /// A count would pass 2^64 - 1.
    Overflow,
    /// Both buckets of a key in a maplet are full of entries that have no other bucket: other
    /// values of the key, or values of keys with the same two buckets.
    Values {
        /// The number of these entries: 8, or 4 where both buckets of the key are the same.
        held: u64,
    },
}

impl fmt::Display for FullError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots { in_use, capacity } => write!(
                f,
                "the table is full: {in_use} entries in one built for {capacity} keys; \
                 build a larger one from the keys"
            ),
            Self::Counters { limit } => write!(
                f,
                "all {limit} counters for repeated keys are in use; build the filter with a higher \
                 counter limit, or insert each key once"
            ),
            Self::Overflow => {
                f.write_str("the count of a key would pass 2^64 - 1; remove copies first")
            }
            Self::Values { held } => write!(
                f,
                "the two buckets of the key are full with {held} values of this key or of keys with \
                 the same buckets; remove or replace one"
            ),
        }
    }
}

impl core::error::Error for FullError {}

/// A filter or maplet that cannot be built with these settings.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// The false-positive rate is not between 0 and 1.
    Rate {
        /// The rate given to the builder.
        rate: f64,
    },
    /// No layout reaches so small a false-positive rate at this capacity: a 64-bit hash has too few
    /// bits for it, or the buckets of a concurrent filter have.
    TooPrecise {
        /// The rate given to the builder.
        rate: f64,
        /// The smallest rate for this type, capacity and preference.
        smallest: f64,
    },
    /// More keys than a 64-bit hash can tell apart, or more bytes than this machine can address.
    TooLarge {
        /// The capacity given to the builder.
        capacity: u64,
    },
    /// The keys to build from do not fit.
    Full(FullError),
    /// Values cannot have so many bits.
    ValueBits {
        /// The bits given to the builder.
        value_bits: u32,
    },
    /// The system has no memory for the table.
    NoMemory,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(full) => full.fmt(f),
            Self::ValueBits { value_bits } => {
                write!(
                    f,
                    "values of {value_bits} bits cannot be stored; ask for 1 to {MAX_VALUE_BITS}"
                )
            }
            Self::Rate { rate } => write!(
                f,
                "a false-positive rate of {rate:e} cannot be built; give one above 0 and below 1, such as 0.001"
            ),
            // A little more, in three digits: rounded down, they would name a rate that is too
            // small as well.
            Self::TooPrecise { rate, smallest } => write!(
                f,
                "a false-positive rate of {rate:e} cannot be reached at this capacity; ask for {:.2e} or more",
                smallest * 1.005
            ),
            Self::TooLarge { capacity } => write!(
                f,
                "{capacity} keys do not fit into one filter on this machine; divide the keys among several filters"
            ),
            Self::NoMemory => f.write_str("the system has no memory for the table"),
        }
    }
}

impl core::error::Error for BuildError {}

/// Bytes that are not a sound filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageError {
    /// The bytes do not start with the magic number of a Koel filter.
    NotAFilter,
    /// Written in an earlier version of the format, which this version of the crate does not read.
    Older {
        /// The version in the file.
        version: u16,
    },
    /// Written in a later version of the format.
    Newer {
        /// The version in the file.
        version: u16,
    },
    /// There are fewer or more bytes than the header says, or too few for a header.
    Length {
        /// Bytes that there should be.
        expected: u64,
        /// Bytes that there are.
        got: u64,
    },
    /// A checksum does not match its bytes.
    Checksum {
        /// The damaged part: `header` or `body`.
        part: &'static str,
    },
    /// The bytes are sound, but of another type.
    Kind {
        /// The type that was to be opened: `filter`, `maplet` or `counting filter`.
        asked: &'static str,
        /// The type of the bytes, in the same words.
        found: &'static str,
    },
    /// A field, bucket or counter holds a value that no filter has.
    Field {
        /// Its name in docs/FORMAT.md.
        field: &'static str,
        /// Its value.
        got: u64,
    },
    /// The system has no memory for a copy of the bytes.
    NoMemory,
}

/// Refuses a field of an image, with its value, unless it `holds`.
pub(crate) fn require(field: &'static str, got: u64, holds: bool) -> Result<(), ImageError> {
    if holds { Ok(()) } else { Err(ImageError::Field { field, got }) }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAFilter => f.write_str("not a Koel filter"),
            Self::Older { version } => write!(
                f,
                "written in format version {version}, but this koel reads version {VERSION}; \
                 build the filter again with this koel"
            ),
            Self::Newer { version } => write!(
                f,
                "written in format version {version}, but this koel reads version {VERSION}; \
                 use a newer koel"
            ),
            Self::Length { expected, got } if *got < HEADER_BYTES as u64 || got < expected => {
                write!(f, "cut short: {got} bytes where {expected} are needed; copy the file again")
            }
            Self::Length { expected, got } => {
                write!(f, "{got} bytes where {expected} are expected; copy the file again")
            }
            Self::Checksum { part } => {
                write!(
                    f,
                    "damaged: the checksum of the {part} does not match; restore the file from a copy"
                )
            }
            Self::Kind { asked, found } => {
                write!(f, "a {found}, not a {asked}; open it as a {found}")
            }
            Self::Field { field, got } => write!(
                f,
                "damaged or forged: {field} is {got}, which no filter has; restore the file from a copy"
            ),
            Self::NoMemory => f.write_str("the system has no memory for a copy of the filter"),
        }
    }
}

impl core::error::Error for ImageError {}

/// A filter that cannot become a concurrent one, or a concurrent one that cannot be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertError {
    /// A bucket is wider than an atomic word.
    TooWide {
        /// Bits of a bucket.
        bucket_bits: u32,
    },
    /// The count of all keys may pass 2^64 - 1.
    Overflow,
    /// The filter has grown, and concurrent filters have a table of one size.
    Grown,
    /// The system has no memory for a copy of the buckets.
    NoMemory,
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooWide { bucket_bits } => write!(
                f,
                "buckets of {bucket_bits} bits do not fit into an atomic word of 64; build a \
                 filter with a false-positive rate of 0.00012 or more"
            ),
            Self::Overflow => {
                f.write_str("the count of all keys may pass 2^64 - 1; remove copies first")
            }
            Self::Grown => f.write_str(
                "the filter has grown, and a concurrent filter cannot; build one from the keys",
            ),
            Self::NoMemory => f.write_str("the system has no memory for a copy of the buckets"),
        }
    }
}

impl core::error::Error for ConvertError {}

/// Two filters that cannot be merged. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// The filters do not put keys into the same buckets.
    Incompatible {
        /// What differs: `layout`, `size`, `hash`, or `route` where only one of them
        /// [trusts ready hashes](crate::Builder::trust_hashes); or `growth`, where the other filter
        /// has grown and this one may not.
        field: &'static str,
    },
    /// The union does not fit.
    Full(FullError),
    /// The other filter is a view of bytes that are not sound.
    Unsound(ImageError),
    /// The system has no memory for the union.
    NoMemory,
}

impl MergeError {
    /// Refuses filters that differ, and names the first of these fields that is not alike.
    pub(crate) fn unless_alike(fields: [(&'static str, bool); 4]) -> Result<(), Self> {
        let differing = fields.into_iter().find(|(_, alike)| !alike);
        differing.map_or(Ok(()), |(field, _)| Err(Self::Incompatible { field }))
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incompatible { field: "growth" } => f.write_str(
                "the other filter has grown, and this one may not; make this one growable, or merge it into the other",
            ),
            Self::Incompatible { field } => write!(
                f,
                "the filters differ in {field}; build both with the same capacity, false-positive rate, preference and hash"
            ),
            Self::Full(full) => write!(f, "the union does not fit: {full}"),
            Self::Unsound(error) => write!(f, "the other filter is {error}"),
            Self::NoMemory => f.write_str("the system has no memory for the union"),
        }
    }
}

impl core::error::Error for MergeError {}

impl From<FullError> for MergeError {
    fn from(full: FullError) -> Self {
        Self::Full(full)
    }
}

/// The system has no memory for a copy. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryError {
    /// Bytes of the buckets to be copied.
    pub bytes: usize,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory for a copy of {} bytes; free some memory", self.bytes)
    }
}

impl core::error::Error for MemoryError {}

impl From<MemoryError> for ImageError {
    fn from(_: MemoryError) -> Self {
        Self::NoMemory
    }
}

impl From<MemoryError> for MergeError {
    fn from(_: MemoryError) -> Self {
        Self::NoMemory
    }
}

/// A value that has more bits than the values of the maplet. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueError {
    /// The value.
    pub value: u64,
    /// Bits that values of the maplet have.
    pub value_bits: u32,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, value_bits } = self;
        write!(f, "the value {value} does not fit into the {value_bits} bits of this maplet")
    }
}

impl core::error::Error for ValueError {}

/// An insert into a maplet that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// The pair finds no room.
    Full(FullError),
    /// The value is too wide, so no maplet of these values can hold it.
    Value(ValueError),
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(full) => full.fmt(f),
            Self::Value(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for InsertError {}

impl From<FullError> for InsertError {
    fn from(full: FullError) -> Self {
        Self::Full(full)
    }
}

impl From<ValueError> for InsertError {
    fn from(error: ValueError) -> Self {
        Self::Value(error)
    }
}
