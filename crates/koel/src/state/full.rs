//! What an insert does when both buckets of its key are full: the one rule for filters, counting
//! filters, maplets and expiring filters.
//!
//! 1. It searches for an eviction path, and puts the entry where the path ends.
//! 2. If there is none, it makes a step of growth where one is due, and searches again.
//! 3. If that fails too, the type decides. A filter keeps the key in its stash
//!    (`exact.rs`), an expiring filter merges two entries or evicts the oldest, and a maplet
//!    refuses the pair.
//!
//! So one insert does a bounded amount of work, whatever the keys: [`STEPS`] steps at most, with a
//! search of 4096 slots after each. Another step may follow when the entry is in
//! ([`keep_load`](super::Writer::keep_load)). A failure changes no answer, and no byte of a table
//! of one size.

use crate::error::FullError;
use crate::table::{CuckooMut, LocationOf, Step};

/// The most steps that one insert makes because a search found no room. Honest keys need one at
/// most (docs/decisions/0036-bounded-inserts.md).
pub(super) const STEPS: u32 = 4;

/// What types do differently when both buckets of a key are full.
pub(super) trait Crowded<T: CuckooMut> {
    /// Finds an eviction path for an entry with this value and carries it out. Counts the entry.
    /// False, and no answer changed, if there is none.
    fn search(&mut self, at: &LocationOf<T>, value: u64) -> bool;

    /// Gives the entry an empty slot of its buckets, and counts it. False if there is none.
    fn put(&mut self, at: &LocationOf<T>, value: u64) -> bool;

    /// Whether a step of growth should follow a search that found no room, after so many steps.
    fn may_grow(&self, at: &LocationOf<T>, steps: u32) -> bool;

    /// Makes a step of growth.
    fn grow(&mut self) -> Step;

    /// The same location after a step.
    fn relocate(&self, at: &LocationOf<T>) -> LocationOf<T>;

    /// Makes room in another way, or says why there is none.
    fn last_resort(&mut self, at: &LocationOf<T>, value: u64) -> Result<(), FullError>;

    /// Gives an entry whose buckets are full a slot.
    fn find_slot(&mut self, mut at: LocationOf<T>, value: u64) -> Result<(), FullError> {
        let (mut steps, mut is_in) = (0, self.search(&at, value));
        while !is_in && steps < STEPS && self.may_grow(&at, steps) {
            match self.grow() {
                Step::Done => steps += 1,
                Step::Refused => break,
                Step::NoMemory => return Err(FullError::NoMemory),
            }
            at = self.relocate(&at);
            is_in = self.put(&at, value) || self.search(&at, value);
        }
        if is_in { Ok(()) } else { self.last_resort(&at, value) }
    }
}
