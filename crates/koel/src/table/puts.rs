//! New entries for a block of places at once: which of its two buckets each goes to, and which bits of that change, worked out in vector code for all before the first is written.
//!
//! A plan holds only while both buckets are what they were when they were read: an entry of the same block may have gone to one of them, or to the one that follows it in the same eight bytes. In a
//! table of m buckets that happens to about 100 of m entries. Where it does not hold, and where there is no room or perhaps a copy, nothing is planned, and the entry is put as if it came
//! alone (`at.rs`). So the bytes are those of entries put one after the other.
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

/// What becomes of the buckets of a block of places.
#[repr(align(64))]
pub(crate) struct Puts {
    /// Both buckets as they were when they were read, with what follows them, and their nibbles if they are semi-sorted.
    seen: [Column; 2],
    nibbles: [Column; 2],
    /// All ones where the entry goes to the other bucket.
    other: Column,
    /// The bits that change there; 0 where nothing is planned.
    change: Column,
}

impl Puts {
    pub(crate) fn new() -> Self {
        let column = [0; BLOCK];
        Self { seen: [column; 2], nibbles: [column; 2], other: column, change: column }
    }

    /// Whether an entry is planned for place `i`: where none is, its buckets are full, or one may have a copy.
    #[inline(always)]
    pub(crate) fn is_planned(&self, i: usize) -> bool {
        self.change[i] != 0
    }

    #[inline(always)]
    fn plan<const SORTED: bool>(&mut self, lanes: &Lanes, slots: &Column) {
        for (i, &slot) in slots.iter().enumerate() {
            let words =
                [(self.seen[0][i], self.nibbles[0][i]), (self.seen[1][i], self.nibbles[1][i])];
            (self.other[i], self.change[i]) = lanes.new_entry::<SORTED>(words, slot);
        }
    }
}

/// Calls a method of [`AtEach`] for the form of its table.
macro_rules! in_narrow_form {
    ($each:expr, $method:ident($($argument:expr),*)) => {
        if $each.table().form() == Form::Plain {
            $each.$method::<false>($($argument),*)
        } else {
            $each.$method::<true>($($argument),*)
        }
    };
}

/// Tables of fewer bytes are not planned for: too many entries of a block meet there.
const SMALL: usize = if cfg!(test) { 0 } else { 16 << 10 };
/// Nor for larger ones than these, of plain buckets and of semi-sorted ones: the memory has nothing to do while a block is put, and there that costs more than it saves. Bulk builds fill a segment of
/// about 2 MiB at a time.
const LARGE_PLAIN: usize = 4 << 20;
const LARGE_SORTED: usize = 16 << 20;

impl Table<Buffer> {
    /// Whether entries of its buckets are planned.
    pub(crate) fn plans_puts(&self) -> bool {
        let most = match self.form() {
            Form::Plain => LARGE_PLAIN,
            Form::Sorted if self.lanes.core_in_lane() => LARGE_SORTED,
            _ => return false,
        };
        (SMALL..=most).contains(&self.bytes().len())
    }
}

impl AtEach<'_, '_> {
    /// Plans the entries of all places, which are their fingerprints, while the memory is asked for the buckets of the `coming` places.
    pub(crate) fn plan(&mut self, set: InstructionSet, coming: &Places, puts: &mut Puts) {
        in_narrow_form!(self, plan_in(set, coming, puts));
    }

    fn plan_in<const SORTED: bool>(
        &mut self,
        set: InstructionSet,
        coming: &Places,
        puts: &mut Puts,
    ) {
        let coming = asked_ahead::<SORTED>(self.table().bytes().len(), coming);
        for i in 0..BLOCK {
            if let Some(coming) = coming {
                self.table().prefetch_both(coming, i);
            }
            let [home, other] = self.get(i).words::<u64, SORTED>();
            let [home, other] = self.table().lanes.opened::<SORTED>([home, other]);
            (puts.seen[0][i], puts.seen[1][i]) = (home.0, other.0);
            if SORTED {
                (puts.nibbles[0][i], puts.nibbles[1][i]) = (home.1, other.1);
            }
        }
        let (lanes, places) = (&self.table().lanes, self.places());
        set.run(
            #[inline(always)]
            || puts.plan::<SORTED>(lanes, places.fingerprints()),
        );
    }

