//! The two buckets of a key in a table that is being changed: an entry into an empty slot, out of its slot, over another one.
//!
//! An [`At`] has borrowed the table in which its buckets are known to be, so buckets of 64 bits are read and written without a look at the length of the table: three comparisons a
//! change, and what they wait for, are a tenth of it (docs/decisions/0006-speed.md).

use super::edit::change_in;
use super::{Pair, Table, either, load_both, position};
use crate::buffer::Buffer;
use crate::geometry::{Place, Places};
use crate::layout::{Form, Layout, Quad, Register, Word};
use crate::unchecked;
use crate::vector::InstructionSet;

/// What became of a new copy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It has a slot.
    Done,
    /// Nothing was written: there are more copies than allowed, this many.
    Repeated(u64),
    /// Nothing was written: both buckets are full.
    Full,
}

/// What was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The only entry there was.
    Last,
    /// One of several equal ones.
    Copy,
    /// Nothing: there is none.
    Nothing,
}

/// The two buckets of a key. The invariant: both are buckets of the table.
pub(crate) struct At<'t> {
    table: &'t mut Table<Buffer>,
    /// The bits of the table that the buckets start at.
    bits: [u64; 2],
}

/// The buckets of a block of keys, which were checked all at once. The invariant: those of every place are buckets of the table.
pub(crate) struct AtEach<'t, 'p> {
    table: &'t mut Table<Buffer>,
    places: &'p Places,
}

impl Table<Buffer> {
    /// Where the key with this hash may live, and its buckets.
    #[inline(always)]
    pub(crate) fn at_hash(&mut self, hash: u64) -> (Place, At<'_>) {
        // The invariant: `locate` gives buckets of its own table.
        let place = self.geometry.locate(hash);
        (place, self.at_located(place.buckets()))
    }

    #[inline(always)]
    fn at_located(&mut self, buckets: (u64, u64)) -> At<'_> {
        let bits = self.lanes.bucket_bits();
        At { table: self, bits: [buckets.0 * bits, buckets.1 * bits] }
    }

    /// The buckets of these numbers.
    ///
    /// # Panics
    /// Where one of them is beyond the table.
    #[inline(always)]
    pub(crate) fn at(&mut self, (home, alternate): (u64, u64)) -> At<'_> {
        assert!(home.max(alternate) < self.geometry.buckets(), "a place beyond the table");
        self.at_located((home, alternate))
    }

    /// The buckets of each of `places`.
    ///
    /// # Panics
    /// Where one of them is beyond the table.
    #[inline(always)]
    pub(crate) fn at_each<'p>(&mut self, places: &'p Places) -> AtEach<'_, 'p> {
        let last = unchecked::largest(places.starts(), InstructionSet::best());
        let end = self.geometry.buckets() * self.lanes.bucket_bits();
        assert!(last < end, "a place beyond the table");
        AtEach { table: self, places }
    }
}

impl<'p> AtEach<'_, 'p> {
    #[inline(always)]
    pub(super) fn places(&self) -> &'p Places {
        self.places
    }

    /// The buckets of place `i`.
    #[inline(always)]
    pub(crate) fn get(&mut self, i: usize) -> At<'_> {
        At { table: self.table, bits: self.places.bits(i) }
    }

    pub(crate) fn table(&self) -> &Table<Buffer> {
        self.table
    }
}

impl<'t> At<'t> {
    #[inline(always)]
    pub(crate) fn layout(&self) -> Layout {
        self.table.layout
    }

    #[inline(always)]
    fn form(&self) -> Form {
        self.table.form()
    }

