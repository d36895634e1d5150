//! The value of a key: a filter of ours, one whose items expire, a filter in RedisBloom's layout,
//! or one whose chunks are still arriving.
//!
//! Commands see the first three through the trait [`Cuckoo`]. Every value is a [`Header`] and a
//! body: bytes that SCANDUMP, the RDB file, the append-only file and DEBUG DIGEST share
//! ([`header`] has the layout).

pub mod compat;
pub mod expiring;
pub mod header;
pub mod journal;
pub mod loading;
pub mod native;
pub mod record;
pub mod sending;

use std::fmt::Debug;
use std::ops::Range;
use std::ptr;

use koel_lines::KeyForm;

use crate::error::{Error, Full};
use compat::Compat;
use expiring::Expiring;
use header::Header;
use loading::Loading;
use native::{Key, Native, Settings};
use sending::Sending;

/// The options that RedisBloom's filters have. A filter of ours only remembers them, except that
/// an expansion of 0 means that it does not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Slots of a bucket, from 1.
    pub bucket_size: u16,
    /// The most evictions of an insert, from 1.
    pub max_iterations: u16,
    /// How many times larger each further table is. 0 or a power of two.
    pub expansion: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self { bucket_size: 2, max_iterations: 20, expansion: 1 }
    }
}

/// What became of an item that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is in.
    Yes,
    /// It was there, and was to be added only if absent.
    Present,
    /// It is not in.
    Full(Full),
}

impl Added {
    /// Whether the item found no room.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

/// Numbers of a filter, for INFO and DEBUG.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// Bytes of memory.
    pub bytes: u64,
    /// Buckets of the first table.
    pub buckets: u64,
    /// Tables.
    pub tables: u64,
    /// Items in the filter, copies included.
    pub items: u64,
    /// Items deleted since the filter was created or compacted.
    pub deleted: u64,
    /// Items that the filter was reserved for.
    pub capacity: u64,
    /// The false-positive rate that was asked for.
    pub error: f64,
    /// The expected false-positive rate with the items that are in.
    pub rate: f64,
    /// Slots in use by slots.
    pub load: f64,
    /// Who reads the layout: `koel` or `redisbloom`.
    pub format: &'static str,
    /// Seconds that an item stays; 0 if items do not expire.
    pub window: u64,
    /// Items that expired.
    pub expired: u64,
    /// Items that were taken out for others before they expired.
    pub evicted: u64,
    /// Items that were refuted, and would be reported otherwise.
    pub corrections: u64,
}

/// What changes when a filter takes an item or makes room for one: bytes, buckets, slots in use and
/// items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(pub u64, pub u64, pub u64, pub u64);

/// What commands do with a filter. Times are in milliseconds since 1970.
pub trait Cuckoo {
    /// Goes on to the time `now`, before a command that writes. True if that has changed the
    /// filter, so that replicas have to do the same.
    fn advance(&mut self, _now: u64) -> bool {
        false
    }

    /// Tells whether an insert that was refused has made room all the same.
    fn mark(&self) -> Mark {
        Mark::default()
    }

    /// How items become keys, if the filter was built from lines.
    ///
    /// # Errors
    /// [`Error::Lines`] if this version does not know it.
    fn key_form(&self) -> Result<KeyForm, Error> {
        Ok(KeyForm::default())
    }

    /// Whether an item is in at the time `now`.
    fn contains(&self, item: &[u8], now: u64) -> bool;

    /// Writes to `found[i]` whether `items[i]` is in at the time `now`.
    fn contains_many(&self, items: &[&[u8]], now: u64, found: &mut [bool]) {
        for (item, found) in items.iter().zip(found) {
            *found = self.contains(item, now);
        }
    }

    /// How many copies of an item are in at the time `now`.
    fn count(&self, item: &[u8], now: u64) -> u64;

    /// Writes to `counts[i]` how many copies of `items[i]` are in at the time `now`.
    fn count_many(&self, items: &[&[u8]], now: u64, counts: &mut [u64]) {
        for (item, count) in items.iter().zip(counts) {
            *count = self.count(item, now);
        }
    }

    /// Why no item of a command with so many can be added at the time `now`, if the filter takes
    /// more than `limit` bytes. It is asked once for a command: replicas have no limit, and add all
    /// items of a command that they get.
    fn beyond(&self, _items: usize, _now: u64, _limit: u64) -> Option<Full> {
        None
    }

