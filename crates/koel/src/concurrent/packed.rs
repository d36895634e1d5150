//! Buckets in atomic words of one width and one packing: what is done to a bucket, or to the two of a place.
//!
//! A change is computed from the word as it was read and made by one compare-and-swap, which fails if the bucket has changed since, and then everything is computed
//! anew.

use alloc::boxed::Box;
use core::slice;

use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::geometry::{BLOCK, Geometry, Place, Places};
use crate::layout::{Lanes, Layout, SLOTS};
use crate::prefetch::prefetch;
use crate::table::{self, Pair, Put, Words, either};
use crate::vector::InstructionSet;

/// Words of a table and the masks of its layout.
pub(super) struct Packed<A, const SORTED: bool> {
    lanes: Lanes,
    words: Box<[A]>,
}

/// A word of 32 or of 64 bits; what a bucket leaves of it stays zero.
pub(super) trait Atomic {
    fn new(bucket: u64) -> Self;

    /// The bucket as it is now. Whatever was done before it was written is visible from here on.
    fn get(&self) -> u64;

    /// Writes `new` if the bucket is still `old`; whether it was.
    fn swap(&self, old: u64, new: u64) -> bool;
}

impl Atomic for AtomicU32 {
    fn new(bucket: u64) -> Self {
        Self::new(half(bucket))
    }

    #[inline(always)]
    fn get(&self) -> u64 {
        u64::from(self.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn swap(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(half(old), half(new), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Atomic for AtomicU64 {
    fn new(bucket: u64) -> Self {
        Self::new(bucket)
    }

    #[inline(always)]
    fn get(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn swap(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl<A: Atomic, const SORTED: bool> Packed<A, SORTED> {
    pub(super) fn new(layout: Layout, buckets: impl Iterator<Item = u64>) -> Self {
        Self { lanes: Lanes::new(layout), words: buckets.map(A::new).collect() }
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Asks the memory for a bucket.
    #[inline(always)]
    pub(super) fn prefetch(&self, bucket: u64) {
        prefetch(&self.words, index(bucket));
    }

    /// The bucket as it is now.
    #[inline(always)]
    pub(super) fn load(&self, bucket: u64) -> u64 {
        self.words[index(bucket)].get()
    }

    /// The words of both buckets of `place`.
    #[inline(always)]
    pub(super) fn both(&self, place: &Place) -> [&A; 2] {
        [place.home, place.alternate].map(|bucket| &self.words[index(bucket)])
    }

    /// [`both`](Self::both) without a look at whether they are in the table.
    ///
    /// # Safety
    /// Both buckets are in the table.
    #[inline(always)]
    #[expect(unsafe_code, reason = "two checks less, which are a twentieth of a lookup")]
    pub(super) unsafe fn both_unchecked(&self, place: &Place) -> [&A; 2] {
        [place.home, place.alternate].map(|bucket| {
            debug_assert!(index(bucket) < self.words.len());
            // SAFETY: the caller says so.
            unsafe { self.words.get_unchecked(index(bucket)) }
        })
    }

    /// Whether either word held the fingerprint when it was read, the first one first.
    #[inline(always)]
    pub(super) fn contains(&self, [home, alternate]: [&A; 2], fingerprint: u64) -> bool {
        let words = self.lanes.opened::<SORTED>([home.get(), alternate.get()]);
        self.lanes.pair_has::<SORTED>(words, fingerprint)
    }

    /// The same for a block of places, while the memory is asked for the buckets of the `coming` block.
    #[inline]
    pub(super) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        let coming = table::asked_ahead::<SORTED>(self.size_in_bytes(), coming);
        for i in 0..BLOCK {
            if let Some(coming) = coming {
                let (home, alternate) = coming.buckets(i);
                self.prefetch(home);
                self.prefetch(alternate);
            }
            let (home, alternate) = ready.buckets(i);
            let pair = [self.load(home), self.load(alternate)];
            words.set::<SORTED>(i, self.lanes.opened::<SORTED>(pair));
        }
        set.run(
            #[inline(always)]
            || table::test::<Geometry, SORTED>(&self.lanes, ready, slice::from_ref(words), found),
        );
    }

    /// How many copies the buckets of `place` held when they were read.
    pub(super) fn copies(&self, place: &Place) -> u64 {
        self.pair(self.both(place).map(A::get), place).copies(&self.lanes)
    }

    #[inline(always)]
    fn pair(&self, words: [u64; 2], place: &Place) -> Pair<u64> {
        let same = place.home == place.alternate;
        Pair::new::<SORTED>(&self.lanes, words, same, place.fingerprint)
    }

    /// Fills an empty slot of the emptier bucket, where there are at most `most` copies.
    #[inline(always)]
    pub(super) fn put(&self, place: &Place, most: u64) -> Put {
        let both = self.both(place);
        let (same, entry) = (place.home == place.alternate, (place.fingerprint, most));
        loop {
            let words = both.map(A::get);
            match Pair::put::<SORTED>(&self.lanes, words, same, entry) {
                Err(refused) => return refused,
                Ok(change) if swap(both, words, change) => return Put::Done,
                Ok(_) => {}
            }
        }
    }

    /// Empties a slot that holds the fingerprint of `place`; false if neither bucket held it when it was read.
    #[inline(always)]
    pub(super) fn take(&self, place: &Place) -> bool {
        let both = self.both(place);
        loop {
            let words = both.map(A::get);
            let pair = self.pair(words, place);
            match pair.exchange::<SORTED>(&self.lanes, place.fingerprint, 0) {
                None => return false,
                Some(change) if swap(both, words, change) => return true,
                Some(_) => {}
            }
        }
    }

    /// Whether a slot of `bucket` is empty.
    pub(super) fn has_room(&self, bucket: u64) -> bool {
        self.lanes.has_room::<u64, SORTED>(self.load(bucket))
    }

    /// Whether a slot of `bucket` holds `slot`.
    pub(super) fn holds(&self, bucket: u64, slot: u64) -> bool {
        self.equal(self.load(bucket), slot) != 0
    }

    /// The lanes of a bucket that hold `slot`.
    fn equal(&self, word: u64, slot: u64) -> u64 {
        self.lanes.equal::<u64, SORTED>(word, self.lanes.pattern::<u64, SORTED>(slot))
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if there is none. 0 is an empty slot.
    pub(super) fn replace(&self, bucket: u64, old: u64, new: u64) -> bool {
        let cell = &self.words[index(bucket)];
        loop {
            let word = cell.get();
            let equal = self.equal(word, old);
            if equal == 0 {
                return false;
            }
            let change = self.lanes.change::<u64, SORTED>(word, equal, old, new);
            if cell.swap(word, word ^ change) {
                return true;
            }
        }
    }

    /// The four slots of `bucket`.
    #[inline(always)]
    pub(super) fn slots(&self, bucket: u64) -> [u64; SLOTS] {
        self.lanes.slots::<u64, SORTED>(self.load(bucket))
    }
}

/// Changes these bits of the one or the other of two buckets, if it still is as in `words`; whether it was.
#[inline(always)]
fn swap<A: Atomic>(both: [&A; 2], words: [u64; 2], (chosen, bits): (bool, u64)) -> bool {
    let word = either(chosen, words);
    either(chosen, both).swap(word, word ^ bits)
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
