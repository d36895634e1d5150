//! The clock of an expiring filter, how many live entries have each stamp, and when each group was
//! swept.

use alloc::vec::Vec;

use super::sweeps::Sweeps;
use crate::image::Clock;
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
