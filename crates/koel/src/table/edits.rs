//! Edits of a block of keys, planned all at once: which of its two buckets a new entry goes to or
//! an old one leaves, and which bits of that bucket change. Vector code works it out for all 64
//! keys before the first bucket is written.
//!
//! A planned edit holds only while both buckets are what they were when they were read. Another
//! entry of the same block may have changed one of them, or the bucket that follows it in the same
//! eight bytes. In a table of m buckets that happens to about 100 of m entries. An edit that does
//! not hold, or that was not planned, is made as if it came alone (pair.rs). So the bytes are those
//! of edits made one after the other.
//!
//! In a filter for 100,000 keys that is less than two thirds full, an insert takes 4.8 ns instead
//! of 7.9 in plain buckets. In semi-sorted ones, whose codes are then computed instead of read from
//! a table, it takes 9.0 ns instead of 16 (docs/decisions/0011-inserts.md).

use core::ops::Range;

use super::pair::BucketPairMut;
use super::{Buckets, Table};
use crate::address::geometry::Locations;
use crate::mem::buffer::Buffer;
use crate::mem::unchecked::Reader;
use crate::mem::vector::{BLOCK, Column, InstructionSet};
use crate::packing::{AnyPacking, Narrow, Packing, is_near};

/// Edits that put entries in.
pub(crate) const PUTS: bool = false;
/// Edits that take entries out.
pub(crate) const TAKES: bool = true;

/// The planned edits of a block. Where `TAKES`, an entry that is in one of its buckets once is
/// taken out. Otherwise a new entry is put in, if there is room for it.
#[repr(align(64))]
pub(crate) struct BlockEdits<const TAKES: bool> {
    /// Both buckets as they were read, with what follows them.
    seen: [Column; 2],
    /// Their nibbles, of semi-sorted ones alone.
    nibbles: [Column; 2],
    /// All ones where the other bucket changes.
    other: Column,
    /// The bits of it that change; 0 where nothing is planned.
    change: Column,
}

impl<const TAKES: bool> BlockEdits<TAKES> {
    pub(crate) fn new() -> Self {
        let column = [0; BLOCK];
        Self { seen: [column; 2], nibbles: [column; 2], other: column, change: column }
    }

    /// Makes edit `i`, if it holds.
    #[inline(always)]
    fn apply(&self, i: usize, pair: BucketPairMut<'_>) -> bool {
        match pair.packing {
            AnyPacking::Plain64(packing, _) => self.apply_in(packing, i, pair),
            AnyPacking::Sorted64(packing, _) => self.apply_in(packing, i, pair),
            _ => false,
        }
    }

    #[inline(always)]
    fn apply_in(&self, packing: &impl Narrow, i: usize, mut pair: BucketPairMut<'_>) -> bool {
        let [home, other] = pair.words(packing);
        let holds = home == self.seen[0][i] && other == self.seen[1][i] && self.change[i] != 0;
        if holds {
            pair.flip(packing, self.other[i] != 0, self.change[i]);
        }
        holds
    }

    #[inline(always)]
    fn plan<P: Narrow>(&mut self, packing: &P, slots: &Column) {
        for (i, &slot) in slots.iter().enumerate() {
            let words =
                [(self.seen[0][i], self.nibbles[0][i]), (self.seen[1][i], self.nibbles[1][i])];
            (self.other[i], self.change[i]) = if TAKES {
                packing.only_entry(words, slot)
            } else {
                packing.new_entry(words, slot)
            };
        }
    }
}

/// Edits of smaller tables are not planned: too many entries of a block meet there.
const SMALL: usize = if cfg!(test) { 0 } else { 16 << 10 };
/// Nor are those of larger tables than these, of plain buckets and of semi-sorted ones. The memory
/// has nothing to do while a block is edited, and there that costs more than it saves. Bulk builds
/// fill a segment of about 2 MiB at a time.
const LARGE_PLAIN: usize = 4 << 20;
const LARGE_SORTED: usize = 16 << 20;

