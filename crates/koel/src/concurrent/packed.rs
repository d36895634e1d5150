//! Buckets in atomic words of one width and one packing: what is done to a bucket, or to the two of
//! a place.
//!
//! `packing/narrow.rs` computes each change from the words as they were read. One compare-and-swap
//! makes it, which fails if the bucket has changed since; then everything is computed anew.

use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::address::geometry::{Location, Locations};
use crate::mem::prefetch::prefetch;
use crate::mem::vector::{BLOCK, InstructionSet};
use crate::packing::{Exact, Narrow, Packing, Put, SLOTS, Words, either, is_near};
use alloc::boxed::Box;

/// The words of a table, and how buckets are packed into them.
pub(super) struct Packed<A, P> {
    packing: P,
    words: Box<[A]>,
}

/// A word of 32 or of 64 bits; what a bucket leaves of it stays zero.
pub(super) trait Atomic {
    /// The bucket as it is now. Whatever was done before it was written is visible from here on.
    fn get(&self) -> u64;

    /// Writes `new` if the bucket is still `old`; whether it was.
    fn swap(&self, old: u64, new: u64) -> bool;
}

impl Atomic for AtomicU32 {
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
    #[inline(always)]
    fn get(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn swap(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl<A: Atomic, P: Narrow> Packed<A, P> {
    pub(super) fn new(packing: P, words: Box<[A]>) -> Self {
        Self { packing, words }
    }

    pub(super) fn into_words(self) -> Box<[A]> {
        self.words
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Asks the memory for a bucket.
    #[inline]
    pub(super) fn prefetch(&self, bucket: u64) {
        prefetch(&self.words, index(bucket));
    }

    /// The bucket as it is now.
    #[inline]
    pub(super) fn load(&self, bucket: u64) -> u64 {
        self.words[index(bucket)].get()
    }

    /// The words of both buckets of `location`.
    #[inline]
    pub(super) fn both(&self, location: &Location) -> [&A; 2] {
        [&self.words[index(location.home)], &self.words[index(location.alternate)]]
    }

    /// [`both`](Self::both) without a look at whether they are in the table.
    ///
    /// # Safety
    /// Both buckets are in the table.
    #[inline(always)]
    #[expect(unsafe_code, reason = "checked, a lookup takes 25 % more instructions (fast layout)")]
    pub(super) unsafe fn both_unchecked(&self, location: &Location) -> [&A; 2] {
        [location.home, location.alternate].map(|bucket| {
            debug_assert!(index(bucket) < self.words.len());
            // SAFETY: the caller says so.
            unsafe { self.words.get_unchecked(index(bucket)) }
        })
    }

    /// Whether either word held the fingerprint when it was read, the first one first.
    #[inline(always)]
    pub(super) fn contains(&self, [home, alternate]: [&A; 2], fingerprint: u64) -> bool {
        self.packing.words_match::<Exact>([home.get(), alternate.get()], [fingerprint; 2])
    }

    /// The same for a block of places, while the memory is asked for the buckets of the `coming`
    /// block.
    #[inline]
    pub(super) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Locations, &Locations),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        let looks_ahead = P::PREFETCHES_NEAR || !is_near(self.size_in_bytes());
        for i in 0..BLOCK {
            if looks_ahead {
                let (home, alternate) = coming.buckets(i);
                self.prefetch(home);
                self.prefetch(alternate);
            }
            let (home, alternate) = ready.buckets(i);
            let (home, alternate) = (self.load(home), self.load(alternate));
            self.packing.set_column(words, i, [home, alternate]);
        }
        set.run(
            #[inline(always)]
            || self.packing.match_columns::<Exact>(ready, words, found),
        );
    }

    /// How many copies the buckets of `location` held when they were read.
    pub(super) fn copies(&self, location: &Location) -> u64 {
        let words = self.both(location).map(A::get);
        self.packing.words_copies(words, location.home == location.alternate, location.fingerprint)
    }

    /// Fills an empty slot of the emptier bucket, where there are at most `most` copies.
    #[inline(always)]
    pub(super) fn put(&self, location: &Location, most: u64) -> Put {
        let both = self.both(location);
        let same = location.home == location.alternate;
        loop {
            let words = both.map(A::get);
            match self.packing.put_in(words, same, (location.fingerprint, most)) {
                Err(refused) => return refused,
                Ok(change) if swap(both, words, change) => return Put::Done,
                Ok(_) => {}
            }
        }
    }

    /// Empties a slot that holds the fingerprint of `location`; false if neither bucket held it
    /// when it was read.
    #[inline(always)]
    pub(super) fn take(&self, location: &Location) -> bool {
        let both = self.both(location);
        let same = location.home == location.alternate;
        loop {
            let words = both.map(A::get);
            match self.packing.exchange_in(words, same, (location.fingerprint, 0)) {
                None => return false,
                Some((chosen, bits, _)) if swap(both, words, (chosen, bits)) => return true,
                Some(_) => {}
            }
        }
    }

    /// Whether a slot of `bucket` is empty.
    pub(super) fn has_room(&self, bucket: u64) -> bool {
        self.packing.word_has_room(self.load(bucket))
    }

    /// Whether a slot of `bucket` holds `slot`.
    pub(super) fn holds(&self, bucket: u64, slot: u64) -> bool {
        self.packing.equal(self.load(bucket), slot) != 0
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if
    /// there is none. 0 is an empty slot.
    pub(super) fn replace(&self, bucket: u64, old: u64, new: u64) -> bool {
        let cell = &self.words[index(bucket)];
        loop {
            let word = cell.get();
            match self.packing.word_with(word, old, new) {
                None => return false,
                Some(change) if cell.swap(word, word ^ change) => return true,
                Some(_) => {}
            }
        }
    }

    /// The four slots of `bucket`.
    #[inline]
    pub(super) fn slots(&self, bucket: u64) -> [u64; SLOTS] {
        self.packing.word_slots(self.load(bucket))
    }
}

/// Changes these bits of the one or the other of two buckets, if it still is as in `words`; whether
/// it was.
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
