//! Deleting a range of keys.
//!
//! A range with few entries is deleted key by key: then merges drop them as any others, and reads
//! have nothing more to ask. The keys are found before the lock of the writer is taken, and under
//! it nothing in the range may have changed, as in a transaction. A range that keeps changing, that
//! has more entries, or whose keys are too many for a batch is deleted with one record
//! (`range_deletions.rs`), whatever is in it.
//!
//! So there are few range deletions, each of which stands for many entries. Should they take more
//! than [`MOST_BYTES`] of memory nevertheless, everything is merged first, after which none is
//! left but those that live snapshots need.

use std::slice;

use super::entry::{Cursor, Span};
use super::iter::{MergeCursor, Sources, is_within, seek_to};
use super::range_deletions::KeyRange;
use super::store::Store;
use super::version::StateSources;
use crate::Error;
use crate::kernel::batch::Batch;
use crate::kernel::log_end::Durability;
use crate::kernel::memory;

/// Bytes of keys and values up to which there are few entries.
const FEW_BYTES: usize = 1 << 20;
/// How often the keys are looked for before the range is deleted with one record.
const TRIES: usize = 3;
/// The most memory that the range deletions of a store take.
const MOST_BYTES: u64 = if cfg!(test) { 4 << 10 } else { 8 << 20 };

impl Store {
    /// Deletes all keys of a range.
    pub(super) fn delete_range(
        &self,
        keys: &KeyRange,
        durability: Durability,
    ) -> Result<(), Error> {
        let span = keys.bounds()?;
        for _ in 0..TRIES {
            let (state, sequence) = self.now();
            let sources = StateSources { state, sequence };
            let Some(few) = self.few_keys(&sources, &span)? else { break };
            let mut batch = Batch::new();
            for key in &few {
                batch.delete(key)?;
            }
            let is_unchanged = || self.check_unchanged([], slice::from_ref(&span), sequence);
            match self.write_if(&batch, durability, is_unchanged) {
                Err(Error::Conflict) => {}
                Err(Error::BatchTooLarge { .. }) => break,
                ended => return ended,
            }
        }
        let mut batch = Batch::new();
        batch.delete_range(&keys.from, keys.to.as_deref())?;
        self.make_room_for_ranges()?;
        self.write(&batch, durability)
    }

    /// Returns the keys with values between two bounds, unless there are too many entries.
    pub(super) fn few_keys(
        &self,
        sources: &StateSources,
        (from, to): &Span,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let mut cursor = MergeCursor::new(sources.cursors());
        let (mut keys, mut last) = (Vec::new(), None::<Vec<u8>>);
        let (mut entries, mut bytes) = (0, 0);
        seek_to(&mut cursor, from)?;
        while let Some(entry) = cursor.entry() {
            if !is_within(to, entry.key, |key, to| key < to) {
                break;
            }
            entries += 1;
            bytes += entry.key.len() + entry.value.map_or(0, <[u8]>::len);
            if entries > self.options.few_entries || bytes > FEW_BYTES {
                return Ok(None);
            }
            // The newest version that is seen counts.
            if entry.sequence <= sources.sequence && last.as_deref() != Some(entry.key) {
                memory::copy_into(last.get_or_insert_default(), entry.key)?;
                if entry.value.is_some() {
                    memory::push(&mut keys, memory::copy_of(entry.key)?)?;
                }
            }
            cursor.next()?;
        }
        Ok(Some(keys))
    }

    /// Merges everything if range deletions take too much memory.
    pub(super) fn make_room_for_ranges(&self) -> Result<(), Error> {
        let held = || self.state.load().range_deletions.bytes();
        if held() > MOST_BYTES {
            self.compact()?;
        }
        match held() {
            bytes if bytes > MOST_BYTES => Err(Error::RangesHeld { bytes, max: MOST_BYTES }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
