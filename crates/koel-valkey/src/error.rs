//! What a command can refuse, with the text that the client gets.
//!
//! Texts that RedisBloom has as well are its texts to the letter, because clients compare them.
//! Some of them lack the usual `ERR`. The others say what to do.

use koel::{BuildError, FullError, ImageError, MergeError};
use thiserror::Error;

use crate::filter::record::{ENCODING, REFERENCE};

/// Why a command failed. Nothing was changed unless the command says so.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Error {
    /// The number of arguments is wrong. The server writes this text, with the command's name.
    #[error("ERR wrong number of arguments")]
    Arity,
    /// The key holds a value of another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// The key does not exist.
    #[error("ERR not found")]
    NotFound,
    /// DEL: the key does not exist.
    #[error("Not found")]
    NoFilterToDeleteFrom,
    /// COMPACT: the key does not exist.
    #[error("Cuckoo filter was not found")]
    NoFilterToCompact,
    /// The key exists, but the command would create it.
    #[error("ERR item exists")]
    Exists,
    /// The capacity is not a number.
    #[error("Bad capacity")]
    BadCapacity,
    /// The capacity is too small.
    #[error("Capacity must be at least (BucketSize * 2)")]
    SmallCapacity,
    /// The value of an option is not a number.
    #[error("Couldn't parse {0}")]
    NotANumber(&'static str),
    /// The value of an option is out of its range.
    #[error("{name}: value must be an integer between {least} and {most}, inclusive.")]
    Range {
        /// The option.
        name: &'static str,
        /// The smallest value.
        least: u16,
        /// The largest value.
        most: u16,
    },
    /// An option that the command does not have.
    #[error("Unknown argument received")]
    UnknownOption,
    /// The value of ERROR.
    #[error("ERR ERROR must be a number above 0 and below 1, such as 0.001")]
    BadError,
    /// The value of PREFER.
    #[error("ERR PREFER must be SMALL or FAST")]
    BadPreference,
    /// The value of WINDOW.
    #[error("ERR WINDOW must be a whole number of seconds, from 1 to {most}")]
    BadWindow {
        /// The longest window.
        most: u64,
    },
    /// The value of WHENFULL, or WHENFULL without WINDOW.
    #[error("ERR WHENFULL must be FAIL or EVICT, and needs WINDOW")]
    BadWhenFull,
    /// WHENFULL for a filter that grows.
    #[error("ERR WHENFULL is for filters of one size: leave it out, or reserve with EXPANSION 0")]
    GrowsWhenFull,
    /// The time of AT.
    #[error("ERR the time must be a number of milliseconds since 1970")]
    BadTime,
    /// The command of AT.
    #[error("ERR AT takes a command of one key and its arguments, such as ADD key item")]
    BadTimedCommand,
    /// The field of INFO.
    #[error(
        "ERR unknown field: INFO has CAPACITY, SIZE, BUCKETS, FILTERS, ITEMS, DELETED, \
         BUCKETSIZE, EXPANSION, MAXITERATIONS, ERROR, RATE, LOAD, FORMAT, CORRECTIONS, WINDOW, \
         EXPIRED and EVICTED, and FULL for all of them"
    )]
    UnknownField,
    /// No filter can be built with these settings.
    #[error("ERR {0}")]
    Build(BuildError),
    /// There is no memory for a new filter.
    #[error("ERR Insufficient memory to create filter")]
    NoMemoryToCreate,
    /// There is no memory for a copy or a chunk.
    #[error("ERR Insufficient memory")]
    NoMemory,
    /// A filter would take more memory than a key may.
    #[error(
        "ERR the filter would take {bytes} bytes, and a key may take {limit}; raise MAX-KEY-BYTES \
         of the module, or divide the items among several keys"
    )]
    Limit {
        /// Bytes of the filter.
        bytes: u64,
        /// The limit of the module.
        limit: u64,
    },
    /// A filter would take more memory than the server has for it.
    #[error(
        "OOM the filter would take {bytes} bytes, and the server has {room} for it below maxmemory; \
         raise maxmemory, delete keys, or divide the items among several servers"
    )]
    Room {
        /// Bytes that are needed.
        bytes: u64,
        /// Bytes that there are.
        room: u64,
    },
    /// An item is no key of a filter of hosts.
    #[error(
        "ERR the keys of this filter are hosts, and an item has none; give hosts, addresses or URLs"
    )]
    NoHost,
    /// The application bytes of a filter are not known.
    #[error("ERR {0}; use a later version of the module")]
    Lines(koel_lines::UnknownRecipe),
    /// The value of SECRET.
    #[error("ERR SECRET must be NO or 32 hexadecimal digits")]
    BadSecret,
    /// The last chunk is being checked.
    #[error(
        "ERR the chunks of the filter are being checked; wait for the answer to the last one, or \
         delete the key"
    )]
    Checking,
    /// REFUTE: more items are reported than chance explains.
    #[error(
        "ERR {reported} of the {asked} items are reported, and chance explains about {expected}: \
         some were most likely added, and would be hidden; nothing was changed: leave those out, or \
         refute each item with a command of its own if none was added"
    )]
    Members {
        /// Items of the command.
        asked: u64,
        /// Different ones that are reported.
        reported: u64,
        /// How many the error rate explains.
        expected: u64,
    },
    /// REFUTE: there are as many corrections as there may be.
    #[error(
        "ERR the filter would have more corrections than the {limit} that it may have; nothing was \
         changed: reserve a new one with a smaller ERROR"
    )]
    Corrections {
        /// The most corrections.
        limit: u64,
    },
    /// REFUTE of a filter with a window.
    #[error("ERR a filter with a WINDOW has no corrections, which would have to expire too")]
    RefuteWindow,
    /// REFUTE of a filter in RedisBloom's layout.
    #[error(
        "ERR a filter in RedisBloom's layout has no place for corrections: add its items to a new \
         filter"
    )]
    RefuteCompat,
    /// The filter was changed too much while a command built another from it beside others.
    #[error(
        "TRYAGAIN the filter changes faster than a copy of it can follow, and the command changed \
         nothing: try again while fewer clients write it"
    )]
    Changed,
    /// The result of a command that ran beside others was deleted before it had its name.
    #[error(
        "TRYAGAIN the result was deleted or evicted before it was complete, and the command \
         changed nothing: try again"
    )]
    Lost,
    /// The server became a replica while a command ran beside others.
    #[error("READONLY the server has become a replica, and nothing was changed: ask the primary")]
    ReadOnly,
    /// The slot of the key has moved while a command ran beside others.
    #[error("TRYAGAIN the slot of the key is moving, and nothing was changed: try again")]
    Moved,
    /// An item found no room.
    #[error(transparent)]
    Full(Full),
    /// Two filters cannot be merged.
    #[error("ERR {0}")]
    Merge(MergeError),
    /// MERGE of a filter that came from RedisBloom.
    #[error(
        "ERR a filter that RedisBloom made cannot be merged: its layout loses the bits that a \
         larger filter needs; add the items to a new filter"
    )]
    MergeCompat,
    /// MERGE of a filter with a window.
    #[error("ERR a filter with a WINDOW cannot be merged: add the items to one of both instead")]
    MergeWindow,
    /// An iterator of SCANDUMP or LOADCHUNK.
    #[error("Invalid position")]
    Position,
    /// The first chunk is no header.
    #[error("Invalid header")]
    Header,
    /// A value of an RDB file in an encoding that is not known.
    #[error(
        "encoding {0} is not known: this version of the module reads {ENCODING}, and {REFERENCE} of \
         RedisBloom; use a later version"
    )]
    Encoding(i32),
    /// The first chunk is the header of a filter that cannot exist.
    #[error("Couldn't create filter!")]
    Create,
    /// A chunk that does not follow the chunks before it.
    #[error("Couldn't load chunk!")]
    Chunk,
    /// All chunks are here, and they are not a filter.
    #[error(
        "ERR the chunks are not one filter: {0}; dump the filter again while nothing writes it"
    )]
    Image(ImageError),
    /// Chunks of the filter are missing.
    #[error(
        "ERR chunks of the filter are missing: {loaded} of {total} bytes are loaded; load the \
         others with LOADCHUNK, or delete the key"
    )]
    Incomplete {
        /// Bytes that were loaded.
        loaded: u64,
        /// Bytes of the filter.
        total: u64,
    },
}

