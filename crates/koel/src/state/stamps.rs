//! What an expiring filter has besides entries: its clock, how many live entries have each stamp,
//! and when each group of buckets was swept.
//!
//! `image/clock.rs` says what sweeps are for. They are two bytes a group, behind the buckets. Those
//! of a file are read in place, and copied before a change.

use alloc::vec::Vec;

use crate::image::clock::{self, Clock, GROUP};
use crate::mem::buffer::Buffer;

/// What an expiring filter has besides entries.
#[derive(Clone)]
pub(crate) struct Expiry<B> {
    pub(crate) clock: Clock,
    pub(super) sweeps: Sweeps<B>,
    /// None in a view, which changes nothing.
    pub(super) counts: Counts,
}

/// How many live entries there are by stamp.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Counts(Vec<u64>);

impl Counts {
    /// All 0. `None` if there is no memory for them.
    pub(super) fn zeros(clock: &Clock) -> Option<Self> {
        let mut counts = Vec::new();
        let stamps = usize::try_from(clock.largest).ok()? + 1;
        counts.try_reserve_exact(stamps).ok()?;
        counts.resize(stamps, 0);
        Some(Self(counts))
    }

    /// Makes all of them 0.
    pub(super) fn cleared(mut self) -> Self {
        self.0.fill(0);
        self
    }

    /// The count of a stamp.
    pub(super) fn of(&mut self, stamp: u64) -> &mut u64 {
        let last = self.0.len() - 1;
        &mut self.0[usize::try_from(stamp).unwrap_or(last).min(last)]
    }
}

impl<B: AsRef<[u8]>> Expiry<B> {
    /// Without counts.
    pub(super) fn uncounted(clock: Clock, sweeps: Sweeps<B>) -> Self {
        Self { clock, sweeps, counts: Counts::default() }
    }

    /// A copy in memory without counts. `None` if there is no memory for it.
    pub(super) fn copy(&self) -> Option<Expiry<Buffer>> {
        Some(Expiry::uncounted(self.clock, self.sweeps.copy()?))
    }

    /// How many entries will be live so many steps later.
    pub(crate) fn live_after(&self, steps: u64) -> u64 {
        let counted = (0..).zip(&self.counts.0);
        let live = counted.filter(|&(stamp, _)| self.clock.will_live(stamp, steps));
        live.map(|(_, count)| count).sum()
    }
}

impl Expiry<Buffer> {
    /// For an empty table of so many buckets. `None` if there is no memory for it.
    pub(super) fn empty(clock: Clock, buckets: u64) -> Option<Self> {
        let sweeps = Sweeps::new(buckets, clock.step)?;
        Some(Self { clock, sweeps, counts: Counts::zeros(&clock)? })
    }

    /// Bytes that it has allocated.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.counts.0.capacity() * size_of::<u64>() + self.sweeps.allocated_bytes()
    }

    /// Goes so many steps on. Entries that die by that are counted no more.
    pub(super) fn forward(&mut self, steps: u64) {
        let counted = (0..).zip(&mut self.counts.0);
        let gone = counted.filter(|&(stamp, _)| !self.clock.will_live(stamp, steps));
        gone.for_each(|(_, count)| *count = 0);
        self.clock.forward(steps);
    }

    /// Forgets all entries. Time and what was evicted stay.
    pub(crate) fn clear(&mut self) {
        self.counts.0.fill(0);
    }

    /// The count of a stamp.
    pub(super) fn count(&mut self, stamp: u64) -> &mut u64 {
        self.counts.of(stamp)
    }
}

/// Equal clocks, sweeps and counts.
impl<B: AsRef<[u8]>> PartialEq for Expiry<B> {
    fn eq(&self, other: &Self) -> bool {
        self.clock == other.clock
            && self.counts == other.counts
            && self.sweeps.iter().eq(other.sweeps.iter())
    }
}

/// The step at which each group was swept last.
#[derive(Clone)]
pub(crate) enum Sweeps<B> {
    Owned(Vec<u16>),
    Stored(B),
}

/// The group of a bucket.
#[inline]
fn group_of(bucket: u64) -> usize {
    usize::try_from(bucket / GROUP).unwrap_or(usize::MAX)
}

