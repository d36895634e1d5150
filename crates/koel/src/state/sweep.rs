//! Time goes on: entries expire, and dead ones are swept out before their stamps look new again.
//!
//! Nothing is swept when time goes on. Each group of buckets is, before an entry is written to it,
//! if its last sweep was too long ago (`image/clock.rs`): an insert sweeps two groups of 16 buckets
//! at most, and those on its eviction path.

use super::{Body, Expiry};
use crate::image::clock::GROUP;
use crate::mem::buffer::Buffer;
use crate::table::Entry;

impl Body<Buffer> {
    /// Goes on to the step of tick `now`, unless it is earlier. Returns how many entries expired.
    pub(crate) fn advance(&mut self, now: u64) -> u64 {
        let (steps, before) = (self.state.clock().steps_until(now), self.state.len);
        if steps == 0 {
            return 0;
        }
        let expiry = self.state.expiry();
        let Expiry { clock, sweeps, .. } = &mut *expiry;
        if clock.must_refresh(steps) {
            sweeps.refresh(clock, steps);
        }
        let live = expiry.live_after(steps);
        expiry.forward(steps);
        self.state.len = live;
        before - self.state.len
    }

    /// Takes out all dead entries.
    pub(super) fn sweep_all(&mut self) {
        let (buckets, step) = (self.table.buckets(), self.state.clock().step);
        for bucket in 0..buckets {
            self.drop_dead(bucket);
        }
        self.state.expiry().sweeps.note_all(buckets, step);
    }
}

/// What the rules of all types come to in an expiring filter alone.
impl Body<Buffer> {
    /// Whether entries expire. They do not while they are moved to another table.
    #[inline]
    pub(super) fn expires(&self) -> bool {
        self.state.time().is_some()
    }

    #[inline]
    pub(super) fn is_live(&self, entry: &Entry) -> bool {
        self.state.clock().is_live(self.age_of(entry.bucket, entry.slot))
    }

    /// Whether the group of this bucket must be swept before an entry is written to it.
    #[inline]
    pub(super) fn is_due(&self, bucket: u64) -> bool {
        let Expiry { clock, sweeps, .. } = self.state.expiry_ref();
        clock.is_due(sweeps.swept(bucket))
    }

    /// Whether a slot of this bucket is empty, or has a dead entry.
    pub(super) fn has_room(&self, bucket: u64) -> bool {
        let mut entries = self.table.entries_of(bucket);
        self.table.read(bucket).copies(0) > 0 || entries.any(|entry| !self.is_live(&entry))
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
        for bucket in first..self.table.buckets().min(first + GROUP) {
            self.drop_dead(bucket);
        }
        let step = self.state.clock().step;
        self.state.expiry().sweeps.note(bucket, step);
    }

    /// Takes out the dead entries of a bucket. False if there is none.
    #[inline]
    pub(super) fn drop_dead(&mut self, bucket: u64) -> bool {
        if self.state.entries == self.state.len {
            return false;
        }
        let mut slots = self.table.read(bucket);
        let before = slots;
        let Expiry { clock, sweeps, .. } = self.state.expiry_ref();
        let is_dead = clock.dead_in(sweeps.swept(bucket));
        for slot in &mut slots.0 {
            if *slot != 0 && is_dead(self.layout().value_of(*slot)) {
                self.state.entries -= 1;
                self.table.forget(bucket, *slot);
                *slot = 0;
            }
        }
        let has_dropped = slots != before;
        if has_dropped {
            self.table.write_bucket(bucket, slots);
        }
        has_dropped
    }
}
