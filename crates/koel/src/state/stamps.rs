//! The clock of an expiring filter, and how many live entries have each stamp.

use alloc::vec::Vec;

use crate::image::Clock;

/// The time of an expiring filter, and how many live entries have each stamp.
#[derive(Clone, PartialEq)]
pub(crate) struct Expiry {
    pub(crate) clock: Clock,
    /// By stamp. Empty in a view, which changes nothing.
    counts: Vec<u64>,
}

impl Expiry {
    /// Without counts.
    pub(crate) fn uncounted(clock: Clock) -> Self {
        Self { clock, counts: Vec::new() }
    }

    /// For an empty table, or for entries that are counted next. `None` without memory for counts.
    pub(crate) fn counting(clock: Clock) -> Option<Self> {
        let mut counts = Vec::new();
        let stamps = usize::try_from(clock.largest).ok()? + 1;
        counts.try_reserve_exact(stamps).ok()?;
        counts.resize(stamps, 0);
        Some(Self { clock, counts })
    }

    /// Bytes that the counts have allocated.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }

    /// How many entries will be live so many steps later.
    pub(crate) fn live_after(&self, steps: u64) -> u64 {
        let counted = (0..).zip(&self.counts);
        let live = counted.filter(|&(stamp, _)| self.clock.will_live(stamp, steps));
        live.map(|(_, count)| count).sum()
    }

    /// Goes so many steps on. Entries that die by that are counted no more.
    pub(super) fn forward(&mut self, steps: u64) {
        let counted = (0..).zip(&mut self.counts);
        let gone = counted.filter(|&(stamp, _)| !self.clock.will_live(stamp, steps));
        gone.for_each(|(_, count)| *count = 0);
        self.clock.forward(steps);
    }

    /// Forgets all entries. Time and what was evicted stay.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// The count of a stamp.
    pub(super) fn count(&mut self, stamp: u64) -> &mut u64 {
        let last = self.counts.len() - 1;
        &mut self.counts[usize::try_from(stamp).unwrap_or(last).min(last)]
    }
}
