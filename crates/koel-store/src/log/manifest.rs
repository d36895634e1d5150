//! The manifest: which segments are live, in log order, and how long each is. It is replaced as a
//! whole, in one step.
//!
//! ```text
//! 0       8         12      16     24     32       40     48       56     64      72
//! +-------+---------+-------+------+------+---------+------+--------+------+-------+----+-------+
//! | magic | version | clean | salt | seed | segment | next | next   | keys | count | .. | check |
//! |       |         |       |      |      | bytes   | seq. | number |      |       |    | sum   |
//! +-------+---------+-------+------+------+---------+------+--------+------+-------+----+-------+
//! each segment: number, end, cleaned
//! ```
//!
//! A new manifest is written under another name, synced and renamed, and then the folder is synced.
//! So a crash leaves the old one or the new one. A manifest is accepted or refused as a whole.
//!
//! *end* is exact for every segment, except the last one of a store that was not closed (`clean` =
//! 0). There it is how far the segment was durable, so unsound bytes before it are damage.

use xxhash_rust::xxh3::xxh3_64;

use crate::Error;
use crate::kernel::access::{self, read_whole};
use crate::kernel::bytes::{u32_at, u64_at};
use crate::kernel::file_names::MANIFEST;
use crate::kernel::files::Folder;
use crate::kernel::kind::{LOG_MAGIC as MAGIC, StoreKind};
use crate::kernel::memory;
use crate::kernel::poison::Poison;
use crate::kernel::record::{ALIGNMENT, SEQUENCE_LIMIT};
use crate::kernel::replace::replace_manifest;
use crate::kernel::segment::SIZES;

const VERSION: u32 = 1;
const HEADER: usize = 72;
const ENTRY: usize = 24;

/// Maximum number of segments in a store.
pub(super) const MAX_SEGMENTS: u64 = 1 << 22;
/// Bytes of the longest manifest.
const MAX_BYTES: u64 = HEADER as u64 + MAX_SEGMENTS * ENTRY as u64 + 8;

/// The contents of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The store was closed: every end is exact, and nothing has been written since.
    pub(super) clean: bool,
    /// Part of every checksum in a segment.
    pub(super) salt: u64,
    /// The seed of the hash of keys.
    pub(super) seed: u64,
    /// Bytes of a segment, unless it holds a single, longer record.
    pub(super) segment_bytes: u64,
    /// Greater than every sequence number in a segment whose end is exact.
    pub(super) sequence: u64,
    /// Greater than the number of every segment.
    pub(super) number: u64,
    /// The number of keys when the manifest was written: a hint for sizing the index.
    pub(super) keys: u64,
    /// In log order.
    pub(super) segments: Vec<Entry>,
}

/// A live segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) end: u64,
    pub(super) cleaned: u64,
}

impl Entry {
    fn decode(bytes: &[u8]) -> Self {
        let [number, end, cleaned] = [0, 8, 16].map(|at| u64_at(bytes, at));
        Self { number, end, cleaned }
    }
}

impl Manifest {
    /// Returns whether the end of the segment at this place in the log is exact: that of every
    /// segment except the one being written.
    pub(super) fn has_exact_end(&self, place: usize) -> bool {
        self.clean || place + 1 < self.segments.len()
    }

    pub(super) fn names(&self, number: u64) -> bool {
        self.segments.iter().any(|entry| entry.number == number)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.segments.len() * ENTRY + 8);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&u32::from(self.clean).to_le_bytes());
        let count = self.segments.len() as u64;
        let of_log = [self.segment_bytes, self.sequence, self.number, self.keys, count];
        let header = [self.salt, self.seed].into_iter().chain(of_log);
        let entry = |entry: &Entry| [entry.number, entry.end, entry.cleaned];
        let numbers = header.chain(self.segments.iter().flat_map(entry));
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        let checksum = xxh3_64(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |what| Err(Error::damaged(MANIFEST, 0, what));
        let Some(content) = bytes.len().checked_sub(8).filter(|&content| content >= HEADER) else {
            return damaged("it is too short");
        };
        if !has_magic(bytes) {
            return match StoreKind::of_bytes(bytes) {
                Some(found) => Err(Error::WrongKind { found }),
                None => damaged("it does not start like a manifest"),
            };
        }
        if u64_at(bytes, content) != xxh3_64(&bytes[..content]) {
            return damaged("its checksum does not match");
        }
        let version = u32_at(bytes, 8);
        if version > VERSION {
            return Err(Error::Newer { file: MANIFEST.to_owned(), version });
        }
        let [salt, seed, segment_bytes, sequence, number, keys, count] =
            [16, 24, 32, 40, 48, 56, 64].map(|at| u64_at(bytes, at));
        let entries = bytes[HEADER..content].chunks_exact(ENTRY);
        if !entries.remainder().is_empty() || entries.len() as u64 != count {
            return damaged("its length does not match its number of segments");
        }
        let mut segments = Vec::new();
        memory::reserve(&mut segments, entries.len())?;
        segments.extend(entries.map(Entry::decode));
        if version == 0
            || !(1..SEQUENCE_LIMIT).contains(&sequence)
            || !SIZES.contains(&segment_bytes)
            || !segment_bytes.is_multiple_of(ALIGNMENT)
            || !are_valid(&segments, number)?
        {
            return damaged("its fields are out of range");
        }
        let clean = u32_at(bytes, 12) == 1;
        Ok(Self { clean, salt, seed, segment_bytes, sequence, number, keys, segments })
    }

    /// Reads the manifest of a folder. Returns `None` if there is none.
    pub(super) fn load(folder: &dyn Folder) -> Result<Option<Self>, Error> {
        let Some(file) = access::open(folder, MANIFEST)? else { return Ok(None) };
        let bytes = read_whole(&*file, MAX_BYTES, has_magic);
        let bytes = bytes.map_err(Error::io("read", MANIFEST))?;
        let Some(bytes) = bytes else {
            StoreKind::Log.expect(folder)?;
            let what = "it is too long, or does not start like a manifest";
            return Err(Error::damaged(MANIFEST, 0, what));
        };
        Self::decode(&bytes).map(Some)
    }

    /// Makes this the manifest of the folder, as [`replace_manifest`] does.
    pub(super) fn store(&self, folder: &dyn Folder, poison: &Poison) -> Result<(), Error> {
        replace_manifest(folder, &self.encode(), poison)
    }
}

/// Returns whether `bytes` start like a manifest, as far as they go.
fn has_magic(bytes: &[u8]) -> bool {
    bytes.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic)
}

/// Returns whether all segments have different numbers below `next_number`, and none is too long.
fn are_valid(segments: &[Entry], next_number: u64) -> Result<bool, Error> {
    let mut numbers = Vec::new();
    memory::reserve(&mut numbers, segments.len())?;
    numbers.extend(segments.iter().map(|entry| entry.number));
    numbers.sort_unstable();
    let are_different = numbers.windows(2).all(|pair| pair[0] != pair[1]);
    let is_valid = |entry: &Entry| entry.number < next_number && entry.end <= *SIZES.end();
    Ok(are_different && segments.iter().all(is_valid))
}

#[cfg(test)]
mod tests;