/// Why an item found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Full {
    /// The filter was reserved with EXPANSION 0.
    #[error("Filter is full")]
    Fixed,
    /// The filter has one size, and as many items within its window as it takes.
    #[error(
        "ERR the filter is full: {live} items within the window, reserved for {capacity}; wait \
         until some expire, or reserve another without EXPANSION 0 or with WHENFULL EVICT"
    )]
    Window {
        /// Items within the window.
        live: u64,
        /// Items that it was reserved for.
        capacity: u64,
    },
    /// The filter cannot grow any further.
    #[error("Maximum expansions reached")]
    Largest,
    /// The server has no memory for more.
    #[error("ERR Insufficient memory")]
    NoMemory,
    /// The filter takes as much memory as a key may.
    #[error(
        "ERR the filter takes {bytes} bytes, and a key may take {limit}; raise MAX-KEY-BYTES of \
         the module, or divide the items among several keys"
    )]
    Limit {
        /// Bytes of the filter.
        bytes: u64,
        /// The limit of the module.
        limit: u64,
    },
}

impl Full {
    /// The reason of a filter of the library, which `grows` or not.
    pub(crate) fn of(error: FullError, grows: bool) -> Self {
        match error {
            FullError::NoMemory => Self::NoMemory,
            _ if grows => Self::Largest,
            _ => Self::Fixed,
        }
    }
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        if error == BuildError::NoMemory { Self::NoMemoryToCreate } else { Self::Build(error) }
    }
}

impl From<MergeError> for Error {
    fn from(error: MergeError) -> Self {
        if error == MergeError::NoMemory { Self::NoMemory } else { Self::Merge(error) }
    }
}
