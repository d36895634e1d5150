//! Buckets of at most 64 bits: one register each, tested and changed without decoding the slots.
//!
//! [`Narrow`] has the operations that plain and semi-sorted buckets share. They work on *words*: a
//! bucket in the low bits of a register, whatever is above it. A table takes the words from a row
//! of bytes, a concurrent filter from atomics. A change is computed as the bits to flip, so a write
//! needs neither the old word nor a mask.
//!
//! A semi-sorted bucket may start in the middle of a byte. The 64 bits from that byte on have all
//! of it: a bucket of more than 60 bits has 64, and starts with a byte.
//!
//! One vector register compares both words of a pair. The integer unit computes the addresses of
//! the next keys, and instructions that wait for memory are in its way: inserts and removals take
//! 10 % less time (docs/decisions/0011-inserts.md).

use wide::u64x2;

use super::bits::{by_mask, byte_index, either, entry, lowest, mask, xor_at};
use super::block::{Batch, InRegisters, Words};
use super::coding::{Coding, Open, Plain, Sorted, code_of, computed_code_of};
use super::lanes::{Lanes, Opened, pair};
use super::layout::Layout;
use super::{Matching, Packing, Put, Taken, once};
use crate::mem::vector::BLOCK;

/// Code for one key at a time, which may branch.
const BRANCHING: bool = false;
/// Arithmetic alone, for vector code.
const IN_VECTOR: bool = true;

/// The packing of buckets of at most 64 bits.
pub(crate) trait Narrow {
    /// How slots lie in a bucket.
    type Coding: Coding;

    /// The masks of the layout.
    fn lanes(&self) -> &Lanes;

    /// The bits of a word that change when `new` replaces entry `old` in the lowest lane of `tops`,
    /// which is not 0. They are bits of the bucket. An `old` of `None` is an empty slot. It is an
    /// `Option` because a branch on a slot would keep [`only_entry`](Self::only_entry) from
    /// becoming vector code. `IN_VECTOR` asks for arithmetic alone, for vector code; `tops` may be
    /// 0 then, and the result is of no use.
    fn change<const IN_VECTOR: bool>(
        &self,
        word: Opened<u64>,
        tops: u64,
        old: Option<u64>,
        new: u64,
    ) -> u64;

    /// The byte in which the bucket at bit `start` of the table starts, and at which of its bits.
    #[inline]
    fn position_at(start: u64) -> (usize, u32) {
        (byte_index(start / 8), Self::Coding::shift(start))
    }

    /// A word, and its nibbles.
    #[inline(always)]
    fn open(&self, word: u64) -> Opened<u64> {
        let code_start = if Self::Coding::SORTED { 4 * self.lanes().width } else { 0 };
        (word, Self::Coding::nibbles(word >> code_start))
    }

    /// Whether either word matches its key. No branch on the data.
    #[inline(always)]
    fn words_match<M: Matching>(&self, [home, other]: [u64; 2], keys: [u64; 2]) -> bool {
        let words = [self.open(home), self.open(other)];
        self.lanes().pair_matches::<M, Self::Coding>(words, keys)
    }

    /// The lanes of both words that hold `slot`.
    #[inline(always)]
    fn both_equal(&self, [home, other]: [u64; 2], slot: u64) -> [u64; 2] {
        let pattern = self.lanes().pattern::<Self::Coding>(slot);
        let words = pair([self.open(home), self.open(other)]);
        self.lanes().equal::<_, Self::Coding>(words, pair([pattern; 2])).to_array()
    }

    /// Whether a lane of two words may hold `slot`: false positives are possible.
    ///
    /// Semi-sorted words are tested in the integer unit, which needs them for the insert. The way
    /// to the vector unit and back costs more than it saves.
    #[inline]
    fn may_equal(&self, words: [u64; 2], slot: u64) -> bool {
        let (lanes, pattern) = (self.lanes(), self.lanes().pattern::<Self::Coding>(slot).0);
        let [one, other] = if Self::Coding::SORTED {
            words.map(|word| lanes.any_zero(word ^ pattern))
        } else {
            lanes.any_zero(u64x2::new(words) ^ u64x2::new([pattern; 2])).to_array()
        };
        (one | other) != 0
    }

