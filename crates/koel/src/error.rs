//! The errors of the library: what failed, as data and as a sentence.
//!
//! A sentence says what to do where the library knows it. Advice about a command belongs to that
//! command.

use alloc::boxed::Box;
use core::fmt;
use core::ops::Range;

use thiserror::Error;

use crate::image::{HEADER_BYTES, MOST_STEPS, VERSION};
use crate::packing::MAX_VALUE_BITS;

/// An insert that found no free slot or counter. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FullError {
    /// No empty slot can be reached.
    #[error(
        "the table is full: {in_use} entries in one built for {capacity} keys; \
         build a larger one from the keys"
    )]
    Slots {
        /// Entries in the table.
        in_use: u64,
        /// Distinct keys the filter or maplet was built for.
        capacity: u64,
    },
    /// No empty slot of an expiring filter can be reached, and none whose entry has expired.
    #[error(
        "the filter is full: {live} keys within the window, in one built for {capacity}; wait \
         until some expire, or build one for more keys"
    )]
    Window {
        /// Live entries.
        live: u64,
        /// Distinct keys of a window that the filter was built for.
        capacity: u64,
    },
    /// Every counter for copies of a key is in use.
    #[error(
        "all {limit} counters for repeated keys are in use; build the filter with a higher \
         counter limit, or insert each key once"
    )]
    Counters {
        /// Counters that the filter may have.
        limit: u64,
    },
    /// There is a correction for as many keys as the filter has slots.
    #[error(
        "all {limit} corrections are in use; build the filter for a lower false-positive rate, so \
         that fewer absent keys need one"
    )]
    Corrections {
        /// Corrections that the filter may have.
        limit: u64,
    },
    /// The table has to grow, and the system has no memory for that.
    #[error(
        "the table is full, and the system has no memory for it to grow; free some memory, or \
         build it on a larger machine"
    )]
    NoMemory,
    /// A count would pass 2^64 - 1: that of a key, or of all keys together.
    #[error("the count of a key, or of all keys, would pass 2^64 - 1; remove copies first")]
    Overflow,
}

/// Keys that were not refuted. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RefuteError {
    /// More of the keys are reported than chance explains, so some of them are most likely in.
    #[error(
        "{reported} of {asked} keys are reported, and chance explains about {expected}: some seem \
         to be in, and would be hidden; leave those out, or force it if no key was added"
    )]
    Members {
        /// The keys that were to be refuted, copies included.
        asked: u64,
        /// How many different ones of them the filter reports.
        reported: u64,
        /// How many it would report if none was in: the false-positive rate of them, rounded up.
        expected: u64,
    },
    /// There would be too many corrections.
    #[error(transparent)]
    Full(#[from] FullError),
}

/// A filter or maplet that cannot be built with these settings.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The false-positive rate is not between 0 and 1.
    #[error(
        "a false-positive rate of {rate:e} cannot be built; give one above 0 and below 1, \
         such as 0.001"
    )]
    Rate {
        /// The rate given to the builder.
        rate: f64,
    },
    // A little more, in three digits: rounded down, the message would name a rate that is too small
    // as well.
    /// No layout reaches so small a false-positive rate at this capacity: a 64-bit hash has too few
    /// bits for it, or the buckets of a concurrent filter have.
    #[error(
        "a false-positive rate of {rate:e} cannot be reached at this capacity; ask for {:.2e} or \
         more",
        smallest * 1.005
    )]
    TooPrecise {
        /// The rate given to the builder.
        rate: f64,
        /// The smallest rate for this type, capacity and preference.
        smallest: f64,
    },
    /// More keys than a 64-bit hash can tell apart at this rate, more than a table can grow to, or
    /// more bytes than this machine can address.
    #[error(
        "{capacity} keys are too many for one filter with these settings, which holds at most \
         {largest}; divide the keys among several filters"
    )]
    TooLarge {
        /// The capacity given to the builder.
        capacity: u64,
        /// The largest capacity with the same settings. 0 if the table cannot grow at all.
        largest: u64,
    },
    /// A window that cannot be divided into steps.
    #[error(
        "a window of {window} ticks in {steps} steps cannot be built; give a window of 1 tick or \
         more, and 1 to {MOST_STEPS} steps"
    )]
    Window {
        /// Ticks of the window given to the builder; 0 if none was given.
        window: u64,
        /// Steps given to the builder.
        steps: u32,
    },
    /// The keys to build from do not fit.
    #[error(transparent)]
    Full(FullError),
    /// Values cannot have so many bits.
    #[error("values of {value_bits} bits cannot be stored; ask for 1 to {MAX_VALUE_BITS}")]
    ValueBits {
        /// The bits given to the builder.
        value_bits: u32,
    },
    /// A filter that starts small and grows has segments only once it is large.
    #[error(
        "a filter that starts small and grows cannot be built in pieces; build it for all its keys"
    )]
    Pieces,
    /// The system has no memory for the table.
    #[error("the system has no memory for the table")]
    NoMemory,
}

