//! The clock of an expiring filter, and how many entries have each stamp.

use alloc::vec::Vec;

use crate::image::Clock;
use crate::packing::Layout;

/// The time of an expiring filter, and how many entries have each stamp.
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

    /// Forgets all entries. Time and what was evicted stay.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// The count of a stamp.
    pub(super) fn count(&mut self, stamp: u64) -> &mut u64 {
        let last = self.counts.len() - 1;
        &mut self.counts[usize::try_from(stamp).unwrap_or(last).min(last)]
    }

    /// The age of the entry in a slot.
    #[inline]
    pub(super) fn age(&self, layout: Layout, slot: u64) -> u64 {
        self.clock.age(layout.value_of(slot))
    }
}