    /// The empty lanes of two words.
    #[inline]
    fn empty(&self, words: [u64; 2]) -> [u64; 2] {
        if Self::Coding::SORTED {
            words.map(|word| self.lanes().empty::<Self::Coding>(self.open(word)))
        } else {
            self.lanes().zero(u64x2::new(words)).to_array()
        }
    }

    /// Whether a bucket with `these` empty lanes has more of them than one with `those`.
    #[inline]
    fn is_emptier(&self, these: u64, those: u64) -> bool {
        if Self::Coding::SORTED {
            // Empty slots come first, so more of them are a greater number.
            these > those
        } else {
            self.lanes().count(these) > self.lanes().count(those)
        }
    }

    /// The bits of a word that change when `new` replaces the first slot that holds `old`, if there
    /// is one.
    #[inline(always)]
    fn word_with(&self, word: u64, old: u64, new: u64) -> Option<u64> {
        let equal = self.lanes().holding::<Self::Coding>(self.open(word), old);
        (equal != 0).then(|| self.change::<BRANCHING>(self.open(word), equal, entry(old), new))
    }

    /// How many lanes of a pair hold `slot`. `same` says that both words are of one bucket.
    #[inline(always)]
    fn words_copies(&self, words: [u64; 2], same: bool, slot: u64) -> u64 {
        let [home, other] = once(self.both_equal(words, slot), same);
        self.lanes().count(home) + self.lanes().count(other)
    }

    /// Adds a copy of `slot` to the emptier word of a pair, if there are at most `most` copies.
    /// Returns which word changes, and its changed bits.
    #[inline(always)]
    fn put_in(
        &self,
        words: [u64; 2],
        same: bool,
        (slot, most): (u64, u64),
    ) -> Result<(bool, u64), Put> {
        // Most entries are new, and then lanes show it.
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
        Ok((chosen, self.change::<BRANCHING>(self.open(word), room, None, slot)))
    }

    /// Replaces a copy of `old` in a pair by `new`. Returns which word changes, its changed bits,
    /// and what was taken out; `None` if there is no copy.
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
        let change =
            self.change::<BRANCHING>((word, either(chosen, nibbles)), tops, Some(old), new);
        let [home, other] = once(equal, same);
        let copies = home | other >> 1;
        Some((chosen, change, if copies == lowest(copies) { Taken::Last } else { Taken::Copy }))
    }

    /// Plans to add a new entry to the emptier of two words. Returns all ones if that is the second
    /// one, and the bits of it that change: none if both are full, or if a lane may hold a copy. By
    /// arithmetic alone, for vector code. Lanes must show the cores of fingerprints.
    #[inline(always)]
    fn new_entry(&self, words: [Opened<u64>; 2], slot: u64) -> (u64, u64) {
        let lanes = self.lanes();
        let pattern = lanes.pattern::<Self::Coding>(slot).0;
        let [one, other] = words.map(|word| lanes.any_zero(word.0 ^ pattern));
        let empty = words.map(|word| lanes.zero(word.0));
        let chosen = mask(self.is_emptier(empty[1], empty[0]));
        let room = by_mask(chosen, empty);
        let change = self.change::<IN_VECTOR>(opened_by_mask(chosen, words), room, None, slot);
        (chosen, change & mask(one | other == 0) & mask(room != 0))
    }

    /// Plans to empty the only lane of two words that holds `slot`. Returns all ones if that is in
    /// the second word, and the bits of it that change: none if no lane holds it, or more than one.
    /// By arithmetic alone, for vector code.
    #[inline(always)]
    fn only_entry(&self, words: [Opened<u64>; 2], slot: u64) -> (u64, u64) {
        let equal = words.map(|word| self.lanes().holding::<Self::Coding>(word, slot));
        let top = equal[0] | equal[1];
        let more = (equal[0] & equal[1]) | (top & top.wrapping_sub(1));
        let chosen = mask(equal[0] == 0);
        let change = self.change::<IN_VECTOR>(opened_by_mask(chosen, words), top, Some(slot), 0);
        (chosen, change & mask(more == 0) & mask(top != 0))
    }
}

/// [`by_mask`] for words with their nibbles.
#[inline(always)]
fn opened_by_mask(other: u64, [one, two]: [Opened<u64>; 2]) -> Opened<u64> {
    (by_mask(other, [one.0, two.0]), by_mask(other, [one.1, two.1]))
}

