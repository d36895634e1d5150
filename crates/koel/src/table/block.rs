//! A block of places at once: their buckets asked for, loaded, and compared in vector code.

use core::slice;

use super::{Addressing, Table, byte_index, shift_of};
use crate::geometry::{BLOCK, Column, Places};
use crate::layout::{Apart, Form, Lanes, Quad, Word, joined};
use crate::unchecked::Reader;
use crate::vector::InstructionSet;

/// From a table of so many bytes a processor fetches as fast as the loads of a block follow each other. Tests have larger ones too.
const NEAR: usize = if cfg!(test) { 1 << 10 } else { 2 << 20 };

/// Whether a table of `bytes` bytes is in a cache that answers soon.
#[inline(always)]
pub(crate) fn is_near(bytes: usize) -> bool {
    bytes <= NEAR
}

/// The places whose buckets a lookup in a table of `bytes` bytes asks for ahead: none where that costs more than it saves. Semi-sorted buckets are worked on while others are
/// waited for, and it saves more.
#[inline(always)]
pub(crate) fn asked_ahead<const SORTED: bool>(bytes: usize, coming: &Places) -> Option<&Places> {
    (SORTED || !is_near(bytes)).then_some(coming)
}

/// What a walk over blocks of keys asks of a table, of plain bytes or of atomic words.
pub(crate) trait Buckets {
    /// The places of the hashes that `hash` writes.
    fn locate_many(&self, set: InstructionSet, hash: impl FnOnce(&mut Column), places: &mut Places);

    /// Asks the memory for both buckets of place `i`.
    fn prefetch_both(&self, places: &Places, i: usize);
}

impl<B: Buckets> Buckets for &B {
    #[inline(always)]
    fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        places: &mut Places,
    ) {
        (*self).locate_many(set, hash, places);
    }

    #[inline(always)]
    fn prefetch_both(&self, places: &Places, i: usize) {
        (*self).prefetch_both(places, i);
    }
}

impl<B: AsRef<[u8]>, A: Addressing> Buckets for Table<B, A> {
    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        places: &mut Places,
    ) {
        self.geometry.locate_many(set, self.lanes.bucket_bits(), hash, places);
    }

    #[inline(always)]
    fn prefetch_both(&self, places: &Places, i: usize) {
        for column in places.bytes() {
            self.prefetch_from(byte_index(column[i]));
        }
    }
}

impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// `contains` for a block of places, whose buckets the memory was asked for, while it is asked for those of the `coming` block, as far as [`asked_ahead`] says.
    pub(crate) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        let places = (ready, coming);
        match self.lanes.form() {
            Form::Plain => self.contains_narrow::<false>(set, places, &mut words[0], found),
            Form::Sorted => self.contains_narrow::<true>(set, places, &mut words[0], found),
            Form::WidePlain => self.contains_halves::<false>(set, places, words, found),
            Form::WideSorted if self.part.are_all() => {
                self.contains_whole(set, places, words, found);
            }
            Form::WideSorted => self.contains_halves::<true>(set, places, words, found),
            Form::Quad => self.contains_each::<Quad>(places, found),
            Form::Apart => self.contains_each::<Apart>(places, found),
        }
    }

    /// Buckets of four registers, one place after the other.
    fn contains_each<W: Word>(
        &self,
        (ready, coming): (&Places, &Places),
        found: &mut [bool; BLOCK],
    ) {
        for (i, found) in found.iter_mut().enumerate() {
            self.prefetch_both(coming, i);
            *found = self.pair_matches_in::<W, false>(ready.buckets(i), A::keys(ready, i));
        }
    }

    /// Buckets of 64 bits, each loaded from the byte that it starts in: [`align`] does the rest, for all at once.
    #[inline]
    fn contains_narrow<const SORTED: bool>(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        let coming = asked_ahead::<SORTED>(self.bytes.as_ref().len(), coming);
        let reader = Reader::new(self.bytes.as_ref(), ready.bytes(), set);
        let code = 4 * self.lanes.width();
        let beside_nibbles =
            |word: u64, bit: u64| (word, Lanes::nibbles_at::<SORTED>(word, shift_of(bit) + code));
        for i in 0..BLOCK {
            if let Some(coming) = coming {
                self.prefetch_both(coming, i);
            }
            let [home, alternate] = ready.bits(i);
            let home = beside_nibbles(reader.read(0, i), home);
            let alternate = beside_nibbles(reader.read(1, i), alternate);
            words.set::<SORTED>(i, [home, alternate]);
        }
        set.run(
            #[inline(always)]
            || {
                if SORTED {
                    align(ready, 0, words);
                }
                test::<A, SORTED>(&self.lanes, ready, slice::from_ref(words), found);
            },
        );
    }

    /// Wide buckets whose lanes fit into 64 bits, in two reads: the first in the first of `words`, the second in the second one.
    #[inline]
    fn contains_whole(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        [words, later]: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        let reader = Reader::new(self.bytes.as_ref(), ready.bytes(), set);
        for i in 0..BLOCK {
            self.prefetch_both(coming, i);
            let [home, alternate] = ready.bits(i);
            let second = [reader.read_later(0, i), reader.read_later(1, i)];
            let nibbles = |read: u64, bit: u64| self.part.nibbles_later(read, shift_of(bit));
            let (of_home, of_alternate) = (nibbles(second[0], home), nibbles(second[1], alternate));
            words.set::<true>(i, [(reader.read(0, i), of_home), (reader.read(1, i), of_alternate)]);
            later.set::<false>(i, second.map(|read| (read, 0)));
        }
        set.run(
            #[inline(always)]
            || {
                join(ready, words, later);
                test::<A, true>(&self.part, ready, slice::from_ref(words), found);
            },
        );
    }

    /// Wide buckets half by half: the halves are in the one and the other of `words`.
    #[inline]
    fn contains_halves<const SORTED: bool>(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        for i in 0..BLOCK {
            self.prefetch_both(coming, i);
            self.load_halves::<SORTED>(ready, i, words);
        }
        set.run(
            #[inline(always)]
            || {
                let [lower, upper] = &mut *words;
                if SORTED {
                    align(ready, 0, lower);
                    upper.take_nibbles(lower);
                }
                align(ready, self.lanes.half(), upper);
                test::<A, SORTED>(&self.part, ready, words, found);
            },
        );
    }

    /// Loads the halves of two buckets, each from the byte that it starts in; the nibbles of both are in the lower one.
    #[inline(always)]
    fn load_halves<const SORTED: bool>(
        &self,
        places: &Places,
        i: usize,
        [lower, upper]: &mut [Words; 2],
    ) {
        let [home, alternate] = places.bits(i);
        let (home, alternate) =
            (self.raw_halves_at::<SORTED>(home), self.raw_halves_at::<SORTED>(alternate));
        lower.set::<SORTED>(i, [(home[0], home[2]), (alternate[0], alternate[2])]);
        upper.set::<false>(i, [(home[1], 0), (alternate[1], 0)]);
    }
}

