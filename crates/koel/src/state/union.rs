//! The union of two bodies.
//!
//! It is built in a copy (`merge.rs` adds the entries), so that a union that does not fit changes
//! nothing. O(buckets), and twice the memory until it is done.

use alloc::vec::Vec;

use super::{Body, Merge, changing, reading};
use crate::error::{FullError, MergeError};
use crate::mem::buffer::Buffer;
use crate::state::counters::{Counters, ReadCounters};
use crate::state::exact::{Exact, ReadExact};
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
        .map_err(|error| {
            error.with_sizes(self.state.profile.capacity, other.state.profile.capacity)
        })
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
        let (answers, ours) = (self.exact_union(other, counts)?, self.state.len);
        self.state.exact = Exact::default();
        changing!(self, writer => reading!(other, reader => writer.merge(reader, counts)))?;
        self.settle_union(answers, counts);
        self.state.len = self.len_of_union(ours, other.state.len)?;
        Ok(())
    }

    /// The keys of two filters, in their union: the sum, or what the union holds if that is less.
    /// Both are at least what is in: the table is emptied with its last key, and not before.
    fn len_of_union(&self, ours: u64, theirs: u64) -> Result<u64, FullError> {
        let held = reading!(self, reader => reader.held());
        u64::try_from((u128::from(ours) + u128::from(theirs)).min(held))
            .map_err(|_| FullError::Overflow)
    }

    /// Every address that has an exact answer in one of both, with what it has in the union: its
    /// copies beside the table of a sum, or in all of the larger count. A correction stays if the
    /// other filter does not report the key.
    fn exact_union<B: AsRef<[u8]>, C: ReadCounters>(
        &self,
        other: &Body<B, C>,
        counts: Merge,
    ) -> Result<Vec<(u64, u64)>, FullError> {
        let (ours, theirs) = (&self.state.exact, &other.state.exact);
        let mut union = Vec::new();
        let answers: u64 = ours.lens().into_iter().chain(theirs.lens()).sum();
        let answers = usize::try_from(answers).map_err(|_| FullError::NoMemory)?;
        union.try_reserve_exact(answers).map_err(|_| FullError::NoMemory)?;
        let stashed = |address| {
            let copies = [ours.copies(address), theirs.copies(address)].map(|it| it.unwrap_or(0));
            match counts {
                Merge::Sum => copies[0].saturating_add(copies[1]),
                Merge::Max => self.count(address).max(other.count(address)),
            }
        };
        let addresses = ours.stash().chain(theirs.stash()).map(|(address, _)| address);
        union.extend(addresses.map(|address| (address, stashed(address))));
        let corrected = ours.corrections().filter(|&it| other.count(it) == 0);
        let corrected = corrected.chain(theirs.corrections().filter(|&it| self.count(it) == 0));
        union.extend(corrected.map(|address| (address, 0)));
        union.sort_unstable();
        union.dedup();
        Ok(union)
    }

    /// Gives the union of the tables its exact answers. Where the larger count holds, the stash has
    /// what the table does not count.
    fn settle_union(&mut self, answers: Vec<(u64, u64)>, counts: Merge) {
        let of_table = |body: &Self, address| reading!(body, reader => reader.count_key(address));
        for (address, copies) in answers {
            let beside = match counts {
                Merge::Sum => copies,
                Merge::Max => copies.saturating_sub(of_table(self, address)),
            };
            if copies == 0 {
                self.state.exact.correct(address);
            } else {
                self.state.exact.stash_copies(address, beside);
            }
        }
    }
}
