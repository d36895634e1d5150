//! Growth: when a filter leaves its fixed table, and how a table becomes smaller again.

use core::mem;

use super::{Body, Buckets, State, Writer};
use crate::address::geometry::CORE_BITS;
use crate::error::FullError;
use crate::image::{Kind, sizing};
use crate::mem::buffer::{Buffer, is_available};
use crate::packing::Layout;
use crate::state::counters::{Counters, ReadCounters, WriteCounters};
use crate::table::{Addressing, CuckooMut, Growing, Step, buckets_for, table_bytes};

impl<B: AsRef<[u8]>, C: ReadCounters> Body<B, C> {
    /// The layout of the buckets in a growing table: the present one, or for a filter that has not
    /// grown, the one that it would have. `None` if it cannot grow.
    pub(super) fn marked_layout(&self) -> Option<Layout> {
        let layout = self.buckets.layout();
        match layout.marks() {
            Some(_) => Some(layout),
            None if self.state.kind == Kind::Filter => sizing::marked_layout(layout),
            None => None,
        }
    }
}

impl Body<Buffer, Counters> {
    /// Whether the filter grows instead of returning this error.
    pub(super) fn grows_instead(&self, full: FullError) -> bool {
        self.buckets.fixed().is_some() && self.state.grows_instead(full)
    }

    /// The growing table. The first call turns the fixed table into it, and renames the counters
    /// after their entries there.
    pub(super) fn start_to_grow(
        &mut self,
    ) -> Result<Writer<'_, Growing<Buffer>, Counters>, FullError> {
        let layout = self.layout_to_grow_in();
        let state = &mut self.state;
        let table = self.buckets.grow(|table| {
            let layout = layout.ok_or(state.out_of_slots())?;
            let counters_fit = Counters::fit(state.counters.len());
            let growing = counters_fit.then(|| Growing::begun(table, layout, state.entries));
            let growing = growing.flatten().ok_or(FullError::NoMemory)?;
            state.rename_counters(&growing);
            Ok(growing)
        })?;
        Ok(Writer { table, state })
    }

    /// [`marked_layout`](Self::marked_layout), if the filter is growable.
    fn layout_to_grow_in(&self) -> Option<Layout> {
        self.marked_layout().filter(|_| self.state.profile.growable)
    }

    /// Makes room for `additional` more distinct keys now.
    pub(crate) fn reserve(&mut self, additional: u64) -> Result<(), FullError> {
        let entries = self.state.entries.saturating_add(additional);
        let has_room = match self.buckets.growing() {
            None => entries <= self.state.profile.capacity,
            Some(growing) => !growing.is_overfull(entries),
        };
        if has_room {
            return Ok(());
        }
        let layout = self.layout_to_grow_in().ok_or(self.state.out_of_slots())?;
        let buckets = buckets_for(self.buckets.base(), layout, entries);
        let bytes = buckets.and_then(|buckets| table_bytes(layout, buckets));
        if !is_available(bytes.ok_or(self.state.out_of_slots())?) {
            return Err(FullError::NoMemory);
        }
        let mut writer = self.start_to_grow()?;
        writer.table.finish_widening();
        while writer.table.is_overfull(entries) {
            match writer.split_chunk() {
                Step::Done => {}
                Step::Refused => return Err(writer.state.out_of_slots()),
                Step::NoMemory => return Err(FullError::NoMemory),
            }
        }
        Ok(())
    }
}

impl<C: WriteCounters> Body<Buffer, C> {
    /// Moves the entries to the smallest table that holds them, but to none smaller than the one
    /// that was built. Changes nothing if there is no memory for it.
    pub(crate) fn shrink_to_fit(&mut self) {
        let Some(growing) = self.buckets.growing() else { return };
        let moved = |smaller: &mut _| self.state.moved(growing, smaller);
        if let Some((smaller, state)) = growing.in_fewer_buckets(self.state.entries, moved) {
            self.buckets = Buckets::Growing(smaller);
            let exact = mem::take(&mut self.state.exact);
            self.state = State { exact, ..state };
        }
    }
}

impl State<Counters> {
    /// Renames the counters after their entries in a growing table.
    fn rename_counters(&mut self, growing: &Growing<Buffer>) {
        let addresses = growing.geometry();
        let bits = CORE_BITS + addresses.base().fraction_bits();
        let named = self.counters.iter().map(|(name, count)| {
            let (bucket, fingerprint) = (name >> bits, name & !(u64::MAX << bits));
            (addresses.identity(&addresses.base().prefix(bucket, fingerprint)), count)
        });
        self.counters = Counters::from_iter(named);
    }
}
