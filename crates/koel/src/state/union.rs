//! The union of two bodies.
//!
//! It is built in a copy (`merge.rs` adds the entries), so that a union that does not fit changes
//! nothing. O(buckets), and twice the memory until it is done.

use super::{Body, Merge, changing, reading};
use crate::error::{FullError, MergeError};
use crate::mem::buffer::Buffer;
use crate::state::counters::{Counters, ReadCounters};
use crate::table::CuckooMut;

impl<B: AsRef<[u8]>, C: ReadCounters> Body<B, C> {
    /// Whether equal keys have comparable entries in both bodies.
    ///
    /// # Errors
    /// [`MergeError::Incompatible`] with the first setting that differs.
    pub(crate) fn check_alike<O: AsRef<[u8]>, D: ReadCounters>(
        &self,
        other: &Body<O, D>,
    ) -> Result<(), MergeError> {
        let is_fixed = self.buckets.fixed().is_some();
        let are_laid_out_alike = if is_fixed == other.buckets.fixed().is_some() {
            self.buckets.layout() == other.buckets.layout()
        } else {
            self.marked_layout().is_some() && self.marked_layout() == other.marked_layout()
        };
        let (ours, theirs) = (self.state.profile, other.state.profile);
        let [our_keys, their_keys] = [ours, theirs].map(|profile| profile.kind_of_keys());
        let (ours, theirs) = (ours.route, theirs.route);
        MergeError::unless_alike([
            ("layout", are_laid_out_alike),
            ("size", self.buckets.base() == other.buckets.base()),
            ("hash", ours.hasher() == theirs.hasher()),
            ("route", ours.trusts_hashes() == theirs.trusts_hashes()),
            ("application bytes", our_keys == their_keys),
        ])
    }
}

impl Body<Buffer, Counters> {
    /// Adds the keys of `other`. A view is verified first.
    pub(crate) fn merge<B: AsRef<[u8]>, C: ReadCounters>(
        &mut self,
        other: &Body<B, C>,
        counts: Merge,
    ) -> Result<(), MergeError> {
        self.check_alike(other)?;
        if other.is_unverified() {
            other.verify().map_err(MergeError::Unsound)?;
        }
        *self = self.merged(other, counts)?;
        Ok(())
    }

    /// The union with `other`. A growable one grows if the union does not fit, or if one of both
    /// has grown.
    fn merged<B: AsRef<[u8]>, C: ReadCounters>(
        &self,
        other: &Body<B, C>,
        counts: Merge,
    ) -> Result<Self, MergeError> {
        if let (Some(_), Some(_)) = (self.buckets.fixed(), other.buckets.fixed()) {
            let mut union = self.copy()?;
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
                // Growth has spread the halves of void entries over many buckets. In a table that
                // is too small they are all in two.
                Err(MergeError::Full(FullError::Slots { .. })) if room < other.slots() => {
                    room = room.saturating_mul(2).max(1);
                }
                merged => return merged,
            }
        }
    }

    /// The union with `other` in a growing table, with room made for this many more entries.
    fn merged_with_room<B: AsRef<[u8]>, C: ReadCounters>(
        &self,
        other: &Body<B, C>,
        counts: Merge,
        room: u64,
    ) -> Result<Self, MergeError> {
        let mut union = self.copy()?;
        // The entries come in the order of their buckets. Without room, they would fill some of the
        // buckets that growth makes, and not others.
        union.reserve(room)?;
        union.start_to_grow()?.table.finish_widening();
        union.merge_entries(other, counts)?;
        Ok(union)
    }

    /// Adds the entries of `other`. After a failure this body must be dropped.
    fn merge_entries<B: AsRef<[u8]>, C: ReadCounters>(
        &mut self,
        other: &Body<B, C>,
        counts: Merge,
    ) -> Result<(), FullError> {
        changing!(self, writer => reading!(other, reader => writer.merge(reader, counts)))
    }
}
