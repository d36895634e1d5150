//! The live segments, in the order of the log, and locations: 38 bits that name a record in any of them.
//!
//! A location is `slot * units + offset / 8`, where a segment has room for `units` starts of records and its slot is its number modulo the count of slots. Live segments have
//! different slots (a new segment takes the next number whose slot is free), so a location names one record, and nothing about locations is on disk.
//!
//! A reader takes a location from the index and then the segment from here. In between the segment may go away; [`Segments::generation`] changes before that, so a
//! reader that found nothing and sees another generation looks again.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::index::LOCATION_BITS;
use crate::Error;
use crate::kernel::manifest::MAX_SEGMENTS;
use crate::kernel::record::{UNIT, usize_of};
use crate::kernel::segment::Segment;

/// Segments by place in the log and by slot.
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
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    /// The segment that its locations lead to.
    live: Option<Arc<Segment>>,
    /// The segment that has it, had it last, or is about to get it. The slot is free when nobody has that segment any more.
    last: Weak<Segment>,
}

impl Segments {
    /// None yet, of segments that have at most so many bytes of starts of records.
    pub(super) fn new(segment_bytes: u64) -> Self {
        let units = segment_bytes / UNIT;
        let slots = ((1 << LOCATION_BITS) / units).min(MAX_SEGMENTS);
        Self { table: RwLock::default(), units, slots, generation: AtomicU64::new(0) }
    }

    /// Whether locations tell segments with these numbers apart.
    pub(super) fn have_slots(&self, numbers: impl IntoIterator<Item = u64>) -> bool {
        let mut seen = HashSet::new();
        numbers.into_iter().all(|number| seen.insert(number % self.slots))
    }

    /// The location of the record at `offset` of a segment.
    #[inline]
    pub(super) fn location(&self, segment: &Segment, offset: u64) -> u64 {
        (segment.number % self.slots) * self.units + offset / UNIT
    }

    /// The segment of a location, and the offset in it; `None` where the segment is gone.
    #[inline]
    pub(super) fn at(&self, location: u64) -> Option<(Arc<Segment>, u64)> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let segment = table.slots.get(usize_of(location / self.units))?.live.clone()?;
        Some((segment, location % self.units * UNIT))
    }

    /// Changes before a segment goes away.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// All of them, in the order of the log.
    pub(super) fn all(&self) -> Vec<Arc<Segment>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).order.clone()
    }

    /// Adds a segment behind all others.
    pub(super) fn push(&self, segment: Arc<Segment>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.occupy(usize_of(segment.number % self.slots), &segment);
        table.order.push(segment);
    }

    /// Makes this the order of the log, in which `new` have taken the place of others. Those still answer for their locations until [`retire`](Self::retire).
    pub(super) fn exchange(&self, order: Vec<Arc<Segment>>, new: &[Arc<Segment>]) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for segment in new {
            table.occupy(usize_of(segment.number % self.slots), segment);
        }
        table.order = order;
    }

    /// Lets segments go, once no entry of the index leads to them.
    pub(super) fn retire(&self, old: &[Arc<Segment>]) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for segment in old {
            if let Some(slot) = table.slots.get_mut(usize_of(segment.number % self.slots)) {
                slot.live = None;
            }
        }
    }

    /// Keeps the slot of a new segment for it, as long as somebody has the segment.
    pub(super) fn reserve(&self, segment: &Arc<Segment>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.slot(usize_of(segment.number % self.slots)).last = Arc::downgrade(segment);
    }

    /// The first number from `number` on whose slot is free: no segment has it that anyone writes or reads.
    pub(super) fn free_number(&self, number: u64) -> Result<u64, Error> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let is_free = |number: &u64| {
            let slot = table.slots.get(usize_of(number % self.slots));
            slot.is_none_or(|slot| slot.last.strong_count() == 0)
        };
        let found = (number..number.saturating_add(self.slots)).find(is_free);
        found.ok_or(Error::Full { segments: self.slots })
    }
}

impl Table {
    fn occupy(&mut self, slot: usize, segment: &Arc<Segment>) {
        *self.slot(slot) = Slot { live: Some(segment.clone()), last: Arc::downgrade(segment) };
    }

    fn slot(&mut self, slot: usize) -> &mut Slot {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Slot::default());
        }
        &mut self.slots[slot]
    }
}
