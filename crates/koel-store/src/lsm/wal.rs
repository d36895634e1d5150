//! The log: entries that are in no table yet. One file for each memtable, in the format of a log
//! segment (`kernel/segment.rs`).

use std::cell::Cell;
use std::iter;
use std::sync::Arc;

use super::memtable::{Memtable, Written};
use crate::Error;
use crate::kernel::batch::Batch;
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

/// Checks that a store takes a batch. Several entries have at most `max` bytes.
pub(super) fn check_batch(batch: &Batch, max: u64) -> Result<(), Error> {
    let mut headers = batch.records().iter().map(|unsealed| unsealed.header);
    headers.try_for_each(|header| check_lengths(header.key_len, header.value_len))?;
    let bytes = batch.bytes().len() as u64;
    if batch.len() > 1 && bytes > max {
        return Err(Error::BatchTooLarge { bytes, max });
    }
    Ok(())
}

/// Copies the entries of a batch into a memtable, where no read finds them yet.
pub(super) fn write_entries(batch: &Batch, memtable: &Memtable) -> Result<Vec<Written>, Error> {
    let mut entries = Vec::new();
    memory::reserve(&mut entries, batch.len())?;
    for unsealed in batch.records() {
        let header = &unsealed.header;
        let parts = || (header.value_len, batch.value_parts(unsealed));
        let value = (header.kind != Kind::Tombstone).then(parts);
        entries.push(memtable.write(batch.key(unsealed), value)?);
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
            if kind == Kind::Mark {
                return Ok(None);
            }
            let written = with_entry(file, record, |key, value| {
                memtable.write(key, value.map(|value| (value.len() as u64, iter::once(value))))
            })?;
            Ok(Some((written, sequence)))
        },
        |batch, record| {
            last.set(record.header.sequence);
            batch.drain(..).for_each(|(written, sequence)| memtable.link(written, sequence));
            Ok(())
        },
    )?;
    Ok((last.get(), end))
}

/// Passes the key and the value of a record to `take`; no value if the key is deleted. The length
/// was checked with its checksum, so it may decide how much memory is taken.
pub(super) fn with_entry<R>(
    segment: &Segment,
    record: &Record<'_>,
    take: impl FnOnce(&[u8], Option<&[u8]>) -> Result<R, Error>,
) -> Result<R, Error> {
    let Header { kind, key_len, value_len, .. } = record.header;
    if check_lengths(key_len, value_len).is_err() {
        return Err(segment.damaged(record.offset, "a record is longer than the store takes"));
    }
    let large = match kind {
        Kind::Large => Some(segment.large_value(record.offset, &record.header)?),
        _ => None,
    };
    let value = large.as_deref().unwrap_or(record.value());
    take(record.key(), (kind != Kind::Tombstone).then_some(value))
}
