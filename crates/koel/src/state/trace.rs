//! The steps of one operation on a filter: turns on the log of its table (`table/trace.rs`), and
//! makes the steps of a log on another filter. With the feature `trace`.
//!
//! Invariant: the steps of all operations, made on an empty filter that was built alike, give the
//! file image byte for byte. Growth is made by the library's own code: a step says only which
//! bucket was split.
//!
//! Cost: an operation allocates its log; a step of a growing filter is O(buckets).

use alloc::vec::Vec;

use super::{Body, Buckets, on_table, reading};
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::state::counters::{Counters, ReadCounters, WriteCounters};
use crate::table::trace::{TraceStep, note};
use crate::table::{Addressing, Cuckoo, CuckooMut, LocationOf, Step};

/// Where a key may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLocation {
    /// Its two buckets, the home bucket first. They may be the same.
    pub buckets: [u64; 2],
    /// What a slot of each of them stores for the key.
    pub fingerprints: [u64; 2],
}

/// Logs the counter of the longest entry that matches.
pub(super) fn log_count<T: CuckooMut>(
    table: &mut T,
    counters: &impl ReadCounters,
    location: &LocationOf<T>,
) {
    if let Some(name) = table.table().name_of_longest(location) {
        note!(table.table_mut().log, Counted { name, copies: counters.get(name) });
    }
}

impl Body<Buffer, Counters> {
    /// Where the key with this address may be.
    pub(crate) fn trace_location(&self, address: u64) -> TraceLocation {
        reading!(self, reader => location_of(reader.table, address))
    }

    /// Runs an operation. Returns its result and its steps.
    pub(crate) fn traced<R>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> R,
    ) -> (R, Vec<TraceStep>) {
        on_table!(&mut self.buckets, table => table.log.start());
        let before = self.totals();
        let result = operation(self);
        let after = self.totals();
        let mut steps = on_table!(&mut self.buckets, table => table.log.finish());
        if after != before {
            steps.push(after);
        }
        (result, steps)
    }

    fn totals(&self) -> TraceStep {
        let (len, entries, spares) = (self.state.len, self.state.entries, self.state.spares);
        TraceStep::Totals { len, entries, spares }
    }

    /// Makes one step. False, and nothing changed, if it is not one of a filter like this.
    ///
    /// # Errors
    /// If there is no memory for more buckets.
    pub(crate) fn replay(&mut self, step: &TraceStep) -> Result<bool, FullError> {
        match *step {
            TraceStep::Searched { .. } => {}
            TraceStep::Widened => {
                if !self.state.profile.growable || self.marked_layout().is_none() {
                    return Ok(false);
                }
                self.start_to_grow()?;
            }
            TraceStep::Narrow { buckets } => return Ok(self.replay_widening(buckets)),
            // A chunk of several buckets is split by the step of its first one.
            TraceStep::Split { bucket, into } if into < self.buckets.count() => {
                return Ok(bucket < into);
            }
            TraceStep::Split { bucket, into } => return self.replay_split(bucket, into),
            TraceStep::Written { bucket, old, new, .. } => {
                return Ok(bucket < self.buckets.count() && self.replay_write(bucket, old, new));
            }
            TraceStep::Counted { name, copies } => {
                self.state.counters.remove(name);
                if copies > 0 {
                    self.state.counters.add_all(name, copies);
                }
            }
            TraceStep::Cleared => {
                on_table!(&mut self.buckets, table => table.clear());
                self.state.clear_table();
            }
            TraceStep::Settled { address, copies } => self.state.exact.set(address, copies),
            TraceStep::Totals { len, entries, spares } => {
                (self.state.len, self.state.entries, self.state.spares) = (len, entries, spares);
            }
        }
        Ok(true)
    }

    fn replay_widening(&mut self, narrow: u64) -> bool {
        let Buckets::Growing(table) = &mut self.buckets else { return false };
        let more = table.geometry().narrow_buckets().checked_sub(narrow);
        more.is_some_and(|more| more > 0 && table.widen(more))
    }

    fn replay_split(&mut self, bucket: u64, into: u64) -> Result<bool, FullError> {
        let next = self.buckets.growing().and_then(|growing| growing.nth_to_split(0));
        if next != Some(bucket) || into != self.buckets.count() {
            return Ok(false);
        }
        let mut writer = self.start_to_grow()?;
        writer.table.finish_widening();
        match writer.split_chunk() {
            Step::Done => Ok(true),
            Step::Refused => Ok(false),
            Step::NoMemory => Err(FullError::NoMemory),
        }
    }

    fn replay_write(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        match &mut self.buckets {
            Buckets::Fixed(table) => table.replace(bucket, old, new),
            Buckets::Growing(table) => {
                let is_done = table.replace(bucket, old, new);
                table.recompute_weight();
                is_done
            }
        }
    }
}

fn location_of<T: Cuckoo>(table: &T, address: u64) -> TraceLocation {
    let geometry = table.table().geometry();
    let location = geometry.locate(address);
    let (home, other) = T::Addresses::pair(&location);
    TraceLocation { buckets: [home, other], fingerprints: geometry.fingerprints(&location) }
}
