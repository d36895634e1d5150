//! What is known of a whole table: counts, the first and the last key, and where its parts are.
//!
//! 13 numbers of 64 bits in the order of [`Properties::numbers`], the first and the last key, and
//! the range deletions (`range_deletions.rs`).

use std::sync::Arc;

use super::frame::{HASHES, Handle};
use super::index::MAX_HEIGHT;
use crate::Error;
use crate::kernel::bytes::{u64_at, usize_of};
use crate::kernel::manifest::RunEntry;
use crate::kernel::memory;
use crate::lsm::entry::Entry;
use crate::lsm::range_deletions::RangeDeletions;

const NUMBERS: usize = 13;

/// What is known of a table without reading its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::lsm) struct TableInfo {
    pub(in crate::lsm) number: u64,
    /// Bytes of the file.
    pub(in crate::lsm) bytes: u64,
    /// Versions of keys, deleted ones included.
    pub(in crate::lsm) entries: u64,
    /// Distinct keys.
    pub(in crate::lsm) keys: u64,
    /// Entries without a value.
    pub(in crate::lsm) tombstones: u64,
    /// Bytes of all keys and values.
    pub(in crate::lsm) entry_bytes: u64,
    /// The least sequence number, also of range deletions; 0 if there is none.
    pub(in crate::lsm) first_sequence: u64,
    /// The greatest sequence number, also of range deletions; 0 if there is none.
    pub(in crate::lsm) last_sequence: u64,
    /// Empty if there are no entries.
    pub(in crate::lsm) first_key: Vec<u8>,
    /// Empty if there are no entries.
    pub(in crate::lsm) last_key: Vec<u8>,
    pub(in crate::lsm) range_deletions: Arc<RangeDeletions>,
}

impl TableInfo {
    /// Counts the next entry, but not its key.
    pub(super) fn count(&mut self, entry: &Entry<'_>) -> Result<(), Error> {
        if self.entries == 0 {
            self.first_key = memory::copy_of(entry.key)?;
            self.first_sequence = entry.sequence;
        }
        self.entries += 1;
        self.tombstones += u64::from(entry.value.is_none());
        self.entry_bytes += (entry.key.len() + entry.value.map_or(0, <[u8]>::len)) as u64;
        self.first_sequence = self.first_sequence.min(entry.sequence);
        self.last_sequence = self.last_sequence.max(entry.sequence);
        Ok(())
    }

    /// Adds range deletions, after all entries.
    pub(super) fn add_range_deletions(&mut self, deletions: Arc<RangeDeletions>) {
        if let Some((first, last)) = deletions.sequences() {
            let is_empty = self.entries == 0;
            self.first_sequence = if is_empty { first } else { first.min(self.first_sequence) };
            self.last_sequence = last.max(self.last_sequence);
        }
        self.range_deletions = deletions;
    }

    /// Returns the record of the table in a manifest.
    pub(in crate::lsm) fn run_entry(&self) -> RunEntry {
        let Self { number, bytes, entries, first_sequence, last_sequence, .. } = *self;
        RunEntry { number, bytes, entries, first_sequence, last_sequence }
    }
}

/// Everything in the block of properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Properties {
    /// The root of the index.
    pub(super) root: Handle,
    /// Index blocks from the root to a block of data.
    pub(super) height: u64,
    /// The list of the frames of hashes.
    pub(super) list: Handle,
    /// Without the number and the size of the file, which are not stored.
    pub(super) info: TableInfo,
}

impl Properties {
    fn numbers(&self) -> [u64; NUMBERS] {
        let info = &self.info;
        [
            self.root.offset,
            self.root.stored,
            self.height,
            self.list.offset,
            self.list.stored,
            info.entries,
            info.keys,
            info.tombstones,
            info.entry_bytes,
            info.first_sequence,
            info.last_sequence,
            info.first_key.len() as u64,
            info.last_key.len() as u64,
        ]
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, Error> {
        let keys = [&self.info.first_key[..], &self.info.last_key[..]];
        let mut bytes = Vec::new();
        memory::reserve(&mut bytes, 8 * NUMBERS + keys[0].len() + keys[1].len())?;
        for number in self.numbers() {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        keys.iter().for_each(|key| bytes.extend_from_slice(key));
        self.info.range_deletions.encode(&mut bytes)?;
        Ok(bytes)
    }

    /// Decodes the block of properties. Returns `None` if no table has these.
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<Self>, Error> {
        let number = |index: usize| u64_at(bytes, 8 * index);
        let Some([first_key, last_key, deletions]) = parts_of(bytes, number(11), number(12)) else {
            return Ok(None);
        };
        let Some(range_deletions) = RangeDeletions::decode(deletions)? else { return Ok(None) };
        let properties = Self {
            root: Handle { offset: number(0), stored: number(1) },
            height: number(2),
            list: Handle { offset: number(3), stored: number(4) },
            info: TableInfo {
                number: 0,
                bytes: 0,
                entries: number(5),
                keys: number(6),
                tombstones: number(7),
                entry_bytes: number(8),
                first_sequence: number(9),
                last_sequence: number(10),
                first_key: memory::copy_of(first_key)?,
                last_key: memory::copy_of(last_key)?,
                range_deletions: Arc::new(range_deletions),
            },
        };
        Ok(properties.is_possible().then_some(properties))
    }

    fn is_possible(&self) -> bool {
        let info = &self.info;
        (1..=MAX_HEIGHT).contains(&self.height)
            && info.keys <= info.entries
            && info.tombstones <= info.entries
            && info.first_sequence <= info.last_sequence
            && info.range_deletions.sequences().is_none_or(|(first, last)| {
                info.first_sequence <= first && last <= info.last_sequence
            })
            && info.first_key <= info.last_key
            && self.list.stored == 8 * info.keys.div_ceil(HASHES)
    }
}

/// Returns what is behind the numbers: two keys of these lengths, and the rest.
fn parts_of(bytes: &[u8], first: u64, last: u64) -> Option<[&[u8]; 3]> {
    let (first_key, rest) = bytes.get(8 * NUMBERS..)?.split_at_checked(usize_of(first))?;
    let (last_key, rest) = rest.split_at_checked(usize_of(last))?;
    Some([first_key, last_key, rest])
}