/// Groups of so many buckets.
fn groups(buckets: u64) -> usize {
    usize::try_from(clock::groups(buckets)).unwrap_or(usize::MAX)
}

impl<B: AsRef<[u8]>> Sweeps<B> {
    /// The steps of all groups.
    pub(super) fn iter(&self) -> impl Iterator<Item = u16> {
        let (owned, stored): (&[u16], &[u8]) = match self {
            Self::Owned(steps) => (steps, &[]),
            Self::Stored(bytes) => (&[], bytes.as_ref()),
        };
        let stored = stored.as_chunks().0.iter().map(|&step| u16::from_le_bytes(step));
        owned.iter().copied().chain(stored)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Owned(steps) => steps.len(),
            Self::Stored(bytes) => bytes.as_ref().len() / 2,
        }
    }

    /// The step at which the group of a bucket was swept last.
    #[inline]
    pub(super) fn swept(&self, bucket: u64) -> u16 {
        let group = group_of(bucket);
        match self {
            Self::Owned(steps) => steps.get(group).copied().unwrap_or(0),
            Self::Stored(bytes) => {
                let steps = bytes.as_ref().as_chunks().0;
                steps.get(group).map_or(0, |&step| u16::from_le_bytes(step))
            }
        }
    }

    /// A copy in memory. `None` if there is no memory for it.
    pub(super) fn copy(&self) -> Option<Sweeps<Buffer>> {
        let mut steps = Vec::new();
        steps.try_reserve_exact(self.len()).ok()?;
        steps.extend(self.iter());
        Some(Sweeps::Owned(steps))
    }

    /// Whether this crate could have written them: no group was swept at a step to come.
    pub(super) fn are_sound(&self, clock: &Clock) -> bool {
        self.iter().all(|step| clock.is_sweep(step))
    }
}

impl Sweeps<Buffer> {
    /// For an empty table of so many buckets. `None` without memory for it.
    pub(super) fn new(buckets: u64, step: u16) -> Option<Self> {
        let mut sweeps = Self::Owned(Vec::new());
        sweeps.reserve(buckets).then(|| sweeps.extend(0, buckets, step))?;
        Some(sweeps)
    }

    /// The steps in memory.
    #[inline]
    fn steps(&mut self) -> &mut Vec<u16> {
        if let Self::Stored(_) = self {
            *self = Self::Owned(self.iter().collect());
        }
        let Self::Owned(steps) = self else { unreachable!("they were copied above") };
        steps
    }

    /// Gets memory for a table that grows to so many buckets. False if there is none.
    pub(super) fn reserve(&mut self, buckets: u64) -> bool {
        let (len, steps) = (groups(buckets), self.steps());
        steps.try_reserve(len.saturating_sub(steps.len())).is_ok()
    }

    /// Adds the groups of a table that has grown from `before` to `after` buckets, for which memory
    /// is [reserved](Self::reserve). They have no dead entries at this step.
    pub(super) fn extend(&mut self, before: u64, after: u64, step: u16) {
        let (first, end, steps) = (groups(before), groups(after), self.steps());
        steps.resize(end.max(steps.len()), step);
        steps[first..end].fill(step);
    }

    /// Says that a table which now has so many buckets, no more than before, was swept at this
    /// step.
    pub(super) fn note_all(&mut self, buckets: u64, step: u16) {
        let (groups, steps) = (groups(buckets), self.steps());
        steps.truncate(groups);
        steps.fill(step);
    }

    /// Says that the group of a bucket was swept at this step.
    pub(super) fn note(&mut self, bucket: u64, step: u16) {
        self.steps().get_mut(group_of(bucket)).into_iter().for_each(|swept| *swept = step);
    }

    /// Changes what is stored, so that time can go `steps` on.
    pub(super) fn refresh(&mut self, clock: &Clock, steps: u64) {
        self.steps().iter_mut().for_each(|swept| *swept = clock.refreshed(*swept, steps));
    }

    /// Bytes that they have allocated.
    pub(super) fn allocated_bytes(&self) -> usize {
        if let Self::Owned(steps) = self { steps.capacity() * size_of::<u16>() } else { 0 }
    }
}
