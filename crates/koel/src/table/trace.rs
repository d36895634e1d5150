//! The log of a table: each write of a single insert or removal, as a step that can be shown and
//! made again. With the feature `trace`; without it, [`note!`] is nothing, and [`logged!`] only
//! makes the edit.
//!
//! Tables log their writes, and `state/` logs what it does to counters and totals. The log is off
//! until `state/trace.rs` turns it on for one operation. Batches are not logged.

#[cfg(feature = "trace")]
use {
    super::{Addressing, Table},
    crate::mem::buffer::Buffer,
    crate::packing::SLOTS,
    alloc::vec::Vec,
    core::mem,
};

/// One step of an operation on a filter.
#[cfg(feature = "trace")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceStep {
    /// Both buckets were full, and the search for room is over. It writes nothing.
    Searched {
        /// The slots that it looked at.
        slots: u64,
        /// The entries that have to move; `None` if it found no room.
        moves: Option<u64>,
    },
    /// A slot was written.
    Written {
        /// The bucket of the slot.
        bucket: u64,
        /// What the slot held: a fingerprint, or 0 if it was empty.
        old: u64,
        /// What it holds now: 0 if it was emptied.
        new: u64,
        /// The bucket that the entry came from. `None` for the key of the operation.
        from: Option<u64>,
    },
    /// The filter left the table that it was built with: slots get wider from here on, those of the
    /// last buckets first.
    Widened,
    /// Some more buckets got wider slots.
    Narrow {
        /// Buckets that have not yet.
        buckets: u64,
    },
    /// The entries of a bucket were divided between it and a new bucket.
    Split {
        /// The bucket.
        bucket: u64,
        /// The new one, behind all others.
        into: u64,
    },
    /// The counter of an entry was changed. It counts the copies that are in no slot.
    Counted {
        /// The name of the entry.
        name: u64,
        /// Copies that the counter counts now.
        copies: u64,
    },
    /// The exact answer for an address, beside the table, became another one.
    Settled {
        /// The address: what the filter makes of the hash of the key.
        address: u64,
        /// The copies in the stash, 0 for a correction, `None` for no exact answer.
        copies: Option<u64>,
    },
    /// The last key went, and every bucket and counter was emptied: growth had left entries that
    /// belong to no key.
    Cleared,
    /// The totals changed. The last step of an operation that changed something.
    Totals {
        /// Keys in the filter, with copies.
        len: u64,
        /// Slots in use.
        entries: u64,
        /// Slots with the second copy of an entry.
        spares: u64,
    },
}

/// The steps since the log was turned on.
#[cfg(feature = "trace")]
#[derive(Clone, Default)]
pub(crate) struct Log(Option<Vec<TraceStep>>);

#[cfg(feature = "trace")]
impl Log {
    /// Turns it on, empty.
    pub(crate) fn start(&mut self) {
        self.0 = Some(Vec::new());
    }

    /// Turns it off, and returns its steps.
    pub(crate) fn finish(&mut self) -> Vec<TraceStep> {
        mem::take(&mut self.0).unwrap_or_default()
    }

    /// Adds a step, if it is on.
    pub(crate) fn push(&mut self, step: TraceStep) {
        self.0.iter_mut().for_each(|steps| steps.push(step.clone()));
    }
}

/// Logs a step in this log, with the feature `trace`.
macro_rules! note {
    ($log:expr, $($step:tt)+) => {
        #[cfg(feature = "trace")]
        $log.push($crate::table::trace::TraceStep::$($step)+);
    };
}
pub(crate) use note;

/// Makes an edit of at most one slot of a pair of buckets of a table. With the feature `trace`,
/// logs what it wrote.
///
/// A macro: LLVM did not inline a closure here, and an insert took 11 instructions more.
macro_rules! logged {
    ($table:expr, $pair:expr, $edit:expr) => {{
        #[cfg(feature = "trace")]
        let before = $table.before($pair);
        let result = $edit;
        #[cfg(feature = "trace")]
        $table.log_written(before);
        result
    }};
}
pub(crate) use logged;

#[cfg(feature = "trace")]
impl<A: Addressing> Table<Buffer, A> {
    /// Returns a pair of buckets and their slots, if the log is on.
    pub(super) fn before(&self, pair: (u64, u64)) -> Option<[(u64, [u64; SLOTS]); 2]> {
        let slots_of = |bucket| (bucket, self.read(bucket).0);
        self.log.0.is_some().then(|| [pair.0, pair.1].map(slots_of))
    }

    /// Logs the slot that was written since [`before`](Self::before).
    pub(super) fn log_written(&mut self, before: Option<[(u64, [u64; SLOTS]); 2]>) {
        for (bucket, before) in before.into_iter().flatten() {
            let after = self.read(bucket).0;
            let (old, new) = (missing_in(after, before), missing_in(before, after));
            if old != new {
                note!(self.log, Written { bucket, old, new, from: None });
                break;
            }
        }
    }
}

/// The slot of `these` that the others do not have; 0 if they have all.
#[cfg(feature = "trace")]
fn missing_in(mut others: [u64; SLOTS], these: [u64; SLOTS]) -> u64 {
    let is_missing = |slot: &u64| match others.iter_mut().find(|other| *other == slot) {
        Some(other) => {
            *other = 0;
            false
        }
        None => true,
    };
    these.into_iter().filter(|&slot| slot != 0).find(is_missing).unwrap_or(0)
}
