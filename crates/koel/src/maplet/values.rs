//! What a lookup in a maplet returns: the values of the slots that match, and those in the stash.

use core::fmt;

use crate::packing::Layout;
use crate::side::{Pair, Stash};
use crate::table::Candidates;

/// The values that may belong to a key, in no particular order. Empty by default. A pair in the
/// stash comes once, however many copies it has: so a forged file cannot make it endless.
#[derive(Clone)]
pub struct Values<'a> {
    slots: Candidates,
    /// Bits of a slot below the value. Not the layout: this makes the values of an absent key a
    /// constant, which lookups do not write to memory.
    fingerprint_bits: u32,
    /// The stash, while it may have more values, and the least pair that is still to come.
    stash: Option<&'a dyn Stash>,
    from: Pair,
}

impl<'a> Values<'a> {
    #[inline]
    pub(super) fn new(slots: Candidates, layout: Layout) -> Self {
        Self { slots, fingerprint_bits: layout.fingerprint_bits(), ..Self::default() }
    }

    /// These values, and then those that the key with this address has in the stash.
    pub(super) fn and(self, stash: &'a dyn Stash, address: u64) -> Self {
        Self { stash: Some(stash), from: (address, 0), ..self }
    }

    /// The next value of the stash.
    #[cold]
    #[inline(never)]
    fn next_stashed(&mut self) -> Option<u64> {
        let stash = self.stash.take()?;
        let (address, value) = stash.next_pair(self.from)?;
        if let Some(next) = value.checked_add(1) {
            (self.stash, self.from) = (Some(stash), (address, next));
        }
        Some(value)
    }
}

/// No values: those of an absent key.
impl Default for Values<'_> {
    #[inline]
    fn default() -> Self {
        Self { slots: Candidates::none(), fingerprint_bits: 0, stash: None, from: (0, 0) }
    }
}

impl Iterator for Values<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match self.slots.next() {
            Some(slot) => Some(slot >> self.fingerprint_bits),
            None if self.stash.is_none() => None,
            None => self.next_stashed(),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let mut left = self.slots.count_left();
        if self.stash.is_some() {
            let mut stashed = self.clone();
            left += core::iter::from_fn(|| stashed.next_stashed()).count();
        }
        (left, Some(left))
    }
}

impl ExactSizeIterator for Values<'_> {}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
