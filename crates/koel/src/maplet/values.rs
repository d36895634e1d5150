//! What a lookup in a maplet gives: the values of the slots that match.

use crate::layout::Layout;
use crate::table::Candidates;

/// The values that may belong to a key: at most 8, in no particular order.
#[derive(Clone, Debug)]
pub struct Values {
    pub(super) slots: Candidates,
    pub(super) layout: Layout,
}

impl Iterator for Values {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.slots.next().map(|slot| self.layout.value_of(slot))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.slots.count_left();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Values {}
