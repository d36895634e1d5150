//! The log: entries that are in no table yet. One file for each memtable, in the format of a log
//! segment (`kernel/segment.rs`).

use std::cell::Cell;
use std::sync::Arc;

use super::memtable::{Memtable, NewEntry};
use crate::Error;
use crate::kernel::batch::{Batch, Unsealed};
use crate::kernel::manifest::Manifest;
use crate::kernel::record::{Header, Kind, SEQUENCE_LIMIT};
use crate::kernel::scan::Record;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::{memory, recovery};

/// Bytes of the longest key.
pub(super) const MAX_KEY: u64 = 64 << 10;
/// Bytes of the longest value.
pub(super) const MAX_VALUE: u64 = 256 << 20;
/// Bytes of the largest batch: with it, a file is not longer than any segment.
pub(super) const MAX_BATCH: u64 = 4 << 30;

/// Checks that a store takes a key and a value of these lengths.
pub(super) fn check_lengths(key: u64, value: u64) -> Result<(), Error> {
    if key > MAX_KEY {
        Err(Error::TooLong { what: "key", len: key, max: MAX_KEY })
    } else if value > MAX_VALUE {
        Err(Error::TooLong { what: "value", len: value, max: MAX_VALUE })
    } else {
        Ok(())
    }
}

/// Returns the entries of a batch, for a memtable. Several have at most `max` bytes.
pub(super) fn entries_of(batch: &Batch, max: u64) -> Result<Vec<NewEntry>, Error> {
    let mut headers = batch.records().iter().map(|unsealed| unsealed.header);
    headers.try_for_each(|header| check_lengths(header.key_len, header.value_len))?;
    let bytes = batch.bytes().len() as u64;
    if batch.len() > 1 && bytes > max {
        return Err(Error::BatchTooLarge { bytes, max });
    }
    let mut entries = Vec::new();
    memory::reserve(&mut entries, batch.len())?;
    for unsealed in batch.records() {
        let Unsealed { header, .. } = unsealed;
        let parts = || (header.value_len, batch.value_parts(unsealed));
        let value = (header.kind != Kind::Tombstone).then(parts);
        entries.push(NewEntry::new(batch.key(unsealed), value)?);
    }
    Ok(entries)
}

/// Adds the whole batches of a file of the log to its memtable. `sequence` is the last sequence
/// number before it. Returns the last one after it, and where the file ends.
pub(super) fn replay(
    file: &Arc<Segment>,
    place: (&Manifest, usize),
    sequence: u64,
    memtable: &Memtable,
) -> Result<(u64, u64), Error> {
    let last = Cell::new(sequence);
    let end = recovery::replay(
        file,
        place,
        FIRST_RECORD,
        |record| {
            let Header { kind, sequence, .. } = record.header;
            if sequence <= last.get() || sequence >= SEQUENCE_LIMIT {
                return Err(file.damaged(record.offset, "its sequence numbers are out of order"));
            }
            let entry = (kind != Kind::Mark).then(|| entry_of(file, record)).transpose()?;
            Ok(entry.map(|entry| (entry, sequence)))
        },
        |batch, record| {
            last.set(record.header.sequence);
            batch.drain(..).for_each(|(entry, sequence)| memtable.insert(entry, sequence));
            Ok(())
        },
    )?;
    Ok((last.get(), end))
}

/// Returns the entry of a record. Its length was checked with its checksum, so it may decide how
/// much memory is taken.
pub(super) fn entry_of(segment: &Segment, record: &Record<'_>) -> Result<NewEntry, Error> {
    let Header { kind, key_len, value_len, .. } = record.header;
    if check_lengths(key_len, value_len).is_err() {
        return Err(segment.damaged(record.offset, "a record is longer than the store takes"));
    }
    let large = match kind {
        Kind::Large => Some(segment.large_value(record.offset, &record.header)?),
        _ => None,
    };
    let value = large.as_deref().unwrap_or(record.value());
    let value = (kind != Kind::Tombstone).then(|| (value_len, std::iter::once(value)));
    NewEntry::new(record.key(), value)
}
