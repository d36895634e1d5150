//! The union of two bodies.
//!
//! It is built in a copy (`merge.rs` adds the entries), so that a union that does not fit changes
//! nothing. O(buckets), and twice the memory until it is done.

use alloc::vec::Vec;

use super::merge::Crowded;
use super::{Body, Merge};
use crate::error::{FullError, MergeError};
use crate::mem::buffer::Buffer;

impl<B: AsRef<[u8]> + Sync> Body<B> {
    /// Whether equal keys have comparable entries in both bodies.
    ///
    /// # Errors
    /// [`MergeError::Incompatible`] with the first setting that differs.
    pub(crate) fn check_alike<O: AsRef<[u8]> + Sync>(
        &self,
        other: &Body<O>,
    ) -> Result<(), MergeError> {
        let are_laid_out_alike = if self.table.grows() == other.table.grows() {
            self.layout() == other.layout()
        } else {
            self.marked_layout().is_some() && self.marked_layout() == other.marked_layout()
        };
        let (ours, theirs) = (self.state.profile, other.state.profile);
        let [our_keys, their_keys] = [ours, theirs].map(|profile| profile.kind_of_keys());
        let (ours, theirs) = (ours.route, theirs.route);
        MergeError::unless_alike([
            ("layout", are_laid_out_alike),
            ("size", self.table.base() == other.table.base()),
            ("hash", ours.hasher() == theirs.hasher()),
            ("route", ours.trusts_hashes() == theirs.trusts_hashes()),
            ("application bytes", our_keys == their_keys),
        ])
        .map_err(|error| {
            error.with_sizes(self.state.profile.capacity, other.state.profile.capacity)
        })
    }
}

impl Body<Buffer> {
    /// Adds the keys of `other`. A view is verified first.
    pub(crate) fn merge<B: AsRef<[u8]> + Sync>(
        &mut self,
        other: &Body<B>,
        counts: Merge,
    ) -> Result<(), MergeError> {
        self.check_alike(other)?;
        other.require_sound()?;
        *self = self.merged(other, counts)?;
        Ok(())
    }

    /// The union with `other`. A growable one grows if the union does not fit, or if one of both
    /// has grown.
    fn merged<B: AsRef<[u8]> + Sync>(
        &self,
        other: &Body<B>,
        counts: Merge,
    ) -> Result<Self, MergeError> {
        if !self.table.grows() && !other.table.grows() {
            let mut union = self.copy()?;
            match union.merge_entries(self, other, counts, Crowded::Refuse) {
                Err(full) if self.grows_instead(full) => {}
                merged => return Ok(merged.map(|()| union)?),
            }
        }
        if !self.state.profile.growable {
            return Err(MergeError::Incompatible { field: "growth" });
        }
        let (ours, theirs) = (self.state.entries, other.state.entries);
        let room = match counts {
            Merge::Sum => theirs,
            Merge::Max => theirs.saturating_sub(ours),
        };
        match self.merged_grown(other, counts, room, Crowded::Refuse) {
            Err(MergeError::Full(FullError::Slots { .. })) => {
                self.merged_grown(other, counts, room, Crowded::Share)
            }
            merged => merged,
        }
    }

    /// The union with `other` in a growing table, with room made for this many more entries, or for
    /// more.
    fn merged_grown<B: AsRef<[u8]> + Sync>(
        &self,
        other: &Body<B>,
        counts: Merge,
        mut room: u64,
        crowded: Crowded,
    ) -> Result<Self, MergeError> {
        loop {
            match self.merged_with_room(other, counts, room, crowded) {
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
    fn merged_with_room<B: AsRef<[u8]> + Sync>(
        &self,
        other: &Body<B>,
        counts: Merge,
        room: u64,
        crowded: Crowded,
    ) -> Result<Self, MergeError> {
        let mut union = self.copy()?;
        // The entries come in the order of their buckets. Without room, they would fill some of the
        // buckets that growth makes, and not others.
        union.reserve(room)?;
        union.start_to_grow()?;
        union.table.finish_widening();
        union.merge_entries(self, other, counts, crowded)?;
        Ok(union)
    }

    /// Adds the entries of `other` to a copy of `before`. After a failure it must be dropped.
    fn merge_entries<B: AsRef<[u8]> + Sync>(
        &mut self,
        before: &Self,
        other: &Body<B>,
        counts: Merge,
        crowded: Crowded,
    ) -> Result<(), FullError> {
        let (answers, ours) = (self.exact_union(other, counts)?, self.state.len);
        (self.state.side.stash, self.state.side.corrections) = Default::default();
        self.merge_table(before, other, counts, crowded)?;
        self.settle_union(answers, counts)?;
        self.state.len = self.len_of_union(ours, other.state.len)?;
        Ok(())
    }

    /// The keys of two filters, in their union: the sum, or what the union holds if that is less.
    /// Both are at least what is in: the table is emptied with its last key, and not before. The
    /// keys of the stash are in.
    fn len_of_union(&self, ours: u64, theirs: u64) -> Result<u64, FullError> {
        let (held, stashed) = (self.held(), self.state.side.stash.sum());
        u64::try_from((u128::from(ours) + u128::from(theirs)).min(held).max(stashed))
            .map_err(|_| FullError::Overflow)
    }

    /// Every address that has an exact answer in one of both, with what it has in the union: its
    /// copies beside the table of a sum, or in all of the larger count. A correction stays if the
    /// other filter does not report the key.
    fn exact_union<B: AsRef<[u8]> + Sync>(
        &self,
        other: &Body<B>,
        counts: Merge,
    ) -> Result<Vec<(u64, u64)>, FullError> {
        let (ours, theirs) = (&self.state.side, &other.state.side);
        let mut union = Vec::new();
        let stashes = ours.stash.len() + theirs.stash.len();
        let answers = stashes + ours.corrections.len() + theirs.corrections.len();
        let answers = usize::try_from(answers).map_err(|_| FullError::NoMemory)?;
        union.try_reserve_exact(answers).map_err(|_| FullError::NoMemory)?;
        for (address, _) in ours.stashed_keys().chain(theirs.stashed_keys()) {
            let copies = match counts {
                Merge::Sum => ours.stashed(address).checked_add(theirs.stashed(address)),
                Merge::Max => Some(self.count(address).max(other.count(address))),
            };
            union.push((address, copies.ok_or(FullError::Overflow)?));
        }
        let corrected = ours.corrections.iter().filter(|it| other.count(it.0) == 0);
        let corrected =
            corrected.chain(theirs.corrections.iter().filter(|it| self.count(it.0) == 0));
        union.extend(corrected.map(|(address, _)| (address, 0)));
        union.sort_unstable();
        union.dedup();
        Ok(union)
    }

    /// Gives the union of the tables its exact answers. Where the larger count holds, the stash has
    /// what the table does not count.
    ///
    /// # Errors
    /// [`FullError::Corrections`] if there are more than slots.
    fn settle_union(&mut self, answers: Vec<(u64, u64)>, counts: Merge) -> Result<(), FullError> {
        for (address, copies) in answers {
            let beside = match counts {
                Merge::Sum => copies,
                Merge::Max => copies.saturating_sub(self.count_key(address)),
            };
            if copies == 0 {
                self.state.side.correct(address);
            } else {
                self.state.side.stash_copies((address, 0), beside);
            }
        }
        let limit = self.most_corrections();
        let are_few = self.state.side.corrections.len() <= limit;
        if are_few { Ok(()) } else { Err(FullError::Corrections { limit }) }
    }
}
