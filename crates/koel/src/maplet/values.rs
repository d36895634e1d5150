//! What a lookup in a maplet returns: the values of the slots that match, and those in the stash.

use crate::packing::Layout;
use crate::side::{Pair, Range};
use crate::table::Candidates;

/// The values that may belong to a key, in no particular order. Empty by default. A pair in the
/// stash comes once, however many copies it has: so a forged file cannot make it endless.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    slots: Candidates,
    /// Bits of a slot below the value. Not the layout: this makes the values of an absent key a
    /// constant, which lookups do not write to memory.
    fingerprint_bits: u32,
    /// Pairs in the stash that are still to come.
    pairs: Option<Range<'a, Pair>>,
    /// How many those are.
    stashed: usize,
}

impl<'a> Values<'a> {
    #[inline]
    pub(super) fn new(slots: Candidates, layout: Layout) -> Self {
        Self { slots, fingerprint_bits: layout.fingerprint_bits(), ..Self::default() }
    }

    /// These values, and then those of pairs.
    pub(super) fn and(self, pairs: Option<Range<'a, Pair>>) -> Self {
        let stashed = pairs.clone().map_or(0, Iterator::count);
        Self { pairs, stashed, ..self }
    }

    /// The next value of the stash.
    #[cold]
    #[inline(never)]
    fn next_stashed(&mut self) -> Option<u64> {
        self.stashed -= 1;
        self.pairs.as_mut()?.next().map(|((_, value), _)| value)
    }
}

/// No values: those of an absent key.
impl Default for Values<'_> {
    #[inline]
    fn default() -> Self {
        Self { slots: Candidates::none(), fingerprint_bits: 0, pairs: None, stashed: 0 }
    }
}

impl Iterator for Values<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match self.slots.next() {
            Some(slot) => Some(slot >> self.fingerprint_bits),
            None if self.stashed == 0 => None,
            None => self.next_stashed(),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.slots.count_left() + self.stashed;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Values<'_> {}
