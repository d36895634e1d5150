//! The manifest of an ordered store: its runs, and the files of its log. It is replaced as a whole,
//! in one step (`kernel/replace.rs`).
//!
//! ```text
//! 0       8         12  16     24         32
//! +-------+---------+---+------+----------+--------+--------+----
//! | magic | version | 0 | salt | checksum | record | record | ..
//! +-------+---------+---+------+----------+--------+--------+----
//! ```
//!
//! The records are those of a log (`kernel/record.rs`): one batch, with sequence numbers from 1, at
//! positions in a file of number 0. Their keys say what they are, and their values are numbers of 8
//! bytes:
//!
//! | key | value |
//! |---|---|
//! | `store` | clean (0 or 1), seed, next sequence number, next file number |
//! | `log` | number, end; oldest first |
//! | `run` | number, bytes, entries, first and last sequence number; youngest first |
//!
//! *end* is exact, but for the last file of the log of a store that was not closed: there it is how
//! far the file was durable. A manifest is accepted or refused as a whole.

use xxhash_rust::xxh3::xxh3_64;

use super::table::TableInfo;
use crate::Error;
use crate::kernel::access::{self, read_whole};
use crate::kernel::bytes::{u32_at, u64_at, usize_of};
use crate::kernel::file_names::MANIFEST;
use crate::kernel::files::Folder;
use crate::kernel::kind::{LSM_MAGIC, StoreKind};
use crate::kernel::memory;
use crate::kernel::poison::Poison;
use crate::kernel::record::{self, HEADER, Header, Position, SEQUENCE_LIMIT};
use crate::kernel::replace::replace_manifest;
use crate::kernel::segment::SIZES;

const VERSION: u32 = 1;
const START: usize = 32;
/// Bytes of the longest manifest: room for 100,000 runs.
const MAX_BYTES: u64 = 8 << 20;
/// File numbers stay below this.
const NUMBER_LIMIT: u64 = 1 << 63;

/// The contents of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The store was closed: every end is exact, and nothing has been written since.
    pub(super) clean: bool,
    /// Part of every checksum in the files of the store.
    pub(super) salt: u64,
    /// The seed of the hash of keys.
    pub(super) seed: u64,
    /// Greater than every sequence number in a run, and in a file of the log whose end is exact.
    pub(super) sequence: u64,
    /// Greater than the number of every file.
    pub(super) number: u64,
    /// Oldest first.
    pub(super) logs: Vec<LogEntry>,
    /// Youngest first.
    pub(super) runs: Vec<RunEntry>,
}

/// A file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogEntry {
    pub(super) number: u64,
    pub(super) end: u64,
}

/// A run, and what tells its file from any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunEntry {
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) first_sequence: u64,
    pub(super) last_sequence: u64,
}

impl RunEntry {
    pub(super) fn new(info: &TableInfo) -> Self {
        Self {
            number: info.number,
            bytes: info.bytes,
            entries: info.entries,
            first_sequence: info.first_sequence,
            last_sequence: info.last_sequence,
        }
    }

    fn words(&self) -> [u64; 5] {
        let (first, last) = (self.first_sequence, self.last_sequence);
        [self.number, self.bytes, self.entries, first, last]
    }

    fn decode(words: &[u64]) -> Option<Self> {
        let &[number, bytes, entries, first_sequence, last_sequence] = words else {
            return None;
        };
        Some(Self { number, bytes, entries, first_sequence, last_sequence })
    }
}

impl Manifest {
    /// Returns whether the end of the file at this place in the log is exact.
    pub(super) fn has_exact_end(&self, place: usize) -> bool {
        self.clean || place + 1 < self.logs.len()
    }

    /// Returns whether the manifest names the file of the log or the run with this number.
    pub(super) fn names(&self, number: u64) -> bool {
        self.logs.iter().any(|log| log.number == number)
            || self.runs.iter().any(|run| run.number == number)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = LSM_MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.salt.to_le_bytes());
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        let of_store = [u64::from(self.clean), self.seed, self.sequence, self.number];
        let logs = self.logs.iter().map(|log| ("log", vec![log.number, log.end]));
        let runs = self.runs.iter().map(|run| ("run", run.words().to_vec()));
        let records = [("store", of_store.to_vec())].into_iter().chain(logs).chain(runs);
        let count = 1 + self.logs.len() + self.runs.len();
        for ((key, words), sequence) in records.zip(1..) {
            let more = sequence < count as u64;
            append(&mut bytes, self.salt, key, &words, sequence, more);
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |what| Error::damaged(MANIFEST, 0, what);
        match StoreKind::of_bytes(bytes) {
            Some(StoreKind::Lsm) => {}
            Some(found) => return Err(Error::WrongKind { found }),
            None => return Err(damaged("it does not start like a manifest")),
        }
        if bytes.len() < START || u64_at(bytes, 24) != xxh3_64(&bytes[..24]) {
            return Err(damaged("the checksum of its header does not match"));
        }
        let version = u32_at(bytes, 8);
        if version > VERSION {
            return Err(Error::Newer { file: MANIFEST.to_owned(), version });
        }
        let mut manifest = Self { salt: u64_at(bytes, 16), ..Self::default() };
        let mut at = START;
        for sequence in 1.. {
            let record = read_record(&bytes[at..], manifest.salt, at, sequence);
            let (header, words) = record.ok_or_else(|| {
                Error::damaged(MANIFEST, at as u64, "a record of it is not sound")
            })?;
            let key = header.key(&bytes[at..]);
            if !manifest.take(sequence, key, &words)? {
                return Err(Error::damaged(MANIFEST, at as u64, "a record of it is out of place"));
            }
            at += usize_of(header.size());
            if !header.more {
                break;
            }
        }
        if at != bytes.len() {
            return Err(Error::damaged(
                MANIFEST,
                at as u64,
                "there are bytes after its last record",
            ));
        }
        if version == 0 || u32_at(bytes, 12) != 0 || !manifest.is_valid()? {
            return Err(damaged("its fields are out of range"));
        }
        Ok(manifest)
    }

