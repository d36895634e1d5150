//! Buckets of at most 64 bits: one register each, tested and changed without unpacking the slots.
//!
//! Here is what plain and semi-sorted buckets have in common. It works on words, wherever they come
//! from: [`Packing`] takes them from a row of bytes, a shared filter from atomics. What a changed
//! pair becomes is told as the bits to flip, so that a write needs neither the word nor a mask of
//! it.
//!
//! Both words of a pair are compared in one vector register. The integer unit has the addresses of
//! the next keys to work out, and what waits in it for the memory is in their way: inserts and
//! removals take a tenth less time so (docs/decisions/0006-speed.md).

use core::hint::select_unpredictable;
use core::slice;

use super::block::{Batch, Words, align, match_words};
use super::bytes::{byte_index, read, store, xor_at};
use super::slot_coding::Coding;
use super::swar::{Lanes, Opened, Pattern, pair};
use super::{Candidates, Matching, Packing, Put, SLOTS, Taken};
use crate::address::geometry::Locations;
use crate::mem::unchecked::Reader;
use crate::mem::vector::BLOCK;

/// The packing of buckets of at most 64 bits.
pub(crate) trait Narrow {
    /// How slots lie in a bucket.
    type Coding: Coding;

    /// The masks of the layout.
    fn lanes(&self) -> &Lanes;

    /// Whether a lane of two words may hold `slot`, as far as lanes show it.
    fn may_equal(&self, words: [u64; 2], slot: u64) -> bool;

    /// The empty lanes of two words.
    fn empty(&self, words: [u64; 2]) -> [u64; 2];

    /// Whether a bucket with `these` empty lanes has more of them than one with `those`.
    fn is_emptier(&self, these: u64, those: u64) -> bool;

    /// Whether a lane of a word is empty.
    fn word_has_room(&self, word: u64) -> bool;

    /// The bits of a word that change when `new` replaces slot `old` in the lowest lane of `tops`,
    /// of which there is one. None of them is outside the bucket.
    fn change(&self, word: Opened<u64>, tops: u64, old: u64, new: u64) -> u64;

    /// The bits that change when `slot` fills the lowest of the empty lanes `room`: by arithmetic
    /// alone, for vector code.
    fn filled(&self, word: Opened<u64>, room: u64, slot: u64) -> u64;

    /// The bits that change when the lane `top`, which holds `slot`, is emptied: as above.
    fn emptied(&self, word: Opened<u64>, top: u64, slot: u64) -> u64;

    /// The byte that a bucket starts in, and at which of its bits.
    #[inline]
    fn position(bucket: u64, bucket_bits: u64) -> (usize, u32) {
        Self::position_at(bucket * bucket_bits)
    }

    /// The same for the bucket at bit `start` of the table.
    #[inline]
    fn position_at(start: u64) -> (usize, u32) {
        (byte_index(start / 8), Self::Coding::shift(start))
    }

    /// The word that starts with the bucket.
    #[inline]
    fn load(&self, bytes: &[u8], start: u64) -> u64 {
        let (byte, shift) = Self::position_at(start);
        read(bytes, byte) >> shift
    }

    /// Both words of a pair. Not a map: that would go through the stack.
    #[inline(always)]
    fn load_pair(&self, bytes: &[u8], [home, other]: [u64; 2]) -> [u64; 2] {
        [self.load(bytes, home), self.load(bytes, other)]
    }

    /// A word beside its nibbles.
    #[inline(always)]
    fn open(&self, word: u64) -> Opened<u64> {
        (word, Self::Coding::nibbles(word >> self.code_start()))
    }

    /// Where the code of a semi-sorted bucket starts.
    #[inline]
    fn code_start(&self) -> u32 {
        if Self::Coding::SORTED { 4 * self.lanes().width() } else { 0 }
    }

    /// Whether the one or the other word matches its key. No branch on the data.
    #[inline(always)]
    fn words_match<M: Matching>(&self, [home, other]: [u64; 2], keys: [u64; 2]) -> bool {
        let words = [self.open(home), self.open(other)];
        self.lanes().pair_matches::<M, Self::Coding>(words, keys)
    }

    /// The four slots of a word.
    #[inline]
    fn word_slots(&self, word: u64) -> [u64; SLOTS] {
        let (word, nibbles) = self.open(word);
        let slot = |i| Self::Coding::slot(self.lanes().lane(word, i), nibbles, i);
        [slot(0), slot(1), slot(2), slot(3)]
    }

    /// The lanes of a word that hold `slot`.
    #[inline]
    fn equal(&self, word: u64, slot: u64) -> u64 {
        let pattern = self.lanes().pattern::<Self::Coding>(slot);
        self.lanes().equal::<u64, Self::Coding>(self.open(word), pattern)
    }

