//! Changes of a block of places at once: which of its two buckets a new entry goes to, or an old
//! one leaves, and which bits of that change. Vector code works it out for all before the first is
//! written.
//!
//! A plan holds only while both buckets are what they were when they were read: another entry of
//! the same block may have changed one of them, or the one that follows it in the same eight bytes.
//! In a table of m buckets that happens to about 100 of m entries. Where it does not hold, and
//! where nothing is planned, the change is made as if it came alone (`at.rs`). So the bytes are
//! those of changes made one after the other.
//!
//! In a filter for 100,000 keys that is not yet two thirds full, an insert takes 4.8 ns instead of
//! 7.9 in plain buckets and 9.0 instead of 16 in semi-sorted ones, whose codes are then computed
//! instead of read from a table (docs/decisions/0006-speed.md).

use core::ops::Range;

use super::pair::{BlockMut, PairBytes};
use super::{Buckets, Table};
use crate::address::geometry::Locations;
use crate::mem::buffer::Buffer;
use crate::mem::unchecked::Reader;
use crate::mem::vector::{BLOCK, Column, InstructionSet};
use crate::packing::{AnyPacking, Narrow, Packing, is_near};

/// What becomes of the buckets of a block of places: where `TAKES`, an entry that is in one of them
/// once is taken out, otherwise a new one is put in where there is room for it.
#[repr(align(64))]
pub(crate) struct BlockEdits<const TAKES: bool> {
    /// Both buckets as they were when they were read, with what follows them, and their nibbles, of
    /// semi-sorted ones alone.
    seen: [Column; 2],
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

