//! Time goes on: entries expire, and dead ones are swept out before their stamps look new again.
//!
//! Nothing is swept when time goes on. Each group of buckets is, before an entry is written to it,
//! if its last sweep was too long ago (`image/clock.rs`): an insert sweeps two groups of 16 buckets
//! at most, and those on its eviction path.

use super::expire::Stamped;
use crate::image::clock::GROUP;
use crate::state::counters::ReadCounters;
use crate::table::{Addressing, CuckooMut, Match};

impl<T: CuckooMut> Stamped<'_, T> {
    /// Goes on to the step of tick `now`, unless it is earlier. Returns how many entries expired.
    pub(super) fn advance(&mut self, now: u64) -> u64 {
        let (steps, before) = (self.expiry.clock.steps_until(now), *self.len);
        if steps == 0 {
            return 0;
        }
        if self.expiry.clock.must_refresh(steps) {
            self.sweeps.refresh(self.buckets(), &self.expiry.clock, steps);
        }
        *self.len = self.expiry.live_after(steps);
        self.expiry.forward(steps);
        before - *self.len
    }

    pub(super) fn buckets(&self) -> u64 {
        self.table.table().geometry().buckets()
    }

    /// The age of an entry.
    #[inline]
    pub(super) fn age(&self, entry: &Match) -> u64 {
        let swept = self.sweeps.swept(entry.bucket);
        self.expiry.clock.age(swept, self.layout.value_of(entry.slot))
    }

    #[inline]
    pub(super) fn is_live(&self, entry: &Match) -> bool {
        self.expiry.clock.is_live(self.age(entry))
    }

    /// Whether the group of this bucket must be swept before an entry is written to it.
    #[inline]
    pub(super) fn is_due(&self, bucket: u64) -> bool {
        self.expiry.clock.is_due(self.sweeps.swept(bucket))
    }

    /// Whether a slot of this bucket is empty, or has a dead entry.
    pub(super) fn has_room(&self, bucket: u64) -> bool {
        let table = self.table.table();
        let mut entries = table.entries_of(bucket);
        table.read(bucket).copies(0) > 0 || entries.any(|entry| !self.is_live(&entry))
    }

    /// Before an entry is written to this bucket: sweeps its group if that is due. True if it was.
    #[inline]
    pub(super) fn prepare_group(&mut self, bucket: u64) -> bool {
        let is_due = self.is_due(bucket);
        if is_due {
            self.sweep_group(bucket);
        }
        is_due
    }

    /// Takes out the dead entries of the group of this bucket.
    #[inline(never)]
    fn sweep_group(&mut self, bucket: u64) {
        let first = bucket - bucket % GROUP;
        for bucket in first..self.buckets().min(first + GROUP) {
            self.drop_dead(bucket);
        }
        self.sweeps.note(bucket, self.expiry.clock.step);
    }

    /// Takes out all dead entries.
    pub(super) fn sweep_all(&mut self) {
        let buckets = self.buckets();
        for bucket in 0..buckets {
            self.drop_dead(bucket);
        }
        self.sweeps.note_all(buckets, self.expiry.clock.step);
    }

    /// Takes out the dead entries of a bucket. False if there is none.
    #[inline]
    pub(super) fn drop_dead(&mut self, bucket: u64) -> bool {
        if *self.entries == *self.len {
            return false;
        }
        let mut slots = self.table.table().read(bucket);
        let before = slots;
        let is_dead = self.expiry.clock.dead_in(self.sweeps.swept(bucket));
        for slot in &mut slots.0 {
            if *slot != 0 && is_dead(self.layout.value_of(*slot)) {
                *self.entries -= 1;
                self.table.table_mut().forget(bucket, *slot);
                *slot = 0;
            }
        }
        let has_dropped = slots != before;
        if has_dropped {
            self.table.table_mut().write_bucket(bucket, slots);
        }
        has_dropped
    }
}
