//! Growth: when a filter leaves its fixed table, and how a table becomes smaller again.

use super::merge::Crowded;
use super::{Body, State};
use crate::error::FullError;
use crate::image::{Kind, sizing};
use crate::mem::buffer::{Buffer, is_available};
use crate::packing::Layout;
use crate::table::{LinearHashing, Step, Table, buckets_for, table_bytes};

impl<B: AsRef<[u8]>> Body<B> {
    /// The layout of the buckets in a growing table: the present one, or for a filter that has not
    /// grown, the one that it would have. `None` if it cannot grow.
    pub(super) fn marked_layout(&self) -> Option<Layout> {
        let layout = self.table.layout();
        match layout.marks() {
            Some(_) => Some(layout),
            None if self.state.kind() == Kind::Filter => sizing::marked_layout(layout),
            None => None,
        }
    }
}

impl<B: AsRef<[u8]>> Body<B> {
    /// [`marked_layout`](Self::marked_layout), if the filter is growable.
    pub(crate) fn layout_to_grow_in(&self) -> Option<Layout> {
        self.marked_layout().filter(|_| self.state.profile.growable)
    }

    /// The addresses of a filter like this one that has grown to so many buckets, if there is one.
    pub(crate) fn addresses_grown_to(&self, buckets: u64) -> Option<LinearHashing> {
        LinearHashing::grown(self.table.base(), self.layout_to_grow_in()?.marks()?, buckets)
    }

    /// An empty filter like this one that has grown to so many buckets. `None` if there is no such
    /// filter, or no memory for it.
    pub(crate) fn grown_to(&self, buckets: u64) -> Option<Body<Buffer>> {
        let (addresses, layout) = (self.addresses_grown_to(buckets)?, self.layout_to_grow_in()?);
        let bytes = Buffer::zeroed(table_bytes(layout, buckets)?, true)?;
        let table = Table::new(addresses, layout, bytes);
        Some(Body::new(table, State::new(self.state.kind(), self.state.profile)))
    }
}

impl Body<Buffer> {
    /// Whether the filter grows instead of returning this error.
    pub(super) fn grows_instead(&self, full: FullError) -> bool {
        !self.table.grows() && self.state.grows_instead(full)
    }

    /// Makes the table one that grows, if it is not.
    pub(super) fn start_to_grow(&mut self) -> Result<(), FullError> {
        if self.table.grows() {
            return Ok(());
        }
        let layout = self.layout_to_grow_in().ok_or(self.state.out_of_slots())?;
        let begun = self.table.begin_to_grow(layout, self.state.entries);
        if begun { Ok(()) } else { Err(FullError::NoMemory) }
    }

    /// Makes room for `additional` more distinct keys now.
    pub(crate) fn reserve(&mut self, additional: u64) -> Result<(), FullError> {
        let entries = self.state.entries.saturating_add(additional);
        let has_room = if self.table.grows() {
            !self.table.is_overfull(entries)
        } else {
            entries <= self.state.profile.capacity
        };
        if has_room {
            return Ok(());
        }
        let layout = self.layout_to_grow_in().ok_or(self.state.out_of_slots())?;
        let buckets = buckets_for(self.table.base(), layout, entries);
        let bytes = buckets.and_then(|buckets| table_bytes(layout, buckets));
        if !is_available(bytes.ok_or(self.state.out_of_slots())?) {
            return Err(FullError::NoMemory);
        }
        self.start_to_grow()?;
        self.table.finish_widening();
        while self.table.is_overfull(entries) {
            match self.split_chunk() {
                Step::Done => {}
                Step::Refused => return Err(self.state.out_of_slots()),
                Step::NoMemory => return Err(FullError::NoMemory),
            }
        }
        Ok(())
    }
}

impl Body<Buffer> {
    /// Moves the entries to the smallest table that holds them, but to none smaller than the one
    /// that was built. Changes nothing if there is no memory for it.
    pub(crate) fn shrink_to_fit(&mut self) {
        let State { kind, profile, .. } = self.state;
        let corrections = self.state.side.corrections.len();
        let smaller = |crowded| {
            self.table.smaller(self.state.entries).find_map(|table| {
                let mut smaller = Self::new(table, State::new(kind, profile));
                smaller.add_all(self, crowded).ok()?;
                let has_room = smaller.most_corrections() >= corrections;
                (has_room && smaller.table.buckets() < self.table.buckets()).then_some(smaller)
            })
        };
        let smaller = smaller(Crowded::Refuse).or_else(|| smaller(Crowded::Share));
        if let Some(Self { table, state, .. }) = smaller {
            self.table = table;
            self.state.side.counters = state.side.counters;
            (self.state.entries, self.state.spares) = (state.entries, state.spares);
        }
    }
}