    #[inline(always)]
    fn carry_out(&self, packing: &impl Narrow, i: usize, mut pair: PairBytes<'_>) -> bool {
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

/// Tables of fewer bytes are not planned for: too many entries of a block meet there.
const SMALL: usize = if cfg!(test) { 0 } else { 16 << 10 };
/// Nor for larger ones than these, of plain buckets and of semi-sorted ones. The memory has nothing
/// to do while a block is changed, and there that costs more than it saves. Bulk builds fill a
/// segment of about 2 MiB at a time.
const LARGE_PLAIN: usize = 4 << 20;
const LARGE_SORTED: usize = 16 << 20;

impl Table<Buffer> {
    /// Whether the changes of its buckets are planned.
    pub(crate) fn has_plans<const TAKES: bool>(&self) -> bool {
        let most = match &self.packing {
            AnyPacking::Plain64(_) => LARGE_PLAIN,
            AnyPacking::Sorted64(packing) if TAKES || packing.plans_entries() => LARGE_SORTED,
            _ => return false,
        };
        (SMALL..=most).contains(&self.bytes().len())
    }
}

impl BlockMut<'_, '_> {
    /// Plans the changes of all places, whose entries are their fingerprints, while the memory is
    /// asked for the buckets of the `coming` places.
    pub(crate) fn plan<const TAKES: bool>(
        &self,
        set: InstructionSet,
        coming: &Locations,
        plans: &mut BlockEdits<TAKES>,
    ) {
        match &self.table().packing {
            AnyPacking::Plain64(packing) => self.plan_in(packing, set, coming, plans),
            AnyPacking::Sorted64(packing) => self.plan_in(packing, set, coming, plans),
            _ => unreachable!("`has_plans` says for which packings there are plans"),
        }
    }

    fn plan_in<P: Narrow + Packing, const TAKES: bool>(
        &self,
        packing: &P,
        set: InstructionSet,
        coming: &Locations,
        plans: &mut BlockEdits<TAKES>,
    ) {
        let (table, locations) = (self.table(), self.locations());
        let looks_ahead = P::PREFETCHES_NEAR || !is_near(table.bytes().len());
        let reader = Reader::new(table.bytes(), locations.bytes(), 0, set);
        for i in 0..BLOCK {
            if looks_ahead {
                table.prefetch_both(coming, i);
            }
            let shifts = locations.bits(i).map(|start| P::position_at(start).1);
            let home = packing.open(reader.read(0, i) >> shifts[0]);
            let other = packing.open(reader.read(1, i) >> shifts[1]);
            (plans.seen[0][i], plans.seen[1][i]) = (home.0, other.0);
            if P::PREFETCHES_NEAR {
                (plans.nibbles[0][i], plans.nibbles[1][i]) = (home.1, other.1);
            }
        }
        set.run(
            #[inline(always)]
            || plans.plan(packing, locations.fingerprints()),
        );
    }

    /// Makes the changes of these places as planned, in order. Stops at the first that is not
    /// `wanted`, that is not planned, or of which a bucket is not what it was, and returns which it
    /// is.
    #[inline(always)]
    pub(crate) fn carry_out<const TAKES: bool>(
        &mut self,
        mut locations: Range<usize>,
        plans: &BlockEdits<TAKES>,
        wanted: impl Fn(usize) -> bool,
    ) -> usize {
        let (packing, mut pairs) = self.pairs();
        let end = locations.end;
        let stop = match packing {
            AnyPacking::Plain64(packing) => {
                locations.find(|&i| !(wanted(i) && plans.carry_out(packing, i, pairs.get(i))))
            }
            AnyPacking::Sorted64(packing) => {
                locations.find(|&i| !(wanted(i) && plans.carry_out(packing, i, pairs.get(i))))
            }
            _ => locations.next(),
        };
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
    use testkit::keys::splitmix64 as hash;

    fn table(codec: Codec, width: u32, buckets: u32) -> Table<Buffer> {
        let layout = Layout::new(codec, width, 0).unwrap();
        let geometry = Geometry::new(0, buckets, width);
        let bytes = table_bytes(layout, geometry.buckets()).unwrap();
        Table::new(geometry, layout, Buffer::zeroed(bytes, false).unwrap())
    }

    /// Tables of 600 buckets, in which hundreds of entries of a block meet.
    fn tables() -> impl Iterator<Item = Table<Buffer>> {
        let plain = [8, 12, 16].map(|width| (Codec::Plain, width));
        let sorted = [10, 13, 17].map(|width| (Codec::SemiSorted, width));
        plain.into_iter().chain(sorted).map(|(codec, width)| table(codec, width, 600))
    }

    /// Calls `work` with the places of so many blocks of hashes.
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

    /// At the end most find no room.
    #[test]
    fn planned_entries_leave_the_bytes_of_entries_put_one_after_the_other() {
        each_set(|set| {
            for mut table in tables() {
                assert!(table.has_plans::<false>());
                let mut one_by_one = table.to_owned_table(false);
                let mut plans = BlockEdits::<false>::new();
                let (mut planned, mut alone, mut refused) = (0, 0, 0);
                in_blocks(&mut table, set, 40, |table, locations| {
                    let mut each = table.at_each(locations);
                    each.plan(set, locations, &mut plans);
                    for i in 0..BLOCK {
                        let slot = locations.fingerprints()[i];
                        let put = one_by_one.at(locations.buckets(i)).put(slot, 0);
                        if each.carry_out(i..i + 1, &plans, |_| true) > i {
                            assert_eq!(put, Put::Done);
                            planned += 1;
                        } else {
                            assert_eq!(each.get(i).put(slot, 0), put);
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

    /// A third of the entries is there twice, and a third of those asked for is not there.
    #[test]
    fn planned_removals_leave_the_bytes_of_entries_taken_out_one_after_the_other() {
        each_set(|set| {
            // Among them lanes that do not show the core of a fingerprint.
            for mut table in tables().chain([table(Codec::SemiSorted, 9, 600)]) {
                assert!(table.has_plans::<true>());
                in_blocks(&mut table, set, 20, |table, locations| {
                    for i in 0..BLOCK {
                        for copy in 0..[1, 0, 2][i % 3] {
                            table.at(locations.buckets(i)).put(locations.fingerprints()[i], copy);
                        }
                    }
                });
                let mut one_by_one = table.to_owned_table(false);
                let mut plans = BlockEdits::<true>::new();
                let (mut planned, mut copies, mut absent) = (0, 0, 0);
                in_blocks(&mut table, set, 20, |table, locations| {
                    let mut each = table.at_each(locations);
                    each.plan(set, locations, &mut plans);
                    for i in 0..BLOCK {
                        let slot = locations.fingerprints()[i];
                        let taken = one_by_one.at(locations.buckets(i)).take(slot);
                        if each.carry_out(i..i + 1, &plans, |_| true) > i {
                            assert_eq!(taken, Taken::Last);
                            planned += 1;
                        } else {
                            assert_eq!(each.get(i).take(slot), taken);
                            copies += u32::from(taken == Taken::Copy);
                            absent += u32::from(taken == Taken::Nothing);
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
    fn wide_buckets_are_not_planned_for_nor_new_entries_in_lanes_that_do_not_show_the_core() {
        for (codec, width, takes) in [
            (Codec::Plain, 24, false),
            (Codec::SemiSorted, 18, false),
            (Codec::SemiSorted, 9, true),
        ] {
            let table = table(codec, width, 10);
            assert!(!table.has_plans::<false>(), "{codec:?}, {width}");
            assert_eq!(table.has_plans::<true>(), takes, "{codec:?}, {width}");
        }
    }
}
