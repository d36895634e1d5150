//! What a counting filter knows besides its slots: its pairs of keys and counts, the counters of counts too large for a slot, and the sum of all.
//!
//! `built.rs` and `grown.rs` have the rules for the one and the other table. An entry counts by the same rule in both: what fits into its slot stays there, from the largest value on its
//! counter goes up, and a removal takes from that first.

use super::super::pairs::Pairs;
use crate::counters::{Counters, Identity, ReadCounters};
use crate::error::Full;
use crate::filter::Profile;
use crate::layout::Layout;

/// The pairs, the counters and the sum.
#[derive(Clone)]
pub(super) struct Tally<C> {
    pub(super) pairs: Pairs,
    /// What keys came more often than a slot can say.
    pub(super) counters: C,
    /// Keys inserted and not removed, each as often as it was inserted.
    pub(super) len: u64,
}

/// A slot that counts a key, and the name of its entry.
pub(super) type Held = (u64, Identity);

/// Whether a slot says the largest count: its entry may have a counter, and no other does.
pub(super) fn is_full(layout: Layout, slot: u64) -> bool {
    layout.value_of(slot) == layout.largest_value()
}

impl<C: Default> Tally<C> {
    /// That of an empty filter.
    pub(super) fn none(profile: Profile) -> Self {
        Self { pairs: Pairs::none(profile), counters: C::default(), len: 0 }
    }
}

impl<C: ReadCounters> Tally<C> {
    /// What an entry counts: its slot, and its counter.
    #[inline]
    pub(super) fn total(&self, layout: Layout, (slot, identity): Held) -> u64 {
        let count = layout.value_of(slot);
        count.saturating_add(self.counted(layout, count, identity))
    }

    /// What the counter of an entry says whose slot says `count`.
    #[inline]
    pub(super) fn counted(&self, layout: Layout, count: u64, identity: Identity) -> u64 {
        if count == layout.largest_value() { self.counters.get(identity) } else { 0 }
    }
}

/// Equal, but for the working memory and what a file does not say.
impl PartialEq for Tally<Counters> {
    fn eq(&self, other: &Self) -> bool {
        self.pairs.profile == other.pairs.profile
            && self.counters == other.counters
            && self.len == other.len
    }
}

impl Tally<Counters> {
    /// Counts an entry so many `times` more, as far as its slot cannot: what the slot is to say then, and what the counter says.
    pub(super) fn raise(
        &mut self,
        layout: Layout,
        (slot, identity): Held,
        times: u64,
    ) -> Result<(u64, u64), Full> {
        let count = layout.value_of(slot);
        let in_slot = count.saturating_add(times).min(layout.largest_value());
        let beyond = times - (in_slot - count);
        let counted = if beyond > 0 {
            self.counters.add(identity, beyond, u64::MAX)?
        } else {
            self.counted(layout, in_slot, identity)
        };
        Ok((in_slot, counted))
    }

    /// Counts an entry once less: what its slot is to say then.
    pub(super) fn lower(&mut self, layout: Layout, (slot, identity): Held) -> u64 {
        let count = layout.value_of(slot);
        let from_counter = count == layout.largest_value() && self.counters.take(identity);
        if from_counter { count } else { count - 1 }
    }
}
