//! The keys of a database, as commands see them, and a database in memory for tests.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::header::Origin;
use crate::filter::native::Key;

/// So many bytes are taken without asking the server, which takes some microseconds.
const FEW_BYTES: u64 = 1 << 20;

/// What listeners hear of a key that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Items were added.
    Add,
    /// Time went on, or room was made, and nothing was added.
    Advance,
    /// Unused memory was given back.
    Compact,
    /// Items were deleted.
    Delete,
    /// A chunk was loaded.
    LoadChunk,
    /// Other filters were merged into it.
    Merge,
    /// Items were refuted.
    Refute,
    /// The filter was created.
    Reserve,
}

impl Event {
    /// All events, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Add,
        Self::Advance,
        Self::Compact,
        Self::Delete,
        Self::LoadChunk,
        Self::Merge,
        Self::Refute,
        Self::Reserve,
    ];

    /// Its name, without the prefix of the commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Advance => "advance",
            Self::Compact => "compact",
            Self::Delete => "del",
            Self::LoadChunk => "loadchunk",
            Self::Merge => "merge",
            Self::Refute => "refute",
            Self::Reserve => "reserve",
        }
    }
}

/// What a key holds.
#[derive(Debug)]
pub enum Value<F> {
    /// Nothing.
    Missing,
    /// A value of another type.
    Foreign,
    /// A filter.
    Filter(F),
}

impl<F> Value<F> {
    /// The filter.
    ///
    /// # Errors
    /// [`Error::WrongType`], or `missing` if there is no value.
    pub fn or(self, missing: Error) -> Result<F, Error> {
        match self {
            Self::Filter(filter) => Ok(filter),
            Self::Foreign => Err(Error::WrongType),
            Self::Missing => Err(missing),
        }
    }

    /// The filter, or `other` if there is none, whatever else the key holds.
    ///
    /// # Errors
    /// `other`.
    pub fn or_for_all(self, other: Error) -> Result<F, Error> {
        if let Self::Filter(filter) = self { Ok(filter) } else { Err(other) }
    }
}

/// The database that a command works on. A key is named by its index in the arguments.
pub trait Keys {
    /// The value of a key, for reading.
    fn read(&mut self, argument: usize) -> Value<&Filter>;

    /// The value of a key, for writing.
    fn write(&mut self, argument: usize) -> Value<&mut Filter>;

    /// Replaces the value of a key, which is missing or a filter. Its time to live stays.
    fn put(&mut self, argument: usize, filter: Filter);

    /// Says, once, that the command has changed a key. Without this, replicas do not get the
    /// command.
    fn changed(&mut self, argument: usize, event: Event);

    /// Says that the command, which has changed a key, refused the items that are these arguments,
    /// for a reason that replicas may not have. They get the command without them.
    fn refused(&mut self, items: Vec<usize>);

    /// As [`refused`](Self::refused), for all items of the command. Replicas get only its time.
    fn refused_all(&mut self);

    /// The most bytes that a filter may take, if it is to take so many. None for what was checked
    /// before; the server is asked for that only beyond the limit, since that takes time.
    fn limit(&self, bytes: u64) -> u64;

    /// Bytes that the server can take now without harm to others.
    fn room(&mut self) -> u64;

    /// Refuses so many bytes beyond [`room`](Self::room), unless they are few.
    ///
    /// # Errors
    /// [`Error::Room`].
    fn has_room(&mut self, bytes: u64) -> Result<(), Error> {
        if bytes < FEW_BYTES {
            return Ok(());
        }
        let room = self.room();
        if bytes > room { Err(Error::Room { bytes, room }) } else { Ok(()) }
    }

    /// Refuses a new filter of so many bytes, if it is beyond what a key may take or the server
    /// has.
    ///
    /// # Errors
    /// [`Error::Limit`] or [`Error::Room`].
    fn admit(&mut self, bytes: u64) -> Result<(), Error> {
        let limit = self.limit(bytes);
        if bytes > limit { Err(Error::Limit { bytes, limit }) } else { self.has_room(bytes) }
    }

    /// The secret of filters that are created without one of their own.
    fn secret(&mut self) -> Option<Key>;

    /// Says that the command has created a filter for so many items with the secret of the server,
    /// which replicas do not know.
    fn created(&mut self, capacity: u64, secret: Key);

    /// Where the command comes from: anybody, or the primary or file that this data set is of.
    fn origin(&self) -> Origin;

    /// The time of the command in milliseconds since 1970: always the same for one command.
    fn now(&mut self) -> u64;
}

/// Keys in memory.
#[derive(Debug, Default)]
pub struct Memory {
    /// All values. `None` stands for one of another type.
    pub values: BTreeMap<Vec<u8>, Option<Filter>>,
    /// What [`Keys::limit`] returns.
    pub limit: u64,
    /// What [`Keys::now`] returns.
    pub now: u64,
    /// What [`Keys::room`] returns; `None` is no limit.
    pub room: Option<u64>,
    /// What [`Keys::secret`] returns.
    pub secret: Option<Key>,
    /// What [`Keys::origin`] returns.
    pub origin: Origin,
}

/// [`Memory`] for the arguments of one command.
#[derive(Debug)]
pub struct MemoryKeys<'a> {
    /// The keys.
    pub memory: &'a mut Memory,
    /// The arguments.
    pub arguments: &'a [&'a [u8]],
    /// Events of keys that were changed, in order.
    pub events: Vec<(Vec<u8>, Event)>,
}

impl MemoryKeys<'_> {
    fn key(&self, argument: usize) -> Vec<u8> {
        self.arguments[argument].to_vec()
    }
}

impl Keys for MemoryKeys<'_> {
    fn read(&mut self, argument: usize) -> Value<&Filter> {
        match self.memory.values.get(self.arguments[argument]) {
            None => Value::Missing,
            Some(None) => Value::Foreign,
            Some(Some(filter)) => Value::Filter(filter),
        }
    }

    fn write(&mut self, argument: usize) -> Value<&mut Filter> {
        match self.memory.values.get_mut(self.arguments[argument]) {
            None => Value::Missing,
            Some(None) => Value::Foreign,
            Some(Some(filter)) => Value::Filter(filter),
        }
    }

    fn put(&mut self, argument: usize, filter: Filter) {
        self.memory.values.insert(self.key(argument), Some(filter));
    }

    fn changed(&mut self, argument: usize, event: Event) {
        self.events.push((self.key(argument), event));
    }

    fn refused(&mut self, _items: Vec<usize>) {}

    fn refused_all(&mut self) {}

    fn limit(&self, _bytes: u64) -> u64 {
        self.memory.limit
    }

    fn now(&mut self) -> u64 {
        self.memory.now
    }

    fn room(&mut self) -> u64 {
        self.memory.room.unwrap_or(u64::MAX)
    }

    fn secret(&mut self) -> Option<Key> {
        self.memory.secret
    }

    fn created(&mut self, _capacity: u64, _secret: Key) {}

    fn origin(&self) -> Origin {
        self.memory.origin
    }
}