    /// Puts the entry of place `i` as planned; false, and nothing written, where none is, or where one of its buckets is not what it was.
    #[inline(always)]
    pub(crate) fn put_planned(&mut self, i: usize, puts: &Puts) -> bool {
        in_narrow_form!(self, put_planned_in(i, puts))
    }

    #[inline(always)]
    fn put_planned_in<const SORTED: bool>(&mut self, i: usize, puts: &Puts) -> bool {
        let mut at = self.get(i);
        let [home, alternate] = at.words::<u64, SORTED>();
        let holds = home == puts.seen[0][i] && alternate == puts.seen[1][i] && puts.is_planned(i);
        if holds {
            at.turn::<u64, SORTED>(puts.other[i] != 0, puts.change[i]);
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::layout::{Codec, Layout};
    use crate::table::{Put, table_bytes};
    use crate::vector::each_set;
    use testkit::keys::splitmix64 as hash;

    fn tables() -> impl Iterator<Item = Table<Buffer>> {
        let plain = [8, 12, 16].map(|width| (Codec::Plain, width));
        let sorted = [10, 13, 17].map(|width| (Codec::SemiSorted, width));
        plain.into_iter().chain(sorted).map(|(codec, width)| {
            let layout = Layout::new(codec, width, 0).unwrap();
            let geometry = Geometry::new(0, 600, width);
            let bytes = table_bytes(layout, geometry.buckets()).unwrap();
            Table::new(geometry, layout, Buffer::zeroed(bytes, false).unwrap())
        })
    }

    /// Hundreds of entries of a block meet in a table of 600 buckets, and at the end most find no room.
    #[test]
    fn planned_entries_leave_the_bytes_of_entries_put_one_after_the_other() {
        each_set(|set| {
            for mut table in tables() {
                assert!(table.plans_puts());
                let mut one_by_one = table.to_owned_table(false);
                let (mut puts, mut places) = (Puts::new(), Places::new());
                let (mut planned, mut alone, mut refused) = (0, 0, 0);
                for block in 0..40 {
                    let hashes = core::array::from_fn(|i| hash(block << 8 | i as u64));
                    table.locate_many(set, |column| *column = hashes, &mut places);
                    let mut each = table.at_each(&places);
                    each.plan(set, &places, &mut puts);
                    for i in 0..BLOCK {
                        let slot = places.fingerprints()[i];
                        let put = one_by_one.at(places.buckets(i)).put(slot, 0);
                        if each.put_planned(i, &puts) {
                            assert_eq!(put, Put::Done);
                            planned += 1;
                        } else {
                            assert_eq!(each.get(i).put(slot, 0), put);
                            alone += u32::from(put == Put::Done);
                            refused += u32::from(put != Put::Done);
                        }
                    }
                    assert!(table.bytes() == one_by_one.bytes(), "{set:?}, block {block}");
                }
                assert!(
                    planned > 1000 && alone > 100 && refused > 50,
                    "{planned} {alone} {refused}"
                );
            }
        });
    }

    #[test]
    fn wide_buckets_and_lanes_that_do_not_show_the_core_are_not_planned_for() {
        for (codec, width) in [(Codec::Plain, 24), (Codec::SemiSorted, 18), (Codec::SemiSorted, 9)]
        {
            let layout = Layout::new(codec, width, 0).unwrap();
            let geometry = Geometry::new(0, 10, width);
            let bytes = table_bytes(layout, 10).unwrap();
            let table = Table::new(geometry, layout, Buffer::zeroed(bytes, false).unwrap());
            assert!(!table.plans_puts(), "{codec:?}, {width}");
        }
    }
}
