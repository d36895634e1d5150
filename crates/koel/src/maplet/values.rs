//! What a lookup in a maplet returns: the values of the slots that match, and those in the stash.

use crate::packing::Layout;
use crate::side::{Pair, Range};
use crate::table::Candidates;

/// The values that may belong to a key, in no particular order. Empty by default.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    slots: Candidates,
    /// Bits of a slot below the value. Not the layout: this makes the values of an absent key a
    /// constant, which lookups do not write to memory.
    fingerprint_bits: u32,
    /// Pairs in the stash that are still to come.
    pairs: Option<Range<'a, Pair>>,
    /// A value of the stash, and how often it is still to come.
    again: (u64, u64),
    /// How many values of the stash are still to come.
    stashed: u64,
}

impl<'a> Values<'a> {
    #[inline]
    pub(super) fn new(slots: Candidates, layout: Layout) -> Self {
        Self { slots, fingerprint_bits: layout.fingerprint_bits(), ..Self::default() }
    }

    /// These values, and then the `stashed` ones of pairs.
    pub(super) fn and(self, stashed: u64, pairs: Option<Range<'a, Pair>>) -> Self {
        Self { pairs, stashed, ..self }
    }

    /// The next value of the stash.
    #[cold]
    #[inline(never)]
    fn next_stashed(&mut self) -> Option<u64> {
        if self.again.1 == 0 {
            let ((_, value), copies) = self.pairs.as_mut()?.next()?;
            self.again = (value, copies);
        }
        self.again.1 -= 1;
        self.stashed -= 1;
        Some(self.again.0)
    }
}

/// No values: those of an absent key.
impl Default for Values<'_> {
    #[inline]
    fn default() -> Self {
        let (slots, pairs) = (Candidates::none(), None);
        Self { slots, fingerprint_bits: 0, pairs, again: (0, 0), stashed: 0 }
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
        let stashed = usize::try_from(self.stashed).unwrap_or(usize::MAX);
        let left = self.slots.count_left().saturating_add(stashed);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Values<'_> {}