    /// The table that these are buckets of. Not lent: it could be exchanged for another one.
    #[inline(always)]
    pub(crate) fn into_table(self) -> &'t mut Table<Buffer> {
        self.table
    }

    /// Fills an empty slot of the emptier bucket with `slot`, where there are at most `most` copies of it.
    #[inline(always)]
    pub(crate) fn put(&mut self, slot: u64, most: u64) -> Put {
        match self.form() {
            Form::Plain => self.put_in::<u64, false>(slot, most),
            _ => self.handed_on().put_other(slot, most),
        }
    }

    /// Empties a slot that holds `slot`.
    #[inline(always)]
    pub(crate) fn take(&mut self, slot: u64) -> Taken {
        match self.form() {
            Form::Plain => self.exchange_in::<u64, false>(slot, 0),
            _ => self.handed_on().take_other(slot),
        }
    }

    /// Writes `new` over a slot that holds `old`, which is then taken out.
    #[inline(always)]
    pub(crate) fn exchange(&mut self, old: u64, new: u64) -> Taken {
        match self.form() {
            Form::Plain => self.exchange_in::<u64, false>(old, new),
            _ => self.handed_on().exchange_other(old, new),
        }
    }

    /// The same buckets for a function that is not inlined, which is lent them in memory: were it lent these, they would be written there before every change, called or not.
    #[inline(always)]
    fn handed_on(&mut self) -> At<'_> {
        At { table: self.table, bits: self.bits }
    }

    #[inline(never)]
    fn put_other(&mut self, slot: u64, most: u64) -> Put {
        match self.form() {
            Form::Sorted => self.put_sorted(slot, most),
            _ => self.put_in_form(slot, most),
        }
    }

    /// A function of its own saves fewer registers than one for all forms.
    #[inline(never)]
    fn put_sorted(&mut self, slot: u64, most: u64) -> Put {
        self.put_in::<u64, true>(slot, most)
    }

    #[inline(never)]
    fn put_in_form(&mut self, slot: u64, most: u64) -> Put {
        in_form!(self, put_in(slot, most))
    }

    #[inline(never)]
    fn take_other(&mut self, slot: u64) -> Taken {
        match self.form() {
            Form::Sorted => self.take_sorted(slot),
            _ => self.exchange_other(slot, 0),
        }
    }

    #[inline(never)]
    fn take_sorted(&mut self, slot: u64) -> Taken {
        self.exchange_in::<u64, true>(slot, 0)
    }

    #[inline(never)]
    fn exchange_other(&mut self, old: u64, new: u64) -> Taken {
        in_form!(self, exchange_in(old, new))
    }

    #[inline(always)]
    fn put_in<W: Word, const SORTED: bool>(&mut self, slot: u64, most: u64) -> Put {
        let [home, alternate] = self.bits;
        let words = self.words::<W, SORTED>();
        let put = Pair::put::<SORTED>(&self.table.lanes, words, home == alternate, (slot, most));
        match put {
            Ok((chosen, change)) => {
                self.turn::<W, SORTED>(chosen, change);
                Put::Done
            }
            Err(refused) => refused,
        }
    }

    #[inline(always)]
    fn exchange_in<W: Word, const SORTED: bool>(&mut self, old: u64, new: u64) -> Taken {
        let [home, alternate] = self.bits;
        let words = self.words::<W, SORTED>();
        let pair = Pair::new::<SORTED>(&self.table.lanes, words, home == alternate, old);
        let Some((chosen, change)) = pair.exchange::<SORTED>(&self.table.lanes, old, new) else {
            return Taken::Nothing;
        };
        self.turn::<W, SORTED>(chosen, change);
        if pair.has_one(&self.table.lanes) { Taken::Last } else { Taken::Copy }
    }

    /// Both buckets.
    #[inline(always)]
    #[expect(unsafe_code, reason = "loads without a check, measured in decision 0006")]
    pub(super) fn words<W: Word, const SORTED: bool>(&self) -> [W; 2] {
        let bytes = self.table.bytes.as_ref();
        if W::BITS != u64::BITS {
            return load_both::<W, SORTED>(bytes, self.bits);
        }
        let word = |bit: u64| {
            let (byte, shift) = position::<SORTED>(bit);
            // SAFETY: the bucket is one of the table, all of which are in `bytes`, with 16 bytes behind them: `Table::new` has seen it.
            W::from(unsafe { unchecked::read(bytes, byte) } >> shift)
        };
        [word(self.bits[0]), word(self.bits[1])]
    }

    /// Turns over the bits of the one or the other bucket that are set in `change`.
    #[inline(always)]
    #[expect(unsafe_code, reason = "a store without a check, measured in decision 0006")]
    pub(super) fn turn<W: Word, const SORTED: bool>(&mut self, other: bool, change: W) {
        let bytes = self.table.bytes.as_mut();
        if W::BITS != u64::BITS {
            return change_in::<W, SORTED>(bytes, either(other, self.bits), change);
        }
        // Chosen when both are there: the less waits for the memory, the better.
        let [home, alternate] = self.bits.map(position::<SORTED>);
        let byte = either(other, [home.0, alternate.0]);
        let change = u64::narrow(change.wide()) << either(other, [home.1, alternate.1]);
        // SAFETY: as in `words`.
        unsafe { unchecked::turn(bytes, byte, change) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table_bytes;
    use super::*;
    use crate::blocks::each_change;
    use crate::geometry::Geometry;
    use crate::layout::{Codec, SLOTS};
    use alloc::vec::Vec;
    use core::convert::Infallible;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use testkit::keys::splitmix64 as hash;

    extern crate std;

    /// Tables of every form, of `4 * segment_buckets` buckets.
    fn tables(segment_buckets: u32) -> impl Iterator<Item = Table<Buffer>> {
        use Codec::{Plain, SemiSorted};
        let widths = [
            (Plain, 8, 0),
            (Plain, 12, 0),
            (Plain, 11, 5),
            (Plain, 16, 0),
            (Plain, 20, 0),
            (Plain, 24, 40),
            (SemiSorted, 13, 0),
            (SemiSorted, 16, 1),
            (SemiSorted, 18, 0),
            (SemiSorted, 30, 0),
        ];
        widths.into_iter().map(move |(codec, bits, values)| {
            let geometry = Geometry::new(2, segment_buckets, bits);
            let layout = Layout::new(codec, bits, values).unwrap();
            let bytes = table_bytes(layout, geometry.buckets()).unwrap();
            Table::new(geometry, layout, Buffer::zeroed(bytes, false).unwrap())
        })
    }

    /// All slots of a table, decoded and changed one by one.
    struct Model(Vec<[u64; SLOTS]>);

    impl Model {
        fn of(table: &Table<Buffer>) -> Self {
            Self(table.iter().map(|bucket| bucket.0).collect())
        }

        /// The buckets of a place, each once, and how many slots of either hold `slot`.
        fn holding(&self, place: &Place, slot: u64) -> Vec<(usize, usize)> {
            let (home, alternate) = place.buckets();
            let mut buckets: Vec<_> =
                [home, alternate].map(|it| usize::try_from(it).unwrap()).into();
            buckets.dedup();
            let held = |bucket: usize| self.0[bucket].iter().filter(|&&held| held == slot).count();
            buckets.into_iter().map(|bucket| (bucket, held(bucket))).collect()
        }

        fn copies(&self, place: &Place, slot: u64) -> usize {
            self.holding(place, slot).iter().map(|&(_, held)| held).sum()
        }

        fn put(&mut self, place: &Place, slot: u64, most: u64) -> Put {
            let copies = self.copies(place, slot) as u64;
            // The first of the emptiest.
            let vacant = self.holding(place, 0).into_iter().rev().max_by_key(|&(_, vacant)| vacant);
            match vacant {
                _ if copies > most => Put::Repeated(copies),
                Some((bucket, 1..)) => {
                    self.write(bucket, 0, slot);
                    Put::Done
                }
                _ => Put::Full,
            }
        }

        fn exchange(&mut self, place: &Place, old: u64, new: u64) -> Taken {
            let copies = self.copies(place, old);
            let first = self.holding(place, old).into_iter().find(|&(_, held)| held > 0);
            first.into_iter().for_each(|(bucket, _)| self.write(bucket, old, new));
            [Taken::Nothing, Taken::Last].get(copies).copied().unwrap_or(Taken::Copy)
        }

        fn write(&mut self, bucket: usize, old: u64, new: u64) {
            *self.0[bucket].iter_mut().find(|held| **held == old).unwrap() = new;
        }

        /// Whether the table holds the same in every bucket, in whatever order.
        fn is_in(&self, table: &Table<Buffer>) -> bool {
            let sorted = |mut slots: [u64; SLOTS]| {
                slots.sort_unstable();
                slots
            };
            table.iter().zip(&self.0).all(|(bucket, &slots)| sorted(bucket.0) == sorted(slots))
        }
    }

    #[test]
    fn every_change_is_the_one_that_is_made_to_decoded_slots() {
        for mut table in [1, 3, 20].into_iter().flat_map(tables) {
            let (layout, mut model) = (table.layout(), Model::of(&table));
            let mut seen = [0; 6];
            for i in 0..20_000 {
                let (key, value) = (hash(hash(i) % 500), hash(!i) & layout.largest_value() & 1);
                let (place, mut at) = table.at_hash(key);
                let slot = layout.slot(place.fingerprint, value);
                // More and more puts, then fewer and fewer.
                let kind = match (i % 4000 < 2000, hash(i + 7) % 4) {
                    (true, 1..) | (false, 1) => {
                        let most = hash(i + 11) % 9;
                        let put = at.put(slot, most);
                        assert_eq!(put, model.put(&place, slot, most), "{layout}");
                        [Put::Done, Put::Full].iter().position(|&it| it == put).unwrap_or(2)
                    }
                    (_, 0) => {
                        let (old, new) = (slot, layout.slot(place.fingerprint, value ^ 1));
                        let new = if layout.largest_value() == 0 { old } else { new };
                        assert_eq!(at.exchange(old, new), model.exchange(&place, old, new));
                        3
                    }
                    _ => {
                        let taken = at.take(slot);
                        assert_eq!(taken, model.exchange(&place, slot, 0), "{layout}");
                        4 + usize::from(taken == Taken::Nothing)
                    }
                };
                seen[kind] += 1;
                assert!(i % 100 != 0 || model.is_in(&table), "{layout}");
            }
            assert!(model.is_in(&table), "{layout}");
            assert!(seen.iter().all(|&times| times > 10), "{layout}: {seen:?}");
        }
    }

    #[test]
    fn a_block_is_changed_as_its_keys_are_one_by_one() {
        let hashes: Vec<_> = (0..150).map(hash).collect();
        for (mut many, mut single) in tables(30).zip(tables(30)) {
            let put = |mut at: At<'_>, slot| {
                at.put(slot, 8);
                Ok::<(), Infallible>(())
            };
            let Ok(()) = each_change(&mut many, &hashes[..], |at, _, places, i| {
                put(at, places.fingerprints()[i])
            });
            for &hash in &hashes {
                let (place, at) = single.at_hash(hash);
                let Ok(()) = put(at, place.fingerprint);
            }
            assert!(many == single && many.iter().flat_map(|bucket| bucket.0).any(|it| it != 0));
        }
    }

    #[test]
    fn places_of_a_larger_table_are_refused() {
        for (mut small, large) in tables(4).zip(tables(5)) {
            let (last, beyond) = (15, 16);
            for (bucket, is_in) in [(last, true), (beyond, false), (u64::from(u32::MAX), false)] {
                for (home, alternate) in [(0, bucket), (bucket, 0)] {
                    let place = Place { base: 0, home, alternate, fingerprint: 1 };
                    let at = catch_unwind(AssertUnwindSafe(|| small.at(place.buckets()).bits));
                    assert_eq!(at.is_ok(), is_in, "{bucket}");
                }
            }
            let hashes = [u64::MAX; crate::geometry::BLOCK];
            let mut places = Places::new();
            let bits = u64::from(large.layout().bucket_bits());
            let set = InstructionSet::best();
            large.geometry().locate_many(set, bits, |column| *column = hashes, &mut places);
            assert!(catch_unwind(AssertUnwindSafe(|| small.at_each(&places).get(0).bits)).is_err());
            small.geometry().locate_many(set, bits, |column| *column = hashes, &mut places);
            assert_eq!(small.at_each(&places).get(0).bits, places.bits(0));
        }
    }
}
