//! The live segments in log order, and locations: 38 bits that name a record in any of them.
//!
//! A location is `slot * units + offset / 8`. A segment has `units` offsets at which records can
//! start, and its slot is its number modulo the number of slots. Live segments have different
//! slots, since a new segment takes the next number whose slot is free. So a location names one
//! record, and locations are not stored on disk.
//!
//! A reader gets a location from the index, then the segment from here. The segment may go away in
//! between. [`Segments::generation`] changes before that, so a reader that found nothing and sees
//! another generation tries again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::index::LOCATION_BITS;
use crate::Error;
use crate::kernel::manifest::LogEntry;
use crate::kernel::record::ALIGNMENT;
use crate::kernel::segment::Segment;

/// Maximum number of segments in a store.
const MAX_SEGMENTS: u64 = 1 << 22;

/// Segments by log order and by slot.
#[derive(Debug)]
pub(super) struct Segments {
    table: RwLock<Table>,
    units: u64,
    slots: u64,
    generation: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    order: Vec<Arc<Segment>>,
    /// The slots in use, and some that were. Large numbers take no more memory than small ones.
    slots: BTreeMap<u64, Slot>,
}

#[derive(Debug)]
struct Slot {
    /// The segment to which locations in this slot lead.
    live: Option<Arc<Segment>>,
    /// The segment that uses the slot, used it last, or is about to. The slot is free when that
    /// segment has no handles left.
    last: Weak<Segment>,
}

impl Segments {
    /// Returns an empty table for segments in which records start before `segment_bytes`.
    pub(super) fn new(segment_bytes: u64) -> Self {
        let units = segment_bytes / ALIGNMENT;
        let slots = ((1 << LOCATION_BITS) / units).min(MAX_SEGMENTS);
        Self { table: RwLock::default(), units, slots, generation: AtomicU64::new(0) }
    }

    /// Returns whether all these segments have different slots.
    pub(super) fn have_different_slots(&self, segments: &[LogEntry]) -> bool {
        let mut slots: Vec<u64> = segments.iter().map(|entry| entry.number % self.slots).collect();
        slots.sort_unstable();
        slots.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// Returns the location of the record at `offset` of a segment.
    #[inline]
    pub(super) fn location(&self, segment: &Segment, offset: u64) -> u64 {
        self.slot_of(segment) * self.units + offset / ALIGNMENT
    }

    /// Returns the segment of a location and the offset in it, or `None` if the segment is gone.
    #[inline]
    pub(super) fn at(&self, location: u64) -> Option<(Arc<Segment>, u64)> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let segment = table.slots.get(&(location / self.units))?.live.clone()?;
        Some((segment, location % self.units * ALIGNMENT))
    }

    /// Returns a number that changes before a segment goes away.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns all segments in log order.
    pub(super) fn all(&self) -> Vec<Arc<Segment>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).order.clone()
    }

    /// Adds a segment to the end of the log.
    pub(super) fn push(&self, segment: Arc<Segment>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.occupy(self.slot_of(&segment), &segment);
        table.order.push(segment);
    }

    /// Makes `order` the log; in it `new` have replaced other segments. The replaced ones still
    /// answer for their locations until [`retire`](Self::retire).
    pub(super) fn replace(&self, order: Vec<Arc<Segment>>, new: &[Arc<Segment>]) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for segment in new {
            table.occupy(self.slot_of(segment), segment);
        }
        table.order = order;
    }

    /// Drops segments, once the index has no location in them.
    pub(super) fn retire(&self, old: &[Arc<Segment>]) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for segment in old {
            if let Some(slot) = table.slots.get_mut(&self.slot_of(segment)) {
                slot.live = None;
            }
        }
        table.slots.retain(|_, slot| slot.last.strong_count() > 0);
    }

    /// Reserves the slot of a new segment for as long as that segment has a handle.
    pub(super) fn reserve(&self, segment: &Arc<Segment>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let slot = Slot { live: None, last: Arc::downgrade(segment) };
        table.slots.insert(self.slot_of(segment), slot);
    }

    /// Returns the first number from `number` on whose slot is free: no segment that uses the slot
    /// has a handle left.
    pub(super) fn free_number(&self, number: u64) -> Result<u64, Error> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let is_free = |number: &u64| {
            let slot = table.slots.get(&(number % self.slots));
            slot.is_none_or(|slot| slot.last.strong_count() == 0)
        };
        let found = (number..number.saturating_add(self.slots)).find(is_free);
        found.ok_or(Error::Full { segments: self.slots })
    }

    #[inline]
    fn slot_of(&self, segment: &Segment) -> u64 {
        segment.number % self.slots
    }
}

impl Table {
    fn occupy(&mut self, slot: u64, segment: &Arc<Segment>) {
        let occupied = Slot { live: Some(segment.clone()), last: Arc::downgrade(segment) };
        self.slots.insert(slot, occupied);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::disk::DiskFolder;

    /// The slots were once a vector whose length was the greatest slot number.
    #[test]
    fn a_large_segment_number_takes_no_more_memory() -> Result<(), Box<dyn std::error::Error>> {
        let temporary = tempfile::tempdir()?;
        let segments = Segments::new(4096);
        let number = MAX_SEGMENTS * 5 - 1;
        let segment = Arc::new(Segment::create(&DiskFolder::new(temporary.path())?, 1, number)?);
        segments.push(segment.clone());
        let location = segments.location(&segment, 80);
        let (found, offset) = segments.at(location).expect("a live segment");
        assert!(Arc::ptr_eq(&found, &segment) && offset == 80);
        assert_eq!(segments.table.read().map(|table| table.slots.len()).ok(), Some(1));
        Ok(())
    }
}