impl Table<Buffer> {
    /// Whether a batch of edits is planned in this table.
    pub(crate) fn plans_edits<const TAKES: bool>(&self) -> bool {
        let most = match &self.packing {
            _ if self.grows() => return false,
            AnyPacking::Plain64(..) => LARGE_PLAIN,
            AnyPacking::Sorted64(packing, _) if TAKES || packing.plans_entries() => LARGE_SORTED,
            _ => return false,
        };
        (SMALL..=most).contains(&self.bytes().len())
    }

    /// Plans the edits of the `ready` block, whose entries are fingerprints. Prefetches the buckets
    /// of the `coming` block meanwhile.
    pub(crate) fn plan_edits<const TAKES: bool>(
        &self,
        ready: &Locations,
        coming: &Locations,
        edits: &mut BlockEdits<TAKES>,
    ) {
        match &self.packing {
            AnyPacking::Plain64(packing, _) => self.plan_edits_in(packing, ready, coming, edits),
            AnyPacking::Sorted64(packing, _) => self.plan_edits_in(packing, ready, coming, edits),
            _ => unreachable!("`plans_edits` says for which packings edits are planned"),
        }
    }

    fn plan_edits_in<P: Narrow + Packing, const TAKES: bool>(
        &self,
        packing: &P,
        ready: &Locations,
        coming: &Locations,
        edits: &mut BlockEdits<TAKES>,
    ) {
        let looks_ahead = P::PREFETCHES_NEAR || !is_near(self.bytes().len());
        let set = InstructionSet::best();
        let reader = Reader::new(self.bytes(), ready.bytes(), 0, set);
        for i in 0..BLOCK {
            if looks_ahead {
                self.prefetch_both(coming, i);
            }
            let shifts = ready.bits(i).map(|start| P::position_at(start).1);
            let home = packing.open(reader.read(0, i) >> shifts[0]);
            let other = packing.open(reader.read(1, i) >> shifts[1]);
            (edits.seen[0][i], edits.seen[1][i]) = (home.0, other.0);
            if P::PREFETCHES_NEAR {
                (edits.nibbles[0][i], edits.nibbles[1][i]) = (home.1, other.1);
            }
        }
        set.run(
            #[inline(always)]
            || edits.plan(packing, ready.fingerprints()),
        );
    }

