//! The entries of a filter by name, ascending, with their copies.
//!
//! [Names](crate::address::geometry::Geometry::name) begin with a bucket of the entry, and both of
//! its buckets are in one segment. So they ascend with segments, and are sorted a segment at a
//! time: in memory for one segment. All end with the same bits, a one and zeros, which a patch
//! leaves out: so the gaps between names are small numbers.

use alloc::vec::Vec;

use super::bits::NoMemory;
use super::error::PatchError;
use crate::packing::SLOTS;
use crate::state::Body;
use crate::table::Table;

/// Refuses a filter that is not sound or has grown.
pub(super) fn check<B: AsRef<[u8]>>(body: &Body<B>) -> Result<(), PatchError> {
    if body.is_unverified() {
        body.verify().map_err(PatchError::Unsound)?;
    }
    if body.table.grows() { Err(PatchError::Grown) } else { Ok(()) }
}

/// Reads the names of a filter.
pub(super) struct Names<'a, B> {
    of: &'a Body<B>,
    /// The names of all slots of a segment in use.
    names: Vec<u64>,
}

impl<'a, B: AsRef<[u8]>> Names<'a, B> {
    pub(super) fn new(of: &'a Body<B>) -> Result<Self, NoMemory> {
        let mut names = Vec::new();
        names.try_reserve_exact(slots_of_segment(&of.table)).map_err(|_| NoMemory)?;
        Ok(Self { of, names })
    }

    /// The names in a segment, without their end, with copies.
    pub(super) fn of_segment(&mut self, segment: u64) -> impl Iterator<Item = (u64, u64)> {
        let Self { of: Body { table, state, .. }, names } = self;
        let buckets = u64::from(table.base().segment_buckets());
        let entries = (segment * buckets..(segment + 1) * buckets)
            .flat_map(|bucket| table.entries_of(bucket).map(|entry| table.name(&entry)));
        names.clear();
        names.extend(entries);
        names.sort_unstable();
        names.chunk_by(|one, next| one == next).map(|equal| {
            let beyond = state.side.counters.get(equal[0]).unwrap_or(0);
            (equal[0] >> end_bits(table), beyond.saturating_add(equal.len() as u64))
        })
    }
}

/// The bits of the end of a name: the one that follows its bits, and the zeros.
fn end_bits<B: AsRef<[u8]>>(table: &Table<B>) -> u32 {
    table.base().end_of_names() + 1
}

/// The name without its end that this is; `None` if it has too many bits.
pub(super) fn whole<B: AsRef<[u8]>>(table: &Table<B>, short: u64) -> Option<u64> {
    let end = end_bits(table);
    (short.leading_zeros() >= end).then(|| short << end | 1 << (end - 1))
}

/// The numbers of all segments.
pub(super) fn segments<B: AsRef<[u8]>>(table: &Table<B>) -> core::ops::Range<u64> {
    0..1 << table.base().segment_bits()
}

/// Slots of a segment.
pub(super) fn slots_of_segment<B: AsRef<[u8]>>(table: &Table<B>) -> usize {
    table.base().segment_buckets() as usize * SLOTS
}

/// The largest name that the entries of a segment can have; of the last segment, the largest
/// number.
pub(super) fn last_of_segment<B: AsRef<[u8]>>(table: &Table<B>, segment: u64) -> u64 {
    let geometry = table.base();
    let end = (segment + 1) * u64::from(geometry.segment_buckets());
    if end == geometry.buckets() {
        return u64::MAX;
    }
    (geometry.first_name(end) - 1) >> end_bits(table)
}
