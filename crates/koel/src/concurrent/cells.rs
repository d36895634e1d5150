//! The buckets of a concurrent filter: one atomic word each, so that a bucket changes in one step or not at all.
//!
//! A bucket of up to 32 bits lies in 32, a wider one in 64; what is left of the word stays zero. A change is computed from the word as it was read and made by one
//! compare-and-swap, which fails if the bucket has changed since, and then everything is computed anew. Here is what happens to single buckets and to the two
//! of a place; in which order changes have to be made, and who may look when, is in `mod.rs`.

use alloc::boxed::Box;
use core::slice;

use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::geometry::{BLOCK, Column, Geometry, Place, Places};
use crate::layout::{Codec, Lanes, Layout};
use crate::placement::{Neighbourhood, Neighbours};
use crate::prefetch::prefetch;
use crate::table::{self, Buckets, Pair, Put, Words, either};
use crate::vector::InstructionSet;

/// Buckets and their shape.
pub(super) struct Cells {
    pub(super) geometry: Geometry,
    pub(super) layout: Layout,
    lanes: Lanes,
    words: Atomics,
}

enum Atomics {
    Half(Box<[AtomicU32]>),
    Whole(Box<[AtomicU64]>),
}

/// Calls the method in the form of the buckets: `method::<semi-sorted>(arguments)`.
macro_rules! in_form {
    ($cells:expr, $method:ident($($argument:expr),*)) => {
        match $cells.layout.codec() {
            Codec::Plain => $cells.$method::<false>($($argument),*),
            Codec::SemiSorted => $cells.$method::<true>($($argument),*),
        }
    };
}

impl Cells {
    /// Buckets of at most 64 bits, each as `word` says.
    pub(super) fn new(geometry: Geometry, layout: Layout, word: impl Fn(u64) -> u64) -> Self {
        let words = (0..geometry.buckets()).map(word);
        let words = if layout.bucket_bits() <= u32::BITS {
            Atomics::Half(words.map(|word| AtomicU32::new(half(word))).collect())
        } else {
            Atomics::Whole(words.map(AtomicU64::new).collect())
        };
        Self { geometry, layout, lanes: Lanes::new(layout), words }
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        match &self.words {
            Atomics::Half(words) => words.len() * 4,
            Atomics::Whole(words) => words.len() * 8,
        }
    }

    /// The bucket as it is now. Whatever was done before it was written is visible from here on.
    #[inline(always)]
    pub(super) fn load(&self, bucket: u64) -> u64 {
        match &self.words {
            Atomics::Half(words) => u64::from(words[index(bucket)].load(Ordering::Acquire)),
            Atomics::Whole(words) => words[index(bucket)].load(Ordering::Acquire),
        }
    }

    /// Writes `new` if the bucket is still `old`; whether it was.
    #[inline(always)]
    fn swap(&self, bucket: u64, old: u64, new: u64) -> bool {
        const DONE: Ordering = Ordering::AcqRel;
        const FAILED: Ordering = Ordering::Relaxed;
        match &self.words {
            Atomics::Half(words) => {
                words[index(bucket)].compare_exchange(half(old), half(new), DONE, FAILED).is_ok()
            }
            Atomics::Whole(words) => {
                words[index(bucket)].compare_exchange(old, new, DONE, FAILED).is_ok()
            }
        }
    }

    /// Asks the memory for a bucket.
    #[inline(always)]
    pub(super) fn prefetch(&self, bucket: u64) {
        match &self.words {
            Atomics::Half(words) => prefetch(words, index(bucket)),
            Atomics::Whole(words) => prefetch(words, index(bucket)),
        }
    }

    /// Whether either bucket of `place` held its fingerprint when it was read.
    #[inline(always)]
    pub(super) fn contains(&self, place: &Place) -> bool {
        in_form!(self, contains_in(place))
    }

    #[inline(always)]
    fn contains_in<const SORTED: bool>(&self, place: &Place) -> bool {
        let words = self.lanes.opened::<SORTED>(self.load_pair(place));
        self.lanes.pair_has::<SORTED>(words, place.fingerprint)
    }

