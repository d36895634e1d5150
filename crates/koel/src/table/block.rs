//! A block of places at once: their buckets asked for, loaded, and compared in vector code.

use super::{Addressing, Table};
use crate::geometry::{BLOCK, Column, Places};
use crate::layout::{Form, Lanes, Quad};
use crate::vector::InstructionSet;

/// Places worked on between two requests to the memory, so that neither waits for the other.
pub(crate) const GROUP: usize = 8;

impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// The places of the hashes that `hash` writes.
    #[inline]
    pub(crate) fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        places: &mut Places,
    ) {
        self.geometry.locate_many(set, self.lanes.bucket_bits(), hash, places);
    }

    /// `contains` for a block of places, whose buckets the memory was asked for, while it is asked for those of the `coming` block.
    pub(crate) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        match self.lanes.form() {
            Form::Plain => self.contains_block_in::<false>(set, (ready, coming), words, found),
            Form::Sorted => self.contains_block_in::<true>(set, (ready, coming), words, found),
            _ => {
                for (i, found) in found.iter_mut().enumerate() {
                    if i.is_multiple_of(GROUP) {
                        self.prefetch_group(coming, i);
                    }
                    *found = in_form!(self, either_matches(ready.buckets(i), A::keys(ready, i)));
                }
            }
        }
    }

    #[inline]
    fn contains_block_in<const SORTED: bool>(
        &self,
        set: InstructionSet,
        (ready, coming): (&Places, &Places),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        for first in (0..BLOCK).step_by(GROUP) {
            self.prefetch_group(coming, first);
            self.load_group::<SORTED>(ready, first, words);
        }
        set.run(
            #[inline(always)]
            || test::<A, SORTED>(&self.lanes, ready, words, found),
        );
    }

    /// Loads the buckets of the eight places from `first` on into `words`.
    #[inline(always)]
    fn load_group<const SORTED: bool>(&self, places: &Places, first: usize, words: &mut Words) {
        for i in first..first + GROUP {
            let [home, alternate] = places.bits(i).map(|bit| self.load_at::<u64, SORTED>(bit));
            words.set::<SORTED>(&self.lanes, i, [home, alternate]);
        }
    }

    /// Asks the memory for the buckets of the eight places from `first` on.
    #[inline(always)]
    pub(crate) fn prefetch_group(&self, places: &Places, first: usize) {
        for i in first..first + GROUP {
            for bit in places.bits(i) {
                self.prefetch(bit);
            }
        }
        // Half of the widest buckets end in another cache line than they start in.
        if self.lanes.form() == Form::Quad {
            for i in first..first + GROUP {
                for bit in places.bits(i) {
                    self.prefetch(bit + self.lanes.bucket_bits() - 1);
                }
            }
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

    /// The words of the buckets of place `i`.
    #[inline(always)]
    pub(crate) fn set<const SORTED: bool>(
        &mut self,
        lanes: &Lanes,
        i: usize,
        [home, alternate]: [u64; 2],
    ) {
        (self.home[i], self.alternate[i]) = (home, alternate);
        if SORTED {
            self.home_nibbles[i] = lanes.nibbles::<u64, SORTED>(home);
            self.alternate_nibbles[i] = lanes.nibbles::<u64, SORTED>(alternate);
        }
    }
}

/// Whether either word of each place has an entry that matches its key.
#[inline(always)]
pub(crate) fn test<A: Addressing, const SORTED: bool>(
    lanes: &Lanes,
    places: &Places,
    words: &Words,
    found: &mut [bool; BLOCK],
) {
    // Answers as bytes first: narrowed by one instruction, where a bool would be an exchange with a mask register.
    let mut bytes = [0_u8; BLOCK];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let home = (words.home[i], words.home_nibbles[i]);
        let alternate = (words.alternate[i], words.alternate_nibbles[i]);
        *byte = A::matching_byte::<SORTED>(lanes, [home, alternate], A::keys(places, i));
    }
    for (found, byte) in found.iter_mut().zip(bytes) {
        *found = byte != 0;
    }
}