    /// Adds what a record says. Returns false if it does not belong there.
    fn take(&mut self, sequence: u64, key: &[u8], words: &[u64]) -> Result<bool, Error> {
        match (sequence, key, words) {
            (1, b"store", &[clean @ (0 | 1), seed, next_sequence, number]) => {
                (self.clean, self.seed) = (clean == 1, seed);
                (self.sequence, self.number) = (next_sequence, number);
            }
            (2.., b"log", &[number, end]) if self.runs.is_empty() => {
                memory::push(&mut self.logs, LogEntry { number, end })?;
            }
            (2.., b"run", words) => match RunEntry::decode(words) {
                Some(run) => memory::push(&mut self.runs, run)?,
                None => return Ok(false),
            },
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
        let logs = &self.logs;
        let are_logs_in_order = logs.windows(2).all(|pair| pair[0].number < pair[1].number);
        let ends = logs.iter().all(|log| log.end <= *SIZES.end());
        let are_runs_in_order =
            self.runs.windows(2).all(|pair| pair[0].first_sequence > pair[1].last_sequence);
        let sequences = self.runs.iter().all(|run| {
            run.first_sequence <= run.last_sequence && run.last_sequence < self.sequence
        });
        Ok(are_different
            && in_range
            && are_logs_in_order
            && ends
            && are_runs_in_order
            && sequences
            && (1..SEQUENCE_LIMIT).contains(&self.sequence)
            && self.number < NUMBER_LIMIT)
    }

    /// Reads the manifest of a folder. Returns `None` if there is none.
    pub(super) fn load(folder: &dyn Folder) -> Result<Option<Self>, Error> {
        let Some(file) = access::open(folder, MANIFEST)? else { return Ok(None) };
        let bytes = read_whole(&*file, MAX_BYTES, |_| true);
        let bytes = bytes.map_err(Error::io("read", MANIFEST))?;
        let too_long = || Error::damaged(MANIFEST, 0, "it is too long");
        Self::decode(&bytes.ok_or_else(too_long)?).map(Some)
    }

    /// Makes this the manifest of the folder, as [`replace_manifest`] does.
    pub(super) fn store(&self, folder: &dyn Folder, poison: &Poison) -> Result<(), Error> {
        replace_manifest(folder, &self.encode(), poison)
    }
}

/// Appends a sealed record.
fn append(bytes: &mut Vec<u8>, salt: u64, key: &str, words: &[u64], sequence: u64, more: bool) {
    let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let header = Header::of_value(key.len() as u64, value.len() as u64);
    let header = Header { sequence, more, ..header };
    let start = bytes.len();
    record::append(bytes, &header, key.as_bytes(), &value);
    let position = Position { salt, segment: 0, offset: start as u64 };
    record::seal(&mut bytes[start..], &header, &position);
}

/// Reads the record at the start of `bytes`, which is at offset `at` of the file. Returns `None` if
/// it is not sound.
fn read_record(bytes: &[u8], salt: u64, at: usize, sequence: u64) -> Option<(Header, Vec<u64>)> {
    let header = Header::read(bytes.get(..HEADER.max(bytes.len()))?)?;
    let body = bytes.get(..usize_of(header.body()))?;
    let position = Position { salt, segment: 0, offset: at as u64 };
    let is_here = header.sequence == sequence
        && header.size() == header.body()
        && header.kind == record::Kind::Value
        && record::is_sound(body, &position);
    if !is_here {
        return None;
    }
    let words = header.value(body).chunks_exact(8);
    let is_whole = words.remainder().is_empty() && words.len() <= 8;
    is_whole.then(|| (header, words.map(|word| u64_at(word, 0)).collect()))
}

#[cfg(test)]
mod tests;