    /// Adds an item. If `unique`, one that is in is not added again.
    ///
    /// A filter in RedisBloom's layout does not grow beyond `limit` bytes: its tables double, so
    /// that one command could take any memory otherwise.
    fn add(&mut self, item: &[u8], unique: bool, limit: u64) -> Added;

    /// Adds the items in order, up to the first that finds no room. Writes what became of each to
    /// `added`, and returns for how many, that one included.
    ///
    /// A filter in RedisBloom's layout does not stop there: it may get commands that RedisBloom
    /// wrote, as a replica or from a file, and then has to add what was added there.
    fn add_many(
        &mut self,
        items: &[&[u8]],
        unique: bool,
        limit: u64,
        added: &mut [Added],
    ) -> usize {
        for (item, added) in items.iter().zip(added) {
            *added = self.add(item, unique, limit);
        }
        items.len()
    }

    /// Removes a copy of an item. False if there is none.
    fn remove(&mut self, item: &[u8]) -> bool;

    /// Removes a copy of each item, and writes to `removed[i]` whether there was one.
    fn remove_many(&mut self, items: &[&[u8]], removed: &mut [bool]) {
        for (item, removed) in items.iter().zip(removed) {
            *removed = self.remove(item);
        }
    }

    /// Moves the items into the smallest table that holds them.
    fn compact(&mut self);

    /// The options that it was reserved with.
    fn options(&self) -> Options;

    /// Its numbers at the time `now`.
    fn info(&self, now: u64) -> Info;
}

/// Says how many bytes the allocation that begins at an address takes, of which so many are used.
pub type Measure<'a> = &'a dyn Fn(*const u8, usize) -> usize;

/// The value of a key.
#[derive(Debug)]
pub enum Filter {
    /// A filter of ours.
    Native(Box<Native>),
    /// A filter whose items expire.
    Expiring(Box<Expiring>),
    /// A filter in RedisBloom's layout.
    Compat(Compat),
    /// A filter whose chunks are still arriving.
    Loading(Loading),
    /// A filter whose chunks are still sent to replicas.
    Sending(Sending),
}

impl Filter {
    /// An empty filter at the time `now`.
    ///
    /// # Errors
    /// [`Error::Build`] or [`Error::NoMemoryToCreate`].
    pub fn create(settings: Settings, secret: Option<Key>, now: u64) -> Result<Self, Error> {
        Ok(match settings.window {
            Some(window) => Expiring::create(settings, window, secret, now)?.into(),
            None => Native::create(settings, secret)?.into(),
        })
    }

    /// Bytes of the filter that [`create`](Self::create) makes.
    ///
    /// # Errors
    /// [`Error::Build`].
    pub fn planned_bytes(settings: &Settings) -> Result<u64, Error> {
        match settings.window {
            Some(window) => Expiring::planned_bytes(settings, window),
            None => Native::planned_bytes(settings),
        }
    }

    /// The filter for commands that read.
    ///
    /// # Errors
    /// [`Error::Incomplete`] while chunks are missing.
    pub fn complete(&self) -> Result<&dyn Cuckoo, Error> {
        match self {
            Self::Native(filter) => Ok(&**filter),
            Self::Expiring(filter) => Ok(&**filter),
            Self::Compat(filter) => Ok(filter),
            Self::Loading(chunks) => Err(chunks.incomplete()),
            Self::Sending(chunks) => Err(chunks.incomplete()),
        }
    }

    /// The filter for commands that write.
    ///
    /// # Errors
    /// [`Error::Incomplete`] while chunks are missing.
    pub fn complete_mut(&mut self) -> Result<&mut dyn Cuckoo, Error> {
        match self {
            Self::Native(filter) => Ok(&mut **filter),
            Self::Expiring(filter) => Ok(&mut **filter),
            Self::Compat(filter) => Ok(filter),
            Self::Loading(chunks) => Err(chunks.incomplete()),
            Self::Sending(chunks) => Err(chunks.incomplete()),
        }
    }

    /// The bytes that it takes before an item is added, or any number if one item can make it many
    /// times as large.
    #[must_use]
    pub fn bytes_at_stake(&self) -> u64 {
        match self {
            Self::Native(_) | Self::Expiring(_) => self.bytes() as u64,
            Self::Compat(_) | Self::Loading(_) | Self::Sending(_) => u64::MAX,
        }
    }

    /// Whether its items expire, so that what a command does depends on the time.
    #[must_use]
    pub fn expires(&self) -> bool {
        matches!(self, Self::Expiring(_))
    }

