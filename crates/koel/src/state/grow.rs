//! When a filter leaves the table of one size, and how memory is given back.

use core::ops::Range;

use super::Merge;
use super::{Body, Buckets, State, Writer, changing, reading};
use crate::address::geometry::CORE_BITS;
use crate::error::{FullError, MergeError};
use crate::image::sizing;
use crate::mem::buffer::Buffer;
use crate::packing::Layout;
use crate::state::counters::{Counters, ReadCounters, WriteCounters};
use crate::table::blocks::Hashes;
use crate::table::{Addressing, CuckooMut, Growing, has_room_for};

impl<B: AsRef<[u8]>, C: ReadCounters> Body<B, C> {
    /// The layout that the buckets have once they have grown, or would have.
    pub(crate) fn marked_layout(&self) -> Option<Layout> {
        let layout = self.buckets.layout();
        if layout.marks().is_some() { Some(layout) } else { sizing::marked_layout(layout) }
    }
}

impl Body<Buffer, Counters> {
    /// Adds a copy of a key; where `UNIQUE`, unless an entry matches it. True if it was added. The
    /// filter grows where it may and is full.
    #[inline]
    pub(crate) fn insert<const UNIQUE: bool>(&mut self, hash: u64) -> Result<bool, FullError> {
        match changing!(self, writer => writer.insert::<UNIQUE>(hash)) {
            Ok(added) => Ok(added),
            Err(full) => self.insert_growing(hash, full),
        }
    }

    /// Inserts a key for which a table of one size has no room.
    #[cold]
    #[inline(never)]
    fn insert_growing(&mut self, hash: u64, full: FullError) -> Result<bool, FullError> {
        if !self.grows_instead(full) {
            return Err(full);
        }
        self.start_to_grow()?.insert::<false>(hash)
    }

    /// Adds the keys in order; where `UNIQUE`, those that are not there. Whether a key was added
    /// goes to `added`, if that has so many.
    pub(crate) fn insert_each<const UNIQUE: bool>(
        &mut self,
        hashes: impl Hashes,
        added: &mut [bool],
    ) -> Result<(), FullError> {
        let (before, mut done) = (self.state.len, 0);
        loop {
            let first = done;
            let note = |keys: Range<usize>, are_new| {
                if UNIQUE {
                    done = keys.end;
                    added[keys].fill(are_new);
                }
            };
            let inserted = changing!(self, writer => {
                writer.insert_each::<UNIQUE>(hashes, first, note)
            });
            match inserted {
                Err(full) if self.grows_instead(full) => {
                    self.start_to_grow()?;
                }
                result => return result,
            }
            if !UNIQUE {
                done = usize::try_from(self.state.len - before).expect("one for each key");
            }
        }
    }

    /// Whether the filter grows instead of returning this error.
    fn grows_instead(&self, full: FullError) -> bool {
        self.buckets.fixed().is_some() && self.state.grows_instead(full)
    }

    /// The growing table. The first time, that is what the one of one size becomes, and the
    /// counters get the names that their entries have there.
    fn start_to_grow(&mut self) -> Result<Writer<'_, Growing<Buffer>, Counters>, FullError> {
        let layout = self.layout_to_grow_in();
        let state = &mut self.state;
        let table = self.buckets.grow(|table| {
            let growing = layout.and_then(|layout| Growing::begun(table, layout, state.entries));
            growing.inspect(|growing| state.rename_counters(growing)).ok_or(state.out_of_slots())
        })?;
        Ok(Writer { table, state })
    }

    /// The layout that the filter has once it has grown, if it may.
    fn layout_to_grow_in(&self) -> Option<Layout> {
        self.marked_layout().filter(|_| self.state.profile.growable)
    }

    /// Makes room for `additional` more distinct keys at once.
    pub(crate) fn reserve(&mut self, additional: u64) -> Result<(), FullError> {
        let entries = self.state.entries.saturating_add(additional);
        let has_room = match self.buckets.growing() {
            None => entries <= self.state.profile.capacity,
            Some(growing) => !growing.is_overfull(entries),
        };
        if has_room {
            return Ok(());
        }
        let (base, layout) = (self.buckets.base(), self.layout_to_grow_in());
        if !layout.is_some_and(|layout| has_room_for(base, layout, entries)) {
            return Err(self.state.out_of_slots());
        }
        let mut writer = self.start_to_grow()?;
        writer.table.finish_widening();
        while writer.table.is_overfull(entries) {
            if !writer.split_chunk() {
                return Err(writer.state.out_of_slots());
            }
        }
        Ok(())
    }

    /// The union with `other`, in a copy. It grows where it may and the union does not fit, or
    /// where one of both has grown.
    pub(crate) fn merged<B: AsRef<[u8]>, D: ReadCounters>(
        &self,
        other: &Body<B, D>,
        counts: Merge,
    ) -> Result<Self, MergeError> {
        if let (Some(_), Some(_)) = (self.buckets.fixed(), other.buckets.fixed()) {
            let mut union = self.clone();
            match union.merge_entries(other, counts) {
                Err(full) if self.grows_instead(full) => {}
                merged => return Ok(merged.map(|()| union)?),
            }
        }
        if !self.state.profile.growable {
            return Err(MergeError::Incompatible { field: "growth" });
        }
        let (ours, theirs) = (self.state.entries, other.state.entries);
        let mut room = match counts {
            Merge::Sum => theirs,
            Merge::Max => theirs.saturating_sub(ours),
        };
        loop {
            match self.merged_with_room(other, counts, room) {
                // The halves of void entries, which growth has spread over many buckets, are all in
                // two of a table that is too small.
                Err(FullError::Slots { .. }) if room < other.slots() => {
                    room = room.saturating_mul(2).max(1);
                }
                merged => return Ok(merged?),
            }
        }
    }

    /// The union with `other`, in a filter with room for so many entries more before it grows.
    fn merged_with_room<B: AsRef<[u8]>, D: ReadCounters>(
        &self,
        other: &Body<B, D>,
        counts: Merge,
        room: u64,
    ) -> Result<Self, FullError> {
        let mut union = self.clone();
        // Entries come in the order of their buckets, and would fill some of the buckets that
        // growth makes and not others.
        union.reserve(room)?;
        union.start_to_grow()?.table.finish_widening();
        union.merge_entries(other, counts)?;
        Ok(union)
    }
}

impl<C: WriteCounters> Body<Buffer, C> {
    /// Adds the entries of `other`. After a failure this body must be dropped.
    pub(crate) fn merge_entries<B: AsRef<[u8]>, D: ReadCounters>(
        &mut self,
        other: &Body<B, D>,
        counts: Merge,
    ) -> Result<(), FullError> {
        changing!(self, writer => reading!(other, reader => writer.merge(reader, counts)))
    }

    /// Moves the entries to the smallest table that takes them, down to the size that the buckets
    /// were built with.
    pub(crate) fn shrink_to_fit(&mut self) {
        let Some(growing) = self.buckets.growing() else { return };
        let moved = |smaller: &mut _| self.state.moved(growing, smaller);
        if let Some((smaller, state)) = growing.in_fewer_buckets(self.state.entries, moved) {
            self.buckets = Buckets::Growing(smaller);
            self.state = state;
        }
    }
}

impl State<Counters> {
    /// Gives the counters the names that their entries have in a growing table.
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