/// Makes one word of two reads of each bucket, `words` and `later`.
#[inline(always)]
fn join(places: &Places, words: &mut Words, later: &Words) {
    for i in 0..BLOCK {
        let [home, alternate] = places.bits(i);
        words.home[i] = joined([words.home[i], later.home[i]], home % 8);
        words.alternate[i] = joined([words.alternate[i], later.alternate[i]], alternate % 8);
    }
}

/// Shifts what was loaded from the byte that holds bit `offset` of each bucket, so that it begins with that bit.
#[inline(always)]
fn align(places: &Places, offset: u64, words: &mut Words) {
    for i in 0..BLOCK {
        let [home, alternate] = places.bits(i);
        words.home[i] >>= (home + offset) % 8;
        words.alternate[i] >>= (alternate + offset) % 8;
    }
}

/// The buckets of a block of places as registers, in columns.
#[repr(align(64))]
pub(crate) struct Words {
    home: Column,
    home_nibbles: Column,
    alternate: Column,
    alternate_nibbles: Column,
}

impl Words {
    pub(crate) fn new() -> Self {
        let column = [0; BLOCK];
        Self { home: column, home_nibbles: column, alternate: column, alternate_nibbles: column }
    }

    /// The nibbles of the upper halves of the buckets of which `lower` has all.
    #[inline(always)]
    fn take_nibbles(&mut self, lower: &Self) {
        for i in 0..BLOCK {
            self.home_nibbles[i] = lower.home_nibbles[i] >> 8;
            self.alternate_nibbles[i] = lower.alternate_nibbles[i] >> 8;
        }
    }

    /// The words of the buckets of place `i`, each beside its nibbles.
    #[inline(always)]
    pub(crate) fn set<const SORTED: bool>(&mut self, i: usize, [home, alternate]: [(u64, u64); 2]) {
        (self.home[i], self.alternate[i]) = (home.0, alternate.0);
        if SORTED {
            (self.home_nibbles[i], self.alternate_nibbles[i]) = (home.1, alternate.1);
        }
    }
}

/// Whether either word of each place has an entry that matches its key, in any of `words`.
#[inline(always)]
pub(crate) fn test<A: Addressing, const SORTED: bool>(
    lanes: &Lanes,
    places: &Places,
    words: &[Words],
    found: &mut [bool; BLOCK],
) {
    // Answers as bytes first: narrowed by one instruction, where a bool would be an exchange with a mask register.
    let mut bytes = [0_u8; BLOCK];
    for words in words {
        for (i, byte) in bytes.iter_mut().enumerate() {
            let home = (words.home[i], words.home_nibbles[i]);
            let alternate = (words.alternate[i], words.alternate_nibbles[i]);
            *byte |= A::matching_byte::<SORTED>(lanes, [home, alternate], A::keys(places, i));
        }
    }
    for (found, byte) in found.iter_mut().zip(bytes) {
        *found = byte != 0;
    }
}
