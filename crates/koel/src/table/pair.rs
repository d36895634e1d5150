//! Edits of the two buckets of a key: fill an empty slot, empty a slot, or replace a slot.
//!
//! A [`BucketPairMut`] borrows the bytes of the table in which its buckets are known to be. So
//! buckets of at most 64 bits are read and written without a check against the length of the table.
//! With checks, single inserts into a filter take 11 to 15 % more instructions, removals 8 to 10 %,
//! and planned edits 19 to 31 %.

use super::Table;
use crate::mem::buffer::Buffer;
use crate::mem::unchecked;
use crate::packing::{AnyPacking, Narrow, Packing, Put, Sorted64, Taken, either, with_packing};

/// The two buckets of a key. The invariant: `starts` are the first bits of buckets in `bytes`.
pub(crate) struct BucketPairMut<'t> {
    pub(super) packing: &'t AnyPacking,
    bytes: &'t mut Buffer,
    starts: [u64; 2],
}

impl Table<Buffer> {
    /// The buckets with these numbers.
    ///
    /// # Panics
    /// If one of them is beyond the table.
    #[inline]
    pub(crate) fn pair_mut(&mut self, (home, other): (u64, u64)) -> BucketPairMut<'_> {
        self.pair_at([home * self.bucket_bits, other * self.bucket_bits])
    }

    /// The buckets that start at these bits, which are multiples of the bits of a bucket.
    ///
    /// # Panics
    /// If one of them is beyond the table.
    #[inline]
    pub(super) fn pair_at(&mut self, starts: [u64; 2]) -> BucketPairMut<'_> {
        assert!(starts[0].max(starts[1]) < self.end, "a bucket beyond the table");
        BucketPairMut { packing: &self.packing, bytes: &mut self.bytes, starts }
    }
}

impl BucketPairMut<'_> {
    /// Fills an empty slot of the emptier bucket with `slot`, if there are at most `most` copies of
    /// it.
    #[inline(always)]
    pub(crate) fn put(mut self, slot: u64, most: u64) -> Put {
        match self.packing {
            AnyPacking::Plain64(packing, _) => self.put_narrow(packing, slot, most),
            AnyPacking::Sorted64(packing, _) => self.put_sorted(packing, slot, most),
            _ => self.put_any(slot, most),
        }
    }

    /// Empties a slot that holds `slot`.
    #[inline(always)]
    pub(crate) fn take(mut self, slot: u64) -> Taken {
        match self.packing {
            AnyPacking::Plain64(packing, _) => self.exchange_narrow(packing, slot, 0),
            AnyPacking::Sorted64(packing, _) => self.take_sorted(packing, slot),
            _ => self.exchange_any(slot, 0),
        }
    }

    /// Writes `new` over a slot that holds `old`.
    #[inline(always)]
    pub(crate) fn exchange(mut self, old: u64, new: u64) -> Taken {
        match self.packing {
            AnyPacking::Plain64(packing, _) => self.exchange_narrow(packing, old, new),
            _ => self.exchange_any(old, new),
        }
    }

    /// A function of its own, so that plain buckets save fewer registers. Takes `self` by value, so
    /// that callers do not spill it to the stack before.
    #[inline(never)]
    fn put_sorted(mut self, packing: &Sorted64, slot: u64, most: u64) -> Put {
        self.put_narrow(packing, slot, most)
    }

    #[inline(never)]
    fn put_any(self, slot: u64, most: u64) -> Put {
        with_packing!(self.packing, packing => {
            packing.put(self.bytes.as_mut(), self.starts, slot, most)
        })
    }

    #[inline(never)]
    fn take_sorted(mut self, packing: &Sorted64, slot: u64) -> Taken {
        self.exchange_narrow(packing, slot, 0)
    }

    #[inline(never)]
    fn exchange_any(self, old: u64, new: u64) -> Taken {
        with_packing!(self.packing, packing => {
            packing.exchange(self.bytes.as_mut(), self.starts, old, new)
        })
    }
}

