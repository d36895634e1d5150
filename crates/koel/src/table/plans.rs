//! Changes of a block of places at once: which of its two buckets a new entry goes to, or an old one leaves, and which bits of that change, worked out in vector code for all before the first is
//! written.
//!
//! A plan holds only while both buckets are what they were when they were read: another entry of the same block may have changed one of them, or the one that follows it in the same eight bytes.
//! In a table of m buckets that happens to about 100 of m entries. Where it does not hold, and where nothing is planned, the change is made as if it came alone (`at.rs`). So the bytes are
//! those of changes made one after the other.
//!
//! In a filter for 100,000 keys that is not yet two thirds full, an insert takes 4.8 ns instead of 7.9 in plain buckets and 9.0 instead of 16 in semi-sorted ones, whose codes are then worked out by
//! arithmetic instead of read from a table (docs/decisions/0006-speed.md).

use super::at::AtEach;
use super::block::asked_ahead;
use super::{Buckets, Table};
use crate::buffer::Buffer;
use crate::geometry::{BLOCK, Column, Places};
use crate::layout::{Form, Lanes};
use crate::vector::InstructionSet;

/// What becomes of the buckets of a block of places: where `TAKES`, an entry that is in one of them once is taken out, otherwise a new one is put in where there is room for it.
#[repr(align(64))]
pub(crate) struct Plans<const TAKES: bool> {
    /// Both buckets as they were when they were read, with what follows them, and their nibbles if they are semi-sorted.
    seen: [Column; 2],
    nibbles: [Column; 2],
    /// All ones where the other bucket changes.
    other: Column,
    /// The bits of it that change; 0 where nothing is planned.
    change: Column,
}

impl<const TAKES: bool> Plans<TAKES> {
    pub(crate) fn new() -> Self {
        let column = [0; BLOCK];
        Self { seen: [column; 2], nibbles: [column; 2], other: column, change: column }
    }

    #[inline(always)]
    fn plan<const SORTED: bool>(&mut self, lanes: &Lanes, slots: &Column) {
        for (i, &slot) in slots.iter().enumerate() {
            let words =
                [(self.seen[0][i], self.nibbles[0][i]), (self.seen[1][i], self.nibbles[1][i])];
            (self.other[i], self.change[i]) = if TAKES {
                lanes.only_entry::<SORTED>(words, slot)
            } else {
                lanes.new_entry::<SORTED>(words, slot)
            };
        }
    }
}

/// Calls a method of [`AtEach`] for the form of its table.
macro_rules! in_narrow_form {
    ($each:expr, $method:ident($($argument:expr),*)) => {
        if $each.table().form() == Form::Plain {
            $each.$method::<false, TAKES>($($argument),*)
        } else {
            $each.$method::<true, TAKES>($($argument),*)
        }
    };
}

/// Tables of fewer bytes are not planned for: too many entries of a block meet there.
const SMALL: usize = if cfg!(test) { 0 } else { 16 << 10 };
/// Nor for larger ones than these, of plain buckets and of semi-sorted ones: the memory has nothing to do while a block is changed, and there that costs more than it saves. Bulk builds fill a
/// segment of about 2 MiB at a time.
const LARGE_PLAIN: usize = 4 << 20;
const LARGE_SORTED: usize = 16 << 20;

impl Table<Buffer> {
    /// Whether the changes of its buckets are planned.
    pub(crate) fn has_plans<const TAKES: bool>(&self) -> bool {
        let most = match self.form() {
            Form::Plain => LARGE_PLAIN,
            Form::Sorted if TAKES || self.lanes.core_in_lane() => LARGE_SORTED,
            _ => return false,
        };
        (SMALL..=most).contains(&self.bytes().len())
    }
}

impl AtEach<'_, '_> {
    /// Plans the changes of all places, whose entries are their fingerprints, while the memory is asked for the buckets of the `coming` places.
    pub(crate) fn plan<const TAKES: bool>(
        &mut self,
        set: InstructionSet,
        coming: &Places,
        plans: &mut Plans<TAKES>,
    ) {
        in_narrow_form!(self, plan_in(set, coming, plans));
    }

