//! The log: entries that are in no table yet. One file for each memtable, in the format of a log
//! segment (`kernel/segment.rs`).

use std::cell::Cell;
use std::iter;
use std::sync::Arc;

use super::entry::check_lengths;
use super::memtable::{Memtable, Written};
use super::range_deletions::KeyRange;
use crate::Error;
use crate::kernel::batch::Batch;
use crate::kernel::manifest::Manifest;
use crate::kernel::record::{Header, Kind, SEQUENCE_LIMIT};
use crate::kernel::scan::Record;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::{memory, recovery};

/// Bytes of the largest batch: with it, a file is not longer than any segment.
pub(super) const MAX_BATCH: u64 = 4 << 30;

/// Checks that a store takes a batch. Several entries have at most `max` bytes.
pub(super) fn check_batch(batch: &Batch, max: u64) -> Result<(), Error> {
    let mut headers = batch.records().iter().map(|unsealed| unsealed.header);
    // The bounds of a range are checked where they come from.
    headers.try_for_each(|header| check_lengths(header.key_len, header.value_len))?;
    let bytes = batch.bytes().len() as u64;
    if batch.len() > 1 && bytes > max {
        return Err(Error::BatchTooLarge { bytes, max });
    }
    Ok(())
}

/// A write of a batch, made as far as no read finds it yet.
#[derive(Debug)]
pub(super) enum Made {
    /// It is in the memtable.
    Entry(Written),
    Range(KeyRange),
    /// A range without keys, which no batch has.
    Nothing,
}

/// Copies the entries of a batch into a memtable, where no read finds them yet.
pub(super) fn write_entries(batch: &Batch, memtable: &Memtable) -> Result<Vec<Made>, Error> {
    let mut made = Vec::new();
    memory::reserve(&mut made, batch.len())?;
    for unsealed in batch.records() {
        let (header, key) = (&unsealed.header, batch.key(unsealed));
        let mut parts = batch.value_parts(unsealed);
        made.push(match header.kind {
            Kind::Range => {
                let to = parts.next().unwrap_or_default();
                KeyRange::of_record(key, to)?.map_or(Made::Nothing, Made::Range)
            }
            Kind::Tombstone => {
                let value: Option<(u64, iter::Empty<&[u8]>)> = None;
                Made::Entry(memtable.write(key, value)?)
            }
            _ => Made::Entry(memtable.write(key, Some((header.value_len, parts)))?),
        });
    }
    Ok(made)
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
            let made = match range_of(file, record)? {
                Some(keys) => Made::Range(keys),
                None => Made::Entry(with_entry(file, record, |key, value| {
                    memtable.write(key, value.map(|value| (value.len() as u64, iter::once(value))))
                })?),
            };
            Ok(Some((made, sequence)))
        },
        |batch, record| {
            last.set(record.header.sequence);
            for (made, sequence) in batch.drain(..) {
                match made {
                    Made::Entry(written) => memtable.link(written, sequence),
                    // Nobody reads at an earlier number.
                    Made::Range(keys) => memtable.delete_range(keys, sequence, &[]),
                    Made::Nothing => {}
                }
            }
            Ok(())
        },
    )?;
    Ok((last.get(), end))
}

/// Returns the keys that a record deletes, if it deletes a range.
pub(super) fn range_of(file: &Segment, record: &Record<'_>) -> Result<Option<KeyRange>, Error> {
    if record.header.kind != Kind::Range {
        return Ok(None);
    }
    let what = "a record deletes a range that has no keys";
    match KeyRange::of_record(record.key(), record.value()) {
        Ok(Some(keys)) => Ok(Some(keys)),
        Ok(None) | Err(Error::TooLong { .. }) => Err(file.damaged(record.offset, what)),
        Err(error) => Err(error),
    }
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