    /// The same of two words.
    #[inline(always)]
    fn both_equal(&self, [home, other]: [u64; 2], slot: u64) -> [u64; 2] {
        let pattern = self.lanes().pattern::<Self::Coding>(slot);
        let words = pair([self.open(home), self.open(other)]);
        self.lanes().equal::<_, Self::Coding>(words, Pattern::pair([pattern; 2])).to_array()
    }

    /// The bits of a word that change when `new` replaces the first slot that holds `old`, if there
    /// is one.
    #[inline(always)]
    fn word_with(&self, word: u64, old: u64, new: u64) -> Option<u64> {
        let equal = self.equal(word, old);
        (equal != 0).then(|| self.change(self.open(word), equal, old, new))
    }

    /// How many lanes of a pair hold `slot`.
    #[inline(always)]
    fn words_copies(&self, words: [u64; 2], same: bool, slot: u64) -> u64 {
        let [home, other] = once(self.both_equal(words, slot), same);
        self.lanes().count(home) + self.lanes().count(other)
    }

    /// Which word of a pair a new copy of `slot` goes to, the emptier one, and the bits of it that
    /// change; or why it goes to none.
    #[inline(always)]
    fn put_in(
        &self,
        words: [u64; 2],
        same: bool,
        (slot, most): (u64, u64),
    ) -> Result<(bool, u64), Put> {
        // A new entry is the rule, and then lanes show that it is new.
        if self.may_equal(words, slot) {
            let copies = self.words_copies(words, same, slot);
            if copies > most {
                return Err(Put::Repeated(copies));
            }
        }
        let empty = self.empty(words);
        let chosen = self.is_emptier(empty[1], empty[0]);
        let (word, room) = (either(chosen, words), either(chosen, empty));
        if room == 0 {
            return Err(Put::Full);
        }
        Ok((chosen, self.change(self.open(word), room, 0, slot)))
    }

    /// Which word of a pair has a copy of `old` that becomes `new`, the bits of it that change, and
    /// what is taken out so.
    #[inline(always)]
    fn exchange_in(
        &self,
        words: [u64; 2],
        same: bool,
        (old, new): (u64, u64),
    ) -> Option<(bool, u64, Taken)> {
        let equal = self.both_equal(words, old);
        let chosen = equal[0] == 0;
        let nibbles = [self.open(words[0]).1, self.open(words[1]).1];
        let (word, tops) = (either(chosen, words), either(chosen, equal));
        if tops == 0 {
            return None;
        }
        let change = self.change((word, either(chosen, nibbles)), tops, old, new);
        let taken = if Lanes::is_one(once(equal, same)) { Taken::Last } else { Taken::Copy };
        Some((chosen, change, taken))
    }

    /// Which of two words a new entry goes to, all ones for the other, and the bits of it that
    /// change: none where both are full, or where a lane may have a copy. By arithmetic alone, for
    /// vector code. Fingerprints have their core in their lanes.
    #[inline(always)]
    fn new_entry(&self, [one, other]: [Opened<u64>; 2], slot: u64) -> (u64, u64) {
        let lanes = self.lanes();
        let pattern = lanes.pattern::<Self::Coding>(slot).lanes;
        let copies = lanes.any_zero(one.0 ^ pattern) | lanes.any_zero(other.0 ^ pattern);
        let empty = [lanes.zero(one.0), lanes.zero(other.0)];
        let chosen = mask(self.is_emptier(empty[1], empty[0]));
        let room = by_mask(chosen, empty);
        let word = (by_mask(chosen, [one.0, other.0]), by_mask(chosen, [one.1, other.1]));
        let change = self.filled(word, room, slot);
        (chosen, change & mask(copies == 0) & mask(room != 0))
    }

    /// Which of two words has the only lane of both that holds `slot`, all ones for the other, and
    /// the bits of it that change when that is emptied: none where no lane holds it, or more than
    /// one. By arithmetic alone, for vector code.
    #[inline(always)]
    fn only_entry(&self, [one, other]: [Opened<u64>; 2], slot: u64) -> (u64, u64) {
        let lanes = self.lanes();
        let pattern = lanes.pattern::<Self::Coding>(slot);
        let equal = [one, other].map(|word| lanes.equal::<u64, Self::Coding>(word, pattern));
        let top = equal[0] | equal[1];
        let more = (equal[0] & equal[1]) | (top & top.wrapping_sub(1));
        let chosen = mask(equal[0] == 0);
        let word = (by_mask(chosen, [one.0, other.0]), by_mask(chosen, [one.1, other.1]));
        let change = self.emptied(word, top, slot);
        (chosen, change & mask(more == 0) & mask(top != 0))
    }

    /// Puts the words of a pair into columns.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[inline(always)]
    fn set_column(&self, words: &mut Words, i: usize, [home, other]: [u64; 2]) {
        words.set::<Self::Coding>(i, [self.open(home), self.open(other)]);
    }

    /// [`words_match`](Self::words_match) for columns of words.
    #[inline(always)]
    fn match_columns<M: Matching>(
        &self,
        locations: &Locations,
        words: &Words,
        found: &mut [bool; BLOCK],
    ) {
        match_words::<M, Self::Coding>(self.lanes(), locations, slice::from_ref(words), found);
    }
}

