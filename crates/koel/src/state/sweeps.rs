//! When each group of an expiring filter was swept: what is behind its buckets instead of counters.
//!
//! `image/clock.rs` says what it is for. A step has two bytes, and eight are a record: a file has
//! as many records as it says to have counters. So a view reads them in place.

use alloc::vec::Vec;

use super::counters::{ReadCounters, WriteCounters};
use super::exact::NoExact;
use super::record::decode;
use crate::image::RECORD_BYTES;
use crate::image::clock::{Clock, GROUP};
use crate::mem::buffer::is_available;

/// Steps in a record.
const EACH: usize = RECORD_BYTES / 2;

/// The steps in memory, where they can be changed. Zeros fill the last record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweeps(Vec<u16>);

/// The group of a bucket.
#[inline]
fn group_of(bucket: u64) -> usize {
    usize::try_from(bucket / GROUP).unwrap_or(usize::MAX)
}

/// Groups of so many buckets.
fn groups(buckets: u64) -> usize {
    usize::try_from(buckets.div_ceil(GROUP)).unwrap_or(usize::MAX)
}

impl Sweeps {
    /// For an empty table of so many buckets. `None` without memory for it.
    pub(crate) fn new(buckets: u64, step: u16) -> Option<Self> {
        let mut sweeps = Self::default();
        sweeps.reserve(buckets).then(|| sweeps.extend(0, buckets, step))?;
        Some(sweeps)
    }

    /// Gets memory for a table that grows to so many buckets. False if there is none.
    pub(super) fn reserve(&mut self, buckets: u64) -> bool {
        let len = groups(buckets).next_multiple_of(EACH);
        self.0.try_reserve(len.saturating_sub(self.0.len())).is_ok()
    }

    /// Adds the groups of a table that has grown from `before` to `after` buckets, for which memory
    /// is [reserved](Self::reserve). They have no dead entries at this step.
    pub(super) fn extend(&mut self, before: u64, after: u64, step: u16) {
        let (first, end) = (groups(before), groups(after));
        self.0.resize(end.next_multiple_of(EACH).max(self.0.len()), 0);
        self.0[first..end].fill(step);
    }

    /// Says that a table which now has so many buckets, no more than before, was swept at this
    /// step.
    pub(crate) fn note_all(&mut self, buckets: u64, step: u16) {
        let groups = groups(buckets);
        self.0.truncate(groups.next_multiple_of(EACH));
        self.0.fill(0);
        self.0[..groups].fill(step);
    }

    /// Says that the group of a bucket was swept at this step.
    pub(super) fn note(&mut self, bucket: u64, step: u16) {
        self.0.get_mut(group_of(bucket)).into_iter().for_each(|swept| *swept = step);
    }

    /// Changes what is stored for a table of so many buckets, so that time can go `steps` on.
    pub(super) fn refresh(&mut self, buckets: u64, clock: &Clock, steps: u64) {
        let swept = self.0.iter_mut().take(groups(buckets));
        swept.for_each(|swept| *swept = clock.refreshed(*swept, steps));
    }
}

/// The record of eight steps.
fn record(steps: &[u16; EACH]) -> (u64, u64) {
    let numbers = steps.iter().rev().fold(0_u128, |record, &step| record << 16 | u128::from(step));
    decode(&numbers.to_le_bytes())
}

impl ReadCounters for Sweeps {
    type Owned = Self;
    type Exact = NoExact;

    fn to_owned_counters(&self) -> Option<Self> {
        is_available(2 * self.0.len()).then(|| self.clone())
    }

    fn len(&self) -> u64 {
        (self.0.len() / EACH) as u64
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.as_chunks().0.iter().map(record)
    }

    #[inline]
    fn swept(&self, bucket: u64) -> u16 {
        self.0.get(group_of(bucket)).copied().unwrap_or(0)
    }
}

impl WriteCounters for Sweeps {
    type Stored<'a> = StoredSweeps<'a>;

    fn stored(records: &[u8]) -> StoredSweeps<'_> {
        StoredSweeps::new(records)
    }

    fn allocated_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u16>()
    }

    /// No entry is in a group, so it does not matter when it was swept.
    fn cleared(self) -> Self {
        self
    }
}

/// The steps of a file, read in place.
#[derive(Clone, Copy, Debug)]
pub struct StoredSweeps<'a> {
    steps: &'a [[u8; 2]],
}

impl<'a> StoredSweeps<'a> {
    /// The steps in these bytes, whose length is a multiple of a record's.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { steps: bytes.as_chunks().0 }
    }
}

impl ReadCounters for StoredSweeps<'_> {
    type Owned = Sweeps;
    type Exact = NoExact;

    fn to_owned_counters(&self) -> Option<Sweeps> {
        let mut steps = Vec::new();
        steps.try_reserve_exact(self.steps.len()).ok()?;
        steps.extend(self.steps.iter().copied().map(u16::from_le_bytes));
        Some(Sweeps(steps))
    }

    fn len(&self) -> u64 {
        (self.steps.len() / EACH) as u64
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let records = self.steps.as_chunks().0.iter();
        records.map(|steps: &[_; EACH]| record(&steps.map(u16::from_le_bytes)))
    }

    #[inline]
    fn swept(&self, bucket: u64) -> u16 {
        self.steps.get(group_of(bucket)).copied().map_or(0, u16::from_le_bytes)
    }
}

/// Whether the bytes behind the buckets of an expiring filter could have been written by this
/// crate: no group was swept at a step to come, and zeros fill the last record.
pub(super) fn are_sound(sweeps: &impl ReadCounters, buckets: u64, clock: &Clock) -> bool {
    let all = sweeps.len() * EACH as u64;
    let (mut known, mut rest) = (0..groups(buckets) as u64, groups(buckets) as u64..all);
    known.all(|group| clock.is_sweep(sweeps.swept(group * GROUP)))
        && rest.all(|group| sweeps.swept(group * GROUP) == 0)
}