/// Why bytes were not taken as a filter.
///
/// Opening a view checks only the header and the length. Loading an owned filter checks every byte,
/// as [`verify`](crate::CuckooFilter::verify) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The bytes do not start with the magic number of a Koel filter.
    #[error("not a Koel filter")]
    NotAFilter,
    /// Written in an earlier version of the format, which this version of the crate does not read.
    #[error(
        "written in format version {version}, but this koel reads version {VERSION}; \
         build the filter again with this koel"
    )]
    Older {
        /// The version in the file.
        version: u16,
    },
    /// Written in a later version of the format.
    #[error(
        "written in format version {version}, but this koel reads version {VERSION}; \
         use a newer koel"
    )]
    Newer {
        /// The version in the file.
        version: u16,
    },
    /// There are fewer or more bytes than the header says, or too few for a header.
    #[error(fmt = write_length)]
    Length {
        /// Bytes that there should be.
        expected: u64,
        /// Bytes that there are.
        got: u64,
    },
    /// A checksum does not match its bytes.
    #[error("damaged: the checksum of the {part} does not match; restore the file from a copy")]
    Checksum {
        /// The damaged part: `header` or `body`.
        part: &'static str,
    },
    /// The bytes are sound, but of another type.
    #[error(
        "{} {found}, not {} {asked}; open it as {} {found}",
        article(found),
        article(asked),
        article(found)
    )]
    Kind {
        /// The type that was to be opened: `filter`, `maplet`, `counting filter` or `expiring
        /// filter`.
        asked: &'static str,
        /// The type of the bytes, in the same words.
        found: &'static str,
    },
    /// A field, bucket or counter holds a value that no filter has.
    #[error(
        "damaged or forged: {field} is {got}, which no filter has; restore the file from a \
         copy"
    )]
    Field {
        /// Its name in docs/FORMAT.md.
        field: &'static str,
        /// Its value.
        got: u64,
    },
    /// The system has no memory for a copy of the bytes.
    #[error("the system has no memory for a copy of the filter")]
    NoMemory,
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn write_length(expected: &u64, got: &u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if *got < HEADER_BYTES as u64 || got < expected {
        write!(f, "cut short: {got} bytes where {expected} are needed; copy the file again")
    } else {
        write!(f, "{got} bytes where {expected} are expected; copy the file again")
    }
}

/// Refuses a field of an image, with its value, unless it `holds`.
pub(crate) fn require(field: &'static str, got: u64, holds: bool) -> Result<(), ImageError> {
    if holds { Ok(()) } else { Err(ImageError::Field { field, got }) }
}

/// A filter that could not be converted, with what it was: nothing is lost.
#[derive(Debug, Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct Unconverted<F> {
    /// Why.
    pub error: ConvertError,
    /// The filter, as it was.
    pub filter: Box<F>,
}

impl<F> Unconverted<F> {
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn new(error: ConvertError, filter: F) -> Self {
        Self { error, filter: Box::new(filter) }
    }
}

/// A filter that cannot become a concurrent one, or a concurrent one that cannot be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A bucket is wider than an atomic word.
    #[error(
        "buckets of {bucket_bits} bits do not fit into an atomic word of 64; build a filter \
         with a false-positive rate of 0.00012 or more"
    )]
    TooWide {
        /// Bits of a bucket.
        bucket_bits: u32,
    },
    /// The count of all keys may pass 2^64 - 1.
    #[error("the count of all keys may pass 2^64 - 1; remove copies first")]
    Overflow,
    /// The filter has grown, and concurrent filters have a table of one size.
    #[error("the filter has grown, and a concurrent filter cannot; build one from the keys")]
    Grown,
    /// The filter has exact answers beside its table, and concurrent filters have none.
    #[error(
        "the filter keeps {stashed} keys and {corrections} corrections beside its table, and a \
         concurrent filter cannot; build one from the keys"
    )]
    Exact {
        /// [Keys without a slot](crate::CuckooFilter::stashed_keys).
        stashed: u64,
        /// [Corrections](crate::CuckooFilter::corrections).
        corrections: u64,
    },
    /// The system has no memory for a copy of the buckets.
    #[error("the system has no memory for a copy of the buckets")]
    NoMemory,
}

/// Two filters that cannot be merged. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// The filters do not put keys into the same buckets.
    #[error(fmt = write_difference)]
    Incompatible {
        /// What differs: `layout`, `hash`, or `route` where only one of them
        /// [trusts ready hashes](crate::Builder::trust_hashes); `application bytes`, where the
        /// first two [differ](crate::Builder::application); or `growth`, where the other filter has
        /// grown and this one may not.
        field: &'static str,
    },
    /// The filters were built with tables of different sizes.
    #[error(
        "the filters differ in size: one was built for {ours} keys, the other for {theirs}; build \
         both with the same capacity and false-positive rate, and to grow from as many keys"
    )]
    Sizes {
        /// The capacity of this filter.
        ours: u64,
        /// The capacity of the other one.
        theirs: u64,
    },
    /// The union does not fit.
    #[error("the union does not fit: {0}")]
    Full(FullError),
    /// The other filter is a view of bytes that are not sound.
    #[error("the other filter is {0}")]
    Unsound(ImageError),
    /// The system has no memory for the union.
    #[error("the system has no memory for the union")]
    NoMemory,
}

