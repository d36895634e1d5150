//! A block of places at once: their buckets asked for, loaded, and compared in vector code.

use super::{Addressing, Table};
use crate::geometry::{BLOCK, Column, Places};
use crate::layout::{Form, Lanes, Quad};
use crate::vector::InstructionSet;

/// Places worked on between two requests to the memory, so that neither waits for the other.
pub(crate) const GROUP: usize = 8;

/// What a walk over blocks of keys asks of a table, of plain bytes or of atomic words.
pub(crate) trait Buckets {
    /// The places of the hashes that `hash` writes.
    fn locate_many(&self, set: InstructionSet, hash: impl FnOnce(&mut Column), places: &mut Places);

    /// Asks the memory for the buckets of the eight places from `first` on.
    fn prefetch_group(&self, places: &Places, first: usize);
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
    fn prefetch_group(&self, places: &Places, first: usize) {
        (*self).prefetch_group(places, first);
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
    fn prefetch_group(&self, places: &Places, first: usize) {
        for i in first..first + GROUP {
            for bit in places.bits(i) {
                self.prefetch(bit);
            }
        }
    }
}

impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// `contains` for a block of places, whose buckets the memory was asked for, while it is asked for those of the `coming` block.
    pub(crate) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        let places = (ready, coming);
        match self.lanes.form() {
            Form::Plain => self.contains_block_in::<false, false>(set, places, words, found),
            Form::Sorted => self.contains_block_in::<true, false>(set, places, words, found),
            Form::WidePlain => self.contains_block_in::<false, true>(set, places, words, found),
            Form::WideSorted => self.contains_block_in::<true, true>(set, places, words, found),
            Form::Quad => {
                for (i, found) in found.iter_mut().enumerate() {
                    if i.is_multiple_of(GROUP) {
                        self.prefetch_group(coming, i);
                    }
                    let keys = A::keys(ready, i);
                    *found = self.pair_matches_in::<Quad, false>(ready.buckets(i), keys);
                }
            }
        }
    }

    /// The halves of `WIDE` buckets are in the one and the other of `words`; narrow ones are in the first.
    #[inline]
    fn contains_block_in<const SORTED: bool, const WIDE: bool>(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        for first in (0..BLOCK).step_by(GROUP) {
            self.prefetch_group(coming, first);
            if WIDE {
                self.load_halves::<SORTED>(ready, first, words);
            } else {
                self.load_group::<SORTED>(ready, first, &mut words[0]);
            }
        }
        let (lanes, words) =
            if WIDE { (&self.half, &words[..]) } else { (&self.lanes, &words[..1]) };
        set.run(
            #[inline(always)]
            || test::<A, SORTED>(lanes, ready, words, found),
        );
    }

    /// Loads the buckets of the eight places from `first` on into `words`.
    #[inline(always)]
    fn load_group<const SORTED: bool>(&self, places: &Places, first: usize, words: &mut Words) {
        for i in first..first + GROUP {
            let pair = places.bits(i).map(|bit| self.load_at::<u64, SORTED>(bit));
            words.set::<SORTED>(i, self.lanes.opened::<SORTED>(pair));
        }
    }

    /// The same for wide buckets, half by half.
    #[inline(always)]
    fn load_halves<const SORTED: bool>(
        &self,
        places: &Places,
        first: usize,
        [lower, upper]: &mut [Words; 2],
    ) {
        for i in first..first + GROUP {
            let [home, alternate] = places.bits(i);
            let (home, alternate) =
                (self.halves_at::<SORTED>(home), self.halves_at::<SORTED>(alternate));
            lower.set::<SORTED>(i, [home[0], alternate[0]]);
            upper.set::<SORTED>(i, [home[1], alternate[1]]);
        }
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
