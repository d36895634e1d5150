//! The manifest of a store: its kind, the files of its log, and the runs of an ordered store. It is
//! replaced as a whole, in one step.
//!
//! ```text
//! 0       8         12  16     24         32
//! +-------+---------+---+------+----------+--------+--------+----
//! | magic | version | 0 | salt | checksum | record | record | ..
//! +-------+---------+---+------+----------+--------+--------+----
//! ```
//!
//! The records are those of a log (`record.rs`): one batch, with sequence numbers from 1, at
//! positions in a file of number 0. Their keys say what they are, and their values are numbers of 8
//! bytes:
//!
//! | key | value |
//! |---|---|
//! | `store` | clean (0 or 1), seed, next sequence number, next file number, segment bytes, keys |
//! | `log` | number, end, cleaned; in log order |
//! | `run` | number, bytes, entries, first and last sequence number; youngest first |
//!
//! *end* is exact, but for the last file of the log of a store that was not closed: there it is how
//! far the file was durable, so unsound bytes before it are damage. A manifest is accepted or
//! refused as a whole.
//!
//! A new one is written under another name, synced and renamed, and then the folder is synced. So a
//! crash leaves the old one or the new one.

use std::io::{self, ErrorKind};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::access::{self, read_up_to, read_whole, write_all};
use super::bytes::{u32_at, u64_at, usize_of};
use super::disk::DiskFolder;
use super::files::Folder;
use super::memory;
use super::poison::Poison;
use super::record::{self, ALIGNMENT, HEADER, Header, Position, SEQUENCE_LIMIT};
use super::segment::SIZES;
use super::store_files::{MANIFEST, NEW_MANIFEST, StoreKind};
use crate::Error;
use crate::error::FOLDER;

const VERSION: u32 = 1;
const START: usize = 32;
/// Bytes of the longest manifest: room for 4 million files.
const MAX_BYTES: u64 = 256 << 20;
/// File numbers stay below this.
const NUMBER_LIMIT: u64 = 1 << 63;

/// The contents of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) kind: StoreKind,
    /// The store was closed: every end is exact, and nothing has been written since.
    pub(crate) clean: bool,
    /// Part of every checksum in the files of the store.
    pub(crate) salt: u64,
    /// The seed of the hash of keys.
    pub(crate) seed: u64,
    /// Greater than every sequence number in a run, and in a file of the log whose end is exact.
    pub(crate) sequence: u64,
    /// Greater than the number of every file.
    pub(crate) number: u64,
    /// Bytes of a segment of a log store, unless it holds a single, longer record.
    pub(crate) segment_bytes: u64,
    /// The number of keys of a log store when the manifest was written: a hint for sizing the
    /// index.
    pub(crate) keys: u64,
    /// In log order.
    pub(crate) logs: Vec<LogEntry>,
    /// Youngest first; none in a log store.
    pub(crate) runs: Vec<RunEntry>,
}

/// A file of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) number: u64,
    pub(crate) end: u64,
    /// In a log store: see [`Segment::cleaned`](super::segment::Segment).
    pub(crate) cleaned: u64,
}

/// A run, and what tells its file from any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunEntry {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
}

impl StoreKind {
    /// Returns the kind of the store in the folder at `path`, or `None` if there is none. Reads 8
    /// bytes and takes no lock.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// use koel_store::{LsmStore, StoreKind};
    ///
    /// assert_eq!(StoreKind::of(folder.path())?, None);
    /// LsmStore::open(folder.path())?.close()?;
    /// assert_eq!(StoreKind::of(folder.path())?, Some(StoreKind::Lsm));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`] if MANIFEST starts like that of no store, and I/O errors.
    pub fn of(path: impl AsRef<Path>) -> Result<Option<Self>, Error> {
        let path = path.as_ref();
        match DiskFolder::read_only(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::no_folder(error).at(path)),
            Ok(folder) => Self::of_folder(&folder).map_err(|error| error.at(path)),
        }
    }

    /// Returns the kind of the store in a [`Folder`], as [`of`](Self::of) does.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_folder(folder: &dyn Folder) -> Result<Option<Self>, Error> {
        let Some(file) = access::open(folder, MANIFEST)? else { return Ok(None) };
        let mut magic = [0; 8];
        let read = read_up_to(&*file, &mut magic, 0).map_err(Error::io("read", MANIFEST))?;
        Self::of_bytes(&magic[..read]).map(Some)
    }

    /// Returns the kind of the store whose manifest starts with these bytes.
    fn of_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let kind = [Self::Log, Self::Lsm].into_iter().find(|kind| bytes.starts_with(kind.magic()));
        kind.ok_or_else(|| Error::damaged(MANIFEST, 0, "it does not start like a manifest"))
    }

    /// Returns the first bytes of its manifest.
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"koelman\n",
            Self::Lsm => b"koellsm\n",
        }
    }
}