    fn plan_in<const SORTED: bool, const TAKES: bool>(
        &mut self,
        set: InstructionSet,
        coming: &Places,
        plans: &mut Plans<TAKES>,
    ) {
        let coming = asked_ahead::<SORTED>(self.table().bytes().len(), coming);
        for i in 0..BLOCK {
            if let Some(coming) = coming {
                self.table().prefetch_both(coming, i);
            }
            let [home, other] = self.get(i).words::<u64, SORTED>();
            let [home, other] = self.table().lanes.opened::<SORTED>([home, other]);
            (plans.seen[0][i], plans.seen[1][i]) = (home.0, other.0);
            if SORTED {
                (plans.nibbles[0][i], plans.nibbles[1][i]) = (home.1, other.1);
            }
        }
        let (lanes, places) = (&self.table().lanes, self.places());
        set.run(
            #[inline(always)]
            || plans.plan::<SORTED>(lanes, places.fingerprints()),
        );
    }

    /// Makes the change of place `i` as planned; false, and nothing written, where none is, or where one of its buckets is not what it was.
    #[inline(always)]
    pub(crate) fn carry_out<const TAKES: bool>(&mut self, i: usize, plans: &Plans<TAKES>) -> bool {
        in_narrow_form!(self, carry_out_in(i, plans))
    }

    #[inline(always)]
    fn carry_out_in<const SORTED: bool, const TAKES: bool>(
        &mut self,
        i: usize,
        plans: &Plans<TAKES>,
    ) -> bool {
        let mut at = self.get(i);
        let [home, alternate] = at.words::<u64, SORTED>();
        let holds =
            home == plans.seen[0][i] && alternate == plans.seen[1][i] && plans.change[i] != 0;
        if holds {
            at.turn::<u64, SORTED>(plans.other[i] != 0, plans.change[i]);
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::layout::{Codec, Layout};
    use crate::table::{Put, Taken, table_bytes};
    use crate::vector::each_set;
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
        mut work: impl FnMut(&mut Table<Buffer>, &Places),
    ) {
        let mut places = Places::new();
        for block in 0..blocks {
            let hashes = core::array::from_fn(|i| hash(block << 8 | i as u64));
            table.locate_many(set, |column| *column = hashes, &mut places);
            work(table, &places);
        }
    }

    /// At the end most find no room.
    #[test]
    fn planned_entries_leave_the_bytes_of_entries_put_one_after_the_other() {
        each_set(|set| {
            for mut table in tables() {
                assert!(table.has_plans::<false>());
                let mut one_by_one = table.to_owned_table(false);
                let mut plans = Plans::<false>::new();
                let (mut planned, mut alone, mut refused) = (0, 0, 0);
                in_blocks(&mut table, set, 40, |table, places| {
                    let mut each = table.at_each(places);
                    each.plan(set, places, &mut plans);
                    for i in 0..BLOCK {
                        let slot = places.fingerprints()[i];
                        let put = one_by_one.at(places.buckets(i)).put(slot, 0);
                        if each.carry_out(i, &plans) {
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
                in_blocks(&mut table, set, 20, |table, places| {
                    for i in 0..BLOCK {
                        for copy in 0..[1, 0, 2][i % 3] {
                            table.at(places.buckets(i)).put(places.fingerprints()[i], copy);
                        }
                    }
                });
                let mut one_by_one = table.to_owned_table(false);
                let mut plans = Plans::<true>::new();
                let (mut planned, mut copies, mut absent) = (0, 0, 0);
                in_blocks(&mut table, set, 20, |table, places| {
                    let mut each = table.at_each(places);
                    each.plan(set, places, &mut plans);
                    for i in 0..BLOCK {
                        let slot = places.fingerprints()[i];
                        let taken = one_by_one.at(places.buckets(i)).take(slot);
                        if each.carry_out(i, &plans) {
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
