//! The records of a store of either kind: a log store, or an ordered one.

use std::io::{self, Read};

use koel_store::content::Archive;
use koel_store::{Batch, Durability, Error, LogStore, LsmStore};

use crate::failure::Failure;

/// An open store.
#[derive(Debug)]
pub(super) enum Records {
    Log(LogStore),
    Ordered(LsmStore),
}

/// A value to store.
pub(super) enum Value {
    Whole(Vec<u8>),
    /// So many bytes to stream.
    Stream {
        source: Box<dyn Read>,
        length: u64,
    },
}

impl From<LogStore> for Records {
    fn from(store: LogStore) -> Self {
        Self::Log(store)
    }
}

impl From<LsmStore> for Records {
    fn from(store: LsmStore) -> Self {
        Self::Ordered(store)
    }
}

impl Records {
    /// The value of a key, to be read.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<Box<dyn Read>>, Error> {
        Ok(match self {
            Self::Log(store) => store.get_reader(key)?.map(|value| Box::new(value) as _),
            Self::Ordered(store) => {
                store.get(key)?.map(|value| Box::new(io::Cursor::new(value)) as _)
            }
        })
    }

    /// Stores a record. An ordered store reads a file into memory first.
    pub(super) fn put(
        &self,
        key: &[u8],
        value: Value,
        durability: Durability,
    ) -> Result<(), Error> {
        let bytes = match (self, value) {
            (Self::Log(store), Value::Stream { source, length }) => {
                return store.put_reader(key, length, source, durability);
            }
            (_, Value::Whole(bytes)) => bytes,
            (Self::Ordered(_), Value::Stream { source, length }) => {
                let limit = LsmStore::MAX_VALUE_BYTES;
                if length > limit {
                    return Err(Error::TooLong { what: "value", len: length, max: limit });
                }
                let mut bytes = Vec::new();
                let read = source.take(limit + 1).read_to_end(&mut bytes);
                read.map_err(|error| Error::Source { error })?;
                bytes
            }
        };
        match self {
            Self::Log(store) => store.put(key, &bytes, durability),
            Self::Ordered(store) => store.put(key, &bytes, durability),
        }
    }

    /// Stores the records of a batch.
    pub(super) fn write(&self, batch: &Batch) -> Result<(), Error> {
        match self {
            Self::Log(store) => store.write(batch, Durability::None),
            Self::Ordered(store) => store.write(batch, Durability::None),
        }
    }

    /// Deletes a record. False if there was none.
    pub(super) fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        match self {
            Self::Log(store) => store.delete(key, Durability::None),
            Self::Ordered(store) => {
                let is_there = store.contains(key)?;
                if is_there {
                    store.delete(key, Durability::None)?;
                }
                Ok(is_there)
            }
        }
    }

    /// Passes the keys that start with `prefix` to `take`. An ordered store has them in byte order,
    /// a log store in the order in which their values were written. Skips damaged records, and
    /// returns the first damage.
    pub(super) fn each_key(
        &self,
        prefix: &[u8],
        failure: impl Fn(Error) -> Failure,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Option<Error>, Failure> {
        let mut damage = None;
        let mut pass = |key: Result<Vec<u8>, Error>| match key {
            Ok(key) if Archive::is_reserved(&key) || !key.starts_with(prefix) => Ok(()),
            Ok(key) => take(&key),
            Err(error @ Error::Damaged { .. }) => {
                damage.get_or_insert(error);
                Ok(())
            }
            Err(error) => Err(failure(error)),
        };
        match self {
            Self::Log(store) => store.keys().try_for_each(&mut pass)?,
            Self::Ordered(store) => {
                let range = store.prefix(prefix).map_err(&failure)?;
                range.map(|entry| entry.map(|(key, _)| key)).try_for_each(&mut pass)?;
            }
        }
        Ok(damage)
    }

    /// Closes the store, which makes everything durable.
    pub(super) fn close(self) -> Result<(), Error> {
        match self {
            Self::Log(store) => store.close(),
            Self::Ordered(store) => store.close(),
        }
    }
}