/// Buckets of at most 64 bits.
impl BucketPairMut<'_> {
    #[inline(always)]
    fn put_narrow(&mut self, packing: &impl Narrow, slot: u64, most: u64) -> Put {
        let is_one = self.starts[0] == self.starts[1];
        match packing.put_in(self.words(packing), is_one, (slot, most)) {
            Ok((chosen, change)) => {
                self.flip(packing, chosen, change);
                Put::Done
            }
            Err(refused) => refused,
        }
    }

    #[inline(always)]
    fn exchange_narrow(&mut self, packing: &impl Narrow, old: u64, new: u64) -> Taken {
        let is_one = self.starts[0] == self.starts[1];
        match packing.exchange_in(self.words(packing), is_one, (old, new)) {
            Some((chosen, change, taken)) => {
                self.flip(packing, chosen, change);
                taken
            }
            None => Taken::Absent,
        }
    }

    /// Both buckets.
    #[inline(always)]
    #[expect(unsafe_code, reason = "loads without a check: see the top of the file")]
    pub(super) fn words<P: Narrow>(&self, _packing: &P) -> [u64; 2] {
        let bytes = self.bytes.as_ref();
        let word = |start: u64| {
            let (byte, shift) = P::position_at(start);
            // SAFETY: the bucket is one of the table, and 16 bytes follow the last one in `bytes`.
            unsafe { unchecked::read(bytes, byte) >> shift }
        };
        [word(self.starts[0]), word(self.starts[1])]
    }

    /// Flips the bits of one bucket that are set in `change`. Both positions are computed before
    /// the bucket is chosen, so that less waits for the memory.
    #[inline(always)]
    #[expect(unsafe_code, reason = "a store without a check: see the top of the file")]
    pub(super) fn flip<P: Narrow>(&mut self, _packing: &P, other: bool, change: u64) {
        let bytes = self.bytes.as_mut();
        let [home, alternate] = [P::position_at(self.starts[0]), P::position_at(self.starts[1])];
        let change = change << either(other, [home.1, alternate.1]);
        // SAFETY: as in `words`.
        unsafe { unchecked::xor_at(bytes, either(other, [home.0, alternate.0]), change) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table_bytes;
    use super::*;
    use crate::address::geometry::{Geometry, Location, Locations};
    use crate::mem::vector::InstructionSet;
    use crate::packing::{Codec, Layout, SLOTS};
    use crate::table::blocks::Blocks;
    use alloc::vec::Vec;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use testkit::keys::splitmix64 as hash;

    extern crate std;

    /// Tables of every packing, of `4 * segment_buckets` buckets.
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
            Table::fixed(geometry, layout, Buffer::zeroed(bytes, false).unwrap())
        })
    }

    /// All slots of a table, decoded and changed one at a time.
    struct Model(Vec<[u64; SLOTS]>);

    impl Model {
        fn of(table: &Table<Buffer>) -> Self {
            Self(table.iter().map(|bucket| bucket.0).collect())
        }

        /// The distinct buckets of a location, and the number of slots of each that hold `slot`.
        fn holding(&self, location: &Location, slot: u64) -> Vec<(usize, usize)> {
            let (home, alternate) = location.buckets();
            let mut buckets: Vec<_> =
                [home, alternate].map(|it| usize::try_from(it).unwrap()).into();
            buckets.dedup();
            let held = |bucket: usize| self.0[bucket].iter().filter(|&&held| held == slot).count();
            buckets.into_iter().map(|bucket| (bucket, held(bucket))).collect()
        }

        fn copies(&self, location: &Location, slot: u64) -> usize {
            self.holding(location, slot).iter().map(|&(_, held)| held).sum()
        }

        fn put(&mut self, location: &Location, slot: u64, most: u64) -> Put {
            let copies = self.copies(location, slot) as u64;
            // Picks the first of the emptiest buckets.
            let vacant =
                self.holding(location, 0).into_iter().rev().max_by_key(|&(_, vacant)| vacant);
            match vacant {
                _ if copies > most => Put::Repeated(copies),
                Some((bucket, 1..)) => {
                    self.write(bucket, 0, slot);
                    Put::Done
                }
                _ => Put::Full,
            }
        }

        fn exchange(&mut self, location: &Location, old: u64, new: u64) -> Taken {
            let copies = self.copies(location, old);
            let first = self.holding(location, old).into_iter().find(|&(_, held)| held > 0);
            first.into_iter().for_each(|(bucket, _)| self.write(bucket, old, new));
            [Taken::Absent, Taken::Last].get(copies).copied().unwrap_or(Taken::Copy)
        }

        fn write(&mut self, bucket: usize, old: u64, new: u64) {
            *self.0[bucket].iter_mut().find(|held| **held == old).unwrap() = new;
        }

        /// Whether every bucket of the table holds the slots of the model, in any order.
        fn is_in(&self, table: &Table<Buffer>) -> bool {
            let sorted = |mut slots: [u64; SLOTS]| {
                slots.sort_unstable();
                slots
            };
            table.iter().zip(&self.0).all(|(bucket, &slots)| sorted(bucket.0) == sorted(slots))
        }
    }

    #[test]
    fn every_change_equals_that_of_decoded_slots() {
        for mut table in [1, 3, 20].into_iter().flat_map(tables) {
            let (layout, mut model) = (table.layout(), Model::of(&table));
            let mut seen = [0; 6];
            for i in 0..20_000 {
                let (key, value) = (hash(hash(i) % 500), hash(!i) & layout.largest_value() & 1);
                let location = table.base().locate(key);
                let pair = table.pair_mut(location.buckets());
                let slot = layout.slot(location.fingerprint, value);
                // Mostly puts, then mostly removals.
                let kind = match (i % 4000 < 2000, hash(i + 7) % 4) {
                    (true, 1..) | (false, 1) => {
                        let most = hash(i + 11) % 9;
                        let put = pair.put(slot, most);
                        assert_eq!(put, model.put(&location, slot, most), "{layout}");
                        [Put::Done, Put::Full].iter().position(|&it| it == put).unwrap_or(2)
                    }
                    (_, 0) => {
                        let (old, new) = (slot, layout.slot(location.fingerprint, value ^ 1));
                        let new = if layout.largest_value() == 0 { old } else { new };
                        assert_eq!(pair.exchange(old, new), model.exchange(&location, old, new));
                        3
                    }
                    _ => {
                        let taken = pair.take(slot);
                        assert_eq!(taken, model.exchange(&location, slot, 0), "{layout}");
                        4 + usize::from(taken == Taken::Absent)
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
    fn a_block_is_changed_like_its_single_keys() {
        let hashes: Vec<_> = (0..150).map(hash).collect();
        for (mut many, mut single) in tables(30).zip(tables(30)) {
            let mut blocks = Blocks::new(&many, &hashes[..], 0);
            while let Some((ready, _, _)) = blocks.next(&many) {
                for i in 0..ready.len {
                    let pair = many.pair_at(ready.locations.bits(i));
                    pair.put(ready.locations.fingerprints()[i], 8);
                }
            }
            for &hash in &hashes {
                let location = single.base().locate(hash);
                single.pair_mut(location.buckets()).put(location.fingerprint, 8);
            }
            assert!(many == single && many.iter().flat_map(|bucket| bucket.0).any(|it| it != 0));
        }
    }

    #[test]
    fn buckets_of_a_larger_table_are_refused() {
        for (mut small, large) in tables(4).zip(tables(5)) {
            let (last, beyond) = (15, 16);
            for (bucket, is_in) in [(last, true), (beyond, false), (u64::from(u32::MAX), false)] {
                for (home, alternate) in [(0, bucket), (bucket, 0)] {
                    let pair =
                        catch_unwind(AssertUnwindSafe(|| small.pair_mut((home, alternate)).starts));
                    assert_eq!(pair.is_ok(), is_in, "{bucket}");
                }
            }
            let hashes = [u64::MAX; crate::mem::vector::BLOCK];
            let mut locations = Locations::new();
            let bits = u64::from(large.layout().bucket_bits());
            let set = InstructionSet::best();
            large.base().locate_many(set, bits, |column| *column = hashes, &mut locations);
            let pair = catch_unwind(AssertUnwindSafe(|| small.pair_at(locations.bits(0)).starts));
            assert!(pair.is_err());
            small.base().locate_many(set, bits, |column| *column = hashes, &mut locations);
            assert_eq!(small.pair_at(locations.bits(0)).starts, locations.bits(0));
        }
    }
}