impl Manifest {
    /// Returns the manifest of a new store.
    pub(crate) fn new(kind: StoreKind, salt: u64, seed: u64, segment_bytes: u64) -> Self {
        let (clean, sequence, number, keys) = (true, 1, 1, 0);
        let (logs, runs) = (Vec::new(), Vec::new());
        Self { kind, clean, salt, seed, sequence, number, segment_bytes, keys, logs, runs }
    }

    /// Returns whether the end of the file at this place in the log is exact.
    pub(crate) fn has_exact_end(&self, place: usize) -> bool {
        self.clean || place + 1 < self.logs.len()
    }

    /// Returns whether the manifest names the file of the log or the run with this number.
    pub(crate) fn names(&self, number: u64) -> bool {
        self.logs.iter().any(|log| log.number == number)
            || self.runs.iter().any(|run| run.number == number)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.kind.magic().to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.salt.to_le_bytes());
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        let mut left = 1 + self.logs.len() + self.runs.len();
        let mut sequence = 0;
        let mut append = |key: &str, numbers: &[u64]| {
            (left, sequence) = (left - 1, sequence + 1);
            let value: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let header = Header::of_value(key.len() as u64, value.len() as u64);
            let header = Header { sequence, more: left > 0, ..header };
            let start = bytes.len();
            record::append(&mut bytes, &header, key.as_bytes(), &value);
            record::seal(&mut bytes[start..], &header, &self.position(start));
        };
        let Self { seed, sequence, number, segment_bytes, keys, .. } = *self;
        append("store", &[u64::from(self.clean), seed, sequence, number, segment_bytes, keys]);
        for &LogEntry { number, end, cleaned } in &self.logs {
            append("log", &[number, end, cleaned]);
        }
        for &RunEntry { number, bytes, entries, first_sequence, last_sequence } in &self.runs {
            append("run", &[number, bytes, entries, first_sequence, last_sequence]);
        }
        bytes
    }

    /// Returns the position of the record at an offset of the manifest.
    fn position(&self, offset: usize) -> Position {
        Position { salt: self.salt, segment: 0, offset: offset as u64 }
    }

    fn decode(kind: StoreKind, bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |at: usize, what| Error::damaged(MANIFEST, at as u64, what);
        let found = StoreKind::of_bytes(bytes)?;
        if found != kind {
            return Err(Error::WrongKind { found });
        }
        if bytes.len() < START || u64_at(bytes, 24) != xxh3_64(&bytes[..24]) {
            return Err(damaged(0, "the checksum of its header does not match"));
        }
        let version = u32_at(bytes, 8);
        if version > VERSION {
            return Err(Error::Newer { file: MANIFEST.to_owned(), version });
        }
        let mut manifest = Self::new(kind, u64_at(bytes, 16), 0, 0);
        let (mut at, mut more) = (START, true);
        for sequence in 1.. {
            if !more {
                break;
            }
            let header = manifest.header_at(&bytes[at..], at, sequence);
            let header = header.ok_or_else(|| damaged(at, "a record of it is not sound"))?;
            if !manifest.take(sequence, &header, &bytes[at..])? {
                return Err(damaged(at, "a record of it is out of place"));
            }
            at += usize_of(header.size());
            more = header.more;
        }
        if at != bytes.len() {
            return Err(damaged(at, "there are bytes after its last record"));
        }
        if version == 0 || u32_at(bytes, 12) != 0 || !manifest.is_valid()? {
            return Err(damaged(0, "its fields are out of range"));
        }
        Ok(manifest)
    }

    /// Returns the header of the record at the start of `bytes`, which is at offset `at` of the
    /// file, if it is sound.
    fn header_at(&self, bytes: &[u8], at: usize, sequence: u64) -> Option<Header> {
        let header = Header::read(bytes.get(..HEADER.max(bytes.len()))?)?;
        let body = bytes.get(..usize_of(header.body()))?;
        let is_here = header.sequence == sequence
            && header.kind == record::Kind::Value
            && record::is_sound(body, &self.position(at));
        is_here.then_some(header)
    }

    /// Adds what a record says. Returns false if it does not belong there.
    fn take(&mut self, sequence: u64, header: &Header, record: &[u8]) -> Result<bool, Error> {
        let (words, rest) = header.value(record).as_chunks::<8>();
        if words.len() > 8 || !rest.is_empty() {
            return Ok(false);
        }
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        match (sequence, header.key(record), &words[..]) {
            (1, b"store", &[clean @ (0 | 1), seed, next, number, segment_bytes, keys]) => {
                (self.clean, self.seed, self.sequence, self.number) =
                    (clean == 1, seed, next, number);
                (self.segment_bytes, self.keys) = (segment_bytes, keys);
            }
            (2.., b"log", &[number, end, cleaned]) if self.runs.is_empty() => {
                memory::push(&mut self.logs, LogEntry { number, end, cleaned })?;
            }
            (2.., b"run", &[number, bytes, entries, first_sequence, last_sequence]) => {
                let run = RunEntry { number, bytes, entries, first_sequence, last_sequence };
                memory::push(&mut self.runs, run)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns whether numbers and sequence numbers fit together.
    fn is_valid(&self) -> Result<bool, Error> {
        let mut numbers = Vec::new();
        memory::reserve(&mut numbers, self.logs.len() + self.runs.len())?;
        numbers.extend(self.runs.iter().map(|run| run.number));
        numbers.extend(self.logs.iter().map(|log| log.number));
        numbers.sort_unstable();
        let are_different = numbers.windows(2).all(|pair| pair[0] != pair[1]);
        let in_range = numbers.iter().all(|&number| (1..self.number).contains(&number));
        let ends = self.logs.iter().all(|log| log.end <= *SIZES.end());
        let fits_kind = match self.kind {
            StoreKind::Log => {
                SIZES.contains(&self.segment_bytes)
                    && self.segment_bytes.is_multiple_of(ALIGNMENT)
                    && self.runs.is_empty()
            }
            StoreKind::Lsm => self.logs.windows(2).all(|pair| pair[0].number < pair[1].number),
        };
        let are_runs_in_order =
            self.runs.windows(2).all(|pair| pair[0].first_sequence > pair[1].last_sequence);
        let sequences = self.runs.iter().all(|run| {
            run.first_sequence <= run.last_sequence && run.last_sequence < self.sequence
        });
        Ok(are_different
            && in_range
            && ends
            && fits_kind
            && are_runs_in_order
            && sequences
            && (1..SEQUENCE_LIMIT).contains(&self.sequence)
            && self.number < NUMBER_LIMIT)
    }

    /// Reads the manifest of a store of this kind. Returns `None` if there is none.
    pub(crate) fn load(kind: StoreKind, folder: &dyn Folder) -> Result<Option<Self>, Error> {
        let Some(file) = access::open(folder, MANIFEST)? else { return Ok(None) };
        let bytes = read_whole(&*file, MAX_BYTES, |bytes| StoreKind::of_bytes(bytes).is_ok());
        let bytes = bytes.map_err(Error::io("read", MANIFEST))?;
        let what = "it is too long, or does not start like a manifest";
        Self::decode(kind, &bytes.ok_or_else(|| Error::damaged(MANIFEST, 0, what))?).map(Some)
    }

    /// Reads the manifest, which must be there.
    pub(crate) fn load_existing(kind: StoreKind, folder: &dyn Folder) -> Result<Self, Error> {
        let missing = || Error::damaged(MANIFEST, 0, "the file is missing");
        Self::load(kind, folder)?.ok_or_else(missing)
    }

    /// Makes this the manifest of the folder, durably. No other file is left after an error. Unless
    /// that poisons, the manifest is the one that it was; otherwise it may be either.
    pub(crate) fn store(&self, folder: &dyn Folder, poison: &Poison) -> Result<(), Error> {
        match folder.remove(NEW_MANIFEST) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("remove", NEW_MANIFEST)(error));
            }
            _ => {}
        }
        let renamed = self.write_new(folder).and_then(|()| {
            let renamed = folder.rename(NEW_MANIFEST, MANIFEST);
            renamed.map_err(Error::io("rename", NEW_MANIFEST)).map_err(|error| poison.set(error))
        });
        if renamed.is_err() {
            drop(folder.remove(NEW_MANIFEST));
        }
        renamed?;
        folder.sync().map_err(Error::io("sync", FOLDER)).map_err(|error| poison.set(error))
    }

    fn write_new(&self, folder: &dyn Folder) -> Result<(), Error> {
        let file = folder.create(NEW_MANIFEST).map_err(Error::io("create", NEW_MANIFEST))?;
        write_all(&*file, &self.encode(), 0).map_err(Error::io("write", NEW_MANIFEST))?;
        file.sync().map_err(Error::io("sync", NEW_MANIFEST))
    }
}

#[cfg(test)]
mod tests;