impl<P: Narrow> Packing for P {
    const PREFETCHES_NEAR: bool = P::Coding::SORTED;

    type Coding = P::Coding;
    type Registers = [Opened<u64>; 1];

    #[inline]
    fn lanes(&self) -> &Lanes {
        self.lanes()
    }

    #[inline]
    fn registers(&self, bytes: &[u8], start: u64) -> [Opened<u64>; 1] {
        self.open_at(bytes, start)
    }

    #[inline]
    fn match_block<M: Matching>(
        &self,
        batch: &Batch<'_>,
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        self.match_columns::<M>(batch, &mut words[..1], found);
    }

    /// Not inlined, so that a function for all packings saves no registers for this one.
    #[inline(never)]
    fn replace(&self, bytes: &mut [u8], start: u64, old: u64, new: u64) -> bool {
        let [(word, _)] = self.open_at(bytes, start);
        let change = self.word_with(word, old, new);
        if let Some(change) = change {
            let (byte, shift) = P::position_at(start);
            xor_at(bytes, byte, change << shift);
        }
        change.is_some()
    }
}

impl<P: Narrow> InRegisters for P {
    const LATER: usize = 0;

    #[inline(always)]
    fn open(&self, shift: u32, read: impl Fn(usize) -> u64) -> [Opened<u64>; 1] {
        [Narrow::open(self, read(0) >> shift)]
    }
}

/// Four plain slots in one register: the fastest packing, and the only one whose lanes are the
/// slots.
#[derive(Clone, Copy)]
pub(crate) struct Plain64 {
    lanes: Lanes,
}

impl Plain64 {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { lanes: Lanes::new::<Plain>(layout, 4) }
    }
}

impl Narrow for Plain64 {
    type Coding = Plain;

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The lowest bit of the lane times a slot is the slot in the lane.
    #[inline(always)]
    fn change<const IN_VECTOR: bool>(
        &self,
        _word: Opened<u64>,
        tops: u64,
        old: Option<u64>,
        new: u64,
    ) -> u64 {
        (lowest(tops) >> (self.lanes.width - 1)).wrapping_mul(old.unwrap_or(0) ^ new)
    }
}

/// Four semi-sorted slots in one register.
#[derive(Clone, Copy)]
pub(crate) struct Sorted64 {
    lanes: Lanes,
    /// The bits of the bucket.
    bucket: u64,
}

impl Sorted64 {
    pub(crate) fn new(layout: Layout) -> Self {
        let bucket = u64::MAX >> (u64::BITS - layout.bucket_bits());
        Self { lanes: Lanes::new::<Sorted>(layout, 4), bucket }
    }

    /// Whether blocks of new entries can be planned: whether lanes show the cores of fingerprints.
    pub(crate) fn plans_entries(&self) -> bool {
        self.lanes.core_in_lane
    }
}

impl Narrow for Sorted64 {
    type Coding = Sorted;

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    #[inline(always)]
    fn change<const IN_VECTOR: bool>(
        &self,
        word: Opened<u64>,
        tops: u64,
        old: Option<u64>,
        new: u64,
    ) -> u64 {
        let (lanes, nibbles) = replaced(&self.lanes, word, tops, old, new);
        let code = if IN_VECTOR { computed_code_of(nibbles) } else { code_of(nibbles) };
        (word.0 ^ (lanes | code << (4 * self.lanes.width))) & self.bucket
    }
}

/// The lanes of a word, without anything above them, and its nibbles, after `new` has replaced
/// entry `old` in the lowest lane of `tops`. An `old` of `None` and a `new` of 0 are empty slots.
#[inline(always)]
pub(super) fn replaced(
    lanes: &Lanes,
    word: Opened<u64>,
    tops: u64,
    old: Option<u64>,
    new: u64,
) -> Opened<u64> {
    let (top, width) = (lowest(tops), lanes.width);
    let lane = lanes.count(top.wrapping_sub(1) & lanes.tops());
    let open = Open { lanes: word.0, nibbles: word.1, width };
    let rest = if old.is_none() { open } else { open.without((top, lane)) };
    let open = if new == 0 { rest } else { rest.with(new) };
    (open.lanes & (u64::MAX >> (u64::BITS - 4 * width)), open.nibbles)
}