    /// `contains` for a block of places, while the memory is asked for the buckets of the `coming` block.
    pub(super) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        in_form!(self, contains_block_in(set, (ready, coming), words, found));
    }

    #[inline]
    fn contains_block_in<const SORTED: bool>(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        for i in 0..BLOCK {
            self.prefetch_both(coming, i);
            let pair = self.load_both(ready.buckets(i));
            words.set::<SORTED>(i, self.lanes.opened::<SORTED>(pair));
        }
        set.run(
            #[inline(always)]
            || table::test::<Geometry, SORTED>(&self.lanes, ready, slice::from_ref(words), found),
        );
    }

    #[inline(always)]
    fn load_pair(&self, place: &Place) -> [u64; 2] {
        self.load_both(place.buckets())
    }

    /// Both, in this order, after one look at how wide they are.
    #[inline(always)]
    fn load_both(&self, (home, alternate): (u64, u64)) -> [u64; 2] {
        let pair = [home, alternate];
        match &self.words {
            Atomics::Half(words) => {
                pair.map(|bucket| u64::from(words[index(bucket)].load(Ordering::Acquire)))
            }
            Atomics::Whole(words) => {
                pair.map(|bucket| words[index(bucket)].load(Ordering::Acquire))
            }
        }
    }

    #[inline(always)]
    fn pair<const SORTED: bool>(&self, words: [u64; 2], place: &Place) -> Pair<u64> {
        let same = place.home == place.alternate;
        Pair::new::<SORTED>(&self.lanes, words, same, place.fingerprint)
    }

    /// How many copies the buckets of `place` held when they were read.
    pub(super) fn copies(&self, place: &Place) -> u64 {
        in_form!(self, copies_in(place))
    }

    fn copies_in<const SORTED: bool>(&self, place: &Place) -> u64 {
        self.pair::<SORTED>(self.load_pair(place), place).copies(&self.lanes)
    }

    /// Fills an empty slot of the emptier bucket, where there are at most `most` copies.
    #[inline(always)]
    pub(super) fn put(&self, place: &Place, most: u64) -> Put {
        in_form!(self, put_in(place, most))
    }

    #[inline(always)]
    fn put_in<const SORTED: bool>(&self, place: &Place, most: u64) -> Put {
        loop {
            let words = self.load_pair(place);
            let (same, entry) = (place.home == place.alternate, (place.fingerprint, most));
            match Pair::put::<SORTED>(&self.lanes, words, same, entry) {
                Err(refused) => return refused,
                Ok((chosen, change)) => {
                    let (bucket, word) =
                        (either(chosen, place.buckets().into()), either(chosen, words));
                    if self.swap(bucket, word, word ^ change) {
                        return Put::Done;
                    }
                }
            }
        }
    }

    /// Empties a slot that holds the fingerprint of `place`; false if neither bucket held it when it was read.
    #[inline(always)]
    pub(super) fn take(&self, place: &Place) -> bool {
        in_form!(self, take_in(place))
    }

    #[inline(always)]
    fn take_in<const SORTED: bool>(&self, place: &Place) -> bool {
        loop {
            let words = self.load_pair(place);
            let pair = self.pair::<SORTED>(words, place);
            let Some((chosen, change)) = pair.exchange::<SORTED>(&self.lanes, place.fingerprint, 0)
            else {
                return false;
            };
            let (bucket, word) = (either(chosen, place.buckets().into()), either(chosen, words));
            if self.swap(bucket, word, word ^ change) {
                return true;
            }
        }
    }

    /// Whether a slot of `bucket` is empty.
    pub(super) fn has_room(&self, bucket: u64) -> bool {
        in_form!(self, has_room_in(bucket))
    }

    fn has_room_in<const SORTED: bool>(&self, bucket: u64) -> bool {
        self.lanes.has_room::<u64, SORTED>(self.load(bucket))
    }

    /// Whether a slot of `bucket` holds `slot`.
    pub(super) fn holds(&self, bucket: u64, slot: u64) -> bool {
        in_form!(self, holds_in(self.load(bucket), slot))
    }

    fn holds_in<const SORTED: bool>(&self, word: u64, slot: u64) -> bool {
        let pattern = self.lanes.pattern::<u64, SORTED>(slot);
        self.lanes.equal::<u64, SORTED>(word, pattern) != 0
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if there is none. 0 is an empty slot.
    pub(super) fn replace(&self, bucket: u64, old: u64, new: u64) -> bool {
        in_form!(self, replace_in(bucket, old, new))
    }

    fn replace_in<const SORTED: bool>(&self, bucket: u64, old: u64, new: u64) -> bool {
        let pattern = self.lanes.pattern::<u64, SORTED>(old);
        loop {
            let word = self.load(bucket);
            let equal = self.lanes.equal::<u64, SORTED>(word, pattern);
            if equal == 0 {
                return false;
            }
            if self.swap(
                bucket,
                word,
                word ^ self.lanes.change::<u64, SORTED>(word, equal, old, new),
            ) {
                return true;
            }
        }
    }

    #[inline(always)]
    fn neighbours_in<const SORTED: bool>(&self, base: u64, bucket: u64) -> Neighbours {
        let slots = self.lanes.slots::<u64, SORTED>(self.load(bucket));
        Neighbours::of(slots, (&self.geometry, self.layout), (base, bucket))
    }
}

impl Buckets for Cells {
    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        places: &mut Places,
    ) {
        // Buckets are found by their number: where their bits would be is of no account.
        self.geometry.locate_many(set, 1, hash, places);
    }

    #[inline(always)]
    fn prefetch_both(&self, places: &Places, i: usize) {
        let (home, alternate) = places.buckets(i);
        self.prefetch(home);
        self.prefetch(alternate);
    }
}

/// As they were read: a plan made of them is checked again when it is carried out.
impl Neighbourhood for Cells {
    fn neighbours(&self, base: u64, bucket: u64) -> Neighbours {
        in_form!(self, neighbours_in(base, bucket))
    }

    fn prefetch(&self, bucket: u64) {
        self.prefetch(bucket);
    }

    fn has_room(&self, bucket: u64) -> bool {
        self.has_room(bucket)
    }

    /// A bucket that was full when the search came to it may have empty slots by now, and those are no copies.
    fn is_spare(&self, bucket: u64, slot: u64) -> bool {
        slot != 0 && self.copies(&self.geometry.place_of(bucket, slot)) > 1
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the buckets are in memory")]
pub(super) fn index(bucket: u64) -> usize {
    bucket as usize
}

/// The low half, which is all there is of a bucket of 32 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the bucket has no other bits")]
fn half(word: u64) -> u32 {
    word as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A search that came to a bucket before others emptied two of its slots took one of them for a copy of the other, and counted it.
    #[test]
    fn an_empty_slot_is_no_spare_copy() {
        for (codec, width) in [(Codec::Plain, 8), (Codec::Plain, 16), (Codec::SemiSorted, 17)] {
            let layout = Layout::new(codec, width, 0).unwrap();
            let cells = Cells::new(Geometry::new(0, 100, width), layout, |_| 0);
            assert!((0..100).all(|bucket| !cells.is_spare(bucket, 0)));
        }
    }
}