fn write_difference(field: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if field == "growth" {
        return f.write_str(
            "the other filter has grown, and this one may not; make this one growable, or merge \
             it into the other",
        );
    }
    write!(
        f,
        "the filters differ in {field}; build both with the same capacity, false-positive rate, \
         preference, hash and application bytes"
    )
}

impl MergeError {
    /// This error, or for filters that differ in size, the one with their capacities.
    pub(crate) fn with_sizes(self, ours: u64, theirs: u64) -> Self {
        if self == (Self::Incompatible { field: "size" }) {
            return Self::Sizes { ours, theirs };
        }
        self
    }

    /// Refuses filters that differ, and names the first of these fields that is not alike.
    pub(crate) fn unless_alike(fields: [(&'static str, bool); 5]) -> Result<(), Self> {
        let differing = fields.into_iter().find(|(_, alike)| !alike);
        differing.map_or(Ok(()), |(field, _)| Err(Self::Incompatible { field }))
    }
}

/// The system has no memory for a copy. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no memory for a copy of {bytes} bytes; free some memory")]
#[non_exhaustive]
pub struct MemoryError {
    /// Bytes of the file image, or of what is computed.
    pub bytes: usize,
}

impl From<MemoryError> for ImageError {
    fn from(_: MemoryError) -> Self {
        Self::NoMemory
    }
}

impl From<FullError> for BuildError {
    fn from(full: FullError) -> Self {
        if full == FullError::NoMemory { Self::NoMemory } else { Self::Full(full) }
    }
}

impl From<MemoryError> for FullError {
    fn from(_: MemoryError) -> Self {
        Self::NoMemory
    }
}

impl From<FullError> for MergeError {
    fn from(full: FullError) -> Self {
        if full == FullError::NoMemory { Self::NoMemory } else { Self::Full(full) }
    }
}

impl From<ImageError> for MergeError {
    fn from(error: ImageError) -> Self {
        if error == ImageError::NoMemory { Self::NoMemory } else { Self::Unsound(error) }
    }
}

impl From<MemoryError> for MergeError {
    fn from(_: MemoryError) -> Self {
        Self::NoMemory
    }
}

/// Bytes of a filter elsewhere that give no answer. Nothing can be said of the keys then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// What was fetched for a range is shorter or longer than the range.
    #[error(
        "{got} bytes came for the {} from byte {} on; ask again, and see whether a proxy cuts or \
         compresses them",
        range.end - range.start,
        range.start
    )]
    Length {
        /// The range of the file.
        range: Range<u64>,
        /// Bytes that came.
        got: u64,
    },
    /// The bytes of a bucket are not among those that were fetched.
    #[error(
        "bytes {} to {} are not among those that were fetched; fetch the ranges of these keys",
        range.start,
        range.end
    )]
    Missing {
        /// The range of the file.
        range: Range<u64>,
    },
    /// The bytes of a bucket are none that a filter has.
    #[error(
        "bucket {bucket} has bytes that no filter has: the file was replaced or is damaged; open \
         it again"
    )]
    Bucket {
        /// The number of the bucket.
        bucket: u64,
    },
}

/// A value that has more bits than the values of the maplet. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the value {value} does not fit into the {value_bits} bits of this maplet")]
#[non_exhaustive]
pub struct ValueError {
    /// The value.
    pub value: u64,
    /// Bits that values of the maplet have.
    pub value_bits: u32,
}

/// A time that is too far ahead to be believed. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "tick {now} is {ahead} ticks ahead, and at most {most} are accepted; check the clock, or \
     advance without a limit"
)]
#[non_exhaustive]
pub struct JumpError {
    /// The tick that was given.
    pub now: u64,
    /// Its distance from the begin of the present step.
    pub ahead: u64,
    /// The largest distance that was accepted.
    pub most: u64,
}

/// An insert into a maplet, or one with a time to live, that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InsertError {
    /// The pair finds no room.
    #[error(transparent)]
    Full(#[from] FullError),
    /// The value is too wide, so no maplet of these values can hold it.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The time to live is longer than the window of the expiring filter.
    #[error(
        "a time to live of {ttl} ticks is longer than the window of {window}; build the filter \
         with the longest time to live as its window"
    )]
    TimeToLive {
        /// The time to live in ticks.
        ttl: u64,
        /// The window in ticks.
        window: u64,
    },
}