    /// Bytes that it has allocated, with those of its own value.
    #[must_use]
    pub fn allocated_bytes(&self, measure: Measure<'_>) -> usize {
        let parts = match self {
            Self::Native(filter) => filter.allocated_bytes(measure),
            Self::Expiring(filter) => filter.allocated_bytes(measure),
            Self::Compat(filter) => filter.allocated_bytes(measure),
            Self::Loading(chunks) => chunks.allocated_bytes(measure),
            Self::Sending(chunks) => chunks.filter.allocated_bytes(measure),
        };
        measure(ptr::from_ref(self).cast(), size_of::<Self>()) + parts
    }

    /// Bytes of memory, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.body_len()
    }

    /// A copy in its own memory.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(match self {
            Self::Native(filter) => filter.try_clone()?.into(),
            Self::Expiring(filter) => filter.try_clone()?.into(),
            Self::Compat(filter) => Self::Compat(filter.try_clone()?),
            Self::Loading(chunks) => Self::Loading(chunks.try_clone()?),
            Self::Sending(_) => {
                let mut copy = Loading::begin(self.header())?;
                let Ok(()) = self.write_range(0..self.body_len(), |piece| {
                    // Without memory, it ends here.
                    drop(copy.append(copy.loaded(), piece));
                    Ok::<(), std::convert::Infallible>(())
                });
                Self::Loading(copy)
            }
        })
    }

    /// The header of its bytes.
    #[must_use]
    pub fn header(&self) -> Header {
        match self {
            Self::Native(filter) => Header::Native(filter.header()),
            Self::Expiring(filter) => Header::Expiring(filter.header(), filter.expired()),
            Self::Compat(filter) => filter.header(),
            Self::Loading(chunks) => chunks.header(),
            Self::Sending(chunks) => Header::Native(chunks.filter.header()),
        }
    }

    /// The length of its body. Less than the header says while chunks are missing.
    #[must_use]
    pub fn body_len(&self) -> usize {
        match self {
            Self::Native(filter) => filter.image().size_in_bytes(),
            Self::Expiring(filter) => filter.image().size_in_bytes(),
            Self::Compat(filter) => filter.body().len(),
            Self::Loading(chunks) => chunks.body().len(),
            Self::Sending(chunks) => chunks.sent,
        }
    }

    /// The end of the part of the body that has this offset: a table of RedisBloom's layout, or
    /// all of it.
    #[must_use]
    pub fn part_end(&self, offset: usize) -> usize {
        if let Self::Compat(filter) = self { filter.table_end(offset) } else { self.body_len() }
    }

    /// Passes this range of the body to `sink`, piece by piece and in order. O(bytes of the range),
    /// and O(bytes of the body) for the first bytes, which hold a checksum.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn write_range<E>(
        &self,
        range: Range<usize>,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut part = |body: &[u8]| sink(body.get(range.clone()).unwrap_or_default());
        match self {
            Self::Native(filter) => filter.image().write_range(range, sink),
            Self::Expiring(filter) => filter.image().write_range(range, sink),
            Self::Compat(filter) => part(filter.body()),
            Self::Loading(chunks) => part(chunks.body()),
            Self::Sending(Sending { filter, sent }) => {
                filter.image().write_range(range.start.min(*sent)..range.end.min(*sent), sink)
            }
        }
    }

    /// Passes the body to `sink` in chunks of `size` bytes; the last one may be shorter. The chunks
    /// depend only on the body, not on the pieces in which [`write_range`](Self::write_range) has
    /// it.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn chunks<E>(
        &self,
        size: usize,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut chunk = Vec::with_capacity(size.min(self.body_len()));
        self.write_range(0..self.body_len(), |mut piece| {
            while !piece.is_empty() {
                let (taken, rest) = piece.split_at(piece.len().min(size - chunk.len()));
                chunk.extend_from_slice(taken);
                piece = rest;
                if chunk.len() == size {
                    sink(&chunk)?;
                    chunk.clear();
                }
            }
            Ok(())
        })?;
        if chunk.is_empty() { Ok(()) } else { sink(&chunk) }
    }
}

impl From<Native> for Filter {
    fn from(filter: Native) -> Self {
        Self::Native(Box::new(filter))
    }
}

impl From<Expiring> for Filter {
    fn from(filter: Expiring) -> Self {
        Self::Expiring(Box::new(filter))
    }
}

/// Copies `bytes`.
///
/// # Errors
/// [`Error::NoMemory`].
fn try_copy(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| Error::NoMemory)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}
