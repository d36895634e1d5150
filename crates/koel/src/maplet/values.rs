//! What a lookup in a maplet returns: the values of the slots that match.

use crate::packing::Layout;
use crate::table::Candidates;

/// The values that may belong to a key: at most 8, in no particular order. Empty by default.
#[derive(Clone, Debug)]
pub struct Values {
    slots: Candidates,
    /// Bits of a slot below the value. Not the layout: this makes the values of an absent key a
    /// constant, which lookups do not write to memory.
    fingerprint_bits: u32,
}

impl Values {
    #[inline]
    pub(super) fn new(slots: Candidates, layout: Layout) -> Self {
        Self { slots, fingerprint_bits: layout.fingerprint_bits() }
    }
}

/// No values: those of an absent key.
impl Default for Values {
    #[inline]
    fn default() -> Self {
        Self { slots: Candidates::none(), fingerprint_bits: 0 }
    }
}

impl Iterator for Values {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.slots.next().map(|slot| slot >> self.fingerprint_bits)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.slots.count_left();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Values {}