/// The lanes of a pair, those of one bucket twice only once.
#[inline]
fn once([home, other]: [u64; 2], same: bool) -> [u64; 2] {
    [home, if same { 0 } else { other }]
}

/// The one or the other of a pair. Which one is drawn by lot, so a branch would be mispredicted
/// half of the time, and known to be only when the memory has answered.
#[inline]
pub(crate) fn either<T>(other: bool, [home, alternate]: [T; 2]) -> T {
    select_unpredictable(other, alternate, home)
}

/// The second of two numbers where `other` is all ones, the first where it is 0.
#[inline]
fn by_mask(other: u64, [one, two]: [u64; 2]) -> u64 {
    one ^ ((one ^ two) & other)
}

/// All ones where something is so.
#[inline]
fn mask(is_so: bool) -> u64 {
    u64::from(is_so).wrapping_neg()
}

impl<P: Narrow> Packing for P {
    const PREFETCHES_NEAR: bool = P::Coding::SORTED;

    #[inline]
    fn slots(&self, bytes: &[u8], start: u64) -> [u64; SLOTS] {
        self.word_slots(self.load(bytes, start))
    }

    #[inline]
    fn write(&self, bytes: &mut [u8], start: u64, slots: [u64; SLOTS]) {
        let width = self.lanes().width();
        let bits = P::Coding::bucket_bits(width);
        store(bytes, start, bits, P::Coding::encode(slots, width));
    }

    #[inline]
    fn has_room(&self, bytes: &[u8], start: u64) -> bool {
        self.word_has_room(self.load(bytes, start))
    }

    #[inline(always)]
    fn matches<M: Matching>(&self, bytes: &[u8], starts: [u64; 2], keys: [u64; 2]) -> bool {
        self.words_match::<M>(self.load_pair(bytes, starts), keys)
    }

    #[inline]
    fn matching<M: Matching>(&self, bytes: &[u8], start: u64, key: u64) -> u32 {
        let word = self.open(self.load(bytes, start));
        self.lanes().matching_bits::<M, P::Coding>(word, key, 4)
    }

    #[inline]
    fn match_block<M: Matching>(
        &self,
        batch: &Batch<'_>,
        [words, _]: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        let looks_ahead = batch.looks_ahead::<P>();
        let reader = Reader::<0>::new(batch.bytes, batch.ready.bytes(), batch.set);
        let code = self.code_start();
        for i in 0..BLOCK {
            if looks_ahead {
                batch.prefetch(i);
            }
            let [home, other] = batch.ready.bits(i);
            let open = |word: u64, start: u64| {
                (word, P::Coding::nibbles(word >> (code + P::Coding::shift(start))))
            };
            let words_of = [open(reader.read(0, i), home), open(reader.read(1, i), other)];
            words.set::<P::Coding>(i, words_of);
        }
        batch.set.run(
            #[inline(always)]
            || {
                if P::Coding::SORTED {
                    align(batch.ready, 0, words);
                }
                self.match_columns::<M>(batch.ready, words, found);
            },
        );
    }

    #[inline]
    fn vacancies(&self, bytes: &[u8], start: u64) -> u64 {
        let word = self.load(bytes, start);
        self.lanes().count(self.empty([word; 2])[0])
    }

    /// Not inlined, so that a function for all packings saves no registers for this one.
    #[inline(never)]
    fn replace(&self, bytes: &mut [u8], start: u64, old: u64, new: u64) -> bool {
        let change = self.word_with(self.load(bytes, start), old, new);
        if let Some(change) = change {
            let (byte, shift) = P::position_at(start);
            xor_at(bytes, byte, change << shift);
        }
        change.is_some()
    }

    #[inline(always)]
    fn candidates<M: Matching>(
        &self,
        bytes: &[u8],
        starts: [u64; 2],
        keys: [u64; 2],
    ) -> Candidates {
        let [home, other] = self.load_pair(bytes, starts);
        let tops = |word, key| {
            let pattern = self.lanes().pattern::<P::Coding>(key);
            M::tops::<u64, P::Coding>(self.lanes(), self.open(word), pattern)
        };
        let tops = once([tops(home, keys[0]), tops(other, keys[1])], starts[0] == starts[1]);
        if !P::Coding::SORTED {
            return Candidates::of_lanes(self.lanes(), [home, other], tops);
        }
        let [of_home, of_other] = tops.map(|tops| self.lanes().bits(tops, 4));
        let slots = [self.word_slots(home), self.word_slots(other)];
        Candidates::of_slots(slots, of_home | of_other << SLOTS)
    }

    #[inline]
    fn copies(&self, bytes: &[u8], starts: [u64; 2], slot: u64) -> u64 {
        let words = self.load_pair(bytes, starts);
        self.words_copies(words, starts[0] == starts[1], slot)
    }
}
