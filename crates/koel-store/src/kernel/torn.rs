//! Where a log ends: a torn end, or damage.
//!
//! Every file of a log but the last has an exact end, and so has the last one after the store was
//! closed: each missing or unsound byte is damage. In the last file of a store that was not closed,
//! unsound bytes are a *torn end* if nothing says that they were durable: neither the manifest nor
//! a later mark. Sound records may follow them, since a disk writes in any order. They were not
//! durable either and are cut off too, so that a prefix of the log stays.

use std::cmp::Ordering;

use super::scan::last_durable_offset;
use super::segment::{SIZES, Segment};
use crate::Error;

/// Unsynced bytes that a crash left incomplete, and that were cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornEnd {
    /// The segment.
    pub file: String,
    /// Its length now.
    pub offset: u64,
    /// How many bytes were cut off, or ignored if the store is read-only.
    pub bytes: u64,
}

/// Returns whether the bytes from `offset` on, in the segment that was being written, were never
/// known to be durable. `known` is how far the manifest says that they were.
pub(crate) fn is_torn(segment: &Segment, known: u64, offset: u64) -> Result<bool, Error> {
    Ok(offset >= known.max(last_durable_offset(segment, offset, segment.end())?))
}

/// Prepares the last segment to be written to from `end` on: cuts off a torn end, and makes the
/// rest durable unless the store `was_closed`. A read-only store ignores a torn end.
pub(crate) fn cut(
    last: &Segment,
    end: u64,
    was_closed: bool,
    read_only: bool,
) -> Result<Option<TornEnd>, Error> {
    let len = last.end();
    let torn = TornEnd { file: last.name.clone(), offset: end, bytes: len.saturating_sub(end) };
    if read_only {
        last.set_end(end);
    } else {
        if end < len {
            last.truncate(end)?;
        }
        if !was_closed {
            last.sync()?;
        }
    }
    Ok((end < len).then_some(torn))
}

/// Checks the length of a segment with an exact end.
pub(crate) fn check_exact_length(segment: &Segment, end: u64) -> Result<(), Error> {
    let len = segment.end();
    match len.cmp(&end) {
        Ordering::Equal => Ok(()),
        Ordering::Less => Err(segment.damaged(len, "the file is cut short")),
        Ordering::Greater => Err(segment.damaged(end, "there are bytes after the last record")),
    }
}

/// Checks the length of the segment that was being written: it has at least the `known` bytes that
/// were durable.
pub(crate) fn check_last_length(segment: &Segment, known: u64) -> Result<(), Error> {
    let (len, max) = (segment.end(), *SIZES.end());
    if len < known {
        Err(segment.damaged(len, "the file is shorter than its durable part was"))
    } else if len > max {
        Err(segment.damaged(max, "the file is longer than any segment"))
    } else {
        Ok(())
    }
}