    /// Makes the edits of these keys of the block as planned, in order. Returns the number of the
    /// first one that is not `wanted`, was not planned or does not hold.
    #[inline(always)]
    pub(crate) fn apply_edits<const TAKES: bool>(
        &mut self,
        mut keys: Range<usize>,
        locations: &Locations,
        edits: &BlockEdits<TAKES>,
        wanted: impl Fn(usize) -> bool,
    ) -> usize {
        let end = keys.end;
        let stop = keys.find(|&i| !(wanted(i) && edits.apply(i, self.pair_at(locations.bits(i)))));
        stop.unwrap_or(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::geometry::Geometry;
    use crate::mem::vector::each_set;
    use crate::packing::{Codec, Layout};
    use crate::table::{Put, Taken, table_bytes};
    use alloc::vec::Vec;
    use testkit::keys::splitmix64 as hash;

    fn table(codec: Codec, width: u32, buckets: u32) -> Table<Buffer> {
        let layout = Layout::new(codec, width, 0).unwrap();
        let geometry = Geometry::new(0, buckets, width);
        let bytes = table_bytes(layout, geometry.buckets()).unwrap();
        Table::fixed(geometry, layout, Buffer::zeroed(bytes, false).unwrap())
    }

    /// Tables of 600 buckets, in which hundreds of entries of a block share buckets.
    fn tables() -> impl Iterator<Item = Table<Buffer>> {
        let plain = [8, 12, 16].map(|width| (Codec::Plain, width));
        let sorted = [10, 13, 17].map(|width| (Codec::SemiSorted, width));
        plain.into_iter().chain(sorted).map(|(codec, width)| table(codec, width, 600))
    }

    /// Calls `work` with the locations of `blocks` blocks of hashes.
    fn in_blocks(
        table: &mut Table<Buffer>,
        set: InstructionSet,
        blocks: u64,
        mut work: impl FnMut(&mut Table<Buffer>, &Locations),
    ) {
        let mut locations = Locations::new();
        for block in 0..blocks {
            let hashes = core::array::from_fn(|i| hash(block << 8 | i as u64));
            table.locate_many(set, |column| *column = hashes, &mut locations);
            work(table, &locations);
        }
    }

    /// At the end, most entries find no room.
    #[test]
    fn planned_inserts_make_the_bytes_of_single_inserts() {
        each_set(|set| {
            for mut table in tables() {
                assert!(table.plans_edits::<PUTS>());
                let mut one_by_one = table.copy_in(Vec::new(), false).unwrap();
                let mut edits = BlockEdits::<PUTS>::new();
                let (mut planned, mut alone, mut refused) = (0, 0, 0);
                in_blocks(&mut table, set, 40, |table, locations| {
                    table.plan_edits(locations, locations, &mut edits);
                    for i in 0..BLOCK {
                        let slot = locations.fingerprints()[i];
                        let put = one_by_one.pair_mut(locations.buckets(i)).put(slot, 0);
                        if table.apply_edits(i..i + 1, locations, &edits, |_| true) > i {
                            assert_eq!(put, Put::Done);
                            planned += 1;
                        } else {
                            assert_eq!(table.pair_at(locations.bits(i)).put(slot, 0), put);
                            alone += u32::from(put == Put::Done);
                            refused += u32::from(put != Put::Done);
                        }
                    }
                    assert!(table.bytes() == one_by_one.bytes(), "{set:?}");
                });
                let counts = [planned > 1000, alone > 100, refused > 50];
                assert!(counts == [true; 3], "{planned} {alone} {refused}");
            }
        });
    }

    /// A third of the entries are in the table twice. A third of the entries to remove are absent.
    #[test]
    fn planned_removals_make_the_bytes_of_single_removals() {
        each_set(|set| {
            // The lanes of the last table do not show the core of a fingerprint.
            for mut table in tables().chain([table(Codec::SemiSorted, 9, 600)]) {
                assert!(table.plans_edits::<TAKES>());
                in_blocks(&mut table, set, 20, |table, locations| {
                    for i in 0..BLOCK {
                        for copy in 0..[1, 0, 2][i % 3] {
                            table
                                .pair_mut(locations.buckets(i))
                                .put(locations.fingerprints()[i], copy);
                        }
                    }
                });
                let mut one_by_one = table.copy_in(Vec::new(), false).unwrap();
                let mut edits = BlockEdits::<TAKES>::new();
                let (mut planned, mut copies, mut absent) = (0, 0, 0);
                in_blocks(&mut table, set, 20, |table, locations| {
                    table.plan_edits(locations, locations, &mut edits);
                    for i in 0..BLOCK {
                        let slot = locations.fingerprints()[i];
                        let taken = one_by_one.pair_mut(locations.buckets(i)).take(slot);
                        if table.apply_edits(i..i + 1, locations, &edits, |_| true) > i {
                            assert_eq!(taken, Taken::Last);
                            planned += 1;
                        } else {
                            assert_eq!(table.pair_at(locations.bits(i)).take(slot), taken);
                            copies += u32::from(taken == Taken::Copy);
                            absent += u32::from(taken == Taken::Absent);
                        }
                    }
                    assert!(table.bytes() == one_by_one.bytes(), "{set:?}");
                });
                let counts = [planned > 100, copies > 100, absent > 100];
                assert!(counts == [true; 3], "{planned} {copies} {absent}");
            }
        });
    }

    #[test]
    fn edits_of_wide_buckets_and_inserts_into_lanes_without_the_core_are_not_planned() {
        for (codec, width, takes) in [
            (Codec::Plain, 24, false),
            (Codec::SemiSorted, 18, false),
            (Codec::SemiSorted, 9, true),
        ] {
            let table = table(codec, width, 10);
            assert!(!table.plans_edits::<PUTS>(), "{codec:?}, {width}");
            assert_eq!(table.plans_edits::<TAKES>(), takes, "{codec:?}, {width}");
        }
    }
}
