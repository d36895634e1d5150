//! Many keys at once: the ranges that answer for them, sorted, and joined where they are near.
//!
//! A request costs a round trip, however few bytes it is for. So ranges with a gap of less than
//! [`gap`](RemoteOptions::gap) are one range, and the bytes between them are read for nothing.
//!
//! **What the server learns.** Both ranges of a key tell which buckets it may be in: 30 bits of
//! the hash in a filter for 100 million keys. Ranges of whole [pages](RemoteOptions::page) tell
//! only that a key of these pages is meant: docs/REMOTE.md has the figures.
//!
//! Cost: O(n log n) for n keys; 24 bytes each while they are sorted, 8 afterwards, and 16 for each
//! range.

use alloc::vec::Vec;
use core::ops::Range;

use super::Remote;
use crate::Key;
use crate::error::{MemoryError, RemoteError};

/// How the ranges of many keys become requests.
///
/// The default suits a server some milliseconds away: no more bytes than needed for one key, ranges
/// joined where 16 KiB or less are between them, and at most 8 MiB a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Ranges begin and end at multiples of so many bytes of the file, so that the server learns no
    /// more than the page. 0 and 1 read no more than the buckets.
    pub page: u64,
    /// Ranges with at most so many bytes between them are one.
    pub gap: u64,
    /// Bytes of the longest range. Ranges that overlap are one even if it gets longer.
    pub longest: u64,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self { page: 1, gap: 16 << 10, longest: 8 << 20 }
    }
}

/// The ranges of a file that answer for some keys: what [`Remote::ask`] returns.
#[derive(Clone, Debug)]
pub struct Batch {
    addresses: Vec<u64>,
    ranges: Vec<Range<u64>>,
}

impl Batch {
    /// The ranges of the file to fetch: ascending, none of them empty, and no two of them overlap.
    /// As many requests. None if every key has an exact answer.
    #[must_use]
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// The bytes of all ranges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}

impl Remote {
    /// The ranges to fetch for these keys. O(n log n).
    ///
    /// # Errors
    /// [`MemoryError`] if there is no memory for them.
    pub fn ask<K: Key>(&self, keys: &[K], options: RemoteOptions) -> Result<Batch, MemoryError> {
        let mut addresses = reserved(keys.len())?;
        addresses.extend(keys.iter().map(|key| self.route.address(key)));
        let mut buckets = reserved(keys.len().saturating_mul(2))?;
        let unanswered = addresses.iter().filter(|&&address| self.side.answer(address).is_none());
        buckets.extend(unanswered.flat_map(|&address| self.buckets_at(address)));
        buckets.sort_unstable();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for bucket in buckets {
            let range = self.pages(self.range_of(bucket), options.page.max(1));
            if !ranges.last_mut().is_some_and(|last| joins(last, &range, options)) {
                ranges.try_reserve(1).map_err(|_| MemoryError { bytes: size_of_val(&*ranges) })?;
                ranges.push(range);
            }
        }
        Ok(Batch { addresses, ranges })
    }

    /// Writes to `found` whether each key of a batch is in, by the bytes of its ranges, in their
    /// order. O(n log n).
    ///
    /// # Errors
    /// [`RemoteError`] for bytes that are not the whole ranges, or not buckets. Nothing can be said
    /// of any key then.
    ///
    /// # Panics
    /// If `found` has not as many elements as the batch has keys.
    pub fn answer(
        &self,
        batch: &Batch,
        fetched: &[impl AsRef<[u8]>],
        found: &mut [bool],
    ) -> Result<(), RemoteError> {
        assert_eq!(batch.len(), found.len(), "one answer for each key");
        for (i, range) in batch.ranges.iter().enumerate() {
            let got = fetched.get(i).map_or(0, |bytes| bytes.as_ref().len() as u64);
            if got != range.end - range.start {
                return Err(RemoteError::Length { range: range.clone(), got });
            }
        }
        let fetched_for = |range: &Range<u64>, _| {
            let behind = batch.ranges.partition_point(|it| it.start <= range.start);
            let at = behind.saturating_sub(1);
            let begin = batch.ranges.get(at).map_or(0, |it| it.start);
            (fetched.get(at).map_or(&[][..], AsRef::as_ref), begin)
        };
        for (&address, found) in batch.addresses.iter().zip(found) {
            *found = match self.side.answer(address) {
                Some(copies) => copies > 0,
                None => self.answer_at(address, fetched_for)?,
            };
        }
        Ok(())
    }

    /// The pages that a range is in, as far as the file reaches.
    fn pages(&self, range: Range<u64>, page: u64) -> Range<u64> {
        let end = range.end.checked_next_multiple_of(page).unwrap_or(u64::MAX);
        range.start - range.start % page..end.min(self.size_in_bytes())
    }
}

/// Joins a range to the one before it, if it is near.
fn joins(range: &mut Range<u64>, next: &Range<u64>, options: RemoteOptions) -> bool {
    let end = next.end.max(range.end);
    let overlap = next.start < range.end;
    let is_near = next.start <= range.end.saturating_add(options.gap);
    let joined = overlap || is_near && end - range.start <= options.longest;
    if joined {
        range.end = end;
    }
    joined
}

/// Memory for so many elements.
fn reserved<T>(len: usize) -> Result<Vec<T>, MemoryError> {
    let mut memory = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    memory.try_reserve_exact(len).map_err(|_| MemoryError { bytes })?;
    Ok(memory)
}
